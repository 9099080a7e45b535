/// Calling functions of the graph's library from kernels.
#ifndef TROUPE_KERNELS_FUNCTION_RUNNER_H_
#define TROUPE_KERNELS_FUNCTION_RUNNER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

class NameAttrList;

/// Where the results of a call from a device with a memory of its own are left.
enum class ResultsIn : uint8_t {
  kPlace,  ///< Where kernels for any type of device expect them (`MayBeOnDevice`).
  kHost,
};

/// A function whose body has been compiled. Lives as long as its runner. Thread-safe.
class CallableFunction {
 public:
  virtual ~CallableFunction() = default;
  virtual int num_args() const = 0;
  virtual int num_results() const = 0;
  virtual ElementType arg_type(int i) const = 0;
  virtual ElementType result_type(int i) const = 0;
  /// Begins a call; `done` is called when the results are there or the call has failed, possibly
  /// before this returns, on any thread. `args`: num_args() tensors, moved from; `results`:
  /// num_results() tensors that live until `done`. `step` is the caller's; it lives until `done`.
  /// Arguments for a device may be on the host or in its memory.
  /// InvalidArgument: arguments that do not fit; ResourceExhausted: calls nested too deep. A call
  /// that throws was not begun: `done` is not called.
  virtual void Call(const StepContext& step, absl::Span<Tensor> args, Tensor* results,
                    ResultsIn where, KernelDone done) = 0;
  /// The same with a kernel's inputs from `first_input` on as arguments (those that nobody else
  /// uses are moved), and its outputs as results. `step` need not outlive the function's return.
  virtual void Call(KernelContext& ctx, const StepContext& step, int first_input, ResultsIn where,
                    KernelDone done) = 0;
  void Call(KernelContext& ctx, int first_input, KernelDone done) {
    Call(ctx, ctx.step(), first_input, ResultsIn::kPlace, done);
  }
};

/// The functions of a session's graph. Thread-safe.
class FunctionRunner {
 public:
  virtual ~FunctionRunner() = default;
  /// The function with its attributes bound, compiled. NotFound if the library has no such
  /// function, or the body's own error.
  virtual absl::StatusOr<CallableFunction*> Find(const NameAttrList& function) = 0;
  /// `step` on the device of this process that `device`, a name which may be partial, means.
  /// InvalidArgument if there is none.
  virtual absl::StatusOr<StepContext> OnDevice(const StepContext& step,
                                               const std::string& device) = 0;
};

/// A function that a kernel calls: found when it is first called, and then at hand. Thread-safe.
class FunctionReference {
 public:
  /// `function` is copied. The function must take and give tensors of these types.
  FunctionReference(const NameAttrList& function, std::vector<ElementType> args,
                    std::vector<ElementType> results);
  FunctionReference(FunctionReference&&) noexcept;
  ~FunctionReference();

  /// The function as it was found; nullptr: nobody has called it yet.
  CallableFunction* found() const {
    return runner_.load(std::memory_order_acquire) == nullptr ? nullptr : function_;
  }
  /// nullptr with the reason in `status`: FailedPrecondition without functions, InvalidArgument if
  /// the types differ, or what the runner says.
  CallableFunction* Get(const StepContext& step, absl::Status* status) {
    if (step.functions != nullptr && runner_.load(std::memory_order_acquire) == step.functions) {
      return function_;
    }
    return Find(step, status);
  }

 private:
  CallableFunction* Find(const StepContext& step, absl::Status* status);

  std::unique_ptr<NameAttrList> name_;
  std::vector<ElementType> args_, results_;
  std::mutex mutex_;
  CallableFunction* function_ = nullptr;  ///< Written once, before `runner_`.
  std::atomic<FunctionRunner*> runner_{nullptr};
};

/// The functions that have been found.
inline std::vector<CallableFunction*> FoundOf(absl::Span<const FunctionReference* const> all) {
  std::vector<CallableFunction*> found;
  for (const FunctionReference* one : all) {
    if (CallableFunction* const function = one->found()) found.push_back(function);
  }
  return found;
}

/// A kernel that calls functions.
class FunctionCaller {
 public:
  virtual ~FunctionCaller() = default;
  /// Those that it has called.
  virtual std::vector<CallableFunction*> Called() const = 0;
};

/// The kernel of a node whose op is a function of the library.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFunctionCall(KernelConstruction& construction);

}  // namespace troupe

#endif  // TROUPE_KERNELS_FUNCTION_RUNNER_H_
