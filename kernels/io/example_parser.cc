#include "kernels/io/example_parser.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "devices/status_macros.h"
#include "kernels/io/example_bytes.h"
#include "kernels/io/for_rows.h"
#include "kernels/kernel.h"

namespace troupe {
namespace {

using Kind = FeatureSpec::Kind;

/// Calls f.operator()<T>() for the type of values.
template <typename F>
auto WithType(ElementType type, F f) {
  if (type == ElementType::kString) return f.template operator()<std::string>();
  if (type == ElementType::kFloat) return f.template operator()<float>();
  return f.template operator()<int64_t>();
}

/// Which spec asks for a key.
class KeyIndex {
 public:
  explicit KeyIndex(absl::Span<const FeatureSpec> specs) {
    index_.reserve(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) index_.emplace(specs[i].key, static_cast<int>(i));
  }
  /// -1: nobody.
  int Find(std::string_view key) const {
    const auto found = index_.find(absl::string_view(key.data(), key.size()));
    return found == index_.end() ? -1 : found->second;
  }

 private:
  absl::flat_hash_map<absl::string_view, int> index_;
};

/// Finds the spec of one key after another. Writers mostly put the keys of every example in the
/// same order: what came next the last time is tried first.
class KeyFinder {
 public:
  explicit KeyFinder(const KeyIndex& index) : index_(index) {}

  void BeginExample() { at_ = 0; }
  int Find(std::string_view key) {
    constexpr size_t kRemembered = 256;
    if (at_ == seen_.size()) {
      if (at_ == kRemembered) return index_.Find(key);
      seen_.emplace_back(key, index_.Find(key));
    } else if (seen_[at_].first != key) {
      seen_[at_] = {key, index_.Find(key)};
    }
    return seen_[at_++].second;
  }

 private:
  const KeyIndex& index_;
  std::vector<std::pair<std::string_view, int>> seen_;
  size_t at_ = 0;
};

/// `ForRows` for the examples of a batch.
class ForExamples {
 public:
  ForExamples(const ExampleBatch& batch, const ParserResources& resources)
      : rows_(static_cast<int64_t>(batch.serialized.size())), pool_(resources.pool) {
    size_t bytes = 0;
    for (const std::string& one : batch.serialized) bytes += one.size();
    const double mean =
        static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(1, rows_));
    constexpr double kExample = 150, kByte = 0.15;  // ns
    grain_ = KernelContext::GrainFor(kExample + kByte * mean);
  }

  absl::Status Run(absl::FunctionRef<void(int64_t, int64_t, RowFailed)> work) const {
    return ForRows(pool_, rows_, grain_, work);
  }

 private:
  const int64_t rows_;
  ComputePool* const pool_;
  int64_t grain_ = 1;
};

template <typename... What>
absl::Status ExampleError(const ExampleBatch& batch, int64_t example, const What&... what) {
  const std::string name =
      batch.names.empty() ? "" : StrCat(" '", batch.names[static_cast<size_t>(example)], "'");
  if (batch.single) return InvalidArgument("the example", name, ": ", what...);
  return InvalidArgument("example ", example, name, ": ", what...);
}

template <typename... What>
absl::Status FeatureError(const ExampleBatch& batch, int64_t example, const FeatureSpec& spec,
                          const What&... what) {
  return ExampleError(batch, example, "feature '", spec.key, "' ", what...);
}

absl::Status WrongType(const ExampleBatch& batch, int64_t example, const FeatureSpec& spec,
                       ElementType found) {
  return FeatureError(batch, example, spec, "has values of type ", ElementTypeName(found), ", not ",
                      ElementTypeName(spec.type));
}

absl::StatusOr<Tensor> NewTensor(const ParserResources& resources, ElementType type,
                                 const std::vector<int64_t>& dims) {
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return Tensor::Allocate(type, shape, resources.allocator);
}

/// `dims` and then those of `shape`.
std::vector<int64_t> Before(std::vector<int64_t> dims, const Shape& shape) {
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return dims;
}

/// Numbers of values become places: element i is where example i begins, the last one the end.
/// The largest number.
int64_t ToOffsets(std::vector<int64_t>* counts) {
  int64_t sum = 0, most = 0;
  for (int64_t& count : *counts) {
    most = std::max(most, count);
    sum += std::exchange(count, sum);
  }
  counts->push_back(sum);
  return most;
}

/// Row splits of the type that is asked for.
absl::StatusOr<Tensor> Splits(const FeatureSpec& spec, absl::Span<const int64_t> offsets,
                              const ParserResources& resources) {
  TROUPE_ASSIGN_OR_RETURN(
      Tensor splits, NewTensor(resources, spec.split_type, {static_cast<int64_t>(offsets.size())}));
  if (spec.split_type == ElementType::kInt64) {
    std::copy(offsets.begin(), offsets.end(), splits.mutable_data<int64_t>());
    return splits;
  }
  if (!offsets.empty() && offsets.back() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("feature '", spec.key, "' has ", offsets.back(),
                           " values, too many for row splits of type int32");
  }
  auto* to = splits.mutable_data<int32_t>();
  for (const int64_t offset : offsets) *to++ = static_cast<int32_t>(offset);
  return splits;
}

// --- features ------------------------------------------------------------------------------------

class FeatureParser {
 public:
  FeatureParser(const ExampleBatch& batch, absl::Span<const FeatureSpec> specs,
                const ParserResources& resources)
      : batch_(batch),
        specs_(specs),
        resources_(resources),
        index_(specs),
        examples_(batch, resources),
        size_(static_cast<int64_t>(batch.serialized.size())),
        results_(specs.size()) {}

  absl::StatusOr<std::vector<FeatureTensors>> Parse() {
    for (size_t s = 0; s < specs_.size(); ++s) {
      if (specs_[s].kind == Kind::kFixed) {
        TROUPE_ASSIGN_OR_RETURN(
            results_[s].values,
            NewTensor(resources_, specs_[s].type, Before(ExampleDim(), specs_[s].shape)));
        continue;
      }
      varying_.push_back(s);
      counts_.emplace_back(size_);
    }
    found_.resize(varying_.size() * static_cast<size_t>(size_));
    TROUPE_RETURN_IF_ERROR(examples_.Run([this](int64_t begin, int64_t end, RowFailed failed) {
      KeyFinder keys(index_);
      std::vector<FeatureBytes> features(specs_.size());
      for (int64_t i = begin; i < end; ++i) {
        if (absl::Status status = First(i, &keys, &features); !status.ok()) {
          return failed(i, std::move(status));
        }
      }
    }));
    if (varying_.empty()) return std::move(results_);
    for (size_t v = 0; v < varying_.size(); ++v) TROUPE_RETURN_IF_ERROR(Allocate(v));
    TROUPE_RETURN_IF_ERROR(examples_.Run([this](int64_t begin, int64_t end, RowFailed failed) {
      for (int64_t i = begin; i < end; ++i) {
        for (size_t v = 0; v < varying_.size(); ++v) {
          if (!Second(i, v)) return failed(i, WrongValues(i, specs_[varying_[v]]));
        }
      }
    }));
    return std::move(results_);
  }

 private:
  std::vector<int64_t> ExampleDim() const {
    return batch_.single ? std::vector<int64_t>() : std::vector<int64_t>{size_};
  }
  absl::Status WrongValues(int64_t i, const FeatureSpec& spec) const {
    return FeatureError(batch_, i, spec, "has bytes that are no list of values");
  }
  FeatureBytes& Found(int64_t i, size_t v) {
    return found_[static_cast<size_t>(i) * varying_.size() + v];
  }

  /// Finds the features of example i, and copies those of which the place is known.
  absl::Status First(int64_t i, KeyFinder* keys, std::vector<FeatureBytes>* features) {
    std::fill(features->begin(), features->end(), FeatureBytes());
    keys->BeginExample();
    const bool right = ForEachMapEntry(batch_.serialized[static_cast<size_t>(i)], kFeaturesField,
                                       [&](std::string_view key, std::string_view value) {
                                         const int s = keys->Find(key);
                                         if (s < 0) return true;
                                         FeatureBytes values;
                                         if (!FindValues(value, &values)) return false;
                                         if (values.type != ElementType::kInvalid)
                                           (*features)[static_cast<size_t>(s)] = values;
                                         return true;
                                       });
    if (!right) return ExampleError(batch_, i, "its bytes are no serialized Example");
    size_t v = 0;
    for (size_t s = 0; s < specs_.size(); ++s) {
      const FeatureBytes& values = (*features)[s];
      if (values.type != ElementType::kInvalid && values.type != specs_[s].type) {
        return WrongType(batch_, i, specs_[s], values.type);
      }
      if (specs_[s].kind == Kind::kFixed) {
        TROUPE_RETURN_IF_ERROR(CopyFixed(i, s, values));
      } else {
        TROUPE_RETURN_IF_ERROR(Count(i, v, values));
        Found(i, v++) = values;
      }
    }
    return absl::OkStatus();
  }

  absl::Status CopyFixed(int64_t i, size_t s, const FeatureBytes& values) {
    const FeatureSpec& spec = specs_[s];
    const int64_t wanted = spec.shape.num_elements();
    const bool missing = values.type == ElementType::kInvalid;
    if (missing && (!spec.default_value.valid() || spec.default_value.num_elements() == 0)) {
      return FeatureError(batch_, i, spec, "(", ElementTypeName(spec.type), ") is missing");
    }
    const int64_t count = WithType(spec.type, [&]<typename T>() -> int64_t {
      T* const to = results_[s].values.mutable_data<T>() + i * wanted;
      if (!missing) return CopyValues(values, to, wanted);
      std::copy_n(spec.default_value.unchecked_data<T>(), wanted, to);
      return wanted;
    });
    if (count < 0) return WrongValues(i, spec);
    if (count == wanted) return absl::OkStatus();
    return FeatureError(batch_, i, spec, "has ", count, " values, not the ", wanted, " of shape ",
                        spec.shape.ToString());
  }

  absl::Status Count(int64_t i, size_t v, const FeatureBytes& values) {
    const FeatureSpec& spec = specs_[varying_[v]];
    const int64_t count = CountValues(values);
    if (count < 0) return WrongValues(i, spec);
    counts_[v][static_cast<size_t>(i)] = count;
    if (spec.kind != Kind::kVariable) return absl::OkStatus();
    const int64_t row = spec.shape.num_elements();
    if (row == 0 ? count == 0 : count % row == 0) return absl::OkStatus();
    return FeatureError(batch_, i, spec, "has ", count, " values, not a multiple of the ", row,
                        " of shape ", spec.shape.ToString());
  }

  absl::Status Allocate(size_t v) {
    const FeatureSpec& spec = specs_[varying_[v]];
    FeatureTensors& result = results_[varying_[v]];
    const int64_t most = ToOffsets(&counts_[v]), total = counts_[v].back();
    if (spec.kind == Kind::kVariable) {
      const int64_t rows = most == 0 ? 0 : most / spec.shape.num_elements();
      std::vector<int64_t> dims = ExampleDim();
      dims.push_back(rows);
      TROUPE_ASSIGN_OR_RETURN(result.values,
                              NewTensor(resources_, spec.type, Before(dims, spec.shape)));
      return absl::OkStatus();
    }
    TROUPE_ASSIGN_OR_RETURN(result.values, NewTensor(resources_, spec.type, {total}));
    if (spec.kind == Kind::kRagged) {
      TROUPE_ASSIGN_OR_RETURN(
          result.splits,
          Splits(spec, batch_.single ? absl::Span<const int64_t>() : counts_[v], resources_));
      return absl::OkStatus();
    }
    std::vector<int64_t> shape = ExampleDim();
    shape.push_back(most);
    TROUPE_ASSIGN_OR_RETURN(result.indices, NewTensor(resources_, ElementType::kInt64,
                                                      {total, static_cast<int64_t>(shape.size())}));
    result.shape = Tensor::Vector<int64_t>(shape);
    return absl::OkStatus();
  }

  /// Copies what the first pass has counted. False: the bytes are wrong.
  bool Second(int64_t i, size_t v) {
    const FeatureSpec& spec = specs_[varying_[v]];
    FeatureTensors& result = results_[varying_[v]];
    const int64_t begin = counts_[v][static_cast<size_t>(i)],
                  count = counts_[v][static_cast<size_t>(i) + 1] - begin;
    const bool padded = spec.kind == Kind::kVariable;
    const int64_t room = padded && size_ > 0 ? result.values.num_elements() / size_ : count;
    const bool right = WithType(spec.type, [&]<typename T>() {
      T* const to = result.values.mutable_data<T>() + (padded ? i * room : begin);
      if (CopyValues(Found(i, v), to, count) != count) return false;
      if (padded) {
        std::fill(to + count, to + room, spec.default_value.unchecked_scalar<T>());
      }
      return true;
    });
    if (!right || spec.kind != Kind::kSparse) return right;
    const int64_t width = batch_.single ? 1 : 2;
    auto* index = result.indices.mutable_data<int64_t>() + begin * width;
    for (int64_t k = 0; k < count; ++k) {
      if (!batch_.single) *index++ = i;
      *index++ = k;
    }
    return true;
  }

  const ExampleBatch& batch_;
  const absl::Span<const FeatureSpec> specs_;
  const ParserResources& resources_;
  const KeyIndex index_;
  const ForExamples examples_;
  const int64_t size_;
  std::vector<FeatureTensors> results_;
  std::vector<size_t> varying_;  ///< Specs whose number of values varies.
  /// Of each of these: values of each example, and then `ToOffsets`.
  std::vector<std::vector<int64_t>> counts_;
  std::vector<FeatureBytes> found_;  ///< Where they are; for each example those of all `varying_`.
};

// --- lists of features ---------------------------------------------------------------------------

class FeatureListParser {
 public:
  FeatureListParser(const ExampleBatch& batch, absl::Span<const FeatureSpec> specs,
                    const ParserResources& resources)
      : batch_(batch),
        specs_(specs),
        resources_(resources),
        index_(specs),
        examples_(batch, resources),
        size_(static_cast<int64_t>(batch.serialized.size())),
        results_(specs.size()),
        lists_(specs.size() * static_cast<size_t>(size_)),
        features_(specs.size(), std::vector<int64_t>(static_cast<size_t>(size_))),
        values_(features_),
        longest_(features_) {}

  absl::StatusOr<std::vector<FeatureTensors>> Parse() {
    TROUPE_RETURN_IF_ERROR(examples_.Run([this](int64_t begin, int64_t end, RowFailed failed) {
      KeyFinder keys(index_);
      for (int64_t i = begin; i < end; ++i) {
        if (absl::Status status = First(i, &keys); !status.ok()) {
          return failed(i, std::move(status));
        }
      }
    }));
    for (size_t s = 0; s < specs_.size(); ++s) TROUPE_RETURN_IF_ERROR(Allocate(s));
    TROUPE_RETURN_IF_ERROR(examples_.Run([this](int64_t begin, int64_t end, RowFailed failed) {
      for (int64_t i = begin; i < end; ++i) {
        for (size_t s = 0; s < specs_.size(); ++s) {
          if (!Second(i, s)) return failed(i, WrongValues(i, specs_[s]));
        }
      }
    }));
    return std::move(results_);
  }

 private:
  absl::Status WrongValues(int64_t i, const FeatureSpec& spec) const {
    return FeatureError(batch_, i, spec, "has bytes that are no list of features");
  }
  std::string_view& List(int64_t i, size_t s) {
    return lists_[static_cast<size_t>(i) * specs_.size() + s];
  }

  /// Finds the lists of example i and counts what they hold.
  absl::Status First(int64_t i, KeyFinder* keys) {
    keys->BeginExample();
    const bool right =
        ForEachMapEntry(batch_.serialized[static_cast<size_t>(i)], kFeatureListsField,
                        [&](std::string_view key, std::string_view value) {
                          const int s = keys->Find(key);
                          // An empty list has a place, too: it is not missing.
                          if (s >= 0) List(i, s) = value.data() != nullptr ? value : "";
                          return true;
                        });
    if (!right) return ExampleError(batch_, i, "its bytes are no serialized SequenceExample");
    for (size_t s = 0; s < specs_.size(); ++s) {
      if (List(i, s).data() != nullptr) {
        TROUPE_RETURN_IF_ERROR(Count(i, s));
      } else if (specs_[s].kind == Kind::kFixed && !specs_[s].may_be_missing) {
        return ExampleError(batch_, i, "the list of features '", specs_[s].key, "' is missing");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Count(int64_t i, size_t s) {
    const FeatureSpec& spec = specs_[s];
    int64_t features = 0, values = 0, longest = 0;
    absl::Status status;
    const bool right = ForEachFeature(List(i, s), [&](std::string_view feature) {
      FeatureBytes bytes;
      if (!FindValues(feature, &bytes)) return false;
      if (bytes.type != ElementType::kInvalid && bytes.type != spec.type) {
        status = WrongType(batch_, i, spec, bytes.type);
        return false;
      }
      const int64_t count = CountValues(bytes);
      if (count < 0) return false;
      if (spec.kind == Kind::kFixed && count != spec.shape.num_elements()) {
        status = FeatureError(batch_, i, spec, "has ", count, " values at position ", features,
                              ", not the ", spec.shape.num_elements(), " of shape ",
                              spec.shape.ToString());
        return false;
      }
      ++features;
      values += count;
      longest = std::max(longest, count);
      return true;
    });
    if (!right) return status.ok() ? WrongValues(i, spec) : status;
    features_[s][static_cast<size_t>(i)] = features;
    values_[s][static_cast<size_t>(i)] = values;
    longest_[s][static_cast<size_t>(i)] = longest;
    return absl::OkStatus();
  }

  absl::Status Allocate(size_t s) {
    const FeatureSpec& spec = specs_[s];
    FeatureTensors& result = results_[s];
    if (spec.kind == Kind::kFixed) {
      TROUPE_ASSIGN_OR_RETURN(Shape lengths, Shape::Create({size_}));
      if (batch_.single) lengths = Shape();
      TROUPE_ASSIGN_OR_RETURN(result.lengths, Tensor::FromValues<int64_t>(features_[s], lengths));
    }
    const int64_t most = ToOffsets(&features_[s]);
    ToOffsets(&values_[s]);
    std::vector<int64_t> shape;
    if (!batch_.single) shape.push_back(size_);
    shape.push_back(most);
    if (spec.kind == Kind::kFixed) {
      TROUPE_ASSIGN_OR_RETURN(result.values,
                              NewTensor(resources_, spec.type, Before(shape, spec.shape)));
      return absl::OkStatus();
    }
    const int64_t total = values_[s].back();
    TROUPE_ASSIGN_OR_RETURN(result.values, NewTensor(resources_, spec.type, {total}));
    if (spec.kind == Kind::kRagged) {
      TROUPE_ASSIGN_OR_RETURN(
          result.splits,
          Splits(spec, batch_.single ? absl::Span<const int64_t>() : features_[s], resources_));
      // Filled by the second pass: it is checked here that the last one fits.
      TROUPE_RETURN_IF_ERROR(Splits(spec, {total}, resources_).status());
      TROUPE_ASSIGN_OR_RETURN(result.inner_splits,
                              NewTensor(resources_, spec.split_type, {features_[s].back() + 1}));
      SetSplit(&result.inner_splits, features_[s].back(), total);
      return absl::OkStatus();
    }
    shape.push_back(
        longest_[s].empty() ? 0 : *std::max_element(longest_[s].begin(), longest_[s].end()));
    TROUPE_ASSIGN_OR_RETURN(result.indices, NewTensor(resources_, ElementType::kInt64,
                                                      {total, static_cast<int64_t>(shape.size())}));
    result.shape = Tensor::Vector<int64_t>(shape);
    return absl::OkStatus();
  }

  static void SetSplit(Tensor* splits, int64_t at, int64_t value) {
    if (splits->type() == ElementType::kInt64) {
      splits->mutable_data<int64_t>()[at] = value;
    } else {
      splits->mutable_data<int32_t>()[at] = static_cast<int32_t>(value);
    }
  }

  /// Copies what has been counted. False: the bytes are wrong.
  bool Second(int64_t i, size_t s) {
    return WithType(specs_[s].type, [&]<typename T>() { return CopyList<T>(i, s); });
  }

  template <typename T>
  bool CopyList(int64_t i, size_t s) {
    const FeatureSpec& spec = specs_[s];
    FeatureTensors& result = results_[s];
    const auto at = static_cast<size_t>(i);
    const bool fixed = spec.kind == Kind::kFixed;
    const int64_t room = fixed && size_ > 0 ? result.values.num_elements() / size_ : 0;
    const int64_t first = fixed ? i * room : values_[s][at];
    const int64_t end = fixed ? first + room : values_[s][at + 1];
    T* const to = result.values.mutable_data<T>();
    int64_t next = first, position = 0;
    const bool right = ForEachFeature(List(i, s), [&](std::string_view feature) {
      FeatureBytes bytes;
      if (!FindValues(feature, &bytes)) return false;
      const int64_t count = CopyValues(bytes, to + next, end - next);
      if (count < 0 || count > end - next) return false;
      if (spec.kind == Kind::kRagged) {
        SetSplit(&result.inner_splits, features_[s][at] + position, next);
      } else if (spec.kind == Kind::kSparse) {
        PutIndices(i, position, count, next, &result.indices);
      }
      ++position;
      next += count;
      return true;
    });
    if (!right) return false;
    if (!fixed) return next == end;
    std::fill(to + next, to + end, T());
    return true;
  }

  void PutIndices(int64_t i, int64_t position, int64_t count, int64_t at, Tensor* indices) const {
    auto* index = indices->mutable_data<int64_t>() + at * indices->dim(1);
    for (int64_t k = 0; k < count; ++k) {
      if (!batch_.single) *index++ = i;
      *index++ = position;
      *index++ = k;
    }
  }

  const ExampleBatch& batch_;
  const absl::Span<const FeatureSpec> specs_;
  const ParserResources& resources_;
  const KeyIndex index_;
  const ForExamples examples_;
  const int64_t size_;
  std::vector<FeatureTensors> results_;
  std::vector<std::string_view> lists_;  ///< For each example those of all specs.
  /// For each spec: how many features and values each example has, and then `ToOffsets`; and the
  /// most values that a feature has.
  std::vector<std::vector<int64_t>> features_, values_, longest_;
};

absl::Status CheckBatch(const ExampleBatch& batch) {
  if (batch.names.empty() || batch.names.size() == batch.serialized.size()) {
    return absl::OkStatus();
  }
  return InvalidArgument("there are ", batch.serialized.size(), " examples, but ",
                         batch.names.size(), " names");
}

}  // namespace

absl::Status CheckSpecs(absl::Span<const FeatureSpec> specs) {
  absl::flat_hash_map<absl::string_view, int> keys;
  for (const FeatureSpec& spec : specs) {
    const auto wrong = [&](const auto&... what) {
      return InvalidArgument("feature '", spec.key, "': ", what...);
    };
    if (spec.type != ElementType::kFloat && spec.type != ElementType::kInt64 &&
        spec.type != ElementType::kString) {
      return wrong("its type must be float, int64 or string, got ", ElementTypeName(spec.type));
    }
    if (!keys.emplace(spec.key, 0).second) return wrong("it is asked for twice");
    if (spec.kind == Kind::kRagged && spec.split_type != ElementType::kInt32 &&
        spec.split_type != ElementType::kInt64) {
      return wrong("row splits must be int32 or int64, got ", ElementTypeName(spec.split_type));
    }
    if (spec.kind != Kind::kVariable && !spec.default_value.valid()) continue;
    if (spec.default_value.type() != spec.type) {
      return wrong("its default must be of type ", ElementTypeName(spec.type), ", got ",
                   ElementTypeName(spec.default_value.type()));
    }
    const int64_t defaults = spec.default_value.num_elements();
    if (spec.kind == Kind::kVariable && defaults != 1) {
      return wrong("its length varies, so that its default must be one value, the padding; got ",
                   "shape ", spec.default_value.shape().ToString());
    }
    if (spec.kind == Kind::kFixed && defaults > 0 && spec.default_value.shape() != spec.shape) {
      return wrong("its default must be of shape ", spec.shape.ToString(), ", got ",
                   spec.default_value.shape().ToString());
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FeatureTensors>> ParseFeatures(const ExampleBatch& batch,
                                                          absl::Span<const FeatureSpec> specs,
                                                          const ParserResources& resources) {
  TROUPE_RETURN_IF_ERROR(CheckBatch(batch));
  return FeatureParser(batch, specs, resources).Parse();
}

absl::StatusOr<std::vector<FeatureTensors>> ParseFeatureLists(const ExampleBatch& batch,
                                                              absl::Span<const FeatureSpec> specs,
                                                              const ParserResources& resources) {
  TROUPE_RETURN_IF_ERROR(CheckBatch(batch));
  return FeatureListParser(batch, specs, resources).Parse();
}

}  // namespace troupe
