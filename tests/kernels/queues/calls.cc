#include "tests/kernels/queues/calls.h"

#include <gtest/gtest.h>

#include <utility>

namespace troupe::testing {

Call::Call(Kernel* kernel, Containers* resources, std::vector<Tensor> inputs, int num_outputs)
    : inputs_(inputs.size()), outputs_(num_outputs) {
  step_.allocator = HostAllocator();
  step_.resources = resources;
  step_.step_resources = resources;
  step_.cancellation = &cancellation_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs_[i].tensor = std::move(inputs[i]);
    numbers_.push_back(static_cast<int32_t>(i));
  }
  ctx_ = std::make_unique<KernelContext>(&step_, inputs_.data(), numbers_.data(),
                                         static_cast<int>(inputs_.size()), outputs_.data(),
                                         num_outputs, ~uint64_t{0});
  const KernelDone finished{
      [](void* self, void*, absl::Status status, Player, std::unique_ptr<KernelRest> rest) {
        auto* call = static_cast<Call*>(self);
        std::lock_guard<std::mutex> lock(call->mutex_);
        EXPECT_FALSE(call->done_) << "done twice";
        call->done_ = true;
        call->status_ = std::move(status);
        call->rest_ = std::move(rest);
        call->condition_.notify_all();
      },
      this, nullptr};
  if (AsyncKernel* async = kernel->async()) {
    async->ComputeAsync(*ctx_, finished);
  } else {
    finished(kernel->Compute(*ctx_));
  }
}

bool Call::done() {
  std::lock_guard<std::mutex> lock(mutex_);
  return done_;
}

absl::Status Call::status() {
  std::unique_lock<std::mutex> lock(mutex_);
  condition_.wait(lock, [&] { return done_; });
  if (rest_ && status_.ok()) status_ = rest_->Finish();
  rest_.reset();
  return status_;
}

const Tensor& Call::output(int i) {
  EXPECT_EQ(status(), absl::OkStatus());
  return outputs_[i].tensor;
}

std::unique_ptr<Call> Calls::Start(std::string_view op, std::vector<Tensor> inputs,
                                   const std::vector<ElementType>& outputs) {
  Kernel* kernel;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<ElementType> types;
    for (const Tensor& input : inputs) types.push_back(input.type());
    kernel = StepRunner::Make(op, types, outputs).value();
  }
  return std::make_unique<Call>(kernel, &resources(), std::move(inputs),
                                static_cast<int>(outputs.size()));
}

}  // namespace troupe::testing
