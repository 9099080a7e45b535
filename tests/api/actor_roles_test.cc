// Which thread does what for who asks a handle of a queue or accumulator.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "actors/runtime.h"
#include "api/internal/actor_host.h"
#include "kernels/queues/accumulator.h"
#include "kernels/queues/queue.h"

namespace troupe {
namespace {

/// An answer, and the thread that gave it.
struct Answer {
  std::thread::id thread;
  std::vector<Tensor> tensors;
};

/// Whoever sends to it runs this.
class Asker : public caf::monitorable_actor {
 public:
  explicit Asker(caf::actor_config& config) : caf::monitorable_actor(config) {}
  const char* name() const override { return "asker"; }
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    Answer answer{std::this_thread::get_id(), {}};
    if (what->content().match_elements<std::vector<Tensor>>()) {
      answer.tensors = what->content().get_as<std::vector<Tensor>>(0);
    }
    answer_.set_value(std::move(answer));
  }
  std::promise<Answer> answer_;
};

class ActorRolesTest : public testing::Test {
 protected:
  Containers* containers() { return &runtime_->devices()[0]->containers; }
  caf::strong_actor_ptr Find(ActorKind kind) {
    auto found = MakeRoleActor(system_, runtime_, {}, kind, "it");
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }
  /// `content` is sent to `role`, then `then` is called.
  template <typename Then, typename... T>
  Answer Ask(const caf::strong_actor_ptr& role, const Then& then, T&&... content) {
    caf::actor_config config;
    const auto asker = caf::make_actor<Asker, caf::strong_actor_ptr>(
        system_.next_actor_id(), system_.node(), &system_, config);
    std::future<Answer> answer = static_cast<Asker*>(asker->get())->answer_.get_future();
    role->enqueue(caf::make_mailbox_element(asker, caf::make_message_id(1), {},
                                            caf::make_message(std::forward<T>(content)...)),
                  nullptr);
    then();
    return answer.get();
  }

  const std::shared_ptr<Runtime> runtime_ = *Runtime::Create({.threads = 2});
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
};

// Whoever serves a call may be a reader of the transport, or play a step.
TEST_F(ActorRolesTest, LargeBatchesAreStackedByThePool) {
  for (const int64_t rows : {16, 1 << 18}) {
    QueueOptions options;
    options.types = {ElementType::kFloat};
    options.shapes = {PartialShape(Shape({rows}))};
    ASSERT_TRUE(containers()
                    ->FindOrCreate("", "it",
                                   [&]() -> absl::StatusOr<RefPtr<Resource>> {
                                     return containers()->MakeQueue("it", options);
                                   })
                    .ok());
    auto queue = *FindWaiting<Queue>(containers(), "", "it");
    const auto put = [&] {
      for (const float value : {1.f, 2.f}) {
        Tensor tensor = *Tensor::Allocate(ElementType::kFloat, Shape({rows}), HostAllocator());
        std::fill_n(tensor.mutable_data<float>(), rows, value);
        queue->Enqueue({tensor}, nullptr, [](const auto& done) { EXPECT_TRUE(done.ok()); });
      }
    };
    const Answer answer = Ask(Find(ActorKind::kQueue), put, caf::get_atom_v, int64_t{2});
    EXPECT_EQ(answer.thread == std::this_thread::get_id(), rows == 16);
    ASSERT_EQ(answer.tensors.size(), 1u);
    EXPECT_EQ(answer.tensors[0].shape(), Shape({2, rows}));
    EXPECT_EQ(answer.tensors[0].unchecked_values<float>()[0], 1);
    EXPECT_EQ(answer.tensors[0].unchecked_values<float>()[2 * rows - 1], 2);
    containers()->Reset("");
  }
}

TEST_F(ActorRolesTest, LargeGradientsAreDividedByThePool) {
  for (const int64_t rows : {16, 1 << 20}) {
    AccumulatorOptions options;
    options.type = ElementType::kFloat;
    options.shape = PartialShape(Shape({rows}));
    ASSERT_TRUE(containers()
                    ->FindOrCreate("", "it",
                                   [&]() -> absl::StatusOr<RefPtr<Resource>> {
                                     return containers()->MakeAccumulator("it", options);
                                   })
                    .ok());
    const auto role = Find(ActorKind::kAccumulator);
    for (const float value : {1.f, 4.f}) {
      Tensor tensor = *Tensor::Allocate(ElementType::kFloat, Shape({rows}), HostAllocator());
      std::fill_n(tensor.mutable_data<float>(), rows, value);
      const Answer put = Ask(
          role, [] {}, caf::put_atom_v, int64_t{0}, std::vector<Tensor>{tensor});
      EXPECT_EQ(put.thread == std::this_thread::get_id(), rows == 16);
    }
    const Answer mean = Ask(
        role, [] {}, caf::get_atom_v, int64_t{2});
    EXPECT_EQ(mean.thread == std::this_thread::get_id(), rows == 16);
    ASSERT_EQ(mean.tensors.size(), 1u);
    EXPECT_EQ(mean.tensors[0].unchecked_values<float>()[0], 2.5f);
    EXPECT_EQ(mean.tensors[0].unchecked_values<float>()[rows - 1], 2.5f);
    containers()->Reset("");
  }
}

}  // namespace
}  // namespace troupe
