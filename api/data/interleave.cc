// A dataset for each element, in turn.
#include <utility>

#include "api/data/stages.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe::data {
namespace {

using DatasetFunction = std::function<absl::StatusOr<Dataset>(const Tensors&)>;

class InterleaveStage final : public StageOverInput {
 public:
  InterleaveStage(const Place& place, DatasetFunction function, DatasetInterleaveOptions options)
      : StageOverInput(place, StrCat("Interleave(", options.cycle, ", ", options.block, ")")),
        function_(std::move(function)),
        options_(options),
        open_(static_cast<size_t>(options.cycle)) {}

  void Start(uint64_t pass) override {
    for (Open& open : open_) CloseOne(&open);
    pass_ = pass;
    filled_ = turn_ = given_ = 0;
    opened_ = 0;
    ended_ = false;
    StageOverInput::Start(pass);
  }
  bool Close() override {
    for (Open& open : open_) CloseOne(&open);
    DropClosed();
    return StageOverInput::Close() && closed_.empty();
  }

 private:
  struct Open {
    Element of;  ///< The element that the dataset was made for.
    std::unique_ptr<Stage> stage;
  };

  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    DropClosed();
    const size_t begin = out->size();
    // All places are taken at first: those that read ahead do so side by side.
    for (; filled_ < open_.size(); ++filled_) {
      TROUPE_ASSIGN_OR_RETURN(const Progress progress, OpenNext(&open_[filled_]));
      if (progress == Progress::kPending) return progress;
    }
    size_t empty = 0;  // Places, one after another, that have no dataset and get none.
    while (out->size() - begin < limit) {
      Open& open = open_[turn_];
      if (open.stage == nullptr) {
        TROUPE_ASSIGN_OR_RETURN(const Progress progress, OpenNext(&open));
        if (progress == Progress::kPending) break;
        if (progress == Progress::kEnd) {
          if (++empty == open_.size()) {
            return out->size() > begin ? Progress::kSome : Progress::kEnd;
          }
          NextTurn();
          continue;
        }
      }
      empty = 0;
      const size_t before = out->size();
      const size_t n =
          std::min(limit - (before - begin), static_cast<size_t>(options_.block) - given_);
      TROUPE_ASSIGN_OR_RETURN(const Progress progress, open.stage->Pull(n, out));
      if (progress == Progress::kPending) break;
      if (progress == Progress::kEnd) {
        CloseOne(&open);
        // The next one takes its place and its turn.
        given_ = 0;
        continue;
      }
      given_ += out->size() - before;
      if (given_ == static_cast<size_t>(options_.block)) NextTurn();
    }
    return out->size() > begin ? Progress::kSome : Progress::kPending;
  }

  void NextTurn() {
    turn_ = (turn_ + 1) % open_.size();
    given_ = 0;
  }

  absl::StatusOr<Progress> OpenNext(Open* open) {
    if (ended_) return Progress::kEnd;
    block_.clear();
    TROUPE_ASSIGN_OR_RETURN(const Progress progress, input()->Pull(1, &block_));
    if (progress == Progress::kEnd) ended_ = true;
    if (progress != Progress::kSome) return progress;
    TROUPE_RETURN_IF_ERROR(MakeCompact(&block_[0]));
    open->of = std::move(block_[0]);
    TROUPE_RETURN_IF_ERROR(Make(open));
    open->stage->Start(Mix(pass_, ++opened_));
    return progress;
  }

  absl::Status Make(Open* open) {
    absl::StatusOr<Dataset> dataset =
        CatchExceptions([&] { return function_(ToTensors(open->of)); });
    if (!dataset.ok()) return Named(dataset.status());
    if (!dataset->status().ok()) return Named(dataset->status());
    const PlanPtr plan =
        options_.parallel ? PrefetchPlan(dataset->plan(), options_.ahead) : dataset->plan();
    absl::StatusOr<std::unique_ptr<Stage>> stage = plan->Make({player(), meter()});
    if (!stage.ok()) return Named(stage.status());
    open->stage = *std::move(stage);
    return absl::OkStatus();
  }

  /// Those that read ahead may still be about to play.
  void CloseOne(Open* open) {
    if (open->stage != nullptr) closed_.push_back(std::move(open->stage));
    open->of = Element();
  }
  void DropClosed() {
    std::erase_if(closed_, [](const std::unique_ptr<Stage>& stage) { return stage->Close(); });
  }

  absl::Status Save(PositionWriter* to) override {
    to->Number(pass_);
    to->Number(filled_);
    to->Number(turn_);
    to->Number(given_);
    to->Number(opened_);
    to->Number(ended_ ? 1 : 0);
    for (Open& open : open_) {
      to->Number(open.stage != nullptr ? 1 : 0);
      if (open.stage == nullptr) continue;
      TROUPE_RETURN_IF_ERROR(to->Put(open.of));
      TROUPE_RETURN_IF_ERROR(open.stage->SavePosition(to));
    }
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    pass_ = from->Number();
    filled_ = from->Number(open_.size());
    turn_ = from->Number(open_.size() - 1);
    given_ = from->Number(static_cast<uint64_t>(options_.block) - 1);
    opened_ = from->Number();
    ended_ = from->Flag();
    for (Open& open : open_) {
      if (!from->Flag() || !from->status().ok()) continue;
      open.of = from->TakeElement();
      if (!from->status().ok()) return;
      if (absl::Status status = Make(&open); !status.ok()) return from->Fail(std::move(status));
      open.stage->RestorePosition(from);
    }
    StageOverInput::Restore(from);
  }

  const DatasetFunction function_;
  const DatasetInterleaveOptions options_;
  std::vector<Open> open_;
  std::vector<std::unique_ptr<Stage>> closed_;
  Block block_;
  uint64_t pass_ = 0;
  size_t filled_ = 0;            ///< Places that have been taken, if only for a time.
  size_t turn_ = 0, given_ = 0;  ///< Elements of the one whose turn it is.
  uint64_t opened_ = 0;
  bool ended_ = false;  ///< The input has.
};

}  // namespace

PlanPtr InterleavePlan(PlanPtr input, DatasetFunction function, DatasetInterleaveOptions options) {
  return PlanOver<InterleaveStage>(std::move(input), std::move(function), options);
}

}  // namespace troupe::data
