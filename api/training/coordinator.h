/// Coordinators: activities that stop together.
#ifndef TROUPE_API_TRAINING_COORDINATOR_H_
#define TROUPE_API_TRAINING_COORDINATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Which errors a coordinator takes for a usual end. A value.
struct CoordinatorOptions {
  /// A stop with one of these codes is clean: `Join` gives OK.
  std::vector<absl::StatusCode> clean_stop = {absl::StatusCode::kOutOfRange};
};

/// Lets any of several activities (threads, chains of asynchronous steps) stop all of them, and
/// lets somebody wait until they have. Thread-safe.
///
///     Coordinator coordinator;
///     coordinator.StartThread("reader", [&]() -> absl::Status {
///       while (!coordinator.should_stop()) TROUPE_RETURN_IF_ERROR(ReadOne());
///       return absl::OkStatus();
///     });
///     ...
///     coordinator.RequestStop();
///     absl::Status first_error = coordinator.Join();
class Coordinator {
  struct State;
  struct Registration;

 public:
  /// An activity; it has ended when the last copy is gone. May outlive its coordinator.
  /// Thread-safe.
  class Member {
   public:
    Member() = default;
    /// As the coordinator's.
    bool should_stop() const;
    void RequestStop(absl::Status why) const;

   private:
    friend class Coordinator;
    std::shared_ptr<Registration> registration_;
  };

  explicit Coordinator(CoordinatorOptions options = {});
  /// Requests a stop and waits for the threads that `StartThread` made: they must watch
  /// `should_stop`. Other members are not waited for.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  bool should_stop() const;
  /// Asks all members to stop. The first error that is not a clean stop is what `Join` gives; those
  /// that come after a stop are dropped, as they follow from it.
  void RequestStop(absl::Status why = absl::OkStatus());
  /// Takes the request and its error back: members may be added anew. Called once all have ended.
  void ClearStop();
  /// True: a stop has been requested; false: the timeout has passed.
  bool WaitForStop(absl::Duration timeout = absl::InfiniteDuration());
  /// Called once when a stop is requested, by the thread that requests it, or at once if it has
  /// been. Must not wait.
  void OnStop(std::function<void()> stopping);

  /// Adds an activity; `name` is for messages.
  Member Register(std::string name);
  /// Runs `body` on a thread of its own. An error, or an exception, requests a stop.
  void StartThread(std::string name, std::function<absl::Status()> body);
  /// The same over and over, every `interval` (0: at once), until a stop is requested.
  void StartLoop(std::string name, absl::Duration interval, std::function<absl::Status()> body);

  /// Waits until a stop is requested or all members have ended, then for so long for those that
  /// have not. Gives the first error; DeadlineExceeded that names the members that still run, or
  /// OK with `ignore_stragglers`. Must not be called by a member.
  absl::Status Join(absl::Duration grace_period = absl::Minutes(2), bool ignore_stragglers = false);
  /// Members that have not ended, sorted by name.
  std::vector<std::string> members() const;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_COORDINATOR_H_
