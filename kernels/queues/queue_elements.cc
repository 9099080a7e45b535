// The orders in which queues give out what they hold.
#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "kernels/common/philox.h"
#include "kernels/queues/queue.h"

namespace troupe {
namespace {

class FifoElements final : public QueueElements {
 public:
  void Put(Tuple tuple) override { tuples_.push_back(std::move(tuple)); }
  Tuple Take() override {
    Tuple first = std::move(tuples_.front());
    tuples_.pop_front();
    return first;
  }
  void PutBack(std::vector<Tuple> tuples) override {
    for (auto it = tuples.rbegin(); it != tuples.rend(); ++it) tuples_.push_front(std::move(*it));
  }
  int64_t size() const override { return static_cast<int64_t>(tuples_.size()); }
  void Save(QueueState* state) const override {
    state->elements.assign(tuples_.begin(), tuples_.end());
  }
  absl::Status Restore(std::vector<Tuple> elements, const std::string&) override {
    tuples_.assign(std::make_move_iterator(elements.begin()),
                   std::make_move_iterator(elements.end()));
    return absl::OkStatus();
  }

 private:
  std::deque<Tuple> tuples_;
};

/// Any element; the last one takes its place.
class ShuffleElements final : public QueueElements {
 public:
  ShuffleElements(int64_t seed, int64_t seed2)
      : drawn_(seed == 0 && seed2 == 0), words_(PhiloxStream(seed, seed2).Reserve(0)) {}

  void Put(Tuple tuple) override { tuples_.push_back(std::move(tuple)); }
  Tuple Take() override {
    std::swap(tuples_[words_() % tuples_.size()], tuples_.back());
    Tuple taken = std::move(tuples_.back());
    tuples_.pop_back();
    return taken;
  }
  void PutBack(std::vector<Tuple> tuples) override {
    for (Tuple& tuple : tuples) tuples_.push_back(std::move(tuple));
  }
  int64_t size() const override { return static_cast<int64_t>(tuples_.size()); }
  void Save(QueueState* state) const override {
    state->elements = tuples_;
    state->generator = words_.Save();
  }
  absl::Status Restore(std::vector<Tuple> elements, const std::string& generator) override {
    if (!words_.Restore(generator, /*any=*/drawn_)) {
      return InvalidArgument("the state is of a queue with other seeds");
    }
    tuples_ = std::move(elements);
    return absl::OkStatus();
  }

 private:
  const bool drawn_;  ///< The seed was.
  std::vector<Tuple> tuples_;
  PhiloxWords words_;
};

/// The smallest number in the first component first; a heap.
class PriorityElements final : public QueueElements {
 public:
  void Put(Tuple tuple) override {
    tuples_.push_back(std::move(tuple));
    std::push_heap(tuples_.begin(), tuples_.end(), After);
  }
  Tuple Take() override {
    std::pop_heap(tuples_.begin(), tuples_.end(), After);
    Tuple first = std::move(tuples_.back());
    tuples_.pop_back();
    return first;
  }
  void PutBack(std::vector<Tuple> tuples) override {
    for (Tuple& tuple : tuples) Put(std::move(tuple));
  }
  int64_t size() const override { return static_cast<int64_t>(tuples_.size()); }
  void Save(QueueState* state) const override { state->elements = tuples_; }
  absl::Status Restore(std::vector<Tuple> elements, const std::string&) override {
    tuples_ = std::move(elements);
    // A heap stays as it is, so that equal numbers keep their order.
    if (!std::is_heap(tuples_.begin(), tuples_.end(), After)) {
      std::make_heap(tuples_.begin(), tuples_.end(), After);
    }
    return absl::OkStatus();
  }

 private:
  static bool After(const Tuple& a, const Tuple& b) {
    return a[0].unchecked_scalar<int64_t>() > b[0].unchecked_scalar<int64_t>();
  }
  std::vector<Tuple> tuples_;
};

}  // namespace

std::unique_ptr<QueueElements> MakeQueueElements(const QueueOptions& options) {
  switch (options.kind) {
    case QueueOptions::Kind::kRandomShuffle:
      return std::make_unique<ShuffleElements>(options.seed, options.seed2);
    case QueueOptions::Kind::kPriority:
      return std::make_unique<PriorityElements>();
    case QueueOptions::Kind::kFifo:
    case QueueOptions::Kind::kPaddingFifo:
      break;
  }
  return std::make_unique<FifoElements>();
}

}  // namespace troupe
