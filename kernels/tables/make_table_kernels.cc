// Kernels that make tables.
#include <utility>

#include "devices/device.h"
#include "kernels/common/registration.h"
#include "kernels/sync/synchronizer_options.h"

namespace troupe {
namespace {

using Kind = TableOptions::Kind;

absl::Status ReadOptions(KernelConstruction& c, Kind kind, TableOptions* options) {
  options->kind = kind;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("key_dtype", &options->key_type));
  TROUPE_RETURN_IF_ERROR(c.GetAttr("value_dtype", &options->value_type));
  if (kind == Kind::kImmutable || kind == Kind::kMutable) return absl::OkStatus();
  PartialShape shape;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("value_shape", &shape));
  TROUPE_ASSIGN_OR_RETURN(options->value_shape, shape.ToShape());
  const int rank = options->value_shape.rank();
  if (rank > 1 || (rank == 0 && kind == Kind::kOfTensors)) {
    return InvalidArgument("value_shape must be that of a ",
                           kind == Kind::kOfTensors ? "vector" : "scalar or a vector", ", got ",
                           shape.ToString());
  }
  if (kind != Kind::kDense) return absl::OkStatus();
  TROUPE_RETURN_IF_ERROR(c.GetAttr("initial_num_buckets", &options->initial_buckets));
  return c.GetAttr("max_load_factor", &options->max_load);
}

template <Kind kind>
class MakeTable final : public ResourceMaker {
 public:
  MakeTable(KernelConstruction& c, absl::Status* status)
      : ResourceMaker(
            c, "LookupTable", status,
            c.Attr<bool>("use_node_name_sharing") ? Unnamed::kLikeTheNode : Unnamed::kPrivate) {
    if (status->ok()) *status = ReadOptions(c, kind, &options_);
  }

 private:
  absl::StatusOr<RefPtr<Resource>> Make(KernelContext& ctx, const std::string& name) override {
    TableOptions options = options_;
    if (kind == Kind::kDense) {
      options.empty_key = ctx.input(0);
      options.key_shape = options.empty_key.shape();
      // The first version has none: no op removes keys from it.
      if (ctx.num_inputs() > 1) options.deleted_key = ctx.input(1);
    }
    return MakeSynchronizer(name, {std::move(options)});
  }

  absl::Status Check(const WaitingResource& resource) override {
    const auto* table = dynamic_cast<const LookupTable*>(&resource);
    const auto wrong = [&](const char* what) {
      return InvalidArgument("the shared ", resource.DebugString(), " differs in ", what,
                             " from what is asked for: ", ElementTypeName(options_.key_type),
                             " to ", ElementTypeName(options_.value_type), " ",
                             options_.value_shape.ToString());
    };
    if (table == nullptr || table->options().kind != kind) return wrong("its kind");
    if (table->options().key_type != options_.key_type) return wrong("key_dtype");
    if (table->options().value_type != options_.value_type) return wrong("value_dtype");
    if (table->options().value_shape != options_.value_shape) return wrong("value_shape");
    return absl::OkStatus();
  }

  TableOptions options_;
};

/// A new table at each step, which goes with its last handle.
class MakeAnonymousTable final : public Kernel {
 public:
  MakeAnonymousTable(KernelConstruction& c, absl::Status* status) {
    *status = ReadOptions(c, Kind::kImmutable, &options_);
  }

  absl::Status Compute(KernelContext& ctx) override {
    ResourceHandle handle;
    handle.name = "anonymous";
    handle.type_name = "LookupTable";
    if (ctx.step().device != nullptr) handle.device = ctx.step().device->name();
    TROUPE_ASSIGN_OR_RETURN(handle.resource, MakeSynchronizer(handle.name, {options_}));
    ctx.output(0) = Tensor::Scalar(std::move(handle));
    return absl::OkStatus();
  }

 private:
  TableOptions options_;
};

const std::vector<ElementType> kKeys = {ElementType::kInt32, ElementType::kInt64,
                                        ElementType::kString};

KernelSpec Makes(const char* op, std::initializer_list<ElementType> more) {
  std::vector<ElementType> values = {ElementType::kBool,   ElementType::kInt32,
                                     ElementType::kInt64,  ElementType::kFloat,
                                     ElementType::kDouble, ElementType::kString};
  values.insert(values.end(), more);
  return Cheap(op).Types("key_dtype", kKeys).Types("value_dtype", values);
}

REGISTER_KERNELS(Makes("HashTable", {}), MakeKernel<MakeTable<Kind::kImmutable>>, "HashTableV2");
REGISTER_KERNEL(Makes("AnonymousHashTable", {}), MakeKernel<MakeAnonymousTable>);
REGISTER_KERNELS(Makes("MutableHashTable", {ElementType::kVariant}),
                 MakeKernel<MakeTable<Kind::kMutable>>, "MutableHashTableV2");
REGISTER_KERNELS(Makes("MutableHashTableOfTensors", {}), MakeKernel<MakeTable<Kind::kOfTensors>>,
                 "MutableHashTableOfTensorsV2");
REGISTER_KERNELS(Makes("MutableDenseHashTable", {ElementType::kResource, ElementType::kVariant}),
                 MakeKernel<MakeTable<Kind::kDense>>, "MutableDenseHashTableV2");

}  // namespace
}  // namespace troupe
