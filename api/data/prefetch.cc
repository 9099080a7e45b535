// Elements that are ready, or in the memory of a device, before somebody asks for them.
#include <deque>
#include <mutex>
#include <utility>

#include "api/data/stages.h"
#include "devices/status_macros.h"

namespace troupe::data {
namespace {

/// As a stage it gives what is ready; as an activity it pulls the stages before it, as long as it
/// has credits: what it may hold less what it holds.
class PrefetchStage final : public Stage, public Activity {
 public:
  PrefetchStage(const Place& place, int64_t elements, Device* device)
      : Stage(place.player, place.parent, device == nullptr ? "Prefetch" : "Upload"),
        Activity(place.flow()),
        device_(device),
        auto_(elements == kAuto),
        capacity_(auto_ ? kFirst : static_cast<size_t>(elements)) {}
  absl::Status Init(const Plan& input) {
    TROUPE_ASSIGN_OR_RETURN(input_, input.Make({this, meter()}));
    return absl::OkStatus();
  }

  void Start(uint64_t pass) override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ready_.clear();
      begun_ = true;
      started_ = false;  // The one who plays starts the input; what it pulls just now is dropped.
      pass_ = pass;
      ended_ = false;
      ++round_;
    }
    Wake();
  }
  bool Close() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    // Idle and closed it does not touch the input any more, which may wake it before it rests.
    return idle() && input_->Close() && idle();
  }

 private:
  static constexpr size_t kFirst = 2, kMost = 256;  ///< Of kAuto.
  static constexpr size_t kPulled = 64;             ///< At most at a time.

  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    bool wake = false;
    absl::StatusOr<Progress> progress = Progress::kSome;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const size_t n = std::min(limit, ready_.size());
      for (size_t i = 0; i < n; ++i) {
        out->push_back(std::move(ready_.front()));
        ready_.pop_front();
      }
      if (n == 0 && ended_) {
        progress = Progress::kEnd;
        if (!status_.ok()) progress = status_;
      } else if (n == 0) {
        progress = Progress::kPending;
        consumer_waits_ = true;
        Stage::meter()->AddStarved();
        if (auto_ && was_full_) {
          capacity_ = std::min(2 * capacity_, kMost);
          was_full_ = false;
        }
      }
      // Half of the credits are back: fewer would wake it for little.
      wake = !ended_ && ready_.size() <= capacity_ / 2;
      Stage::meter()->SetFullness(static_cast<int64_t>(ready_.size()),
                                  static_cast<int64_t>(capacity_));
    }
    if (wake) Wake();
    return progress;
  }

  void Play() noexcept override {
    while (true) {
      uint64_t round = 0;
      size_t credits = 0;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!begun_ || ended_ || closed_ || flow()->stopped()) return;
        round = round_;
        credits = capacity_ - std::min(capacity_, ready_.size());
        if (credits == 0) {
          was_full_ = true;
          return;
        }
        if (!started_) {
          started_ = true;
          input_->Start(pass_);
        }
      }
      pulled_.clear();
      Tick();
      absl::StatusOr<Progress> progress = input_->Pull(std::min(credits, kPulled), &pulled_);
      const bool pending = progress.ok() && *progress == Progress::kPending;
      if (device_ != nullptr) {
        for (Element& element : pulled_) BeginUpload(device_, &element);
      }
      bool wake = false;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (round != round_) continue;
        for (Element& element : pulled_) ready_.push_back(std::move(element));
        ended_ = !progress.ok() || *progress == Progress::kEnd;
        status_ = progress.status();
        wake = consumer_waits_ && !pending;
        if (wake) consumer_waits_ = false;
      }
      if (wake) player()->Wake();
      // Woken again when the input has something.
      if (pending) return;
    }
  }

  absl::Status Save(PositionWriter* to) override {
    std::lock_guard<std::mutex> lock(mutex_);
    to->Number(started_ ? 1 : 0);
    to->Number(pass_);
    to->Number(ended_ ? 1 : 0);
    for (const Element& element : ready_) {
      to->Number(1);
      TROUPE_RETURN_IF_ERROR(to->Put(element));
    }
    to->Number(0);
    return started_ ? input_->SavePosition(to) : absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    std::lock_guard<std::mutex> lock(mutex_);
    begun_ = true;
    started_ = from->Flag();
    pass_ = from->Number();
    ended_ = from->Flag();
    while (from->Flag() && from->status().ok()) {
      ready_.push_back(from->TakeElement());
      if (device_ != nullptr) BeginUpload(device_, &ready_.back());
    }
    if (started_) input_->RestorePosition(from);
  }

  Device* const device_;  ///< Null: elements stay where they are.
  const bool auto_;
  std::unique_ptr<Stage> input_;  ///< Of the one who plays, once it is started.
  Block pulled_;                  ///< The same.
  std::mutex mutex_;
  std::deque<Element> ready_;
  size_t capacity_;
  uint64_t pass_ = 0, round_ = 0;
  bool begun_ = false, started_ = false, ended_ = false, closed_ = false;
  bool consumer_waits_ = false, was_full_ = false;
  absl::Status status_;
};

}  // namespace

PlanPtr PrefetchPlan(PlanPtr input, int64_t elements) {
  return PlanOver<PrefetchStage>(std::move(input), elements, /*device=*/nullptr);
}

PlanPtr UploadPlan(PlanPtr input, Device* device) {
  constexpr int64_t kUploaded = 2;  // One that a step is about to take, one on its way.
  return PlanOver<PrefetchStage>(std::move(input), kUploaded, device);
}

}  // namespace troupe::data
