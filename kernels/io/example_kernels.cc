// ParseExample, ParseSequenceExample and their kin.
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/io/example_parser.h"

namespace troupe {
namespace {

using Kind = FeatureSpec::Kind;
using Types = std::vector<ElementType>;

/// What attributes say of a group of features; keys and defaults may come with each run.
absl::StatusOr<std::vector<FeatureSpec>> SparseSpecs(KernelConstruction& c, const char* types) {
  Types values;
  TROUPE_RETURN_IF_ERROR(c.GetAttr(types, &values));
  std::vector<FeatureSpec> specs(values.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    specs[i].kind = Kind::kSparse;
    specs[i].type = values[i];
  }
  return specs;
}

absl::StatusOr<std::vector<FeatureSpec>> DenseSpecs(KernelConstruction& c, const char* types,
                                                    const char* shapes) {
  Types values;
  std::vector<PartialShape> dense;
  TROUPE_RETURN_IF_ERROR(c.GetAttr(types, &values));
  TROUPE_RETURN_IF_ERROR(c.GetAttr(shapes, &dense));
  if (values.size() != dense.size()) {
    return InvalidArgument(types, " is for ", values.size(), " features, but ", shapes, " for ",
                           dense.size());
  }
  std::vector<FeatureSpec> specs(values.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    specs[i].type = values[i];
    std::vector<int64_t> dims(dense[i].unknown_rank() ? 0 : dense[i].rank());
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = dense[i].dim(static_cast<int>(d));
    if (!dims.empty() && dims[0] < 0) {
      specs[i].kind = Kind::kVariable;
      dims.erase(dims.begin());
    }
    const absl::StatusOr<Shape> shape = PartialShape(dims).ToShape();
    if (dense[i].unknown_rank() || !shape.ok()) {
      return InvalidArgument(shapes, "[", i, "] is ", dense[i].ToString(),
                             ": only the first size of a dense feature may be unknown");
    }
    specs[i].shape = *shape;
  }
  return specs;
}

absl::StatusOr<std::vector<FeatureSpec>> RaggedSpecs(KernelConstruction& c, const char* types,
                                                     const char* split_types) {
  Types splits;
  TROUPE_RETURN_IF_ERROR(c.GetAttr(split_types, &splits));
  TROUPE_ASSIGN_OR_RETURN(std::vector<FeatureSpec> specs, SparseSpecs(c, types));
  if (splits.size() != specs.size()) {
    return InvalidArgument(types, " is for ", specs.size(), " features, but ", split_types, " for ",
                           splits.size());
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    specs[i].kind = Kind::kRagged;
    specs[i].split_type = splits[i];
  }
  return specs;
}

/// Features of which an op has inputs and outputs side by side: sparse ones, then dense ones, then
/// ragged ones.
struct Groups {
  std::vector<FeatureSpec> specs;
  size_t sparse = 0, dense = 0, ragged = 0;

  void Add(std::vector<FeatureSpec> more, size_t Groups::*count) {
    this->*count = more.size();
    for (FeatureSpec& spec : more) specs.push_back(std::move(spec));
  }
};

absl::Status SetKeys(const std::vector<std::string>& keys, size_t first, size_t count,
                     const char* what, std::vector<FeatureSpec>* specs) {
  if (keys.size() != count) {
    return InvalidArgument("there are ", keys.size(), " keys of ", what, " features, but ", count,
                           " such features");
  }
  for (size_t i = 0; i < count; ++i) (*specs)[first + i].key = keys[i];
  return absl::OkStatus();
}

absl::Status SetKeyAttr(KernelConstruction& c, const char* attr, size_t first, size_t count,
                        std::vector<FeatureSpec>* specs) {
  std::vector<std::string> keys;
  TROUPE_RETURN_IF_ERROR(c.GetAttr(attr, &keys));
  return SetKeys(keys, first, count, attr, specs);
}

/// Reads the inputs of a run one after another.
class Inputs {
 public:
  explicit Inputs(KernelContext& ctx) : ctx_(ctx) {}

  const Tensor& Next() { return ctx_.input(next_++); }

  /// A string each.
  absl::Status ScalarKeys(size_t first, size_t count, std::vector<FeatureSpec>* specs) {
    for (size_t i = 0; i < count; ++i) {
      const Tensor& key = Next();
      if (key.num_elements() != 1) {
        return InvalidArgument("the key of a feature is one string, got shape ",
                               key.shape().ToString());
      }
      (*specs)[first + i].key = key.unchecked_scalar<std::string>();
    }
    return absl::OkStatus();
  }
  /// A vector of strings.
  absl::Status VectorKeys(size_t first, size_t count, const char* what,
                          std::vector<FeatureSpec>* specs) {
    const auto values = Next().unchecked_values<std::string>();
    return SetKeys({values.begin(), values.end()}, first, count, what, specs);
  }
  void Defaults(size_t first, size_t count, std::vector<FeatureSpec>* specs) {
    for (size_t i = 0; i < count; ++i) (*specs)[first + i].default_value = Next();
  }

 private:
  KernelContext& ctx_;
  int next_ = 0;
};

/// Puts out what was parsed in the order that ops have: indices, values and shapes of sparse
/// features, then dense ones, then ragged ones.
class Outputs {
 public:
  explicit Outputs(KernelContext& ctx) : ctx_(ctx) {}

  void Put(const Groups& groups, std::vector<FeatureTensors>* tensors, bool lengths = false) {
    FeatureTensors* const sparse = tensors->data();
    FeatureTensors* const dense = sparse + groups.sparse;
    FeatureTensors* const ragged = dense + groups.dense;
    Put(sparse, groups.sparse, &FeatureTensors::indices);
    Put(sparse, groups.sparse, &FeatureTensors::values);
    Put(sparse, groups.sparse, &FeatureTensors::shape);
    Put(dense, groups.dense, &FeatureTensors::values);
    if (lengths) Put(dense, groups.dense, &FeatureTensors::lengths);
    Put(ragged, groups.ragged, &FeatureTensors::values);
    Put(ragged, groups.ragged, &FeatureTensors::splits);
    if (lengths) Put(ragged, groups.ragged, &FeatureTensors::inner_splits);
  }

 private:
  void Put(FeatureTensors* from, size_t count, Tensor FeatureTensors::*tensor) {
    for (size_t i = 0; i < count; ++i) ctx_.set_output(next_++, std::move(from[i].*tensor));
  }

  KernelContext& ctx_;
  int next_ = 0;
};

absl::StatusOr<ExampleBatch> Batch(const Tensor& serialized, const Tensor* names, int max_rank,
                                   int min_rank) {
  if (serialized.rank() > max_rank || serialized.rank() < min_rank) {
    return InvalidArgument("serialized must be a ", max_rank == 0 ? "scalar" : "vector",
                           ", got shape ", serialized.shape().ToString());
  }
  ExampleBatch batch{.serialized = serialized.unchecked_values<std::string>(),
                     .single = serialized.rank() == 0};
  if (names != nullptr) batch.names = names->unchecked_values<std::string>();
  // The name of a single example may be empty: it has none.
  if (batch.single && batch.names.size() == 1 && batch.names[0].empty()) batch.names = {};
  return batch;
}

ParserResources ResourcesOf(KernelContext& ctx) {
  return {.allocator = ctx.step().allocator, .pool = ctx.step().pool};
}

// --- examples ------------------------------------------------------------------------------------

enum class Form { kFirst, kSecond, kSingle };

template <Form form>
class ParseExampleKernel final : public Kernel {
 public:
  ParseExampleKernel(KernelConstruction& c, absl::Status* status) { *status = Read(c); }

  absl::Status Compute(KernelContext& ctx) override {
    Inputs inputs(ctx);
    const Tensor& serialized = inputs.Next();
    const Tensor* const names = form == Form::kSingle ? nullptr : &inputs.Next();
    TROUPE_ASSIGN_OR_RETURN(
        const ExampleBatch batch,
        Batch(serialized, names, form == Form::kSingle ? 0 : 1, form == Form::kFirst ? 1 : 0));
    std::vector<FeatureSpec> specs = groups_.specs;
    const size_t dense = groups_.sparse, ragged = dense + groups_.dense;
    if constexpr (form == Form::kFirst) {
      TROUPE_RETURN_IF_ERROR(inputs.ScalarKeys(0, groups_.sparse, &specs));
      TROUPE_RETURN_IF_ERROR(inputs.ScalarKeys(dense, groups_.dense, &specs));
    } else if constexpr (form == Form::kSecond) {
      TROUPE_RETURN_IF_ERROR(inputs.VectorKeys(0, groups_.sparse, "sparse", &specs));
      TROUPE_RETURN_IF_ERROR(inputs.VectorKeys(dense, groups_.dense, "dense", &specs));
      TROUPE_RETURN_IF_ERROR(inputs.VectorKeys(ragged, groups_.ragged, "ragged", &specs));
    }
    inputs.Defaults(dense, groups_.dense, &specs);
    TROUPE_RETURN_IF_ERROR(CheckSpecs(specs));
    TROUPE_ASSIGN_OR_RETURN(std::vector<FeatureTensors> tensors,
                            ParseFeatures(batch, specs, ResourcesOf(ctx)));
    Outputs(ctx).Put(groups_, &tensors);
    return absl::OkStatus();
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    TROUPE_ASSIGN_OR_RETURN(auto sparse, SparseSpecs(c, "sparse_types"));
    groups_.Add(std::move(sparse), &Groups::sparse);
    TROUPE_ASSIGN_OR_RETURN(auto dense, DenseSpecs(c, "Tdense", "dense_shapes"));
    groups_.Add(std::move(dense), &Groups::dense);
    if constexpr (form == Form::kSecond) {
      TROUPE_ASSIGN_OR_RETURN(auto ragged,
                              RaggedSpecs(c, "ragged_value_types", "ragged_split_types"));
      groups_.Add(std::move(ragged), &Groups::ragged);
    } else if constexpr (form == Form::kSingle) {
      TROUPE_RETURN_IF_ERROR(SetKeyAttr(c, "sparse_keys", 0, groups_.sparse, &groups_.specs));
      return SetKeyAttr(c, "dense_keys", groups_.sparse, groups_.dense, &groups_.specs);
    }
    return absl::OkStatus();
  }

  Groups groups_;
};

// --- sequence examples ---------------------------------------------------------------------------

template <Form form>
class ParseSequenceKernel final : public Kernel {
 public:
  ParseSequenceKernel(KernelConstruction& c, absl::Status* status) { *status = Read(c); }

  absl::Status Compute(KernelContext& ctx) override {
    Inputs inputs(ctx);
    const Tensor& serialized = inputs.Next();
    std::vector<FeatureSpec> context = context_.specs, lists = lists_.specs;
    const Tensor* names = nullptr;
    if constexpr (form == Form::kSingle) {
      TROUPE_RETURN_IF_ERROR(MayBeMissing(inputs.Next(), inputs, &context, &lists));
      inputs.Defaults(context_.sparse, context_.dense, &context);
      names = &inputs.Next();
    } else {
      names = &inputs.Next();
      if constexpr (form == Form::kSecond) {
        TROUPE_RETURN_IF_ERROR(Keys(&inputs, &context, &lists));
      }
      inputs.Defaults(context_.sparse, context_.dense, &context);
    }
    TROUPE_RETURN_IF_ERROR(CheckSpecs(context));
    TROUPE_RETURN_IF_ERROR(CheckSpecs(lists));
    TROUPE_ASSIGN_OR_RETURN(const ExampleBatch batch,
                            Batch(serialized, names, form == Form::kSingle ? 0 : 1, 0));
    const ParserResources resources = ResourcesOf(ctx);
    TROUPE_ASSIGN_OR_RETURN(std::vector<FeatureTensors> features,
                            ParseFeatures(batch, context, resources));
    TROUPE_ASSIGN_OR_RETURN(std::vector<FeatureTensors> sequences,
                            ParseFeatureLists(batch, lists, resources));
    Outputs outputs(ctx);
    outputs.Put(context_, &features);
    outputs.Put(lists_, &sequences, /*lengths=*/form != Form::kSingle);
    return absl::OkStatus();
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    TROUPE_ASSIGN_OR_RETURN(auto context_sparse, SparseSpecs(c, "context_sparse_types"));
    TROUPE_ASSIGN_OR_RETURN(auto context_dense,
                            DenseSpecs(c, "Tcontext_dense", "context_dense_shapes"));
    TROUPE_ASSIGN_OR_RETURN(auto list_sparse, SparseSpecs(c, "feature_list_sparse_types"));
    TROUPE_ASSIGN_OR_RETURN(auto list_dense,
                            DenseSpecs(c, "feature_list_dense_types", "feature_list_dense_shapes"));
    for (const auto* dense : {&context_dense, &list_dense}) {
      for (const FeatureSpec& spec : *dense) {
        if (spec.kind == Kind::kVariable) {
          return InvalidArgument("dense features of a SequenceExample have a known shape");
        }
      }
    }
    context_.Add(std::move(context_sparse), &Groups::sparse);
    context_.Add(std::move(context_dense), &Groups::dense);
    lists_.Add(std::move(list_sparse), &Groups::sparse);
    lists_.Add(std::move(list_dense), &Groups::dense);
    if constexpr (form == Form::kFirst) {
      TROUPE_RETURN_IF_ERROR(
          SetKeyAttr(c, "context_sparse_keys", 0, context_.sparse, &context_.specs));
      TROUPE_RETURN_IF_ERROR(
          SetKeyAttr(c, "context_dense_keys", context_.sparse, context_.dense, &context_.specs));
      TROUPE_RETURN_IF_ERROR(
          SetKeyAttr(c, "feature_list_sparse_keys", 0, lists_.sparse, &lists_.specs));
      TROUPE_RETURN_IF_ERROR(
          SetKeyAttr(c, "feature_list_dense_keys", lists_.sparse, lists_.dense, &lists_.specs));
      std::vector<std::string> missing;
      TROUPE_RETURN_IF_ERROR(c.GetAttr("feature_list_dense_missing_assumed_empty", &missing));
      SetMayBeMissing(missing, &lists_.specs);
    } else if constexpr (form == Form::kSecond) {
      TROUPE_ASSIGN_OR_RETURN(auto context_ragged, RaggedSpecs(c, "context_ragged_value_types",
                                                               "context_ragged_split_types"));
      TROUPE_ASSIGN_OR_RETURN(auto list_ragged, RaggedSpecs(c, "feature_list_ragged_value_types",
                                                            "feature_list_ragged_split_types"));
      context_.Add(std::move(context_ragged), &Groups::ragged);
      lists_.Add(std::move(list_ragged), &Groups::ragged);
    }
    return absl::OkStatus();
  }

  static void SetMayBeMissing(absl::Span<const std::string> keys, std::vector<FeatureSpec>* lists) {
    for (FeatureSpec& spec : *lists) {
      for (const std::string& key : keys) spec.may_be_missing |= key == spec.key;
    }
  }

  /// The inputs of the single form, up to the defaults.
  absl::Status MayBeMissing(const Tensor& missing, Inputs& inputs,
                            std::vector<FeatureSpec>* context, std::vector<FeatureSpec>* lists) {
    TROUPE_RETURN_IF_ERROR(inputs.ScalarKeys(0, context_.sparse, context));
    TROUPE_RETURN_IF_ERROR(inputs.ScalarKeys(context_.sparse, context_.dense, context));
    TROUPE_RETURN_IF_ERROR(inputs.ScalarKeys(0, lists_.sparse, lists));
    TROUPE_RETURN_IF_ERROR(inputs.ScalarKeys(lists_.sparse, lists_.dense, lists));
    SetMayBeMissing(missing.unchecked_values<std::string>(), lists);
    return absl::OkStatus();
  }

  /// The inputs of the second form, between the names and the defaults.
  absl::Status Keys(Inputs* inputs, std::vector<FeatureSpec>* context,
                    std::vector<FeatureSpec>* lists) {
    for (const auto& [groups, specs] : {std::pair(&context_, context), std::pair(&lists_, lists)}) {
      const size_t dense = groups->sparse, ragged = dense + groups->dense;
      TROUPE_RETURN_IF_ERROR(inputs->VectorKeys(0, groups->sparse, "sparse", specs));
      TROUPE_RETURN_IF_ERROR(inputs->VectorKeys(dense, groups->dense, "dense", specs));
      TROUPE_RETURN_IF_ERROR(inputs->VectorKeys(ragged, groups->ragged, "ragged", specs));
    }
    const auto missing = inputs->Next().unchecked_values<bool>();
    if (missing.size() != lists_.dense) {
      return InvalidArgument("feature_list_dense_missing_assumed_empty is for ", missing.size(),
                             " features, but there are ", lists_.dense);
    }
    for (size_t i = 0; i < missing.size(); ++i) {
      (*lists)[lists_.sparse + i].may_be_missing = missing[i];
    }
    return absl::OkStatus();
  }

  Groups context_, lists_;
};

REGISTER_KERNEL(KernelSpec("ParseExample"), MakeKernel<ParseExampleKernel<Form::kFirst>>);
REGISTER_KERNEL(KernelSpec("ParseExampleV2"), MakeKernel<ParseExampleKernel<Form::kSecond>>);
REGISTER_KERNEL(KernelSpec("ParseSingleExample"), MakeKernel<ParseExampleKernel<Form::kSingle>>);
REGISTER_KERNEL(KernelSpec("ParseSequenceExample"), MakeKernel<ParseSequenceKernel<Form::kFirst>>);
REGISTER_KERNEL(KernelSpec("ParseSequenceExampleV2"),
                MakeKernel<ParseSequenceKernel<Form::kSecond>>);
REGISTER_KERNEL(KernelSpec("ParseSingleSequenceExample"),
                MakeKernel<ParseSequenceKernel<Form::kSingle>>);

}  // namespace
}  // namespace troupe
