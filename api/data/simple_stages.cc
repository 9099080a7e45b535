// Stages that give elements on as they are, or call a function of the application: no actors.
#include <utility>

#include "api/data/stages.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe::data {
namespace {

class FilterStage final : public StageOverInput {
 public:
  FilterStage(const Place& place, ElementPredicate function)
      : StageOverInput(place, "Filter"), function_(std::move(function)) {}

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    const size_t begin = out->size();
    while (true) {
      block_.clear();
      TROUPE_ASSIGN_OR_RETURN(const Progress progress,
                              input()->Pull(limit - (out->size() - begin), &block_));
      if (progress != Progress::kSome) {
        return out->size() > begin ? Progress::kSome : progress;
      }
      for (Element& element : block_) {
        // Both share the tensors.
        absl::StatusOr<bool> keep = CatchExceptions([&] { return function_(ToTensors(element)); });
        if (!keep.ok()) return Named(keep.status());
        if (*keep) out->push_back(std::move(element));
      }
      if (out->size() - begin == limit) return Progress::kSome;
    }
  }

  const ElementPredicate function_;
  Block block_;
};

class MapStage final : public StageOverInput {
 public:
  MapStage(const Place& place, ElementFunction function, DatasetMapOptions options,
           FunctionState state)
      : StageOverInput(place, "Map"),
        function_(std::move(function)),
        options_(options),
        state_(std::move(state)) {}

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    const size_t begin = out->size();
    while (true) {
      block_.clear();
      TROUPE_ASSIGN_OR_RETURN(const Progress progress, input()->Pull(limit, &block_));
      if (progress != Progress::kSome) return progress;
      for (Element& element : block_) {
        absl::StatusOr<Element> mapped = CallMap(function_, std::move(element));
        if (mapped.ok()) {
          out->push_back(*std::move(mapped));
        } else {
          TROUPE_RETURN_IF_ERROR(
              CountBad(Named(mapped.status()), options_.skip_bad, &bad_, meter()));
        }
      }
      if (out->size() > begin) return Progress::kSome;
    }
  }
  absl::Status Save(PositionWriter* to) override {
    FunctionState::Values values;
    if (state_.save != nullptr) {
      TROUPE_ASSIGN_OR_RETURN(values, state_.save());
    }
    to->Number(static_cast<uint64_t>(bad_) | (values.empty() ? 0 : kHasState));
    if (!values.empty()) {
      to->Number(values.size());
      for (const auto& [name, value] : values) {
        to->Text(name);
        to->Text(value);
      }
    }
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    const uint64_t bad = from->Number();
    bad_ = static_cast<int64_t>(bad & ~kHasState);
    if ((bad & kHasState) != 0) RestoreState(from);
    StageOverInput::Restore(from);
  }
  void RestoreState(PositionReader* from) {
    FunctionState::Values values;
    for (uint64_t n = from->Number(); n > 0 && from->status().ok(); --n) {
      const std::string_view name = from->Text();
      values.emplace(name, from->Text());
    }
    if (!from->status().ok()) return;
    if (state_.restore == nullptr) return from->Refuse();
    if (const absl::Status restored = state_.restore(values); !restored.ok()) {
      from->Fail(Named(restored));
    }
  }

  /// Beside the number of bad elements: the state of the function follows.
  static constexpr uint64_t kHasState = uint64_t{1} << 63;

  const ElementFunction function_;
  const DatasetMapOptions options_;
  const FunctionState state_;
  Block block_;
  int64_t bad_ = 0;
};

/// Elements [begin, end) of a pass.
class RangeStage final : public StageOverInput {
 public:
  RangeStage(const Place& place, const char* name, uint64_t begin, uint64_t end)
      : StageOverInput(place, StrCat(name, "(", begin == 0 ? end : begin, ")")),
        begin_(begin),
        end_(end) {}
  void Start(uint64_t pass) override {
    next_ = 0;
    StageOverInput::Start(pass);
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    constexpr uint64_t kSkipped = 64;
    while (next_ < begin_) {
      block_.clear();
      TROUPE_ASSIGN_OR_RETURN(
          const Progress progress,
          input()->Pull(static_cast<size_t>(std::min(kSkipped, begin_ - next_)), &block_));
      if (progress != Progress::kSome) return progress;
      next_ += block_.size();
    }
    block_.clear();
    if (next_ >= end_) return Progress::kEnd;
    const size_t before = out->size();
    TROUPE_ASSIGN_OR_RETURN(
        const Progress progress,
        input()->Pull(static_cast<size_t>(std::min<uint64_t>(limit, end_ - next_)), out));
    next_ += out->size() - before;
    return progress;
  }
  absl::Status Save(PositionWriter* to) override {
    to->Number(next_);
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    next_ = from->Number();
    StageOverInput::Restore(from);
  }

  const uint64_t begin_, end_;
  uint64_t next_ = 0;
  Block block_;
};

class ShardStage final : public StageOverInput {
 public:
  ShardStage(const Place& place, uint64_t index, uint64_t of)
      : StageOverInput(place, StrCat("Shard(", index, ", ", of, ")")), index_(index), of_(of) {}
  void Start(uint64_t pass) override {
    next_ = 0;
    StageOverInput::Start(pass);
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    const size_t begin = out->size();
    while (true) {
      block_.clear();
      // The last element that is wanted ends what is pulled.
      const uint64_t wanted = limit - (out->size() - begin);
      const uint64_t until_first = (index_ + of_ - next_) % of_;
      const uint64_t n = std::min<uint64_t>(until_first + 1 + (wanted - 1) * of_, 1024);
      TROUPE_ASSIGN_OR_RETURN(const Progress progress,
                              input()->Pull(static_cast<size_t>(n), &block_));
      if (progress != Progress::kSome) return out->size() > begin ? Progress::kSome : progress;
      for (Element& element : block_) {
        if (next_ == index_) out->push_back(std::move(element));
        next_ = next_ + 1 == of_ ? 0 : next_ + 1;
      }
      if (out->size() - begin == limit) return Progress::kSome;
    }
  }
  absl::Status Save(PositionWriter* to) override {
    to->Number(next_);
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    next_ = from->Number(of_ - 1);
    StageOverInput::Restore(from);
  }

  const uint64_t index_, of_;
  uint64_t next_ = 0;  ///< Modulo `of_`.
  Block block_;
};

class EnumerateStage final : public StageOverInput {
 public:
  explicit EnumerateStage(const Place& place) : StageOverInput(place, "Enumerate") {}
  void Start(uint64_t pass) override {
    next_ = 0;
    StageOverInput::Start(pass);
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    block_.clear();
    TROUPE_ASSIGN_OR_RETURN(const Progress progress, input()->Pull(limit, &block_));
    for (Element& element : block_) {
      Element numbered;
      numbered.components.push_back(Tensor::Scalar<int64_t>(next_++));
      Append(std::move(element), &numbered);
      out->push_back(std::move(numbered));
    }
    return progress;
  }
  absl::Status Save(PositionWriter* to) override {
    to->Number(static_cast<uint64_t>(next_));
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    next_ = static_cast<int64_t>(from->Number(INT64_MAX));
    StageOverInput::Restore(from);
  }

  int64_t next_ = 0;
  Block block_;
};

class RepeatStage final : public StageOverInput {
 public:
  RepeatStage(const Place& place, int64_t passes)
      : StageOverInput(place, StrCat("Repeat(", passes, ")")), passes_(passes) {}
  void Start(uint64_t pass) override {
    pass_ = pass;
    epoch_ = 0;
    some_ = false;
    if (passes_ != 0) input()->Start(Mix(pass_, 0));
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    while (passes_ < 0 || epoch_ < static_cast<uint64_t>(passes_)) {
      TROUPE_ASSIGN_OR_RETURN(const Progress progress, input()->Pull(limit, out));
      some_ = some_ || progress == Progress::kSome;
      if (progress != Progress::kEnd) return progress;
      // Nothing will come of more passes.
      if (!some_) break;
      ++epoch_;
      some_ = false;
      if (passes_ < 0 || epoch_ < static_cast<uint64_t>(passes_))
        input()->Start(Mix(pass_, epoch_));
    }
    return Progress::kEnd;
  }
  absl::Status Save(PositionWriter* to) override {
    to->Number(pass_);
    to->Number(epoch_);
    to->Number(some_ ? 1 : 0);
    return passes_ == 0 ? absl::OkStatus() : StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    pass_ = from->Number();
    epoch_ = from->Number();
    some_ = from->Flag();
    if (passes_ != 0) StageOverInput::Restore(from);
  }

  const int64_t passes_;
  uint64_t pass_ = 0, epoch_ = 0;
  bool some_ = false;  ///< This pass has had an element.
};

class ZipStage final : public Stage {
 public:
  explicit ZipStage(const Place& place) : Stage(place.player, place.parent, "Zip") {}
  absl::Status Init(const std::vector<PlanPtr>& inputs) {
    for (const PlanPtr& input : inputs) {
      inputs_.emplace_back();
      TROUPE_ASSIGN_OR_RETURN(inputs_.back().stage, input->Make({player(), meter()}));
    }
    return absl::OkStatus();
  }

  void Start(uint64_t pass) override {
    for (Input& input : inputs_) {
      input.ready.clear();
      input.stage->Start(pass);
    }
  }
  bool Close() override {
    bool closed = true;
    for (Input& input : inputs_) closed = input.stage->Close() && closed;
    return closed;
  }

 private:
  struct Input {
    std::unique_ptr<Stage> stage;
    Block ready;  ///< Elements whose partners are still to come.
  };

  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    size_t n = limit;
    for (Input& input : inputs_) {
      if (input.ready.size() < n) {
        TROUPE_ASSIGN_OR_RETURN(const Progress progress,
                                input.stage->Pull(n - input.ready.size(), &input.ready));
        if (input.ready.empty()) return progress;
      }
      // Those that follow need not give more.
      n = std::min(n, input.ready.size());
    }
    for (size_t i = 0; i < n; ++i) {
      Element element;
      for (Input& input : inputs_) Append(std::move(input.ready[i]), &element);
      out->push_back(std::move(element));
    }
    for (Input& input : inputs_) {
      input.ready.erase(input.ready.begin(), input.ready.begin() + static_cast<ptrdiff_t>(n));
    }
    return Progress::kSome;
  }
  absl::Status Save(PositionWriter* to) override {
    for (Input& input : inputs_) {
      TROUPE_RETURN_IF_ERROR(to->Put(input.ready));
      TROUPE_RETURN_IF_ERROR(input.stage->SavePosition(to));
    }
    return absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    for (Input& input : inputs_) {
      input.ready = from->TakeBlock();
      input.stage->RestorePosition(from);
    }
  }

  std::vector<Input> inputs_;
};

}  // namespace

absl::StatusOr<Element> CallMap(const ElementFunction& function, Element element) {
  absl::StatusOr<Tensors> result =
      CatchExceptions([&] { return function(ToTensors(std::move(element))); });
  if (!result.ok()) return result.status();
  return ToElement(*std::move(result));
}

absl::Status CountBad(const absl::Status& why, int64_t most, int64_t* bad, Meter* meter) {
  if (*bad >= most) {
    if (most == 0) return why;
    return WithContext(StrCat("after ", most, " bad elements that were left out: "), why);
  }
  meter->SetBad(++*bad);
  WriteLog(LogLevel::kWarning, "", {"dataset_bad_element", meter->name()}, "Bad element ", *bad,
           " of at most ", most, " is left out: ", why.ToString());
  return absl::OkStatus();
}

PlanPtr FilterPlan(PlanPtr input, ElementPredicate function) {
  return PlanOver<FilterStage>(std::move(input), std::move(function));
}
PlanPtr SerialMapPlan(PlanPtr input, ElementFunction function, DatasetMapOptions options,
                      FunctionState state) {
  return PlanOver<MapStage>(std::move(input), std::move(function), options, std::move(state));
}
PlanPtr TakePlan(PlanPtr input, uint64_t n) {
  return PlanOver<RangeStage>(std::move(input), "Take", uint64_t{0}, n);
}
PlanPtr SkipPlan(PlanPtr input, uint64_t n) {
  return PlanOver<RangeStage>(std::move(input), "Skip", n, UINT64_MAX);
}
PlanPtr ShardPlan(PlanPtr input, uint64_t index, uint64_t of) {
  return PlanOver<ShardStage>(std::move(input), index, of);
}
PlanPtr EnumeratePlan(PlanPtr input) { return PlanOver<EnumerateStage>(std::move(input)); }
PlanPtr RepeatPlan(PlanPtr input, int64_t passes) {
  return PlanOver<RepeatStage>(std::move(input), passes);
}
PlanPtr ZipPlan(std::vector<PlanPtr> inputs) {
  return MakePlan(
      [inputs = std::move(inputs)](const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
        auto stage = std::make_unique<ZipStage>(place);
        TROUPE_RETURN_IF_ERROR(stage->Init(inputs));
        return stage;
      });
}

}  // namespace troupe::data
