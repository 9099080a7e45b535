/// Stages: what an iterator is made of.
#ifndef TROUPE_API_DATA_STAGE_H_
#define TROUPE_API_DATA_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/data/element.h"
#include "api/data/flow.h"
#include "api/data/position.h"
#include "devices/status_macros.h"

namespace troupe::data {

/// What a stage says when it is asked for elements.
enum class Progress : uint8_t {
  kSome,     ///< It has given at least one.
  kPending,  ///< None now; it wakes its player when it is worth asking again.
  kEnd,      ///< None, until it is started again.
};

/// Gives elements when it is asked for some, and asks those before it for no more than it needs for
/// them. What it gives does not depend on how many it is asked for at a time, nor on when those
/// before it have something. Used by its player alone.
class Stage {
 public:
  Stage(Activity* player, Meter* parent, std::string name)
      : player_(player), meter_(player, parent, std::move(name)) {}
  virtual ~Stage() = default;

  /// Begins a pass over the elements, at any time; before the first `Pull`. Stages that draw
  /// at random mix `pass` into their seeds.
  virtual void Start(uint64_t pass) = 0;
  /// Appends up to `limit` elements, at least 1, to `out`. After an error, which comes behind the
  /// elements before it, there is only this error.
  absl::StatusOr<Progress> Pull(size_t limit, Block* out);

  /// Between two pulls, while nobody of the flow plays.
  absl::Status SavePosition(PositionWriter* to);
  /// In place of `Start`. Errors are the reader's.
  void RestorePosition(PositionReader* from);

  /// Instead of any more pulls, before the stage is destroyed while the flow goes on: activities
  /// among the stages come to rest. True when they have, so that it can be destroyed; asked again
  /// until then.
  virtual bool Close() { return true; }

 protected:
  virtual absl::StatusOr<Progress> DoPull(size_t limit, Block* out) = 0;
  virtual absl::Status Save(PositionWriter* to) = 0;
  virtual void Restore(PositionReader* from) = 0;

  Activity* player() const { return player_; }
  Meter* meter() { return &meter_; }
  const std::string& name() const { return meter_.name(); }
  /// With the stage's name before it.
  absl::Status Named(const absl::Status& status) const;
  /// Cancelled once nobody wants elements any more. What takes long without a pull asks for it.
  absl::Status CheckWanted() const;

 private:
  Activity* const player_;
  Meter meter_;
  absl::Status failed_;
};

/// Where a stage is made.
struct Place {
  Activity* player = nullptr;
  Meter* parent = nullptr;

  Flow* flow() const { return player->flow(); }
};

/// A stage's description, of which stages are made: what a `Dataset` refers to. Immutable.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual absl::StatusOr<std::unique_ptr<Stage>> Make(const Place& place) const = 0;
};
using PlanPtr = std::shared_ptr<const Plan>;

/// A plan that is a function.
template <typename F>
PlanPtr MakePlan(F make) {
  struct FunctionPlan final : Plan {
    explicit FunctionPlan(F f) : make_(std::move(f)) {}
    absl::StatusOr<std::unique_ptr<Stage>> Make(const Place& place) const override {
      return make_(place);
    }
    F make_;
  };
  return std::make_shared<FunctionPlan>(std::move(make));
}

/// A stage with one before it, played by the same player.
class StageOverInput : public Stage {
 public:
  StageOverInput(const Place& place, std::string name)
      : Stage(place.player, place.parent, std::move(name)) {}

  absl::Status Init(const Plan& input) {
    TROUPE_ASSIGN_OR_RETURN(input_, input.Make({player(), meter()}));
    return absl::OkStatus();
  }
  void Start(uint64_t pass) override { input_->Start(pass); }
  bool Close() override { return input_->Close(); }

 protected:
  absl::Status Save(PositionWriter* to) override { return input_->SavePosition(to); }
  void Restore(PositionReader* from) override { input_->RestorePosition(from); }

  Stage* input() { return input_.get(); }

 private:
  std::unique_ptr<Stage> input_;
};

/// The plan of a stage over one other, `S(place, args...)`, whose `Init` makes that.
template <typename S, typename... Args>
PlanPtr PlanOver(PlanPtr input, Args... args) {
  return MakePlan([input = std::move(input),
                   args...](const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    auto stage = std::make_unique<S>(place, args...);
    TROUPE_RETURN_IF_ERROR(stage->Init(*input));
    return stage;
  });
}

/// Seeds and passes: of two numbers one that looks like chance (Steele et al., "Fast splittable
/// pseudorandom number generators", 2014).
inline uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9e3779b97f4a7c15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// The same as a generator, whose state is one number.
class Draw {
 public:
  explicit Draw(uint64_t state) : state_(state) {}
  /// Less than `n` (Lemire, "Fast random integer generation in an interval", 2019, without its
  /// rejections: n is far below 2^64).
  uint64_t Below(uint64_t n) { return absl::Uint128High64(absl::uint128(Mix(state_++, 0)) * n); }
  /// What `Below` will give after so many other calls.
  uint64_t Peek(uint64_t n, uint64_t after) const { return Draw(state_ + after).Below(n); }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_STAGE_H_
