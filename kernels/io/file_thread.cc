#include "kernels/io/file_thread.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "devices/cpu/block_signals.h"
#include "devices/cpu/compute_pool.h"
#include "devices/exceptions.h"
#include "kernels/cancellation.h"

namespace troupe {
namespace {

/// Its thread begins with the first work. Never destroyed: work may be under way at the end.
ComputePool* FileThread() {
  static auto* const thread = new ComputePool(/*threads=*/1, /*spin_microseconds=*/0);
  return thread;
}

/// One kernel's work, until it is done. Shared by the thread and the cancellation.
class Job final : public PoolTask, public std::enable_shared_from_this<Job> {
 public:
  Job(KernelContext* ctx, KernelDone done, FileWork work)
      : ctx_(ctx), done_(done), token_(ctx->cancellation()), work_(std::move(work)) {}

  /// `threads` may be null: the work gets a thread that nobody else has. False: the step has been
  /// cancelled already.
  bool Begin(ComputePool* threads) {
    const bool registered =
        token_->Register([self = shared_from_this()] { self->Cancel(); }, &callback_);
    if (!registered) return false;
    try {
      queued_ = shared_from_this();
      if (threads != nullptr) {
        threads->SubmitLong(this);
      } else {
        const ScopedBlockSignals blocked;
        std::thread([this] { Run(); }).detach();
      }
    } catch (...) {  // There may be no memory for a thread.
      queued_ = nullptr;
      Answer(StatusOfException());
    }
    return true;
  }

  void Run() noexcept override {
    const std::shared_ptr<Job> self = std::move(queued_);
    absl::StatusOr<std::vector<Tensor>> outputs = absl::CancelledError("the step is over");
    if (!answered_) {
      outputs = CatchExceptions([this] { return work_([this] { return answered_.load(); }); });
    }
    work_ = nullptr;  // What is held of variables goes at once.
    Answer(std::move(outputs));
  }

 private:
  void Answer(absl::StatusOr<std::vector<Tensor>> outputs) {
    if (answered_.exchange(true)) return;
    token_->Deregister(callback_);
    if (outputs.ok()) {
      for (size_t i = 0; i < outputs->size(); ++i) {
        ctx_->set_output(static_cast<int>(i), std::move((*outputs)[i]));
      }
    }
    done_(outputs.status());
  }
  void Cancel() {
    if (answered_.exchange(true)) return;
    done_(token_->status());
  }

  KernelContext* const ctx_;  ///< Until it is answered.
  const KernelDone done_;
  CancellationToken* const token_;  ///< The same.
  FileWork work_;
  std::shared_ptr<Job> queued_;
  uint64_t callback_ = 0;
  std::atomic<bool> answered_{false};
};

}  // namespace

ComputePool* InputThreads() {
  constexpr int kMost = 4;
  static auto* const threads = new ComputePool(
      /*threads=*/1 + std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMost),
      /*spin_microseconds=*/0);
  return threads;
}

void OnFileThread(KernelContext& ctx, KernelDone done, FileWork work) {
  const auto job = std::make_shared<Job>(&ctx, done, std::move(work));
  if (!job->Begin(FileThread())) done(ctx.cancellation()->status());
}

void OnInputThread(KernelContext& ctx, KernelDone done, FileWork work) {
  const auto job = std::make_shared<Job>(&ctx, done, std::move(work));
  if (!job->Begin(InputThreads())) done(ctx.cancellation()->status());
}

void OnOwnThread(KernelContext& ctx, KernelDone done, FileWork work) {
  const auto job = std::make_shared<Job>(&ctx, done, std::move(work));
  if (!job->Begin(/*threads=*/nullptr)) done(ctx.cancellation()->status());
}

}  // namespace troupe
