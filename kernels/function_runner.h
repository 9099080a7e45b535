/// Calling functions of the graph's library from kernels.
#ifndef TROUPE_KERNELS_FUNCTION_RUNNER_H_
#define TROUPE_KERNELS_FUNCTION_RUNNER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

class NameAttrList;

/// A function whose body has been compiled. Lives as long as its runner. Thread-safe.
class CallableFunction {
 public:
  virtual ~CallableFunction() = default;
  virtual int num_args() const = 0;
  virtual int num_results() const = 0;
  /// Begins a call; `done` is called when the results are there or the call has failed, possibly
  /// before this returns, on any thread. `args`: num_args() tensors, used only during this call;
  /// `results`: num_results() tensors that live until `done`. `step` is the caller's; it lives
  /// until `done`. InvalidArgument: arguments that do not fit; ResourceExhausted: calls nested too
  /// deep.
  virtual void Call(const StepContext& step, absl::Span<const Tensor> args, Tensor* results,
                    KernelDone done) = 0;
};

/// The functions of a session's graph. Thread-safe.
class FunctionRunner {
 public:
  virtual ~FunctionRunner() = default;
  /// The function with its attributes bound; its body is compiled by the first call. NotFound if
  /// the library has no such function, or the body's own error.
  virtual absl::StatusOr<CallableFunction*> Find(const NameAttrList& function) = 0;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_FUNCTION_RUNNER_H_
