#include "api/input/queues.h"

#include <openssl/evp.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/control_flow.h"
#include "api/ops.h"
#include "api/summary.h"
#include "devices/storage/path.h"

namespace troupe {
namespace input {

Output Given(const Scope& scope, std::string_view name, const Input& input) {
  return input.is_value() ? Const(scope.WithOpName(name), input.value()) : input.output();
}

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

Output QueueSize(const Scope& scope, const Output& queue) {
  return scope.ok() ? ops::QueueSizeV2(scope.WithOpName(NameAt(queue, "_Size")), queue) : Output();
}

OutputList TakeBatch(const Scope& own, const Output& queue, const Input& n, bool up_to) {
  return DequeueMany(own.WithOpName(own.prefix()), queue, Given(own, "n", n), up_to);
}

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

Scope ForQueue(const Scope& scope, std::string_view name) {
  return scope.WithNoControlDependencies().WithOpName(name);
}

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

std::string FullnessName(int64_t capacity) { return StrCat("fraction_of_", capacity, "_full"); }

Node* If(const Scope& scope, const Output& keep, const std::function<Node*(const Scope&)>& work) {
  const Tensor known = scope.graph()->ConstantValue(keep);
  if (known.valid()) return known.unchecked_scalar<bool>() ? work(scope) : ops::NoOp(scope);
  const OutputList done = Cond(
      scope, keep, BranchFunction([&](const Scope& s) { return std::vector<Output>{work(s)}; }),
      BranchFunction([](const Scope& s) { return std::vector<Output>{ops::NoOp(s)}; }));
  return done[0].node;
}

std::vector<Output> TensorsOf(const Scope& own, const InputList& list) {
  std::vector<Output> tensors = list.ToOutputs(own);
  if (own.ok() && tensors.empty()) Refuse(own, "there are no tensors");
  for (const Output& tensor : tensors) {
    if (own.ok() && !tensor.valid()) Refuse(own, "one of the tensors is none");
  }
  return tensors;
}

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

namespace {

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

}  // namespace

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

}  // namespace input

namespace {

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

}  // namespace

OutputList Dequeue(const Scope& scope, const Output& queue) {
  if (!scope.ok()) return {};
  const absl::StatusOr<Components> components = ComponentsOf(queue);
  scope.UpdateStatus(components.status());
  if (!scope.ok()) return {};
  const Scope named =
      scope.op_name().empty() ? scope.WithOpName(input::NameAt(queue, "_Dequeue")) : scope;
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
  const Scope named =
      scope.op_name().empty()
          ? scope.WithOpName(input::NameAt(queue, up_to ? "_DequeueUpTo" : "_DequeueMany"))
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

}  // namespace troupe
