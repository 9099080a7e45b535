// Stages that stack elements.
#include <algorithm>
#include <utility>

#include "api/data/stages.h"
#include "devices/status_macros.h"

namespace troupe::data {
namespace {

absl::Status CheckCounts(const Block& elements) {
  for (const Element& element : elements) {
    if (element.components.size() == elements[0].components.size()) continue;
    return InvalidArgument("an element has ", element.components.size(),
                           " components, the first of its batch ", elements[0].components.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<Element> StackAll(const Block& elements, BatchAhead* ahead) {
  TROUPE_RETURN_IF_ERROR(CheckCounts(elements));
  Element batch;
  for (size_t i = 0; i < elements[0].components.size(); ++i) {
    Tensor stacked = ahead->Stacked(elements, i);
    if (!stacked.valid()) {
      TROUPE_ASSIGN_OR_RETURN(stacked, Stack(elements, i));
    }
    batch.components.push_back(std::move(stacked));
  }
  return batch;
}

absl::StatusOr<Element> PadAll(const Block& elements, const DatasetPaddingOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckCounts(elements));
  const size_t n = elements[0].components.size();
  for (const size_t given : {options.shapes.size(), options.values.size()}) {
    if (given == 0 || given == n) continue;
    return InvalidArgument("elements have ", n, " components, but padding is given for ", given);
  }
  Element batch;
  for (size_t i = 0; i < n; ++i) {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor stacked,
        StackPadded(elements, i, options.shapes.empty() ? PartialShape() : options.shapes[i],
                    options.values.empty() ? Tensor() : options.values[i]));
    batch.components.push_back(std::move(stacked));
  }
  return batch;
}

class BatchStage final : public StageOverInput {
 public:
  BatchStage(const Place& place, int64_t size, bool drop_remainder,
             const DatasetPaddingOptions* padding)
      : StageOverInput(place, StrCat(padding != nullptr ? "PaddedBatch(" : "Batch(", size, ")")),
        size_(static_cast<size_t>(size)),
        drop_remainder_(drop_remainder),
        padded_(padding != nullptr),
        ahead_(size_) {
    if (padded_) padding_ = *padding;
  }
  void Start(uint64_t pass) override {
    elements_.clear();
    ahead_.Clear();
    StageOverInput::Start(pass);
  }

 private:
  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    const size_t begin = out->size();
    while (out->size() - begin < limit) {
      const size_t held = elements_.size();
      TROUPE_ASSIGN_OR_RETURN(const Progress progress,
                              input()->Pull(std::min<size_t>(size_ - held, 1024), &elements_));
      if (progress == Progress::kPending) break;
      // Only then is it known that there are so many: a size may stand for "all".
      if (full_ && !padded_ && elements_.size() > held) ahead_.Take(&elements_, held);
      const bool end = progress == Progress::kEnd;
      if (end && drop_remainder_) elements_.clear();
      if (elements_.size() == size_ || (end && !elements_.empty())) {
        absl::StatusOr<Element> batch =
            padded_ ? PadAll(elements_, padding_) : StackAll(elements_, &ahead_);
        full_ = elements_.size() == size_;
        elements_.clear();
        ahead_.Clear();
        if (!batch.ok()) return Named(batch.status());
        out->push_back(*std::move(batch));
      }
      if (end) return out->size() > begin ? Progress::kSome : Progress::kEnd;
    }
    return out->size() > begin ? Progress::kSome : Progress::kPending;
  }
  absl::Status Save(PositionWriter* to) override {
    TROUPE_RETURN_IF_ERROR(to->Put(elements_));
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    elements_ = from->TakeBlock();
    if (elements_.size() >= size_) from->Refuse();
    StageOverInput::Restore(from);
  }

  const size_t size_;
  const bool drop_remainder_, padded_;
  DatasetPaddingOptions padding_;
  Block elements_;     ///< Of the batch that is not complete.
  bool full_ = false;  ///< There was a batch that is complete.
  BatchAhead ahead_;
};

class BucketStage final : public StageOverInput {
 public:
  BucketStage(const Place& place, DatasetBucketOptions options)
      : StageOverInput(place, StrCat("Bucket(", options.boundaries.size() + 1, ")")),
        options_(std::move(options)),
        buckets_(options_.boundaries.size() + 1) {}
  void Start(uint64_t pass) override {
    for (Block& bucket : buckets_) bucket.clear();
    StageOverInput::Start(pass);
  }

 private:
  size_t SizeOf(size_t bucket) const {
    const std::vector<int64_t>& sizes = options_.batch_sizes;
    return static_cast<size_t>(sizes.size() == 1 ? sizes[0] : sizes[bucket]);
  }

  absl::Status Give(Block* bucket, Block* out) {
    absl::StatusOr<Element> batch = PadAll(*bucket, options_.padding);
    bucket->clear();
    if (!batch.ok()) return Named(batch.status());
    out->push_back(*std::move(batch));
    return absl::OkStatus();
  }

  absl::StatusOr<Progress> DoPull(size_t limit, Block* out) override {
    const size_t begin = out->size();
    while (out->size() - begin < limit) {
      // One at a time: each may complete a batch.
      block_.clear();
      TROUPE_ASSIGN_OR_RETURN(const Progress progress, input()->Pull(1, &block_));
      if (progress == Progress::kPending) break;
      if (progress == Progress::kEnd) {
        for (Block& bucket : buckets_) {
          if (options_.drop_remainder) bucket.clear();
          if (bucket.empty() || out->size() - begin == limit) continue;
          TROUPE_RETURN_IF_ERROR(Give(&bucket, out));
        }
        return out->size() > begin ? Progress::kSome : Progress::kEnd;
      }
      TROUPE_RETURN_IF_ERROR(MakeCompact(&block_[0]));
      const absl::StatusOr<int64_t> length = options_.length(ToTensors(block_[0]));
      if (!length.ok()) return Named(length.status());
      const auto& boundaries = options_.boundaries;
      const size_t i = static_cast<size_t>(
          std::upper_bound(boundaries.begin(), boundaries.end(), *length) - boundaries.begin());
      buckets_[i].push_back(std::move(block_[0]));
      if (buckets_[i].size() == SizeOf(i)) TROUPE_RETURN_IF_ERROR(Give(&buckets_[i], out));
    }
    return out->size() > begin ? Progress::kSome : Progress::kPending;
  }
  absl::Status Save(PositionWriter* to) override {
    for (const Block& bucket : buckets_) TROUPE_RETURN_IF_ERROR(to->Put(bucket));
    return StageOverInput::Save(to);
  }
  void Restore(PositionReader* from) override {
    for (size_t i = 0; i < buckets_.size(); ++i) {
      buckets_[i] = from->TakeBlock();
      if (buckets_[i].size() >= SizeOf(i)) from->Refuse();
    }
    StageOverInput::Restore(from);
  }

  const DatasetBucketOptions options_;
  std::vector<Block> buckets_;
  Block block_;
};

}  // namespace

PlanPtr BatchPlan(PlanPtr input, int64_t size, bool drop_remainder) {
  return PlanOver<BatchStage>(std::move(input), size, drop_remainder,
                              static_cast<const DatasetPaddingOptions*>(nullptr));
}

PlanPtr PaddedBatchPlan(PlanPtr input, int64_t size, DatasetPaddedBatchOptions options) {
  return MakePlan([input = std::move(input), size, options = std::move(options)](
                      const Place& place) -> absl::StatusOr<std::unique_ptr<Stage>> {
    auto stage =
        std::make_unique<BatchStage>(place, size, options.drop_remainder, &options.padding);
    TROUPE_RETURN_IF_ERROR(stage->Init(*input));
    return stage;
  });
}

PlanPtr BucketPlan(PlanPtr input, DatasetBucketOptions options) {
  return PlanOver<BucketStage>(std::move(input), std::move(options));
}

}  // namespace troupe::data
