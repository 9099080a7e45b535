#include "api/training/async_checkpointer.h"

#include <utility>
#include <vector>

#include "api/internal/session_interface.h"
#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {

AsyncCheckpointer::AsyncCheckpointer(std::shared_ptr<Saver> saver, AsyncCheckpointerOptions options)
    : saver_(std::move(saver)), options_(std::move(options)) {}

AsyncCheckpointer::~AsyncCheckpointer() { Close().IgnoreError(); }

absl::StatusOr<AsyncCheckpointer::Job> AsyncCheckpointer::Begin(Session& session,
                                                                const std::string& path,
                                                                std::optional<int64_t> step,
                                                                const SaveOptions& options) const {
  if (saver_ == nullptr) return InvalidArgument("there is no saver");
  const std::string held = saver_->HeldName();
  if (held.empty() && !saver_->is_empty()) {
    return absl::FailedPreconditionError(
        "the saver does not save asynchronously: make it with SaverOptions::asynchronous");
  }
  Job job{session.impl_, session.graph(), "", path, "", options};
  TROUPE_ASSIGN_OR_RETURN(job.prefix, saver_->PrefixFor(path, step, options));
  if (saver_->is_empty()) return job;
  const SaverDef def = saver_->ToProto();
  TROUPE_ASSIGN_OR_RETURN(job.step,
                          session.PartialRunSetup({def.filename_tensor_name()},
                                                  {held, def.save_tensor_name()}, {}, options.run));
  std::vector<Tensor> values;
  TROUPE_RETURN_IF_ERROR(session.PartialRun(
      job.step, {{def.filename_tensor_name(), Tensor::Scalar<std::string>(job.prefix)}}, {held},
      &values));
  return job;
}

absl::StatusOr<std::string> AsyncCheckpointer::Complete(const Job& job) {
  std::string saved;
  if (!saver_->is_empty()) {
    std::vector<Tensor> values;
    TROUPE_RETURN_IF_ERROR(
        job.session->PartialRun(job.step, {}, {saver_->ToProto().save_tensor_name()}, &values, {}));
    TROUPE_ASSIGN_OR_RETURN(saved, values[0].scalar<std::string>());
  }
  TROUPE_RETURN_IF_ERROR(saver_->Finish(*job.graph, job.path, job.prefix, saved, job.options));
  return saved;
}

absl::StatusOr<bool> AsyncCheckpointer::Save(Session& session, const std::string& path,
                                             std::optional<int64_t> global_step,
                                             const SaveOptions& options) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (busy_ && options_.when_busy == AsyncCheckpointerOptions::WhenBusy::kSkip) {
    if (!error_.ok()) return std::exchange(error_, absl::OkStatus());
    return false;
  }
  changed_.wait(lock, [this] { return !busy_; });
  if (!error_.ok()) return std::exchange(error_, absl::OkStatus());
  if (closed_) return absl::FailedPreconditionError("the checkpointer has been closed");
  TROUPE_RETURN_IF_ERROR(CatchExceptions([this] { return StartThread(); }));
  busy_ = true;
  lock.unlock();
  absl::StatusOr<Job> job =
      CatchExceptions([&] { return Begin(session, path, global_step, options); });
  lock.lock();
  if (!job.ok()) {
    busy_ = false;
    changed_.notify_all();
    return job.status();
  }
  job_ = *std::move(job);
  changed_.notify_all();
  return true;
}

absl::Status AsyncCheckpointer::StartThread() {
  if (thread_.joinable()) return absl::OkStatus();
  const ScopedBlockSignals blocked;
  thread_ = std::thread([this] { WriteAll(); });
  return absl::OkStatus();
}

void AsyncCheckpointer::WriteAll() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return job_.has_value() || closed_; });
    if (!job_.has_value()) return;
    const Job job = *std::move(job_);
    job_.reset();
    lock.unlock();
    const absl::StatusOr<std::string> saved = CatchExceptions([&] { return Complete(job); });
    if (options_.done) KeepGoing([&] { options_.done(saved); });
    lock.lock();
    if (saved.ok()) {
      last_saved_ = *saved;
    } else {
      error_.Update(
          WithContext(StrCat("the checkpoint ", job.prefix, " was not saved: "), saved.status()));
    }
    busy_ = false;
    changed_.notify_all();
  }
}

absl::Status AsyncCheckpointer::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  return std::exchange(error_, absl::OkStatus());
}

absl::Status AsyncCheckpointer::Close() {
  std::thread thread;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !busy_; });
    closed_ = true;
    std::swap(thread, thread_);
    changed_.notify_all();
  }
  if (thread.joinable()) thread.join();
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(error_, absl::OkStatus());
}

bool AsyncCheckpointer::busy() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return busy_;
}

std::string AsyncCheckpointer::last_saved() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return last_saved_;
}

}  // namespace troupe
