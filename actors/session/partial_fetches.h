/// Fetches of a step that is fed and fetched in pieces.
#ifndef TROUPE_ACTORS_SESSION_PARTIAL_FETCHES_H_
#define TROUPE_ACTORS_SESSION_PARTIAL_FETCHES_H_

#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

/// What a partial step has made, and who waits for it. The step is over when its nodes have run and
/// all fetches have been taken, or with its first error. Answers are handed back to the caller, who
/// gives them where it may. Thread-safe.
class PartialFetches {
 public:
  using Done = std::function<void(absl::Status, std::vector<Tensor>)>;
  struct Answer {
    Done done;
    absl::Status status;
    std::vector<Tensor> values;

    void operator()() { done(std::move(status), std::move(values)); }
  };
  using Answers = std::vector<Answer>;

  explicit PartialFetches(int count) : slots_(static_cast<size_t>(count)) {}

  /// A fetch has been made. If it is dead, whoever asks for it hears InvalidArgument.
  Answers Made(int fetch, Tensor value, bool dead = false);
  /// Asks for fetches, each of which may be asked for once. InvalidArgument is among the answers.
  Answers Want(std::vector<int> fetches, Done done);
  /// The nodes have run, or have failed: then everybody hears of it.
  Answers Ran(const absl::Status& status);
  /// How the step ended: once, when it is over.
  std::optional<absl::Status> TakeEnd();
  /// Ends a step of which only fetches have not been taken; nothing happens while its nodes run.
  Answers Abandon(const absl::Status& status);

 private:
  struct Slot {
    bool made = false;
    bool wanted = false;
    absl::StatusOr<Tensor> value;
  };
  struct Waiting {
    std::vector<int> fetches;
    Done done;
  };

  void AnswerReady(Answers* answers);  ///< With the mutex held.

  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<Waiting> waiting_;
  size_t taken_ = 0;
  bool ran_ = false;
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_PARTIAL_FETCHES_H_
