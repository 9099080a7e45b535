/// Checkpoints that are written while the training goes on.
#ifndef TROUPE_API_TRAINING_ASYNC_CHECKPOINTER_H_
#define TROUPE_API_TRAINING_ASYNC_CHECKPOINTER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/session.h"
#include "api/training/saver.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class SessionInterface;

/// A value.
struct AsyncCheckpointerOptions {
  enum class WhenBusy {
    kWait,  ///< `Save` waits until the save before is done.
    kSkip,  ///< It does nothing.
  };
  /// At most one save is under way. What happens when it is asked for another one.
  WhenBusy when_busy = WhenBusy::kWait;
  /// Told of every save that had begun: its prefix, or its error. Called by the thread that writes,
  /// which is none of the session's; it must not call the checkpointer.
  std::function<void(const absl::StatusOr<std::string>& saved)> done;
};

/// Saves by a `Saver` that was made with `asynchronous`. `Save` returns when the step that saves
/// holds all tensors, which takes no copy: a variable that is updated afterwards changes a copy of
/// its value, as long as the old one is held. Writing, the state file and the removal of old
/// checkpoints are done by a thread of its own.
///
///     AsyncCheckpointer checkpointer(saver);
///     while (...) {
///       train();
///       if (step % 1000 == 0) status = checkpointer.Save(*session, "/tmp/run/model",
///       step).status();
///     }
///     status = checkpointer.Close();
///
/// A crash leaves the last complete checkpoint. A session that ends cancels its save. Thread-safe.
class AsyncCheckpointer {
 public:
  explicit AsyncCheckpointer(std::shared_ptr<Saver> saver, AsyncCheckpointerOptions options = {});
  /// Closes it.
  ~AsyncCheckpointer();
  AsyncCheckpointer(const AsyncCheckpointer&) = delete;
  AsyncCheckpointer& operator=(const AsyncCheckpointer&) = delete;

  /// Begins a save of the values that the variables have now; names and options are those of
  /// `Saver::Save`, whose timeout is for all of it. False: it was skipped.
  ///
  /// The error of a save before is given here, once, and nothing is begun then. Otherwise errors
  /// are of this save's beginning; FailedPrecondition also if the saver is not asynchronous, or
  /// the checkpointer was closed.
  absl::StatusOr<bool> Save(Session& session, const std::string& path,
                            std::optional<int64_t> global_step = std::nullopt,
                            const SaveOptions& options = {});

  /// A save is under way.
  bool busy() const;
  /// Waits for the save that is under way; the error that nobody has been told of.
  absl::Status Wait();
  /// The same; then nothing is saved any more.
  absl::Status Close();

  /// The prefix of the last save that is complete; "" before.
  std::string last_saved() const;

 private:
  struct Job {
    std::shared_ptr<SessionInterface> session;  ///< It may be closed meanwhile.
    std::shared_ptr<Graph> graph;
    std::string step;  ///< Of `PartialRunSetup`.
    std::string path, prefix;
    SaveOptions options;
  };
  absl::StatusOr<Job> Begin(Session& session, const std::string& path, std::optional<int64_t> step,
                            const SaveOptions& options) const;
  absl::StatusOr<std::string> Complete(const Job& job);
  /// Throws if the system has no thread.
  absl::Status StartThread();
  void WriteAll();

  const std::shared_ptr<Saver> saver_;
  const AsyncCheckpointerOptions options_;
  mutable std::mutex mutex_;  ///< Guards what follows.
  std::condition_variable changed_;
  bool busy_ = false;  ///< From the beginning of a save to its end.
  bool closed_ = false;
  std::optional<Job> job_;  ///< For the thread.
  absl::Status error_;      ///< Of a save, not told yet.
  std::string last_saved_;
  std::thread thread_;  ///< Begins with the first save.
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_ASYNC_CHECKPOINTER_H_
