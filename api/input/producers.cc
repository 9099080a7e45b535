#include "api/input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/input/queues.h"
#include "api/ops.h"
#include "api/training/queue_runner.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

using namespace input;  // NOLINT(google-build-using-namespace)

namespace {

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
    SummarizeFullness(own, options.summary_name, QueueSize(own, handle), options.capacity);
  }
  return own.ok() ? handle : Output();
}

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
  const std::vector<Output> all = TensorsOf(own, tensors);
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

}  // namespace troupe
