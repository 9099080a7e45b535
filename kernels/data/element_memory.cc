#include "kernels/data/element_memory.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "graph/op_args.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "kernels/common/strided_copy.h"
#include "kernels/data/join.h"
#include "kernels/data/variant_value.h"
#include "kernels/math/loops.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

/// From so many parts on a kernel joins them, which moves many with one launch.
constexpr size_t kLeastJoined = 4;

NodeDef DefOf(const char* op, ElementType type, int num_inputs) {
  NodeDef def;
  def.set_name(op);
  def.set_op(op);
  const auto set_type = [&def](const char* attr, ElementType value) {
    (*def.mutable_attr())[attr].set_type(static_cast<DataType>(value));
  };
  set_type("T", type);
  if (std::string_view(op) == "ConcatV2") {
    (*def.mutable_attr())["N"].set_i(num_inputs - 1);
    set_type("Tidx", ElementType::kInt32);
  }
  return def;
}

// --- on the host -------------------------------------------------------------------------------

absl::StatusOr<Tensor> HostZeros(ElementType type, const Shape& shape, Allocator* allocator) {
  TROUPE_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(type, shape, allocator));
  if (IsPlain(type) && zeros.bytes() > 0) std::memset(zeros.mutable_raw_data(), 0, zeros.bytes());
  return zeros;
}

absl::Status AddOnHost(Tensor* sum, const Tensor& addend, Allocator* allocator) {
  const simd::BinaryFn add = IsPlain(sum->type()) && sum->type() != ElementType::kBool
                                 ? FindBinary(simd::kAdd, sum->type()).aa
                                 : nullptr;
  if (add == nullptr) {
    return absl::UnimplementedError(
        StrCat("tensors of type ", ElementTypeName(sum->type()), " cannot be added"));
  }
  const int64_t n = sum->num_elements();
  if (sum->unique() && !sum->SharesBufferWith(addend)) {
    add(sum->raw_data(), addend.raw_data(), sum->mutable_raw_data(), n);
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(sum->type(), sum->shape(), allocator));
  add(sum->raw_data(), addend.raw_data(), result.mutable_raw_data(), n);
  *sum = std::move(result);
  return absl::OkStatus();
}

/// `count` elements from `begin` on, as a vector that shares memory.
Tensor Flat(const Tensor& tensor, int64_t begin, int64_t count) {
  return Tensor(tensor.type(), Shape({count}), tensor.buffer(),
                const_cast<void*>(ElementAt(tensor.type(), tensor.raw_data(), begin)));
}

}  // namespace

// --- kernels of the device -----------------------------------------------------------------------

const ElementKernels::Made& ElementKernels::Find(Device* device, const char* op, ElementType type,
                                                 int num_inputs) {
  std::lock_guard<std::mutex> lock(mutex_);
  const std::tuple<const Device*, std::string, ElementType, int> key(device, op, type, num_inputs);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  absl::StatusOr<Made> made = Make(device, op, type, num_inputs);
  if (!made.ok()) return made_.emplace(key, Made{made.status(), nullptr, {}}).first->second;
  return made_.emplace(key, *std::move(made)).first->second;
}

absl::StatusOr<ElementKernels::Made> ElementKernels::Make(Device* device, const char* op,
                                                          ElementType type, int num_inputs) {
  const NodeDef def = DefOf(op, type, num_inputs);
  TROUPE_ASSIGN_OR_RETURN(const KernelRegistration* registration,
                          KernelRegistry::Global()->Find(device->type(), def));
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registered, OpRegistry::Global()->LookUp(op));
  const OpDef& op_def = *registered->def;
  TROUPE_ASSIGN_OR_RETURN(ArgumentSpaces spaces,
                          FindArgumentSpaces(op_def, AttrReader(&def), registration->spec));
  std::vector<ElementType> inputs, outputs;
  TROUPE_RETURN_IF_ERROR(ArgTypes(op_def, ArgSide::kInputs, AttrReader(&def), &inputs));
  TROUPE_RETURN_IF_ERROR(ArgTypes(op_def, ArgSide::kOutputs, AttrReader(&def), &outputs));
  KernelConstruction construction(&def, &op_def, device, inputs, outputs);
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, registration->factory(construction));
  if (kernel->async() != nullptr) {
    return absl::UnimplementedError(StrCat("the kernel of ", op, " on ", device->name(),
                                           " is asynchronous: lists cannot call it"));
  }
  return Made{absl::OkStatus(), std::move(kernel), std::move(spaces)};
}

absl::StatusOr<Tensor> ElementKernels::Run(KernelContext& ctx, const char* op, ElementType type,
                                           std::vector<Tensor> inputs) {
  Device* const device = ctx.step().device;
  const int n = static_cast<int>(inputs.size());
  const Made& made = Find(device, op, type, n);
  TROUPE_RETURN_IF_ERROR(made.status);
  std::vector<Slot> slots(n + 1);
  std::vector<int32_t> input_slots(n);
  for (int i = 0; i < n; ++i) {
    if (made.spaces.input(i) == MemorySpace::kDevice) {
      TROUPE_ASSIGN_OR_RETURN(inputs[i], Upload(device, inputs[i]));
    }
    slots[i].tensor = std::move(inputs[i]);
    slots[i].uses = 1;
    input_slots[i] = i;
  }
  KernelContext inner(&ctx.step(), slots.data(), input_slots.data(), n, &slots[n], 1,
                      /*forwardable=*/~uint64_t{0});
  TROUPE_RETURN_IF_ERROR(made.kernel->Compute(inner));
  return std::move(slots[n].tensor);
}

// --- elements ------------------------------------------------------------------------------------

absl::StatusOr<Tensor> FetchElement(const KernelContext& ctx, Tensor element) {
  Device* const device = ctx.step().device;
  if (device == nullptr) return element;  // Who asks is no kernel of a device.
  const bool there =
      device->memory_space() == MemorySpace::kDevice && LivesOnDevice(element.type());
  if (there == (element.space() == MemorySpace::kDevice)) return element;
  if (there) return Upload(device, element);
  return absl::InternalError(StrCat("an element of type ", ElementTypeName(element.type()),
                                    " is in the memory of a device"));
}

absl::Status PutElements(KernelContext& ctx, int first, std::vector<Tensor> elements) {
  for (Tensor& element : elements) {
    TROUPE_ASSIGN_OR_RETURN(Tensor there, FetchElement(ctx, std::move(element)));
    ctx.set_output(first++, std::move(there));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ElementMemory::Move(Tensor element) const {
  return FetchElement(ctx_, std::move(element));
}

absl::StatusOr<Tensor> ElementMemory::Zeros(ElementType type, const Shape& shape) const {
  if (!IsThere(type)) {
    return HostZeros(type, shape, device_ == nullptr ? ctx_.step().allocator : HostAllocator());
  }
  if (kernels_.Has(device_, "ZerosLike", type, 1)) {
    TROUPE_ASSIGN_OR_RETURN(
        Tensor any, Tensor::Allocate(type, shape, device_->allocator(MemorySpace::kDevice)));
    return kernels_.Run(ctx_, "ZerosLike", type, {std::move(any)});
  }
  TROUPE_ASSIGN_OR_RETURN(const Tensor zeros,
                          HostZeros(type, shape, device_->allocator(MemorySpace::kPinned)));
  return Upload(device_, zeros);
}

absl::StatusOr<Tensor> ElementMemory::ZerosLike(const Tensor& tensor) const {
  TROUPE_ASSIGN_OR_RETURN(Tensor zeros, Zeros(tensor.type(), tensor.shape()));
  if (tensor.type() != ElementType::kVariant) return zeros;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const Variant& from = tensor.unchecked_data<Variant>()[i];
    if (from.empty()) continue;
    const VariantValue* value = ValueOf(from);
    if (value == nullptr) {
      return absl::UnimplementedError("zeros like a variant that holds no list and no optional");
    }
    TROUPE_ASSIGN_OR_RETURN(RefPtr<VariantValue> zero, value->ZerosLike(*this));
    zeros.mutable_data<Variant>()[i] = Variant(std::move(zero));
  }
  return zeros;
}

absl::Status ElementMemory::AddVariants(Tensor* sum, const Tensor& addend) const {
  if (!sum->unique()) {
    TROUPE_ASSIGN_OR_RETURN(Tensor own, sum->Clone());
    *sum = std::move(own);
  }
  for (int64_t i = 0; i < sum->num_elements(); ++i) {
    Variant& to = sum->mutable_data<Variant>()[i];
    const Variant& from = addend.unchecked_data<Variant>()[i];
    if (from.empty()) continue;
    if (to.empty()) {
      to = from;
      continue;
    }
    VariantValue *a = ValueOf(to), *b = ValueOf(from);
    if (a == nullptr || b == nullptr || a->kind() != b->kind()) {
      return InvalidArgument("variants can only be added if they hold values of one kind, got ",
                             a == nullptr ? "?" : a->name(), " and ",
                             b == nullptr ? "?" : b->name());
    }
    if (a->unique() && a != b) {
      TROUPE_RETURN_IF_ERROR(a->AddFrom(*b, *this));
      continue;
    }
    RefPtr<VariantValue> copy = a->Copy();
    TROUPE_RETURN_IF_ERROR(copy->AddFrom(*b, *this));
    to = Variant(std::move(copy));
  }
  return absl::OkStatus();
}

absl::Status ElementMemory::Add(Tensor* sum, const Tensor& addend) const {
  if (sum->type() != addend.type() || !(sum->shape() == addend.shape())) {
    return InvalidArgument("cannot add ", ElementTypeName(addend.type()), addend.shape().ToString(),
                           " to ", ElementTypeName(sum->type()), sum->shape().ToString(),
                           ": types and shapes must be the same");
  }
  if (sum->type() == ElementType::kVariant) return AddVariants(sum, addend);
  if (!IsThere(sum->type())) {
    return AddOnHost(sum, addend, device_ == nullptr ? ctx_.step().allocator : HostAllocator());
  }
  if (!kernels_.Has(device_, "AddV2", sum->type(), 2)) {
    return absl::UnimplementedError(StrCat("tensors of type ", ElementTypeName(sum->type()),
                                           " cannot be added on ", device_->name()));
  }
  std::vector<Tensor> inputs(2);
  TROUPE_ASSIGN_OR_RETURN(inputs[0], Fetch(std::move(*sum)));
  TROUPE_ASSIGN_OR_RETURN(inputs[1], Fetch(addend));
  const ElementType type = inputs[0].type();
  TROUPE_ASSIGN_OR_RETURN(*sum, kernels_.Run(ctx_, "AddV2", type, std::move(inputs)));
  return absl::OkStatus();
}

absl::Status ElementMemory::PutJoined(int out, ElementType type, const Shape& shape,
                                      absl::Span<const Part> parts) const {
  if (IsThere(type)) {
    TROUPE_ASSIGN_OR_RETURN(Tensor joined, Join(type, shape, parts));
    ctx_.set_output(out, std::move(joined));
    return absl::OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, device_ == nullptr
                                               ? ctx_.AllocateOutput(out, type, shape)
                                               : ctx_.AllocateHostOutput(out, type, shape));
  if (device_ != nullptr) {
    for (const Part& part : parts) {
      if (part.from != nullptr) TROUPE_RETURN_IF_ERROR(Move(*part.from).status());
    }
  }
  std::vector<Piece> runs;
  runs.reserve(parts.size());
  for (const Part& part : parts) {
    runs.push_back({part.from == nullptr ? nullptr : part.from->raw_data(), part.count});
  }
  WritePieces(ctx_, runs, output);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ElementMemory::Join(ElementType type, const Shape& shape,
                                           absl::Span<const Part> parts) const {
  std::vector<std::pair<int64_t, Tensor>> there;  // Where each begins.
  int64_t at = 0;
  bool zeros = false;
  for (const Part& part : parts) {
    if (part.count == 0) continue;
    if (part.from == nullptr) {
      zeros = true;
    } else {
      TROUPE_ASSIGN_OR_RETURN(const Tensor fetched, Fetch(*part.from));
      there.emplace_back(at, Flat(fetched, 0, part.count));
    }
    at += part.count;
  }
  // Empty ones make up the next power of two: few kernels serve all.
  const size_t num_joined = std::bit_ceil(there.size());
  if (!zeros && there.size() >= kLeastJoined &&
      kernels_.Has(device_, "ConcatV2", type, static_cast<int>(num_joined) + 1)) {
    std::vector<Tensor> inputs(num_joined + 1, Flat(there[0].second, 0, 0));
    for (size_t i = 0; i < there.size(); ++i) inputs[i] = std::move(there[i].second);
    inputs.back() = Tensor::Scalar(int32_t{0});
    TROUPE_ASSIGN_OR_RETURN(Tensor joined, kernels_.Run(ctx_, "ConcatV2", type, std::move(inputs)));
    joined.set_shape(shape);
    return joined;
  }
  Tensor joined;
  if (zeros) {
    TROUPE_ASSIGN_OR_RETURN(joined, Zeros(type, shape));
  } else {
    TROUPE_ASSIGN_OR_RETURN(
        joined, Tensor::Allocate(type, shape, device_->allocator(MemorySpace::kDevice)));
  }
  for (const auto& [begin, part] : there) {
    TROUPE_RETURN_IF_ERROR(
        device_->Copy(part, Flat(joined, begin, part.num_elements()), ctx_.step().stream));
  }
  return joined;
}

// --- leaving the device --------------------------------------------------------------------------

namespace {

bool HoldsWhatIsThere(const Tensor& value) {
  if (value.type() != ElementType::kVariant) return value.space() == MemorySpace::kDevice;
  for (const Variant& variant : value.unchecked_values<Variant>()) {
    VariantValue* const held = ValueOf(variant);
    if (held == nullptr) continue;
    const absl::Span<Tensor> tensors = held->tensors();
    if (std::any_of(tensors.begin(), tensors.end(), HoldsWhatIsThere)) return true;
  }
  return false;
}

/// Gives a tensor of variants values of its own wherever something must be copied, and collects
/// what that is.
absl::Status Separate(Tensor* value, std::vector<Tensor*>* there) {
  TROUPE_ASSIGN_OR_RETURN(*value, value->Clone());
  for (Variant& variant : value->mutable_values<Variant>()) {
    const VariantValue* const held = ValueOf(variant);
    if (held == nullptr) continue;
    RefPtr<VariantValue> own = held->Copy();
    for (Tensor& tensor : own->tensors()) {
      if (!HoldsWhatIsThere(tensor)) continue;
      if (tensor.type() == ElementType::kVariant) {
        TROUPE_RETURN_IF_ERROR(Separate(&tensor, there));
      } else {
        there->push_back(&tensor);
      }
    }
    variant = Variant(std::move(own));
  }
  return absl::OkStatus();
}

}  // namespace

void DownloadTensors(Device* device, const std::vector<Tensor*>& tensors,
                     std::function<void(absl::Status)> done) {
  struct Transfer {
    std::atomic<size_t> left{1};  ///< One more than there are: all have been begun.
    std::mutex mutex;
    absl::Status status;
    std::function<void(absl::Status)> done;

    void Over(const absl::Status& finished) {
      {
        std::lock_guard<std::mutex> lock(mutex);
        status.Update(finished);
      }
      if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) done(status);
    }
  };
  auto transfer = std::make_shared<Transfer>();
  transfer->done = std::move(done);
  transfer->left += tensors.size();
  for (Tensor* tensor : tensors) {
    const Tensor from = *tensor;
    if (!from.valid()) {
      transfer->Over(absl::OkStatus());
      continue;
    }
    DownloadValue(device, from, [transfer, tensor](absl::StatusOr<Tensor> here) {
      const absl::Status status = here.status();
      if (here.ok()) *tensor = *std::move(here);
      transfer->Over(status);
    });
  }
  transfer->Over(absl::OkStatus());
}

void DownloadTuple(Device* device, std::vector<Tensor> tuple,
                   std::function<void(absl::StatusOr<std::vector<Tensor>>)> done) {
  const auto kept = std::make_shared<std::vector<Tensor>>(std::move(tuple));
  std::vector<Tensor*> tensors;
  for (Tensor& tensor : *kept) tensors.push_back(&tensor);
  DownloadTensors(device, tensors, [kept, done = std::move(done)](absl::Status status) {
    status.ok() ? done(std::move(*kept)) : done(std::move(status));
  });
}

void DownloadValue(Device* device, const Tensor& value,
                   std::function<void(absl::StatusOr<Tensor>)> done) {
  if (!HoldsWhatIsThere(value)) return done(value);
  if (value.type() != ElementType::kVariant) return Download(device, value, std::move(done));
  const auto own = std::make_shared<Tensor>(value);
  std::vector<Tensor*> there;
  if (absl::Status status = Separate(own.get(), &there); !status.ok()) return done(status);
  DownloadTensors(device, there, [own, done = std::move(done)](absl::Status status) {
    status.ok() ? done(std::move(*own)) : done(std::move(status));
  });
}

}  // namespace troupe
