#include "api/input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/control_flow.h"
#include "api/input/queues.h"
#include "api/ops.h"
#include "api/training/queue_runner.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

using namespace input;  // NOLINT(google-build-using-namespace)

namespace {

/// Builds what `Bucket` gives: a queue for each bucket, and the queue of batches.
class Buckets {
 public:
  Buckets(const Scope& own, std::vector<Output> tensors, const std::vector<int32_t>& batch_sizes,
          int64_t num_buckets, const BucketOptions& options)
      : own_(own),
        tensors_(std::move(tensors)),
        batch_sizes_(batch_sizes),
        num_buckets_(num_buckets),
        options_(options) {}

  BucketBatch Build(const Input& which) {
    if (own_.ok()) own_.UpdateStatus(Check());
    if (!own_.ok()) return {};
    if (batch_sizes_.size() == 1) batch_sizes_.resize(num_buckets_, batch_sizes_[0]);
    AddQueues();
    AddEnqueues(which);
    AddTransfers();
    AddSummaries();
    if (!own_.ok()) return {};
    OutputList taken = Dequeue(own_.WithOpName("dequeue_top"), top_);
    if (!own_.ok()) return {};
    return {.bucket = taken[0], .tensors = std::vector<Output>(taken.begin() + 1, taken.end())};
  }

 private:
  absl::Status Check() {
    const std::string name = NameOf(own_);
    if (num_buckets_ < 1) return InvalidArgument(name, ": there must be at least one bucket");
    const auto wrong = [&](const char* what, size_t n) {
      return InvalidArgument(name, ": there are ", num_buckets_, " buckets and ", n, " ", what);
    };
    const size_t buckets = static_cast<size_t>(num_buckets_);
    if (batch_sizes_.size() != 1 && batch_sizes_.size() != buckets) {
      return wrong("sizes of batches", batch_sizes_.size());
    }
    capacities_ = options_.bucket_capacities;
    if (capacities_.empty()) capacities_.assign(buckets, options_.capacity);
    if (capacities_.size() != buckets) return wrong("capacities", capacities_.size());
    const bool small =
        std::min(options_.capacity, *std::min_element(capacities_.begin(), capacities_.end())) < 1;
    if (small || *std::min_element(batch_sizes_.begin(), batch_sizes_.end()) < 1 ||
        options_.num_threads < 1) {
      return InvalidArgument(name,
                             ": capacities, sizes of batches and `num_threads` must be at "
                             "least 1");
    }
    auto shapes =
        ElementShapes({tensors_}, options_.shapes, /*enqueue_many=*/false, options_.dynamic_pad);
    if (!shapes.ok()) return WithContext(StrCat(name, ": "), shapes.status());
    shapes_ = *std::move(shapes);
    return absl::OkStatus();
  }

  void AddQueues() {
    const std::vector<ElementType> types = TypesOf(tensors_);
    const std::string& shared = options_.shared_name;
    for (int64_t i = 0; i < num_buckets_; ++i) {
      const Scope named = ForQueue(own_, StrCat("bucket_queue_", i));
      const std::string name = shared.empty() ? "" : StrCat(shared, "_", i);
      buckets_.push_back(options_.dynamic_pad
                             ? ops::PaddingFIFOQueueV2(named, types,
                                                       {.shapes = shapes_,
                                                        .capacity = capacities_[i],
                                                        .container = own_.container(),
                                                        .shared_name = name})
                             : ops::FIFOQueueV2(named, types,
                                                {.shapes = shapes_,
                                                 .capacity = capacities_[i],
                                                 .container = own_.container(),
                                                 .shared_name = name}));
    }
    // A batch's size is known if all are alike.
    const bool alike =
        std::equal(batch_sizes_.begin() + 1, batch_sizes_.end(), batch_sizes_.begin());
    const int64_t n = alike && !options_.allow_smaller_final_batch ? batch_sizes_[0] : -1;
    std::vector<PartialShape> shapes = {Shape()};
    for (const PartialShape& shape : shapes_)
      shapes.push_back(PartialShape({n}).Concatenate(shape));
    std::vector<ElementType> batch_types = types;
    batch_types.insert(batch_types.begin(), ElementType::kInt32);
    top_ = ops::PaddingFIFOQueueV2(ForQueue(own_, "top_queue"), batch_types,
                                   {.shapes = shapes,
                                    .capacity = options_.capacity,
                                    .container = own_.container(),
                                    .shared_name = shared});
  }

  /// Elements into their buckets. When all of them are in, the buckets are closed.
  void AddEnqueues(const Input& which) {
    if (!own_.ok()) return;
    const Output bucket = Given(own_, "which_bucket", which);
    const auto enqueue = [&](const Scope& s) {
      const Output fine = ops::LogicalAnd(s, ops::GreaterEqual(s, bucket, 0),
                                          ops::Less(s, bucket, static_cast<int32_t>(num_buckets_)));
      Node* const check = ops::Assert(
          s, fine, {StrCat("there are ", num_buckets_, " buckets, and none is"), bucket});
      if (check == nullptr) return check;
      std::vector<BranchFunction> branches;
      for (const Output& queue : buckets_) {
        branches.push_back([&](const Scope& in) {
          return std::vector<Output>{Enqueue(in, queue, tensors_, /*many=*/false)};
        });
      }
      const OutputList done = SwitchCase(s.WithControlDependencies({&check, 1}), bucket, branches);
      return s.ok() && done[0].valid()
                 ? ops::NoOp(s.WithOpName("group_enqueues").WithControlDependencies({done[0]}))
                 : nullptr;
    };
    Node* const put = options_.keep_input ? If(own_, options_.keep_input->ToOutput(own_), enqueue)
                                          : enqueue(own_);
    if (!own_.ok()) return;
    QueueRunner(own_, buckets_[0], std::vector<Node*>(options_.num_threads, put),
                {absl::StatusCode::kOutOfRange, absl::StatusCode::kCancelled},
                CloseAll("close_buckets", false), CloseAll("cancel_buckets", true));
  }

  Node* CloseAll(const char* name, bool cancel) {
    std::vector<Node*> closes;
    for (const Output& queue : buckets_) {
      closes.push_back(ops::QueueCloseV2(own_.WithOpName(NameAt(queue, "_Close")), queue,
                                         {.cancel_pending_enqueues = cancel}));
    }
    return own_.ok() ? ops::NoOp(own_.WithOpName(name).WithControlDependencies(closes)) : nullptr;
  }

  /// Batches of the buckets into the top queue, which is closed when the last bucket is empty.
  void AddTransfers() {
    std::vector<Node*> transfers;
    for (int64_t i = 0; i < num_buckets_ && own_.ok(); ++i) {
      const Scope reading = own_.NewSubScope(StrCat("read_bucket_", i));
      std::vector<Output> batch =
          TakeBatch(reading, buckets_[i], batch_sizes_[i], options_.allow_smaller_final_batch);
      batch.insert(batch.begin(), Const(own_.WithOpName("Const"), static_cast<int32_t>(i)));
      transfers.push_back(
          ops::QueueEnqueueV2(own_.WithOpName(StrCat("enqueue_from_bucket_", i)), top_, batch));
    }
    if (own_.ok()) QueueRunner(own_, top_, std::move(transfers));
  }

  void AddSummaries() {
    if (!own_.ok()) return;
    for (const Output& queue : buckets_) {
      SummarizeFullness(own_, StrCat("bucket/", queue.node->name(), "/size"),
                        QueueSize(own_, queue), 1);
    }
    SummarizeFullness(own_,
                      StrCat("bucket/", top_.node->name(), "/", FullnessName(options_.capacity)),
                      QueueSize(own_, top_), options_.capacity);
  }

  const Scope& own_;
  const std::vector<Output> tensors_;
  std::vector<int32_t> batch_sizes_;
  const int64_t num_buckets_;
  const BucketOptions& options_;
  std::vector<int64_t> capacities_;
  std::vector<PartialShape> shapes_;
  std::vector<Output> buckets_;
  Output top_;
};

}  // namespace

BucketBatch Bucket(const Scope& scope, const InputList& tensors, const Input& which_bucket,
                   const std::vector<int32_t>& batch_sizes, int64_t num_buckets,
                   const BucketOptions& options) {
  BucketBatch none{.bucket = {}, .tensors = OutputList(tensors.size())};
  if (!scope.ok()) return none;
  const Scope own = OwnScope(scope, "bucket");
  std::vector<Output> all = TensorsOf(own, tensors);
  BucketBatch batch =
      Buckets(own, std::move(all), batch_sizes, num_buckets, options).Build(which_bucket);
  return scope.ok() ? batch : none;
}

LengthBatch BucketByLength(const Scope& scope, const Input& length, const InputList& tensors,
                           const std::vector<int32_t>& batch_sizes,
                           const std::vector<int32_t>& boundaries, const BucketOptions& options) {
  LengthBatch none{.lengths = {}, .tensors = OutputList(tensors.size())};
  if (!scope.ok()) return none;
  const Scope own = OwnScope(scope, "bucket_by_sequence_length");
  if (boundaries.empty() || std::adjacent_find(boundaries.begin(), boundaries.end(),
                                               std::greater_equal<>()) != boundaries.end()) {
    Refuse(own, "`boundaries` must be numbers that increase");
  }
  const Output given = Given(own, "input_length", length);
  std::vector<Output> all = TensorsOf(own, tensors);
  if (!own.ok()) return none;
  all.insert(all.begin(), given);
  // The bucket is how many boundaries are not above the length.
  const Output reached =
      ops::GreaterEqual(own, given, Tensor::Vector<int32_t>(absl::MakeConstSpan(boundaries)));
  const Output which =
      ops::Sum(own, ops::Cast(own, reached, ElementType::kInt32), Tensor::Vector<int32_t>({0}));
  BucketOptions with_length = options;
  if (!options.shapes.empty()) {
    with_length.shapes.insert(with_length.shapes.begin(), PartialShape(Shape()));
  }
  const BucketBatch batch = Bucket(own, all, which, batch_sizes,
                                   static_cast<int64_t>(boundaries.size()) + 1, with_length);
  if (!own.ok()) return none;
  return {.lengths = batch.tensors[0],
          .tensors = std::vector<Output>(batch.tensors.begin() + 1, batch.tensors.end())};
}

}  // namespace troupe
