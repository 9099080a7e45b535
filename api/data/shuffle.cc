// Drawing elements at random from a window.
#include <utility>

#include "api/data/stages.h"
#include "devices/status_macros.h"

namespace troupe::data {
namespace {

class ShuffleStage final : public StageOverInput {
 public:
  ShuffleStage(const Place& place, DatasetShuffleOptions options)
      : StageOverInput(place, StrCat("Shuffle(", options.window, ")")), options_(options) {}
  void Start(uint64_t pass) override {
    window_.clear();
    ended_ = false;
    draw_ = Draw(Mix(options_.seed, options_.reshuffle ? pass : 0));
    StageOverInput::Start(pass);
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    const auto size = static_cast<size_t>(options_.window);
    const size_t begin = out->size();
    // An element is drawn when the window is full, or nothing more will come.
    while (!ended_ && out->size() - begin < limit) {
      block_.clear();
      const size_t missing = size - window_.size() + (limit - (out->size() - begin)) - 1;
      TROUPE_ASSIGN_OR_RETURN(const Progress progress,
                              input()->Pull(std::min(missing, kPulled), &block_));
      ended_ = progress == Progress::kEnd;
      for (Element& element : block_) {
        TROUPE_RETURN_IF_ERROR(MakeCompact(&element));
        window_.push_back(std::move(element));
        if (window_.size() == size) TakeOne(out);
      }
      if (progress == Progress::kPending) {
        return out->size() > begin ? Progress::kSome : Progress::kPending;
      }
    }
    while (ended_ && !window_.empty() && out->size() - begin < limit) TakeOne(out);
    block_.clear();
    return out->size() > begin ? Progress::kSome : Progress::kEnd;
  }

  void TakeOne(Block* out) {
    FetchAhead();
    Element& drawn = window_[draw_.Below(window_.size())];
    out->push_back(std::move(drawn));
    if (&drawn != &window_.back()) drawn = std::move(window_.back());
    window_.pop_back();
  }

  /// A window of any size is out of the cache. What will be drawn is known, so it is fetched while
  /// others are drawn: first the element, then where its bytes begin.
  void FetchAhead() const {
    constexpr size_t kLine = 64;
    const auto* const later =
        reinterpret_cast<const char*>(&window_[draw_.Peek(window_.size(), 8)]);
    for (size_t at = 0; at < sizeof(Element); at += kLine) __builtin_prefetch(later + at);
    const Element& soon = window_[draw_.Peek(window_.size(), 3)];
    if (soon.components.empty()) return;
    const auto* const bytes = static_cast<const char*>(soon.components[0].raw_data());
    // With the head of the buffer before them.
    for (size_t at = 0; at < 5 * kLine; at += kLine) __builtin_prefetch(bytes - kLine + at);
  }

  absl::Status Save(PositionWriter* to) override {
    to->Number(draw_.state());
    to->Number(ended_ ? 1 : 0);
    TROUPE_RETURN_IF_ERROR(to->Put(window_));
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    draw_ = Draw(from->Number());
    ended_ = from->Flag();
    window_ = from->TakeBlock();
    if (window_.size() >= static_cast<size_t>(options_.window)) from->Refuse();
    StageOverInput::Restore(from);
  }

  static constexpr size_t kPulled = 256;

  const DatasetShuffleOptions options_;
  Draw draw_{0};
  Block window_, block_;
  bool ended_ = false;
};

}  // namespace

PlanPtr ShufflePlan(PlanPtr input, DatasetShuffleOptions options) {
  return PlanOver<ShuffleStage>(std::move(input), options);
}

}  // namespace troupe::data
