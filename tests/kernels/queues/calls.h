/// Kernels of queues and accumulators, called by hand, which may wait.
///
///     Calls calls;
///     calls.Attr("component_types", ...);
///     Tensor queue = calls.Make("FIFOQueueV2");
///     auto taking = calls.Start("QueueDequeueV2", {queue}, {ElementType::kInt32});
///     EXPECT_FALSE(taking->done());
#ifndef TROUPE_TESTS_KERNELS_QUEUES_CALLS_H_
#define TROUPE_TESTS_KERNELS_QUEUES_CALLS_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cancellation.h"
#include "tests/kernels/data/step_runner.h"

namespace troupe::testing {

/// A call of a kernel, in a step of its own, whose player is whoever asks for the status.
/// Thread-safe.
class Call {
 public:
  Call(Kernel* kernel, Containers* resources, std::vector<Tensor> inputs, int num_outputs);
  bool done();
  /// Waits for the end, and finishes what the kernel has left to do.
  absl::Status status();
  /// Waits; the status must be OK.
  const Tensor& output(int i);
  /// Nothing is left to do.
  bool has_output(int i) const { return outputs_[i].tensor.valid(); }
  void Cancel(absl::Status reason) { cancellation_.Cancel(std::move(reason)); }

 private:
  CancellationToken cancellation_;
  StepContext step_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<int32_t> numbers_;
  std::unique_ptr<KernelContext> ctx_;
  std::mutex mutex_;
  std::condition_variable condition_;
  bool done_ = false;
  absl::Status status_;
  std::unique_ptr<KernelRest> rest_;
};

/// The kernels, and the containers that they share. Thread-safe but for `Attr`.
class Calls : public StepRunner {
 public:
  /// A handle to what the op makes.
  Tensor Make(std::string_view op) { return Run(op, {}, {ElementType::kResource}).value()[0]; }
  std::unique_ptr<Call> Start(std::string_view op, std::vector<Tensor> inputs,
                              const std::vector<ElementType>& outputs = {});
  /// Waits for the result.
  absl::Status Do(std::string_view op, std::vector<Tensor> inputs,
                  const std::vector<ElementType>& outputs = {}) {
    return Start(op, std::move(inputs), outputs)->status();
  }

 private:
  std::mutex mutex_;
};

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_QUEUES_CALLS_H_
