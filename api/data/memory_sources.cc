// Sources that read no files.
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "api/data/stages.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/whole_file.h"
#include "kernels/actors/tensor_actor.h"
#include "kernels/data/join.h"

namespace troupe::data {
namespace {

class TensorsStage final : public Stage {
 public:
  TensorsStage(const Place& place, Tensors components)
      : Stage(place.player, place.parent, StrCat("FromTensors(", components[0].dim(0), ")")),
        components_(std::move(components)) {
    for (const Tensor& component : components_) shapes_.push_back(WithoutFirst(component.shape()));
  }
  void Start(uint64_t) override { next_ = 0; }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    const int64_t rows = components_[0].dim(0);
    if (next_ >= rows) return Progress::kEnd;
    const int64_t end = std::min(rows, next_ + static_cast<int64_t>(limit));
    for (; next_ < end; ++next_) {
      Element& element = out->emplace_back();
      for (size_t i = 0; i < components_.size(); ++i) {
        element.components.push_back(RowOf(components_[i], shapes_[i], next_));
      }
    }
    return Progress::kSome;
  }
  absl::Status Save(PositionWriter* to) override {
    to->Number(static_cast<uint64_t>(next_));
    return absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    next_ = static_cast<int64_t>(from->Number(static_cast<uint64_t>(components_[0].dim(0))));
  }

  const Tensors components_;
  std::vector<Shape> shapes_;
  int64_t next_ = 0;
};

class NumbersStage final : public Stage {
 public:
  NumbersStage(const Place& place, int64_t begin, int64_t step, uint64_t count)
      : Stage(place.player, place.parent, StrCat("Range(", count, ")")),
        begin_(begin),
        step_(step),
        count_(count) {}
  void Start(uint64_t) override { next_ = 0; }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    if (next_ >= count_) return Progress::kEnd;
    const uint64_t end = next_ + std::min<uint64_t>(limit, count_ - next_);
    for (; next_ < end; ++next_) {
      const uint64_t value = static_cast<uint64_t>(begin_) + static_cast<uint64_t>(step_) * next_;
      out->emplace_back().components.push_back(Tensor::Scalar(static_cast<int64_t>(value)));
    }
    return Progress::kSome;
  }
  absl::Status Save(PositionWriter* to) override {
    to->Number(next_);
    return absl::OkStatus();
  }
  void Restore(PositionReader* from) override { next_ = from->Number(count_); }

  const int64_t begin_, step_;
  const uint64_t count_;
  uint64_t next_ = 0;
};

class GeneratorStage final : public Stage {
 public:
  GeneratorStage(const Place& place, std::function<ElementGenerator(uint64_t pass)> make)
      : Stage(place.player, place.parent, "Generate"), make_(std::move(make)) {}
  void Start(uint64_t pass) override {
    pass_ = pass;
    given_ = again_ = 0;
    generator_ = nullptr;
    ended_ = false;
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    if (generator_ == nullptr && !ended_) generator_ = make_(pass_);
    const size_t begin = out->size();
    while (!ended_ && out->size() - begin < limit) {
      // A generator may take its time: who is stopped does not wait for many elements.
      TROUPE_RETURN_IF_ERROR(CheckWanted());
      Tensors tensors;
      absl::StatusOr<bool> more = CatchExceptions([&] { return generator_(&tensors); });
      if (!more.ok()) return Named(more.status());
      if (!*more) {
        ended_ = true;
        generator_ = nullptr;
      } else if (again_ > 0) {
        --again_;
      } else {
        absl::StatusOr<Element> element = ToElement(std::move(tensors));
        if (!element.ok()) return Named(element.status());
        ++given_;
        out->push_back(*std::move(element));
      }
    }
    return out->size() > begin ? Progress::kSome : Progress::kEnd;
  }
  absl::Status Save(PositionWriter* to) override {
    to->Number(pass_);
    to->Number(given_);
    return absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    Start(from->Number());
    given_ = again_ = from->Number();
  }

  const std::function<ElementGenerator(uint64_t pass)> make_;
  ElementGenerator generator_;
  uint64_t pass_ = 0, given_ = 0;
  uint64_t again_ = 0;  ///< Elements that were given before the position was saved.
  bool ended_ = false;
};

/// Asks an actor for elements by their numbers, several at once. The answers come whenever they
/// come: what they need is shared with them.
class ActorStage final : public Stage {
 public:
  ActorStage(const Place& place, std::string actor, DatasetActorSourceOptions options)
      : Stage(place.player, place.parent, StrCat("FromActor(", actor, ")")),
        actor_name_(std::move(actor)),
        options_(options),
        answers_(std::make_shared<Answers>()) {
    answers_->player = place.player;
  }
  ~ActorStage() override { Close(); }
  bool Close() override {
    // Who wakes the player holds the lock: afterwards nobody does.
    std::lock_guard<std::mutex> lock(answers_->mutex);
    answers_->player = nullptr;
    return true;
  }

  void Start(uint64_t pass) override {
    pass_ = pass;
    next_ = asked_ = 0;
    found_ = false;
    std::lock_guard<std::mutex> lock(answers_->mutex);
    ++answers_->round;
    answers_->waiting.clear();
  }

 private:
  struct Answer {
    bool there = false;
    absl::StatusOr<Tensors> tensors = Tensors();
  };
  struct Answers {
    std::mutex mutex;
    Activity* player = nullptr;
    uint64_t round = 0;  ///< Answers of rounds before are dropped.
    uint64_t first = 0;  ///< The number of the first that waits.
    std::deque<Answer> waiting;
  };

  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    // Looked for once in a pass, and held for a pull: its system ends although there is an
    // iterator.
    std::shared_ptr<TensorActor> actor = actor_.lock();
    if (!found_) {
      absl::StatusOr<std::shared_ptr<TensorActor>> found =
          TensorActors::Global()->Find(actor_name_);
      if (!found.ok()) return Named(found.status());
      actor_ = actor = *std::move(found);
      found_ = true;
    }
    const size_t begin = out->size();
    while (true) {
      const uint64_t end = next_ + static_cast<uint64_t>(options_.in_flight);
      for (; actor != nullptr && asked_ < end; ++asked_) Ask(*actor);
      std::unique_lock<std::mutex> lock(answers_->mutex);
      while (!answers_->waiting.empty() && answers_->waiting.front().there &&
             out->size() - begin < limit) {
        const absl::StatusOr<Tensors>& tensors = answers_->waiting.front().tensors;
        if (!tensors.ok()) {
          if (!absl::IsOutOfRange(tensors.status())) return Named(tensors.status());
          return out->size() > begin ? Progress::kSome : Progress::kEnd;
        }
        absl::StatusOr<Element> element = ToElement(*tensors);
        if (!element.ok()) return Named(element.status());
        out->push_back(*std::move(element));
        answers_->waiting.pop_front();
        ++answers_->first;
        ++next_;
      }
      if (out->size() > begin) return Progress::kSome;
      if (answers_->waiting.empty()) {
        return Named(absl::UnavailableError(
            StrCat("actor ", actor_name_, " is published no more: it or its process has ended")));
      }
      if (!answers_->waiting.front().there) return Progress::kPending;
    }
  }

  void Ask(TensorActor& actor) {
    uint64_t round = 0;
    {
      std::lock_guard<std::mutex> lock(answers_->mutex);
      if (answers_->waiting.empty()) answers_->first = asked_;
      answers_->waiting.emplace_back();
      round = answers_->round;
    }
    actor.Ask(
        {Tensor::Scalar(static_cast<int64_t>(pass_)), Tensor::Scalar(static_cast<int64_t>(asked_))},
        options_.timeout,
        [answers = answers_, round, number = asked_](absl::StatusOr<Tensors> tensors) {
          std::lock_guard<std::mutex> lock(answers->mutex);
          if (answers->player == nullptr || answers->round != round) return;
          Answer& answer = answers->waiting[number - answers->first];
          answer.there = true;
          answer.tensors = std::move(tensors);
          if (number == answers->first) answers->player->Wake();
        });
  }

  absl::Status Save(PositionWriter* to) override {
    to->Number(pass_);
    to->Number(next_);
    return absl::OkStatus();
  }
  void Restore(PositionReader* from) override {
    Start(from->Number());
    next_ = asked_ = from->Number(INT64_MAX);
  }

  const std::string actor_name_;
  const DatasetActorSourceOptions options_;
  const std::shared_ptr<Answers> answers_;
  std::weak_ptr<TensorActor> actor_;  ///< Of this pass, once it has been found.
  bool found_ = false;
  uint64_t pass_ = 0;
  uint64_t next_ = 0, asked_ = 0;  ///< Numbers of elements.
};

}  // namespace

PlanPtr TensorsPlan(Tensors components) {
  return MakePlan([components = std::move(components)](
                      const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    return std::make_unique<TensorsStage>(place, components);
  });
}

PlanPtr NumbersPlan(int64_t begin, int64_t end, int64_t step) {
  uint64_t count = 0;
  if (step > 0 && begin < end) {
    count = (static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) - 1) /
                static_cast<uint64_t>(step) +
            1;
  } else if (step < 0 && begin > end) {
    count = (static_cast<uint64_t>(begin) - static_cast<uint64_t>(end) - 1) /
                (uint64_t{0} - static_cast<uint64_t>(step)) +
            1;
  }
  return MakePlan([=](const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    return std::make_unique<NumbersStage>(place, begin, step, count);
  });
}

PlanPtr FilesPlan(std::string pattern) {
  return MakePlan([pattern = std::move(pattern)](
                      const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    TROUPE_ASSIGN_OR_RETURN(FileSystem * file_system, FileSystems().Find(pattern));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> files, MatchFiles(file_system, pattern));
    if (files.empty()) return absl::NotFoundError(StrCat("no file matches ", pattern));
    return std::make_unique<TensorsStage>(
        place, Tensors{Tensor::Vector<std::string>(absl::MakeConstSpan(files))});
  });
}

PlanPtr GeneratorPlan(std::function<ElementGenerator(uint64_t pass)> make) {
  return MakePlan(
      [make = std::move(make)](const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
        return std::make_unique<GeneratorStage>(place, make);
      });
}

PlanPtr ActorPlan(std::string name, DatasetActorSourceOptions options) {
  return MakePlan([name = std::move(name),
                   options](const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    return std::make_unique<ActorStage>(place, name, options);
  });
}

}  // namespace troupe::data
