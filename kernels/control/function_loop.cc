// While and For as calls of functions, one after the other.
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"
#include "kernels/cancellation.h"
#include "kernels/common/registration.h"
#include "kernels/control/truth.h"
#include "kernels/function_runner.h"

namespace troupe {
namespace {

using Types = std::vector<ElementType>;

/// One execution of a loop. Calls that are over before they return, and those that are not, lead to
/// the same place without growing the stack: whoever is second, the caller or the completion, goes
/// on.
struct LoopRun {
  enum class Phase : uint8_t { kCalling, kReturned, kOver };

  KernelContext* ctx = nullptr;
  KernelDone done{};
  CallableFunction* cond = nullptr;  ///< nullptr in a For.
  CallableFunction* body = nullptr;
  std::vector<Tensor> values;
  std::vector<Tensor>
      args;  ///< Copies for the condition; the index and the values for a For's body.
  Tensor go_on;
  bool in_cond = false;
  std::atomic<Phase> phase{Phase::kCalling};
  absl::Status status;
  int64_t index = 0, limit = 0, delta = 0;
};

/// What While and For share: a pool of runs, and going round.
class LoopKernel : public AsyncKernel, public FunctionCaller {
 protected:
  LoopRun* NewRun() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      free_.reserve(runs_.size() + 1);  // So that giving back never allocates.
      runs_.push_back(std::make_unique<LoopRun>());
      return runs_.back().get();
    }
    LoopRun* run = free_.back();
    free_.pop_back();
    return run;
  }

  void Begin(LoopRun* run, KernelContext& ctx, int first_input, KernelDone done) {
    run->ctx = &ctx;
    run->done = done;
    run->in_cond = false;
    run->status = CatchExceptions([&] {
      for (int i = first_input; i < ctx.num_inputs(); ++i) {
        run->values.push_back(ctx.TakeInput(i));
      }
      run->args.resize(run->values.size() + 1);
      return absl::OkStatus();
    });
    GoOn(run);
  }

  /// Goes on where a call is over.
  void GoOn(LoopRun* run) noexcept {
    while (run->status.ok()) {
      if (run->ctx->cancellation()->cancelled()) {
        run->status = run->ctx->cancellation()->status();
        break;
      }
      run->phase.store(LoopRun::Phase::kCalling, std::memory_order_relaxed);
      bool called = false;
      try {
        called = CallNext(run);
      } catch (...) {  // Then nothing was called.
        run->status = StatusOfException();
      }
      if (!called) break;
      if (run->phase.exchange(LoopRun::Phase::kReturned, std::memory_order_acq_rel) !=
          LoopRun::Phase::kOver) {
        return;  // The completion goes on.
      }
    }
    End(run);
  }

  KernelDone Completion(LoopRun* run) { return {&LoopKernel::CallOver, this, run}; }

  /// Begins the next call; false at the end.
  virtual bool CallNext(LoopRun* run) = 0;

 private:
  /// Functions leave nothing to their callers' players.
  static void CallOver(void* self, void* node, absl::Status status, Player,
                       std::unique_ptr<KernelRest>) {
    auto* run = static_cast<LoopRun*>(node);
    run->status = std::move(status);
    if (run->phase.exchange(LoopRun::Phase::kOver, std::memory_order_acq_rel) ==
        LoopRun::Phase::kReturned) {
      static_cast<LoopKernel*>(self)->GoOn(run);
    }
  }

  void End(LoopRun* run) {
    if (run->status.ok()) {
      for (size_t i = 0; i < run->values.size(); ++i) {
        run->ctx->set_output(static_cast<int>(i), std::move(run->values[i]));
      }
    }
    const KernelDone done = run->done;
    const absl::Status status = std::exchange(run->status, absl::OkStatus());
    run->values.clear();
    run->args.clear();
    run->go_on.Reset();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      free_.push_back(run);
    }
    done(status, Player::kPlays);  // As the last call's player, or within ComputeAsync.
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<LoopRun>> runs_;
  std::vector<LoopRun*> free_;
};

Types InputTypes(const KernelConstruction& c, int first) {
  Types types;
  for (int i = first; i < c.num_inputs(); ++i) types.push_back(c.input_type(i));
  return types;
}

class While : public LoopKernel {
 public:
  While(const NameAttrList& cond, const NameAttrList& body, KernelConstruction& c)
      : cond_(cond, InputTypes(c, 0), {ElementType::kInvalid}),
        body_(body, InputTypes(c, 0), InputTypes(c, 0)) {}

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::Status status;
    CallableFunction* cond = cond_.Get(ctx.step(), &status);
    if (cond == nullptr) return done(status);
    CallableFunction* body = body_.Get(ctx.step(), &status);
    if (body == nullptr) return done(status);
    LoopRun* run = NewRun();
    run->cond = cond;
    run->body = body;
    Begin(run, ctx, 0, done);
  }
  std::vector<CallableFunction*> Called() const override { return FoundOf({&cond_, &body_}); }

 private:
  bool CallNext(LoopRun* run) override {
    const StepContext& step = run->ctx->step();
    const size_t n = run->values.size();
    if (!run->in_cond) {
      run->in_cond = true;
      for (size_t i = 0; i < n; ++i) run->args[i] = run->values[i];
      run->cond->Call(step, absl::MakeSpan(run->args.data(), n), &run->go_on, ResultsIn::kHost,
                      Completion(run));
      return true;
    }
    run->in_cond = false;
    absl::StatusOr<bool> truth = TruthOf(run->go_on);
    if (!truth.ok()) run->status = truth.status();
    if (!truth.ok() || !*truth) return false;
    // The values are the body's alone, so that it can work in place.
    run->body->Call(step, absl::MakeSpan(run->values), run->values.data(), ResultsIn::kPlace,
                    Completion(run));
    return true;
  }

  FunctionReference cond_, body_;
};

class For : public LoopKernel {
 public:
  For(const NameAttrList& body, KernelConstruction& c)
      // The arguments of the body: the index, then the values.
      : body_(body, InputTypes(c, 2), InputTypes(c, 3)) {}

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    static constexpr const char* kNames[] = {"start", "limit", "delta"};
    int64_t bounds[3];
    for (int i = 0; i < 3; ++i) {
      if (ctx.input(i).rank() != 0) {
        return done(InvalidArgument(kNames[i], " must be a scalar, got shape ",
                                    ctx.input(i).shape().ToString()));
      }
      bounds[i] = ctx.input(i).unchecked_scalar<int32_t>();
    }
    const auto [start, limit, delta] = bounds;
    if (start != limit && !(delta > 0 && start < limit) && !(delta < 0 && start > limit)) {
      return done(InvalidArgument("a loop from ", start, " to ", limit, " in steps of ", delta,
                                  " never ends: the step must lead from start to limit"));
    }
    absl::Status status;
    CallableFunction* body = body_.Get(ctx.step(), &status);
    if (body == nullptr) return done(status);
    LoopRun* run = NewRun();
    run->body = body;
    run->index = start;
    run->limit = limit;
    run->delta = delta;
    Begin(run, ctx, 3, done);
  }
  std::vector<CallableFunction*> Called() const override { return FoundOf({&body_}); }

 private:
  bool CallNext(LoopRun* run) override {
    if (run->delta > 0 ? run->index >= run->limit : run->index <= run->limit) return false;
    run->args[0] = Tensor::Scalar(static_cast<int32_t>(run->index));
    run->index += run->delta;
    for (size_t i = 0; i < run->values.size(); ++i) run->args[i + 1] = std::move(run->values[i]);
    run->body->Call(run->ctx->step(), absl::MakeSpan(run->args), run->values.data(),
                    ResultsIn::kPlace, Completion(run));
    return true;
  }

  FunctionReference body_;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeWhile(KernelConstruction& c) {
  const NameAttrList *cond = nullptr, *body = nullptr;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("cond", &cond));
  TROUPE_RETURN_IF_ERROR(c.GetAttr("body", &body));
  return std::unique_ptr<Kernel>(std::make_unique<While>(*cond, *body, c));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFor(KernelConstruction& c) {
  const NameAttrList* body = nullptr;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("body", &body));
  return std::unique_ptr<Kernel>(std::make_unique<For>(*body, c));
}

// The values of a loop stay where they are.
KernelSpec InPlace(const char* op) { return Cheap(op).Device("DEFAULT"); }

REGISTER_KERNELS(InPlace("While"), MakeWhile, "StatelessWhile");
REGISTER_KERNEL(InPlace("For"), MakeFor);

}  // namespace
}  // namespace troupe
