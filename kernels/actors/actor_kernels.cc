// AskActor, TellActor.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/actors/tensor_actor.h"
#include "kernels/cancellation.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

std::vector<Tensor> Inputs(KernelContext& ctx) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < ctx.num_inputs(); ++i) inputs.push_back(ctx.input(i));
  return inputs;
}

class AskActorKernel final : public AsyncKernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(KernelConstruction& construction) {
    auto kernel = std::make_unique<AskActorKernel>();
    int64_t timeout = -1;
    auto expected = std::make_shared<Expected>();
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("actor", &expected->actor));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("timeout_ms", &timeout));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("shapes", &expected->shapes));
    for (int i = 0; i < construction.num_outputs(); ++i) {
      expected->types.push_back(construction.output_type(i));
    }
    kernel->timeout_ = timeout < 0 ? absl::InfiniteDuration() : absl::Milliseconds(timeout);
    kernel->expected_ = std::move(expected);
    return kernel;
  }

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    auto actor = TensorActors::Global()->Find(expected_->actor);
    if (!actor.ok()) return done(actor.status());
    auto waiting = std::make_shared<Waiting>(&ctx, done, *actor, expected_);
    std::vector<Tensor> inputs = Inputs(ctx);
    CancellationToken* const token = ctx.cancellation();
    if (!token->Register([waiting, token] { waiting->Cancel(token->status()); },
                         &waiting->callback)) {
      return done(token->status());
    }
    // From here on the answer is what calls `done`, errors included.
    try {
      const uint64_t request = (*actor)->Ask(
          std::move(inputs), timeout_, [waiting](absl::StatusOr<std::vector<Tensor>> outputs) {
            waiting->OnAnswer(std::move(outputs));
          });
      waiting->request = request;
      if (waiting->answered) (*actor)->Forget(request);
    } catch (...) {
      waiting->OnAnswer(StatusOfException());
    }
  }

 private:
  struct Expected {
    std::string actor;
    std::vector<ElementType> types;
    std::vector<PartialShape> shapes;  ///< As many, or none.
  };

  /// One execution, until it has been answered.
  struct Waiting {
    Waiting(KernelContext* c, KernelDone d, std::shared_ptr<TensorActor> a,
            std::shared_ptr<const Expected> e)
        : ctx(c), done(d), actor(std::move(a)), expected(std::move(e)) {}

    void Cancel(absl::Status why) {
      if (answered.exchange(true)) return;
      if (const uint64_t id = request) actor->Forget(id);
      done(std::move(why));
    }
    void OnAnswer(absl::StatusOr<std::vector<Tensor>> outputs) {
      if (answered.exchange(true)) return;
      ctx->cancellation()->Deregister(callback);
      absl::Status status = outputs.status();
      if (status.ok()) status = CatchExceptions([&] { return Check(*outputs); });
      if (status.ok()) {
        for (size_t i = 0; i < outputs->size(); ++i) {
          ctx->set_output(static_cast<int>(i), std::move((*outputs)[i]));
        }
      }
      done(std::move(status));
    }
    absl::Status Check(const std::vector<Tensor>& outputs) const {
      if (outputs.size() != expected->types.size()) {
        return InvalidArgument("actor ", expected->actor, " answered ", outputs.size(),
                               " tensors, not ", expected->types.size());
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!outputs[i].valid() || outputs[i].type() != expected->types[i]) {
          return InvalidArgument("tensor ", i, " that actor ", expected->actor, " answered is ",
                                 outputs[i].valid() ? ElementTypeName(outputs[i].type()) : "none",
                                 ", not ", ElementTypeName(expected->types[i]));
        }
        if (expected->shapes.empty()) continue;
        if (!expected->shapes[i].IsCompatibleWith(outputs[i].shape())) {
          return InvalidArgument("tensor ", i, " that actor ", expected->actor,
                                 " answered is of shape ", outputs[i].shape().ToString(), ", not ",
                                 expected->shapes[i].ToString());
        }
      }
      return absl::OkStatus();
    }

    KernelContext* const ctx;  ///< Until it is answered.
    const KernelDone done;
    const std::shared_ptr<TensorActor> actor;
    const std::shared_ptr<const Expected> expected;
    uint64_t callback = 0;
    std::atomic<uint64_t> request{0};
    std::atomic<bool> answered{false};
  };

  absl::Duration timeout_;
  std::shared_ptr<const Expected> expected_;
};

absl::Status TellActor(KernelContext& ctx, const std::string& name) {
  TROUPE_ASSIGN_OR_RETURN(const auto actor, TensorActors::Global()->Find(name));
  return actor->Tell(Inputs(ctx));
}

REGISTER_KERNEL(KernelSpec("AskActor"), AskActorKernel::Create);
REGISTER_KERNEL(KernelSpec("TellActor"), (MakeAttrKernel<TellActor, "actor">));

}  // namespace
}  // namespace troupe
