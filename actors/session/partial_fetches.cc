#include "actors/session/partial_fetches.h"

#include <utility>

#include "devices/status_macros.h"

namespace troupe {

void PartialFetches::AnswerReady(Answers* answers) {
  for (size_t i = 0; i < waiting_.size();) {
    Waiting& waiting = waiting_[i];
    bool ready = true;
    for (int fetch : waiting.fetches) ready &= slots_[static_cast<size_t>(fetch)].made;
    if (!ready && status_.ok() && !ran_) {
      ++i;
      continue;
    }
    // Memory may run out up to the last of these: then everybody still waits.
    answers->reserve(answers->size() + 1);
    std::vector<Tensor> values;
    values.reserve(waiting.fetches.size());
    absl::Status status = status_;
    if (status.ok() && !ready) {
      status = InvalidArgument(
          "a fetched tensor was never computed: what it depends on waits for an input that can "
          "never come (a Merge without a live input, a loop that is not entered)");
    }
    if (status_.ok()) taken_ += waiting.fetches.size();
    for (int fetch : waiting.fetches) {
      if (!status.ok()) break;
      absl::StatusOr<Tensor>& value = slots_[static_cast<size_t>(fetch)].value;
      status = value.status();
      if (status.ok()) values.push_back(*std::move(value));
    }
    answers->push_back({std::move(waiting.done), std::move(status), std::move(values)});
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

PartialFetches::Answers PartialFetches::Made(int fetch, Tensor value, bool dead) {
  Answers answers;
  std::lock_guard<std::mutex> lock(mutex_);
  Slot& slot = slots_[static_cast<size_t>(fetch)];
  slot.made = true;
  slot.value = std::move(value);
  if (dead) {
    slot.value = InvalidArgument(
        "a fetched tensor is dead: it is on a branch that was not taken; merge the branches, or "
        "run the node as a target");
  }
  AnswerReady(&answers);
  return answers;
}

PartialFetches::Answers PartialFetches::Want(std::vector<int> fetches, Done done) {
  Answers answers;
  std::lock_guard<std::mutex> lock(mutex_);
  for (int fetch : fetches) {
    const bool known = fetch >= 0 && static_cast<size_t>(fetch) < slots_.size();
    if (!known || slots_[static_cast<size_t>(fetch)].wanted) {
      absl::Status status =
          InvalidArgument("there is no fetch ", fetch, ", or it has been fetched");
      answers.reserve(1);
      answers.push_back({std::move(done), std::move(status), {}});
      return answers;
    }
    slots_[static_cast<size_t>(fetch)].wanted = true;
  }
  waiting_.push_back({std::move(fetches), std::move(done)});
  AnswerReady(&answers);
  return answers;
}

PartialFetches::Answers PartialFetches::Ran(const absl::Status& status) {
  Answers answers;
  std::lock_guard<std::mutex> lock(mutex_);
  ran_ = true;
  status_.Update(status);
  AnswerReady(&answers);
  return answers;
}

std::optional<absl::Status> PartialFetches::TakeEnd() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ended_ || !ran_ || (status_.ok() && taken_ < slots_.size())) return std::nullopt;
  ended_ = true;
  return status_;
}

PartialFetches::Answers PartialFetches::Abandon(const absl::Status& status) {
  Answers answers;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!ran_ || ended_) return answers;
  status_.Update(status);
  AnswerReady(&answers);
  return answers;
}

}  // namespace troupe
