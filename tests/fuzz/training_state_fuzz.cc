// The file of states beside a checkpoint, from outside. If the first byte is even, the rest is the
// file; else it is records, each after two bytes with its length, so that checksums are right. What
// can be read is written and read again.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "actors/state/containers.h"
#include "api/internal/training_state.h"
#include "devices/allocator.h"
#include "devices/storage/record_writer.h"
#include "graph/protos/training_state.pb.h"
#include "kernels/sync/synchronizer_options.h"
#include "tests/devices/storage/scheme_disk.h"
#include "tests/devices/storage/storage_test_util.h"

namespace {

bool Equal(const std::vector<troupe::Tuple>& a, const std::vector<troupe::Tuple>& b) {
  const auto equal = [](const troupe::Tuple& x, const troupe::Tuple& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto& s, const auto& t) {
      return s.valid() == t.valid() && (!s.valid() || troupe::Difference(s, t).empty());
    });
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

/// Something of the state's kind, if nodes need not say more of it.
troupe::RefPtr<troupe::Resource> Made(const troupe::ResourceState& state) {
  const auto make = [](auto options) -> troupe::RefPtr<troupe::Resource> {
    auto made = troupe::MakeSynchronizer("it", {std::move(options)});
    return made.ok() ? *std::move(made) : nullptr;
  };
  if (std::holds_alternative<troupe::StagingAreaState>(state)) {
    return make(troupe::StagingAreaOptions());
  }
  if (std::holds_alternative<troupe::StagingMapState>(state)) {
    return make(troupe::StagingMapOptions());
  }
  if (std::holds_alternative<troupe::BarrierState>(state)) {
    return make(troupe::BarrierOptions{{troupe::ElementType::kFloat}, {troupe::Shape()}});
  }
  if (const auto* sum = std::get_if<troupe::AccumulatorState>(&state)) {
    static troupe::Containers containers;
    const bool sparse = !sum->indices.empty();
    return containers.MakeAccumulator(
        "it", {troupe::ElementType::kFloat, troupe::PartialShape(), true, sparse});
  }
  return nullptr;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::HostAllocator()->set_limit(64 << 20);  // claims of gigabytes cost only time
  static troupe::SchemeDisk* const disk = troupe::SchemeDisk::Register("fuzz");
  if (size == 0) return 0;
  disk->Clear();
  disk->CreateDirectories("fuzz://d").IgnoreError();
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    disk->Put("fuzz://d/m.troupe-state", bytes);
  } else {
    const auto writer = troupe::RecordWriter::Create(disk, "fuzz://d/m.troupe-state");
    if (!writer.ok()) std::abort();
    for (size_t at = 0; at + 2 <= bytes.size();) {
      const auto low = static_cast<uint8_t>(bytes[at]), high = static_cast<uint8_t>(bytes[at + 1]);
      const std::string record = bytes.substr(at + 2, low | high << 8);
      at += 2 + record.size();
      if (!(*writer)->Write(record).ok()) std::abort();
    }
    if (!(*writer)->Close().ok()) std::abort();
  }
  const auto state = troupe::ReadTrainingState("fuzz://d/m");
  if (!state.ok()) return 0;
  if (!troupe::WriteTrainingState("fuzz://d/copy", *state).ok()) std::abort();
  const auto copy = troupe::ReadTrainingState("fuzz://d/copy");
  if (absl::IsResourceExhausted(copy.status())) return 0;
  if (!copy.ok() || copy->global_step != state->global_step || copy->kernels != state->kernels ||
      copy->queues.size() != state->queues.size() ||
      copy->variables.size() != state->variables.size() ||
      copy->resources.size() != state->resources.size()) {
    std::abort();
  }
  for (size_t i = 0; i < state->resources.size(); ++i) {
    troupe::ResourceStateDef before, after;
    const auto tuples = troupe::StateToDef(state->resources[i].state, &before);
    const auto again = troupe::StateToDef(copy->resources[i].state, &after);
    if (before.SerializeAsString() != after.SerializeAsString() || !Equal(tuples, again)) {
      std::abort();
    }
    // Nobody breaks on being given it.
    troupe::RefPtr<troupe::Resource> resource = Made(state->resources[i].state);
    if (resource) {
      troupe::RestoreResource(resource.get(), state->resources[i].state,
                              [](const absl::Status&) {});
      auto* const sum = dynamic_cast<troupe::Accumulator*>(resource.get());
      if (sum != nullptr && sum->NumAccumulated() > 0) {
        sum->TakeGradient(1, nullptr, [](const auto&) {});
      }
    }
  }
  for (const auto& [name, queue] : state->queues) {
    const auto& again = copy->queues.at(name);
    if (again.closed != queue.closed || again.closing != queue.closing ||
        again.generator != queue.generator || !Equal(again.elements, queue.elements) ||
        !Equal(again.waiting, queue.waiting)) {
      std::abort();
    }
  }
  for (const auto& [name, value] : state->variables) {
    if (!troupe::Difference(copy->variables.at(name), value).empty()) std::abort();
  }
  return 0;
}
