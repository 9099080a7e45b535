#include "actors/cluster/leftovers.h"

#include <utility>

namespace troupe {

void Leftovers::Delete(PeerId task, const Leftover& leftover, std::function<void()> tried) {
  Add(task, leftover);
  const uint64_t life = master_->tasks.life(task);
  if (life == 0) {
    if (tried) tried();
    return;
  }
  cluster::Message request;
  if (leftover.handle.empty()) {
    request.mutable_delete_worker_session()->set_session(leftover.session);
  } else {
    request.mutable_deregister_graph()->set_session(leftover.session);
    request.mutable_deregister_graph()->set_handle(leftover.handle);
  }
  master_->calls->Call(task, life, std::move(request), master_->now, master_->options.grace,
                       [this, task, leftover, tried = std::move(tried)](const absl::Status& status,
                                                                        const cluster::Message&) {
                         if (status.ok()) by_task_[task].erase(leftover);
                         if (tried) tried();
                       });
}

void Leftovers::Tick() {
  if (master_->now < next_) return;
  next_ = master_->now + 2 * master_->options.grace;
  for (const auto& [task, leftovers] : std::map(by_task_)) {
    if (master_->tasks.life(task) == 0) continue;
    for (const Leftover& leftover : leftovers) Delete(task, leftover);
  }
}

}  // namespace troupe
