// Frames between actors: whatever they say, the process goes on and its actors answer.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/api/actor_pair.h"

namespace troupe {
namespace {

/// The two processes, made anew now and then.
struct Fixture {
  Fixture() : pair(std::make_unique<ActorPair>()) {
    published = std::make_unique<PublishedActor>(
        *pair->task()->Publish("it", pair->task()->system().spawn([]() -> caf::behavior {
          return {[](ask_atom, const std::vector<Tensor>& tensors) { return tensors; }};
        }),
                               {}, absl::Seconds(1)));
  }
  ~Fixture() { published.reset(); }
  std::unique_ptr<ActorPair> pair;
  std::unique_ptr<PublishedActor> published;
  int inputs = 0;
};

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using troupe::Tensor;
  static auto* fixture = new std::unique_ptr<troupe::Fixture>;
  if (*fixture == nullptr || ++(*fixture)->inputs == 20000) {
    fixture->reset();
    *fixture = std::make_unique<troupe::Fixture>();
  }
  if (size == 0) return 0;
  // The first byte: to whom, and how many tensors come beside it.
  const std::string frame(reinterpret_cast<const char*>(data) + 1, size - 1);
  (*fixture)->pair->Deliver(data[0] & 1, frame,
                            std::vector<Tensor>((data[0] >> 1) % 3, Tensor::Scalar<float>(1)));
  (*fixture)->pair->Arrive();
  return 0;
}
