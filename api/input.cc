#include "api/input.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "api/control_flow.h"
#include "api/internal/flow_context.h"
#include "api/ops.h"
#include "api/summary.h"
#include "api/training/queue_runner.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"

namespace troupe {
namespace {

// --- queues --------------------------------------------------------------------------------------

/// What a node is given, as a constant that is called after the node.
Output Given(const Scope& scope, std::string_view name, const Input& input) {
  return input.is_value() ? Const(scope.WithOpName(name), input.value()) : input.output();
}

/// What a queue is called after TensorFlow's custom: the last part of its name, and what is done.
std::string NameAt(const Output& queue, std::string_view suffix) {
  return StrCat(PathBase(queue.node->name()), suffix);
}

Node* Enqueue(const Scope& scope, const Output& queue, absl::Span<const Output> tensors,
              bool many) {
  if (!scope.ok()) return nullptr;
  const Scope named = scope.WithOpName(NameAt(queue, many ? "_EnqueueMany" : "_enqueue"));
  return many ? ops::QueueEnqueueManyV2(named, queue, tensors)
              : ops::QueueEnqueueV2(named, queue, tensors);
}

Output Size(const Scope& scope, const Output& queue) {
  return scope.ok() ? ops::QueueSizeV2(scope.WithOpName(NameAt(queue, "_Size")), queue) : Output();
}

/// A batch of `n` elements whose node has the name of the scope.
OutputList TakeBatch(const Scope& own, const Output& queue, const Input& n, bool up_to) {
  return DequeueMany(own.WithOpName(own.prefix()), queue, Given(own, "n", n), up_to);
}

/// What a queue holds, by the node that makes it.
struct Components {
  std::vector<ElementType> types;
  std::vector<PartialShape> shapes;
};
absl::StatusOr<Components> ComponentsOf(const Output& queue) {
  if (!queue.valid() || !queue.node->attrs().Has("component_types")) {
    return InvalidArgument(queue.valid() ? queue.name() : "nothing", " is no queue");
  }
  Components made;
  TROUPE_RETURN_IF_ERROR(queue.node->attrs().Get("component_types", &made.types));
  TROUPE_RETURN_IF_ERROR(queue.node->attrs().Get("shapes", &made.shapes));
  if (queue.node->op().starts_with("PriorityQueue")) {  // The priority is first.
    made.types.insert(made.types.begin(), ElementType::kInt64);
    made.shapes.insert(made.shapes.begin(), Shape());
  }
  made.shapes.resize(made.types.size());
  return made;
}

/// Tells the graph the shapes of what is taken: `stacked`, and then those of the components.
void Refine(const Scope& scope, const OutputList& taken, const Components& components,
            const PartialShape& stacked) {
  for (size_t i = 0; i < taken.size() && scope.ok(); ++i) {
    scope.UpdateStatus(
        scope.graph()->RefineShape(taken[i], stacked.Concatenate(components.shapes[i])));
  }
}

/// Shows which part of `all` the int32 scalar `elements` is.
void SummarizeFullness(const Scope& scope, std::string_view name, const Output& elements,
                       int64_t all) {
  if (!scope.ok()) return;
  const Output count = ops::Cast(scope.WithOpName("Cast"), elements, ElementType::kFloat);
  const Output part = Const(scope.WithOpName("mul/y"), static_cast<float>(1.0 / all));
  const Output fraction = ops::Mul(scope.WithOpName("mul"), count, part);
  const Scope own = scope.NewSubScope(name);
  const Output tag = Const(own.WithOpName("tags"), Tensor::Scalar<std::string>(NameOf(own)));
  const Output summary = ops::ScalarSummary(own.WithOpName(own.prefix()), tag, fraction);
  if (summary.valid()) scope.graph()->AddToCollection(collections::kSummaries, summary.name());
}

/// A queue belongs to no branch and waits for nobody, wherever it is made.
Scope ForQueue(const Scope& scope, std::string_view name) {
  return scope.WithNoControlDependencies().WithOpName(name);
}

/// The seeds of a queue that others may know under `shared_name`: TensorFlow's rule, so that all of
/// them ask for the same.
OpSeed QueueSeed(const Scope& scope, std::optional<int64_t> seed, const std::string& shared_name) {
  OpSeed seeds = OpSeed::For(scope, seed);
  if (seed || shared_name.empty() || (seeds.seed == 0 && seeds.seed2 == 0)) return seeds;
  // Not by the number of nodes that there are, but by the name: half of an MD5 in hexadecimal.
  const std::string text = StrCat(seeds.seed, shared_name);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_md5(), nullptr);
  seeds.seed2 =
      (int64_t{digest[0]} << 24 | digest[1] << 16 | digest[2] << 8 | digest[3]) & INT32_MAX;
  return seeds;
}

// --- checks --------------------------------------------------------------------------------------

template <typename... Text>
void Refuse(const Scope& own, const Text&... text) {
  own.UpdateStatus(InvalidArgument(NameOf(own), ": ", text...));
}

/// The tensors, unless one is missing.
std::vector<Output> Tensors(const Scope& own, const InputList& list) {
  std::vector<Output> tensors = list.ToOutputs(own);
  if (own.ok() && tensors.empty()) Refuse(own, "there are no tensors");
  for (const Output& tensor : tensors) {
    if (own.ok() && !tensor.valid()) Refuse(own, "one of the tensors is none");
  }
  return tensors;
}

/// `shape` without its first dimension, if it has one.
absl::StatusOr<PartialShape> RowShape(const PartialShape& shape) {
  if (shape.unknown_rank()) return PartialShape();
  if (shape.rank() < 1) return InvalidArgument("a scalar has no rows");
  return PartialShape(shape.dims().subspan(1));
}

std::vector<ElementType> TypesOf(absl::Span<const Output> tensors) {
  std::vector<ElementType> types;
  for (const Output& tensor : tensors) types.push_back(tensor.type());
  return types;
}

/// What the queue can hold of component `i`: what is known of all lists. Where elements may differ,
/// so does what is known.
absl::StatusOr<PartialShape> ElementShape(const std::vector<std::vector<Output>>& lists, size_t i,
                                          bool enqueue_many) {
  PartialShape merged;
  for (const std::vector<Output>& list : lists) {
    PartialShape shape = list[i].shape();
    if (shape.unknown_rank()) {
      return InvalidArgument("the rank of '", list[i].name(), "' is not known; give `shapes`");
    }
    if (enqueue_many) {
      TROUPE_ASSIGN_OR_RETURN(shape, RowShape(shape));
    }
    TROUPE_ASSIGN_OR_RETURN(merged, merged.MergeWith(shape));
  }
  return merged;
}

absl::StatusOr<std::vector<PartialShape>> ElementShapes(
    const std::vector<std::vector<Output>>& lists, const std::vector<PartialShape>& given,
    bool enqueue_many, bool padded) {
  std::vector<PartialShape> shapes = given;
  if (!given.empty() && given.size() != lists[0].size()) {
    return InvalidArgument("there are ", lists[0].size(), " tensors and ", given.size(), " shapes");
  }
  for (size_t i = 0; given.empty() && i < lists[0].size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(shapes.emplace_back(), ElementShape(lists, i, enqueue_many));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (padded ? !shapes[i].unknown_rank() : shapes[i].fully_known()) continue;
    return InvalidArgument("elements of '", lists[0][i].name(), "' have the shape ",
                           shapes[i].ToString(),
                           ", which must be fully known; give `shapes`, or pad batches with "
                           "`dynamic_pad` if elements differ");
  }
  return shapes;
}

}  // namespace

OutputList Dequeue(const Scope& scope, const Output& queue) {
  if (!scope.ok()) return {};
  const absl::StatusOr<Components> components = ComponentsOf(queue);
  scope.UpdateStatus(components.status());
  if (!scope.ok()) return {};
  const Scope named = scope.op_name().empty() ? scope.WithOpName(NameAt(queue, "_Dequeue")) : scope;
  OutputList taken = ops::QueueDequeueV2(named, queue, components->types);
  Refine(scope, taken, *components, Shape());
  return taken;
}

OutputList DequeueMany(const Scope& scope, const Output& queue, const Input& n, bool up_to) {
  if (!scope.ok()) return {};
  const absl::StatusOr<Components> components = ComponentsOf(queue);
  scope.UpdateStatus(components.status());
  const Output count = n.ToOutput(scope);
  if (!scope.ok() || !count.valid()) return {};
  const Scope named = scope.op_name().empty()
                          ? scope.WithOpName(NameAt(queue, up_to ? "_DequeueUpTo" : "_DequeueMany"))
                          : scope;
  OutputList taken = up_to ? ops::QueueDequeueUpToV2(named, queue, count, components->types)
                           : ops::QueueDequeueManyV2(named, queue, count, components->types);
  const Tensor known = up_to ? Tensor() : scope.graph()->ConstantValue(count);
  const int64_t rows =
      known.valid() && known.type() == ElementType::kInt32 && known.num_elements() == 1
          ? known.unchecked_scalar<int32_t>()
          : -1;
  Refine(scope, taken, *components, PartialShape({rows}));
  return taken;
}

namespace {

// --- producers -----------------------------------------------------------------------------------

/// `own`: the scope of the nodes; `queue`: the queue's name in it.
Output Produce(const Scope& own, Output rows, std::string_view queue,
               const ProducerOptions& options) {
  if (!own.ok()) return Output();
  absl::StatusOr<PartialShape> shape = RowShape(rows.shape());
  if (shape.ok()) shape = shape->MergeWith(options.element_shape);
  if (!shape.ok()) {
    own.UpdateStatus(WithContext(StrCat(NameOf(own), ": "), shape.status()));
  } else if (!shape->fully_known()) {
    Refuse(own, "the shape of a row of '", rows.name(), "' is not known; give `element_shape`");
  } else if (options.capacity < 1) {
    Refuse(own, "the queue's capacity is ", options.capacity, ", but must be at least 1");
  }
  if (!own.ok()) return Output();
  if (options.shuffle) {
    const OpSeed seed = OpSeed::For(own, options.seed);
    rows = ops::RandomShuffle(own, rows, {.seed = seed.seed, .seed2 = seed.seed2});
  }
  rows = LimitEpochs(own, rows, options.num_epochs);
  if (!own.ok()) return Output();
  const Output handle = ops::FIFOQueueV2(ForQueue(own, queue), {rows.type()},
                                         {.shapes = {*shape},
                                          .capacity = options.capacity,
                                          .container = own.container(),
                                          .shared_name = options.shared_name});
  Node* const enqueue = Enqueue(own, handle, {rows}, /*many=*/true);
  const QueueRunner runner(own, handle, {enqueue});
  if (!options.summary_name.empty()) {
    SummarizeFullness(own, options.summary_name, Size(own, handle), options.capacity);
  }
  return own.ok() ? handle : Output();
}

std::string FullnessName(int64_t capacity) { return StrCat("fraction_of_", capacity, "_full"); }

/// The options of a producer whose rows are scalars.
ProducerOptions OfScalars(ProducerOptions options) {
  options.element_shape = Shape();
  options.summary_name = FullnessName(options.capacity);
  return options;
}

Output ProduceRange(const Scope& own, const Input& limit, const ProducerOptions& options) {
  const Output start = Const(own.WithOpName("range/start"), int32_t{0});
  const Output end = Given(own, "range/limit", limit);
  const Output delta = Const(own.WithOpName("range/delta"), int32_t{1});
  const Output numbers = ops::Range(own.WithOpName("range"), start, end, delta);
  return Produce(own, numbers, own.prefix(), OfScalars(options));
}

}  // namespace

Output InputProducer(const Scope& scope, const Input& rows, const ProducerOptions& options) {
  if (!scope.ok()) return Output();
  const Scope own = OwnScope(scope, "input_producer");
  const std::string queue = scope.op_name().empty() ? "FIFOQueueV2" : scope.op_name();
  const Output tensor = Given(own, "input_tensor", rows);
  if (!tensor.valid()) Refuse(own, "there is no tensor");
  return Produce(own, tensor, queue, options);
}

Output StringInputProducer(const Scope& scope, const Input& strings,
                           const ProducerOptions& options) {
  if (!scope.ok()) return Output();
  const Scope own = OwnScope(scope, "input_producer");
  const Output given = strings.ToOutput(own);
  if (own.ok() && (!given.valid() || given.type() != ElementType::kString)) {
    Refuse(own, "takes strings");
  }
  if (!own.ok()) return Output();
  constexpr char kEmpty[] = "string_input_producer requires a non-null input tensor";
  const Output any =
      ops::Greater(own, ops::Size(own, given), Const(own.WithOpName("Greater/y"), int32_t{0}));
  const Output message = Given(own, "Assert/Assert/data_0", kEmpty);
  Node* const check = ops::Assert(own.WithOpName("Assert/Assert"), any, {message});
  const Output checked =
      check == nullptr ? Output() : ops::Identity(own.WithControlDependencies({&check, 1}), given);
  return Produce(own, checked, own.prefix(), OfScalars(options));
}

Output RangeInputProducer(const Scope& scope, const Input& limit, const ProducerOptions& options) {
  if (!scope.ok()) return Output();
  return ProduceRange(OwnScope(scope, "input_producer"), limit, options);
}

OutputList SliceInputProducer(const Scope& scope, const InputList& tensors,
                              const ProducerOptions& options) {
  std::vector<Output> slices(tensors.size());
  if (!scope.ok()) return slices;
  const Scope own = OwnScope(scope, "input_producer");
  const std::vector<Output> all = Tensors(own, tensors);
  if (!own.ok()) return slices;
  const Tensor zero = Tensor::Vector<int32_t>({0}), one = Tensor::Vector<int32_t>({1});
  const Output shape = ops::Shape(own, all[0]);
  const Output begin = Given(own, "strided_slice/stack", zero);
  const Output end = Given(own, "strided_slice/stack_1", one);
  const Output stride = Given(own, "strided_slice/stack_2", one);
  const Output rows = ops::StridedSlice(own.WithOpName("strided_slice"), shape, begin, end, stride,
                                        {.shrink_axis_mask = 1});
  const Output queue = ProduceRange(OwnScope(own, "input_producer"), rows, options);
  const Output index = Dequeue(own, queue)[0];
  if (!own.ok()) return slices;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string name = i == 0 ? "GatherV2" : StrCat("GatherV2_", i);
    const Output axis = Const(own.WithOpName(name + "/axis"), int32_t{0});
    slices[i] = ops::GatherV2(own.WithOpName(name), all[i], index, axis);
  }
  return slices;
}

ModelVariable MatchFilenamesOnce(const Scope& scope, const Input& patterns) {
  if (!scope.ok()) return ModelVariable();
  const Scope own = OwnScope(scope, "matching_filenames");
  const Output pattern = patterns.ToOutput(own);
  const Output files = ops::MatchingFiles(own, pattern);
  return own.ok() ? ModelVariable::Local(own, files, own.prefix()) : ModelVariable();
}

Output LimitEpochs(const Scope& scope, const Input& tensor, int64_t num_epochs) {
  if (num_epochs == 0 || !scope.ok()) return tensor.ToOutput(scope);
  const Scope own = OwnScope(scope, "limit_epochs");
  const Output given = tensor.ToOutput(own);
  if (num_epochs < 0) Refuse(own, "there cannot be ", num_epochs, " epochs");
  const ModelVariable epochs = ModelVariable::Local(
      own, Const(own.WithOpName("Const"), Tensor::Scalar<int64_t>(0)), "epochs");
  if (!own.ok()) return Output();
  const Output counted =
      ops::ResourceCountUpTo(own, epochs.handle(), num_epochs, ElementType::kInt64);
  return ops::Identity(own.WithOpName(own.prefix()).WithControlDependencies({counted}), given);
}

// --- batches -------------------------------------------------------------------------------------

namespace {

/// What all of the functions for batches are given.
struct Wanted {
  const char* name;  ///< Of the scope, by default.
  std::vector<InputList> lists;
  Input batch_size;
  Input keep_input = true;
  BatchOptions options;
  /// A queue that shuffles.
  bool shuffle = false;
  int64_t min_after_dequeue = 0;
  std::optional<int64_t> seed;
};

Wanted Shuffled(Wanted wanted, const ShuffleBatchOptions& options) {
  wanted.shuffle = true;
  wanted.min_after_dequeue = options.min_after_dequeue;
  wanted.seed = options.seed;
  wanted.options = {.num_threads = options.num_threads,
                    .capacity = options.capacity,
                    .enqueue_many = options.enqueue_many,
                    .shapes = options.shapes,
                    .dynamic_pad = false,
                    .allow_smaller_final_batch = options.allow_smaller_final_batch,
                    .shared_name = options.shared_name};
  return wanted;
}

absl::Status CheckKeepInput(const Output& keep, bool enqueue_many) {
  if (!keep.valid() || keep.type() != ElementType::kBool) {
    return InvalidArgument("`keep_input` must be of type bool");
  }
  const PartialShape& shape = keep.shape();
  if (!shape.unknown_rank() && shape.rank() <= (enqueue_many ? 1 : 0)) return absl::OkStatus();
  return InvalidArgument("`keep_input` has the shape ", shape.ToString(), ", but must be a scalar",
                         enqueue_many ? " or a vector" : "");
}

/// Does `work` if `keep` says so.
Node* If(const Scope& scope, const Output& keep, const std::function<Node*(const Scope&)>& work) {
  const Tensor known = scope.graph()->ConstantValue(keep);
  if (known.valid()) return known.unchecked_scalar<bool>() ? work(scope) : ops::NoOp(scope);
  const OutputList done = Cond(
      scope, keep, BranchFunction([&](const Scope& s) { return std::vector<Output>{work(s)}; }),
      BranchFunction([](const Scope& s) { return std::vector<Output>{ops::NoOp(s)}; }));
  return done[0].node;
}

/// Puts the elements into the queue that `keep` asks for.
Node* EnqueueKept(const Scope& own, const Output& queue, const std::vector<Output>& tensors,
                  const Output& keep, bool many) {
  if (keep.shape().rank() == 0) {
    return If(own, keep, [&](const Scope& s) { return Enqueue(s, queue, tensors, many); });
  }
  const Output part = ops::Cast(own, keep, ElementType::kInt32);
  std::vector<Output> kept;
  for (const Output& tensor : tensors)
    kept.push_back(ops::DynamicPartition(own, tensor, part, 2)[1]);
  return Enqueue(own, queue, kept, many);
}

/// The lists' tensors, which must be alike.
std::vector<std::vector<Output>> AllTensors(const Scope& own, const std::vector<InputList>& lists) {
  std::vector<std::vector<Output>> all;
  if (lists.empty()) Refuse(own, "there are no lists of tensors");
  for (const InputList& list : lists) {
    all.push_back(Tensors(own, list));
    if (own.ok() && TypesOf(all.back()) != TypesOf(all[0])) {
      Refuse(own, "list ", all.size() - 1, " has other types than list 0");
    }
  }
  return all;
}

Output MakeQueue(const Scope& own, const Wanted& wanted, const std::vector<ElementType>& types,
                 const std::vector<PartialShape>& shapes) {
  const BatchOptions& options = wanted.options;
  if (wanted.shuffle) {
    const OpSeed seed = QueueSeed(own, wanted.seed, options.shared_name);
    return ops::RandomShuffleQueueV2(ForQueue(own, "random_shuffle_queue"), types,
                                     {.shapes = shapes,
                                      .capacity = options.capacity,
                                      .min_after_dequeue = wanted.min_after_dequeue,
                                      .seed = seed.seed,
                                      .seed2 = seed.seed2,
                                      .container = own.container(),
                                      .shared_name = options.shared_name});
  }
  if (options.dynamic_pad) {
    return ops::PaddingFIFOQueueV2(ForQueue(own, "padding_fifo_queue"), types,
                                   {.shapes = shapes,
                                    .capacity = options.capacity,
                                    .container = own.container(),
                                    .shared_name = options.shared_name});
  }
  return ops::FIFOQueueV2(ForQueue(own, "fifo_queue"), types,
                          {.shapes = shapes,
                           .capacity = options.capacity,
                           .container = own.container(),
                           .shared_name = options.shared_name});
}

void SummarizeQueue(const Scope& own, const Output& queue, const Wanted& wanted) {
  const int64_t capacity = wanted.options.capacity, behind = wanted.min_after_dequeue;
  const Output size = Size(own, queue);
  if (!wanted.shuffle) return SummarizeFullness(own, FullnessName(capacity), size, capacity);
  const Output over = ops::Sub(own.WithOpName("sub"), size,
                               Const(own.WithOpName("sub/y"), static_cast<int32_t>(behind)));
  const Output ready = ops::Maximum(own, Const(own.WithOpName("Maximum/x"), int32_t{0}), over);
  SummarizeFullness(own, StrCat("fraction_over_", behind, "_of_", capacity - behind, "_full"),
                    ready, capacity - behind);
}

absl::Status CheckNumbers(const Wanted& wanted) {
  const BatchOptions& options = wanted.options;
  if (options.num_threads < 1) {
    return InvalidArgument("`num_threads` is ", options.num_threads, ", but must be at least 1");
  }
  if (wanted.min_after_dequeue < 0 || options.capacity <= wanted.min_after_dequeue ||
      options.capacity > INT32_MAX) {
    return InvalidArgument("`capacity` is ", options.capacity,
                           ", but must be larger than `min_after_dequeue`, ",
                           wanted.min_after_dequeue, ", and fit into 32 bits");
  }
  return absl::OkStatus();
}

OutputList MakeBatch(const Scope& scope, const Wanted& wanted) {
  OutputList none(wanted.lists.empty() ? 0 : wanted.lists[0].size());
  if (!scope.ok()) return none;
  const Scope own = OwnScope(scope, wanted.name);
  const BatchOptions& options = wanted.options;
  const std::vector<std::vector<Output>> lists = AllTensors(own, wanted.lists);
  const Output keep = wanted.keep_input.ToOutput(own);
  const auto check = [&](const absl::Status& status) {
    if (!status.ok()) own.UpdateStatus(WithContext(StrCat(NameOf(own), ": "), status));
    return own.ok();
  };
  if (!own.ok() || !check(CheckKeepInput(keep, options.enqueue_many)) ||
      !check(CheckNumbers(wanted))) {
    return none;
  }
  const auto shapes =
      ElementShapes(lists, options.shapes, options.enqueue_many, options.dynamic_pad);
  if (!check(shapes.status())) return none;

  const Output queue = MakeQueue(own, wanted, TypesOf(lists[0]), *shapes);
  std::vector<Node*> enqueues;
  for (const std::vector<Output>& list : lists) {
    enqueues.push_back(EnqueueKept(own, queue, list, keep, options.enqueue_many));
  }
  if (lists.size() == 1) enqueues.resize(options.num_threads, enqueues[0]);
  const QueueRunner runner(own, queue, std::move(enqueues));
  SummarizeQueue(own, queue, wanted);
  if (!own.ok()) return none;
  OutputList batch = TakeBatch(own, queue, wanted.batch_size, options.allow_smaller_final_batch);
  return own.ok() ? batch : none;
}

}  // namespace

OutputList Batch(const Scope& scope, const InputList& tensors, const Input& batch_size,
                 const BatchOptions& options) {
  return MakeBatch(
      scope, {.name = "batch", .lists = {tensors}, .batch_size = batch_size, .options = options});
}

OutputList MaybeBatch(const Scope& scope, const InputList& tensors, const Input& keep_input,
                      const Input& batch_size, const BatchOptions& options) {
  return MakeBatch(scope, {.name = "batch",
                           .lists = {tensors},
                           .batch_size = batch_size,
                           .keep_input = keep_input,
                           .options = options});
}

OutputList BatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                     const Input& batch_size, const BatchOptions& options) {
  return MaybeBatchJoin(scope, lists, true, batch_size, options);
}

OutputList MaybeBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                          const Input& keep_input, const Input& batch_size,
                          const BatchOptions& options) {
  return MakeBatch(scope, {.name = "batch_join",
                           .lists = lists,
                           .batch_size = batch_size,
                           .keep_input = keep_input,
                           .options = options});
}

OutputList ShuffleBatch(const Scope& scope, const InputList& tensors, const Input& batch_size,
                        const ShuffleBatchOptions& options) {
  return MaybeShuffleBatch(scope, tensors, true, batch_size, options);
}

OutputList MaybeShuffleBatch(const Scope& scope, const InputList& tensors, const Input& keep_input,
                             const Input& batch_size, const ShuffleBatchOptions& options) {
  return MakeBatch(scope, Shuffled({.name = "shuffle_batch",
                                    .lists = {tensors},
                                    .batch_size = batch_size,
                                    .keep_input = keep_input},
                                   options));
}

OutputList ShuffleBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                            const Input& batch_size, const ShuffleBatchOptions& options) {
  return MaybeShuffleBatchJoin(scope, lists, true, batch_size, options);
}

OutputList MaybeShuffleBatchJoin(const Scope& scope, const std::vector<InputList>& lists,
                                 const Input& keep_input, const Input& batch_size,
                                 const ShuffleBatchOptions& options) {
  return MakeBatch(scope, Shuffled({.name = "shuffle_batch_join",
                                    .lists = lists,
                                    .batch_size = batch_size,
                                    .keep_input = keep_input},
                                   options));
}

// --- buckets -------------------------------------------------------------------------------------

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
      SummarizeFullness(own_, StrCat("bucket/", queue.node->name(), "/size"), Size(own_, queue), 1);
    }
    SummarizeFullness(own_,
                      StrCat("bucket/", top_.node->name(), "/", FullnessName(options_.capacity)),
                      Size(own_, top_), options_.capacity);
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
  std::vector<Output> all = Tensors(own, tensors);
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
  std::vector<Output> all = Tensors(own, tensors);
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
