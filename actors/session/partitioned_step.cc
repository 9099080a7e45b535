#include "actors/session/partitioned_step.h"

#include <utility>

#include "devices/device.h"
#include "devices/exceptions.h"
#include "kernels/cancellation.h"

namespace troupe {

namespace {

/// True if all that the partition gets and gives is the step's feeds and fetches, in their order.
bool IsAlone(const LocalPartition& partition, size_t num_feeds) {
  const auto in_order = [](const std::vector<int>& numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] != static_cast<int>(i)) return false;
    }
    return true;
  };
  return partition.plan->spec.edges.empty() && partition.feeds.size() == num_feeds &&
         in_order(partition.feeds) && in_order(partition.fetches);
}

}  // namespace

class PartitionedStep::Partition : public StepCompletion {
 public:
  Partition(PartitionedStep* step, LocalPartition partition)
      : step_(step), partition_(std::move(partition)), executor_(partition_.plan) {
    feeds_.resize(partition_.feeds.size());
    values_.resize(partition_.fetches.size());
  }

  void Start(StepContext context, Rendezvous* rendezvous, absl::Span<const Tensor> feeds,
             std::vector<NodeTrace>* trace) noexcept {
    if (partition_.device != nullptr) SetDevice(partition_.device, &context);
    started_ = CatchExceptions([&] {
      for (size_t i = 0; i < feeds_.size(); ++i) feeds_[i] = feeds[partition_.feeds[i]];
      return absl::OkStatus();
    });
    if (!started_.ok()) {
      context.cancellation->Cancel(started_);
      return Over();
    }
    executor_.set_rendezvous(rendezvous);
    executor_.RunAsync(context, absl::MakeSpan(feeds_), this, trace);
  }
  void Over() noexcept override { step_->Leave(); }
  bool PlayByCaller(PoolTask* task) noexcept override { return step_->HandToCaller(task); }
  absl::Status Finish(absl::Span<Tensor> fetches) {
    absl::Status status = started_;
    if (status.ok()) status = executor_.Finish(absl::MakeSpan(values_));
    for (size_t i = 0; i < values_.size(); ++i) {
      if (status.ok()) fetches[partition_.fetches[i]] = std::move(values_[i]);
      values_[i].Reset();
    }
    return status;
  }

 private:
  PartitionedStep* const step_;
  const LocalPartition partition_;
  ExecutorRole executor_;
  absl::Status started_;  ///< Not OK: the executor has nothing to do with this step.
  std::vector<Tensor> feeds_, values_;
};

PartitionedStep::PartitionedStep(std::vector<LocalPartition> partitions, size_t num_feeds) {
  if (partitions.size() == 1 && IsAlone(partitions[0], num_feeds)) {
    alone_ = std::make_unique<ExecutorRole>(partitions[0].plan);
    device_ = partitions[0].device;
    return;
  }
  for (LocalPartition& partition : partitions) {
    if (partition.device != nullptr) {
      auto* const polled = dynamic_cast<Pollable*>(partition.device->device.get());
      if (polled != nullptr) polled_.push_back(polled);
    }
    partitions_.push_back(std::make_unique<Partition>(this, std::move(partition)));
  }
  handed_.reserve(partitions_.size());
}

PartitionedStep::~PartitionedStep() = default;

void PartitionedStep::Start(const StepContext& step, std::shared_ptr<Rendezvous> rendezvous,
                            absl::Span<const Tensor> feeds,
                            std::vector<std::vector<NodeTrace>>* traces) {
  if (traces != nullptr) traces->resize(partitions_.size());
  if (rendezvous == nullptr) rendezvous = std::make_shared<Rendezvous>();
  cancellation_ = step.cancellation;
  // The callback may still run when the step is over: it holds what it touches.
  registered_ = cancellation_->Register(
      [rendezvous, token = cancellation_] { rendezvous->Abort(token->status()); }, &callback_);
  if (!registered_) rendezvous->Abort(cancellation_->status());
  // One more than there are: the step cannot end before everybody has begun.
  running_.store(static_cast<int>(partitions_.size()) + 1, std::memory_order_relaxed);
  for (size_t i = 0; i < partitions_.size(); ++i) {
    partitions_[i]->Start(step, rendezvous.get(), feeds,
                          traces == nullptr ? nullptr : &(*traces)[i]);
  }
}

void PartitionedStep::Leave() noexcept {
  ThreadParker* const caller = caller_;
  if (running_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (caller != nullptr) return caller->Wake(ThreadParker::Word::kOver);
  std::function<void(absl::Status)> done = std::move(done_);
  absl::Status status = Finish();
  done(std::move(status));
}

bool PartitionedStep::HandToCaller(PoolTask* task) noexcept {
  if (caller_ == nullptr) return false;
  // With the lock held until it has been woken, so that no waking comes after the step.
  std::lock_guard<std::mutex> lock(mutex_);
  handed_.push_back(task);  // There is room: each partition plays once at a time.
  num_handed_.store(handed_.size(), std::memory_order_release);
  caller_->Wake(ThreadParker::Word::kPlay);
  return true;
}

bool PartitionedStep::PlayHanded() {
  if (num_handed_.load(std::memory_order_acquire) == 0) return false;
  PoolTask* task = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    task = handed_.back();
    handed_.pop_back();
    num_handed_.store(handed_.size(), std::memory_order_release);
  }
  task->Run();
  return true;
}

absl::Status PartitionedStep::Finish() {
  if (registered_) cancellation_->Deregister(callback_);
  absl::Status first;
  for (auto& partition : partitions_) {
    absl::Status status = partition->Finish(fetches_);
    if (first.ok()) first = std::move(status);
  }
  // Whoever failed first cancelled the others, which say the same, or that they were cut off.
  if (!first.ok() && cancellation_->cancelled()) return cancellation_->status();
  return first;
}

absl::Status PartitionedStep::RunTogether(const StepContext& step, absl::Span<const Tensor> feeds,
                                          absl::Span<Tensor> fetches,
                                          std::vector<std::vector<NodeTrace>>* traces,
                                          ThreadParker* caller) {
  caller_ = caller;
  fetches_ = fetches;
  Start(step, nullptr, feeds, traces);
  Leave();
  const auto over = [this] { return running_.load(std::memory_order_acquire) == 0; };
  const auto come = [&] {
    if (over() || num_handed_.load(std::memory_order_acquire) > 0) return true;
    for (Pollable* device : polled_) device->Poll();
    return !polled_.empty() && (over() || num_handed_.load(std::memory_order_acquire) > 0);
  };
  const uint64_t patience = polled_.empty() ? ThreadParker::kSpinNs : ThreadParker::kPollNs;
  while (!over() && (PlayHanded() || ThreadParker::HelpOrSpin(step.pool, come, patience))) {
  }
  while (caller_->Wait() != ThreadParker::Word::kOver) {
    while (PlayHanded()) {
    }
  }
  return Finish();
}

void PartitionedStep::RunAsync(StepContext step, absl::Span<Tensor> feeds,
                               absl::Span<Tensor> fetches, std::function<void(absl::Status)> done,
                               std::vector<std::vector<NodeTrace>>* traces,
                               std::shared_ptr<Rendezvous> rendezvous) {
  caller_ = nullptr;
  done_ = std::move(done);
  fetches_ = fetches;
  if (alone_ != nullptr) {
    if (device_ != nullptr) SetDevice(device_, &step);
    return alone_->RunAsync(step, feeds, this, OnlyTrace(traces));
  }
  Start(step, std::move(rendezvous), feeds, traces);
  Leave();
}

void PartitionedStep::Over() noexcept {
  const std::function<void(absl::Status)> done = std::move(done_);
  done(alone_->Finish(fetches_));
}

}  // namespace troupe
