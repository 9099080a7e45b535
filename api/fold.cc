// Maps, folds and scans: loops over the rows of tensors.
#include "api/control_flow.h"
#include "api/internal/flow_context.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

/// The rows of several tensors in TensorArrays, for a loop to read one by one.
struct Rows {
  std::vector<TensorArray> arrays;
  Output count;                                  ///< Scalar int32.
  int64_t known_count = PartialShape::kUnknown;  ///< The same as far as it is known.

  std::vector<Output> Read(const Scope& scope, const Output& index) const {
    std::vector<Output> rows;
    for (const TensorArray& array : arrays) rows.push_back(array.Read(scope, index));
    return rows;
  }
};

/// InvalidArgument: no tensors, scalars, numbers of rows that differ.
Rows Unstack(const Scope& own, const std::string& what, const InputList& elements) {
  Rows rows;
  const std::vector<Output> tensors = elements.ToOutputs(own);
  if (!own.ok()) return rows;
  if (tensors.empty()) own.UpdateStatus(InvalidArgument(what, " has no tensors to go through"));
  for (const Output& tensor : tensors) {
    if (!tensor.valid() || tensor.shape().rank() == 0) {
      own.UpdateStatus(InvalidArgument(what, " goes through rows, but ",
                                       tensor.valid() ? StrCat("'", tensor.name(), "' is a scalar")
                                                      : std::string("one input is no tensor")));
      return rows;
    }
    const int64_t count = tensor.shape().unknown_rank() ? -1 : tensor.shape().dim(0);
    if (count >= 0 && rows.known_count >= 0 && count != rows.known_count) {
      own.UpdateStatus(InvalidArgument(what, ": the tensors must have equally many rows, but '",
                                       tensors[0].name(), "' has ", rows.known_count, " and '",
                                       tensor.name(), "' ", count));
      return rows;
    }
    if (count >= 0) rows.known_count = count;
  }
  if (!own.ok()) return rows;
  if (rows.known_count >= 0 && rows.known_count <= INT32_MAX) {
    rows.count = Const(own.WithOpName("count"), static_cast<int32_t>(rows.known_count));
  } else {
    rows.count = ops::StridedSlice(own.WithOpName("count"), ops::Shape(own, tensors[0]), {0}, {1},
                                   {1}, {.shrink_axis_mask = 1});
  }
  for (const Output& tensor : tensors) {
    if (!own.ok()) break;
    rows.arrays.push_back(TensorArray(own, rows.count, tensor.type()).Unstack(own, tensor));
  }
  return rows;
}

std::string Describe(const char* kind, const Scope& own) {
  return StrCat(kind, " '", NameOf(own), "'");
}

/// Stacks what the loop has written, and notes how many rows that are.
Output Stacked(const Scope& own, const TensorArray& array, const Rows& rows) {
  const Output all = array.Stack(own);
  const PartialShape& element = array.element_shape();
  if (!all.valid() || element.unknown_rank()) return all;
  std::vector<int64_t> dims(element.dims().begin(), element.dims().end());
  dims.insert(dims.begin(), rows.known_count);
  own.UpdateStatus(own.graph()->RefineShape(all, PartialShape(absl::MakeConstSpan(dims))));
  return all;
}

std::vector<Output> Map(const Scope& scope, const MapFunction& function, const InputList& elements,
                        const std::vector<ElementType>& types, const MapOptions& options) {
  if (!scope.ok()) return {};
  const Scope own = OwnScope(scope, "map");
  const std::string what = Describe("MapFn", own);
  const Rows rows = Unstack(own, what, elements);
  if (!own.ok()) return {};
  std::vector<ElementType> result_types = types;
  if (types.empty()) {
    for (const TensorArray& array : rows.arrays) result_types.push_back(array.type());
  }
  std::vector<TensorArray> results;
  std::vector<Input> variables = {Input(0)};
  for (const ElementType type : result_types) {
    results.emplace_back(own, rows.count, type,
                         TensorArray::Options{.identical_element_shapes = options.same_shapes});
    variables.emplace_back(results.back().flow());
  }
  if (!own.ok()) return {};

  WhileOptions while_options;
  while_options.parallel_iterations = options.parallel_iterations;
  std::vector<Output> end = WhileLoop(
      own, variables,
      [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], rows.count); },
      [&](const Scope& s, absl::Span<const Output> v) {
        const std::vector<Output> values = function(s, rows.Read(s, v[0]));
        if (s.ok() && values.size() != results.size()) {
          s.UpdateStatus(InvalidArgument(what, ": the function gives ", values.size(),
                                         " results, but ", results.size(),
                                         " types are expected: give their types to MapFn"));
        }
        std::vector<Output> next = {ops::Add(s, v[0], 1)};
        for (size_t i = 0; i < results.size() && s.ok(); ++i) {
          if (values[i].valid() && values[i].type() != results[i].type()) {
            s.UpdateStatus(InvalidArgument(what, ": result ", i, " of the function is ",
                                           ElementTypeName(values[i].type()), ", but ",
                                           ElementTypeName(results[i].type()),
                                           " is expected: give the results' types to MapFn"));
            break;
          }
          next.push_back(results[i].WithFlow(v[1 + i]).Write(s, v[0], values[i]).flow());
        }
        return next;
      },
      while_options);
  if (!own.ok()) return {};
  std::vector<Output> stacked;
  for (size_t i = 0; i < results.size(); ++i) {
    stacked.push_back(Stacked(own, results[i].WithFlow(end[1 + i]), rows));
  }
  return own.ok() ? stacked : std::vector<Output>();
}

}  // namespace

OutputList MapFn(const Scope& scope, const MapFunction& function, const InputList& elements,
                 const std::vector<ElementType>& types, const MapOptions& options) {
  OutputList results = Map(scope, function, elements, types, options);
  results.resize(types.empty() ? elements.size() : types.size());  // Invalid after an error.
  return results;
}

Output MapFn(const Scope& scope, const SingleMapFunction& function, const Input& elements,
             ElementType type, const MapOptions& options) {
  std::vector<ElementType> types;
  if (type != ElementType::kInvalid) types.push_back(type);
  const std::vector<Output> results = MapFn(
      scope,
      [&](const Scope& s, absl::Span<const Output> rows) {
        return std::vector<Output>{function(s, rows[0])};
      },
      {elements}, types, options);
  return results.empty() ? Output() : results[0];
}

namespace {

struct Folding {
  const char* kind;
  std::string_view name;
  bool reverse;
  bool keep_all;  // a scan
};

/// Folds and scans are one loop; a scan keeps what there is after each row.
std::vector<Output> AddFold(const Scope& scope, const Folding& kind, const FoldFunction& function,
                            const InputList& elements, const InputList& initial,
                            const ScanOptions& options) {
  if (!scope.ok()) return {};
  const Scope own = OwnScope(scope, kind.name);
  const std::string what = Describe(kind.kind, own);
  const Rows rows = Unstack(own, what, elements);
  std::vector<Output> accumulated = initial.ToOutputs(own);
  if (!own.ok()) return {};

  // How many rows are used up before the loop begins.
  const int32_t used = initial.empty() ? 1 : 0;
  auto row_at = [&](const Scope& s, const Output& step) {
    return kind.reverse ? ops::Sub(s, ops::Sub(s, rows.count, 1), step) : step;
  };
  if (initial.empty()) accumulated = rows.Read(own, row_at(own, Const(own, int32_t{0})));

  std::vector<TensorArray> kept;
  std::vector<Input> variables = {Input(used)};
  for (const Output& value : accumulated) variables.emplace_back(value);
  for (size_t i = 0; kind.keep_all && i < accumulated.size() && own.ok(); ++i) {
    if (!accumulated[i].valid()) {
      own.UpdateStatus(InvalidArgument(what, ": initial value ", i, " is no tensor"));
      break;
    }
    TensorArray array(own, rows.count, accumulated[i].type(),
                      TensorArray::Options{.identical_element_shapes = options.same_shapes});
    if (used > 0) array = array.Write(own, row_at(own, Const(own, int32_t{0})), accumulated[i]);
    kept.push_back(array);
    variables.emplace_back(array.flow());
  }
  if (!own.ok()) return {};

  const size_t n = accumulated.size();
  WhileOptions while_options;
  while_options.parallel_iterations = options.parallel_iterations;
  std::vector<Output> end = WhileLoop(
      own, variables,
      [&](const Scope& s, absl::Span<const Output> v) { return ops::Less(s, v[0], rows.count); },
      [&](const Scope& s, absl::Span<const Output> v) {
        const Output at = row_at(s, v[0]);
        const std::vector<Output> values = function(s, v.subspan(1, n), rows.Read(s, at));
        if (s.ok() && values.size() != n) {
          s.UpdateStatus(InvalidArgument(what, ": the function gives ", values.size(),
                                         " results for ", n, " accumulated values"));
        }
        std::vector<Output> next = {ops::Add(s, v[0], 1)};
        if (!s.ok()) return next;
        next.insert(next.end(), values.begin(), values.end());
        for (size_t i = 0; i < kept.size(); ++i) {
          // A wrong type is the loop's to report, in words about the accumulated value.
          const bool fits = values[i].valid() && values[i].type() == kept[i].type();
          next.push_back(fits ? kept[i].WithFlow(v[1 + n + i]).Write(s, at, values[i]).flow()
                              : v[1 + n + i]);
        }
        return next;
      },
      while_options);
  if (!own.ok()) return {};
  if (!kind.keep_all) return std::vector<Output>(end.begin() + 1, end.end());
  std::vector<Output> stacked;
  for (size_t i = 0; i < n; ++i) {
    stacked.push_back(Stacked(own, kept[i].WithFlow(end[1 + n + i]), rows));
  }
  return own.ok() ? stacked : std::vector<Output>();
}

OutputList Fold(const Scope& scope, const Folding& kind, const FoldFunction& function,
                const InputList& elements, const InputList& initial, const ScanOptions& options) {
  OutputList results = AddFold(scope, kind, function, elements, initial, options);
  results.resize(initial.empty() ? elements.size() : initial.size());  // Invalid after an error.
  return results;
}

Output FoldOne(const Scope& scope, const Folding& kind, const SingleFoldFunction& function,
               const Input& elements, const std::optional<Input>& initial,
               const ScanOptions& options) {
  InputList initials;
  if (initial.has_value()) initials = InputList({*initial});
  const std::vector<Output> results = Fold(
      scope, kind,
      [&](const Scope& s, absl::Span<const Output> accumulated, absl::Span<const Output> rows) {
        return std::vector<Output>{function(s, accumulated[0], rows[0])};
      },
      {elements}, initials, options);
  return results.empty() ? Output() : results[0];
}

constexpr Folding kFoldL = {"FoldL", "foldl", false, false};
constexpr Folding kFoldR = {"FoldR", "foldr", true, false};
constexpr Folding kScan = {"Scan", "scan", false, true};
constexpr Folding kScanBack = {"Scan", "scan", true, true};

}  // namespace

OutputList FoldL(const Scope& scope, const FoldFunction& function, const InputList& elements,
                 const InputList& initial, const ScanOptions& options) {
  return Fold(scope, kFoldL, function, elements, initial, options);
}
Output FoldL(const Scope& scope, const SingleFoldFunction& function, const Input& elements,
             const std::optional<Input>& initial, const ScanOptions& options) {
  return FoldOne(scope, kFoldL, function, elements, initial, options);
}

OutputList FoldR(const Scope& scope, const FoldFunction& function, const InputList& elements,
                 const InputList& initial, const ScanOptions& options) {
  return Fold(scope, kFoldR, function, elements, initial, options);
}
Output FoldR(const Scope& scope, const SingleFoldFunction& function, const Input& elements,
             const std::optional<Input>& initial, const ScanOptions& options) {
  return FoldOne(scope, kFoldR, function, elements, initial, options);
}

OutputList Scan(const Scope& scope, const FoldFunction& function, const InputList& elements,
                const InputList& initial, const ScanOptions& options) {
  return Fold(scope, options.reverse ? kScanBack : kScan, function, elements, initial, options);
}
Output Scan(const Scope& scope, const SingleFoldFunction& function, const Input& elements,
            const std::optional<Input>& initial, const ScanOptions& options) {
  return FoldOne(scope, options.reverse ? kScanBack : kScan, function, elements, initial, options);
}

}  // namespace troupe
