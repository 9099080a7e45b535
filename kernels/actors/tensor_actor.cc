#include "kernels/actors/tensor_actor.h"

#include <atomic>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {

namespace {
std::atomic<TensorActors*> in_place_of_global{nullptr};
}

TensorActors* TensorActors::Global() {
  if (TensorActors* actors = in_place_of_global.load(std::memory_order_acquire)) return actors;
  static auto* actors = new TensorActors;  // Steps may end after main.
  return actors;
}

TensorActors::Scope::Scope(TensorActors* actors) : before_(in_place_of_global.exchange(actors)) {}
TensorActors::Scope::~Scope() { in_place_of_global = before_; }

absl::Status TensorActors::Add(const std::string& name, std::shared_ptr<TensorActor> actor) {
  if (name.empty()) return InvalidArgument("an actor needs a name");
  std::lock_guard<std::mutex> lock(mutex_);
  if (actors_.emplace(name, std::move(actor)).second) return absl::OkStatus();
  return absl::AlreadyExistsError(StrCat("an actor is published as \"", name, "\" already"));
}

void TensorActors::Remove(const std::string& name) {
  std::shared_ptr<TensorActor> removed;  // Ends without the lock.
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = actors_.find(name);
  if (it == actors_.end()) return;
  removed = std::move(it->second);
  actors_.erase(it);
}

absl::StatusOr<std::shared_ptr<TensorActor>> TensorActors::Find(const std::string& name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = actors_.find(name);
  if (it != actors_.end()) return it->second;
  return absl::NotFoundError(StrCat("no actor is published as \"", name, "\""));
}

}  // namespace troupe
