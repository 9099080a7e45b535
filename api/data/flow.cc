#include "api/data/flow.h"

#include <algorithm>
#include <utility>

namespace troupe::data {

Flow::~Flow() = default;

bool Flow::Enter(Activity* activity) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (pauses_ == 0 && !stopped()) {
    ++playing_;
    return true;
  }
  // Under the lock, for `Resume` wakes only what is idle.
  activity->state_.store(Activity::State::kIdle, std::memory_order_release);
  return false;
}

void Flow::Enter() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++playing_;
}

void Flow::Leave() {
  // Under the lock: who waits may let go of the flow.
  std::lock_guard<std::mutex> lock(mutex_);
  if (--playing_ == 0) nobody_plays_.notify_all();
}

void Flow::Submit(PoolTask* task) {
  // Under the lock: others may submit while the flow is stopped.
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return;
  if (pool_ == nullptr)
    pool_ = std::make_unique<ComputePool>(threads_ + 1);  // It counts its caller.
  pool_->Submit(task);
}

void Flow::Pause() {
  std::unique_lock<std::mutex> lock(mutex_);
  ++pauses_;
  nobody_plays_.wait(lock, [this] { return playing_ == 0; });
}

void Flow::Resume() {
  std::vector<Activity*> woken;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--pauses_ > 0 || stopped()) return;
    // What is no longer idle is not destroyed before it has played.
    for (Activity* activity : activities_) {
      if (activity->Mark()) woken.push_back(activity);
    }
  }
  for (Activity* activity : woken) activity->Schedule();
}

void Flow::BeginStop() {
  std::lock_guard<std::mutex> lock(mutex_);
  stopped_.store(true, std::memory_order_release);
}

void Flow::Stop() {
  BeginStop();
  std::unique_ptr<ComputePool> pool;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    nobody_plays_.wait(lock, [this] { return playing_ == 0; });
    closed_ = true;
    pool = std::move(pool_);
  }
  pool.reset();  // Tasks that are queued run, and find that all is over.
}

bool Flow::OnOwnThread() {
  std::lock_guard<std::mutex> lock(mutex_);
  return pool_ != nullptr && pool_->OnWorker();
}

void Flow::Add(Meter* meter) {
  std::lock_guard<std::mutex> lock(mutex_);
  meters_.push_back(meter);
}

void Flow::Remove(Meter* meter) {
  std::lock_guard<std::mutex> lock(mutex_);
  meters_.erase(std::remove(meters_.begin(), meters_.end(), meter), meters_.end());
}

Activity::Activity(Flow* flow) : flow_(flow) {
  std::lock_guard<std::mutex> lock(flow_->mutex_);
  flow_->activities_.insert(this);
}

Activity::~Activity() {
  std::lock_guard<std::mutex> lock(flow_->mutex_);
  flow_->activities_.erase(this);
}

bool Activity::Mark() {
  State state = state_.load(std::memory_order_relaxed);
  while (true) {
    const bool idle = state == State::kIdle, plays = state == State::kPlays;
    // Also if that is known already: who plays next sees what was written before.
    const State next = idle ? State::kScheduled : plays ? State::kPlaysAgain : state;
    if (state_.compare_exchange_weak(state, next, std::memory_order_acq_rel)) return idle;
  }
}

void Activity::Wake() {
  if (Mark()) Schedule();
}

void Activity::PlayHere() {
  if (Mark()) Run();
}

void Activity::Run() noexcept {
  Flow* const flow = flow_;  // Idle, this may be destroyed.
  if (!flow->Enter(this)) return;
  State state;
  do {
    state_.exchange(State::kPlays, std::memory_order_acq_rel);
    Play();
    state = State::kPlays;
  } while (!state_.compare_exchange_strong(state, State::kIdle, std::memory_order_acq_rel));
  flow->Leave();
}

void Activity::Tick() { measuring_ = ticks_++ % Meter::kEvery == 0; }

Meter::Meter(Activity* player, Meter* parent, std::string name)
    : player_(player), parent_(parent), name_(std::move(name)) {
  player_->flow()->Add(this);
}

Meter::~Meter() { player_->flow()->Remove(this); }

}  // namespace troupe::data
