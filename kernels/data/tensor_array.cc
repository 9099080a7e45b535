#include "kernels/data/tensor_array.h"

#include <algorithm>
#include <new>

#include "devices/status_macros.h"
#include "kernels/data/release.h"
#include "kernels/data/variant_value.h"
#include "kernels/variable.h"

namespace troupe {

TensorArrayResource::~TensorArrayResource() {
  if (IsPlain(options_.type)) return;
  std::vector<Tensor> tensors;
  for (Element& element : stored_) {
    if (element.tensor.valid()) tensors.push_back(std::move(element.tensor));
  }
  Release(std::move(tensors));
}

std::string TensorArrayResource::DebugString() const {
  return StrCat("TensorArray '", options_.name, "' of ", ElementTypeName(options_.type));
}

absl::Status TensorArrayResource::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return InvalidArgument("TensorArray ", options_.name, " has already been closed.");
}

absl::Status TensorArrayResource::StoreUpTo(int64_t size) {
  if (size <= static_cast<int64_t>(stored_.size())) return absl::OkStatus();
  if (size > kMaxStored) {
    return absl::ResourceExhaustedError(StrCat("TensorArray ", options_.name, ": an array of ",
                                               size, " elements is too large: ", kMaxStored,
                                               " can be stored"));
  }
  try {
    if (size > static_cast<int64_t>(stored_.capacity())) {
      // All at once if the size is fixed: elements are often written from the first to the last.
      const int64_t fixed = options_.dynamic_size ? 0 : std::min(size_, kMaxStored);
      const int64_t twice = std::min<int64_t>(2 * stored_.size(), kMaxStored);
      stored_.reserve(std::max({size, twice, std::min<int64_t>(fixed, 1 << 16)}));
    }
    stored_.resize(size);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        StrCat("TensorArray ", options_.name, ": no memory for ", size, " elements"));
  }
  return absl::OkStatus();
}

absl::Status TensorArrayResource::WriteLocked(int64_t index, Tensor value,
                                              const ElementMemory& memory) {
  if (index < 0 || (index >= size_ && !options_.dynamic_size)) {
    return InvalidArgument("TensorArray ", options_.name, ": Tried to write to index ", index,
                           " but array is not resizeable and size is: ", size_);
  }
  if (value.type() != options_.type) {
    return InvalidArgument("TensorArray ", options_.name, ": Could not write to index ", index,
                           " because the value dtype is ", ElementTypeName(value.type()),
                           " but TensorArray dtype is ", ElementTypeName(options_.type), ".");
  }
  if (!options_.element_shape.IsCompatibleWith(value.shape())) {
    return InvalidArgument("TensorArray ", options_.name, ": Could not write to index ", index,
                           " because the value shape is ", value.shape().ToString(),
                           " which is incompatible with the TensorArray's inferred element shape: ",
                           options_.element_shape.ToString(),
                           " (consider setting infer_shape=False).");
  }
  TROUPE_RETURN_IF_ERROR(StoreUpTo(index + 1));
  size_ = std::max(size_, index + 1);
  Element& element = stored_[index];
  if (element.read) {
    return InvalidArgument("TensorArray ", options_.name, ": Could not write to index ", index,
                           " because it has already been read.");
  }
  if (!element.written) {
    if (options_.identical_element_shapes && !options_.element_shape.fully_known()) {
      options_.element_shape = value.shape();
    }
    element.shape = value.shape();
    element.tensor = std::move(value);
    element.written = true;
    return absl::OkStatus();
  }
  if (!options_.aggregate) {
    return InvalidArgument("TensorArray ", options_.name, ": Could not write to index ", index,
                           " because it has already been written to.");
  }
  if (!(element.shape == value.shape())) {
    return InvalidArgument("TensorArray ", options_.name, ": Could not aggregate to index ", index,
                           " because the existing shape is ", element.shape.ToString(),
                           " but the new input shape is ", value.shape().ToString(), ".");
  }
  if (!element.tensor.valid()) {
    element.tensor = std::move(value);
    return absl::OkStatus();
  }
  added_up_ = true;
  return memory.Add(&element.tensor, value);
}

absl::StatusOr<Tensor> TensorArrayResource::ReadLocked(int64_t index, const ElementMemory& memory) {
  // An array of gradients grows when it is read: what nobody wrote has no gradient.
  if (index < 0 || (index >= size_ && !options_.aggregate)) {
    return InvalidArgument("TensorArray ", options_.name, ": Tried to read from index ", index,
                           " but array size is: ", size_);
  }
  TROUPE_RETURN_IF_ERROR(StoreUpTo(index + 1));
  size_ = std::max(size_, index + 1);
  Element& element = stored_[index];
  if (element.cleared) {
    return InvalidArgument("TensorArray ", options_.name, ": Could not read index ", index,
                           " twice because it was cleared after a previous read (perhaps try "
                           "setting clear_after_read = false?).");
  }
  if (!element.tensor.valid()) {
    if (!element.written) {
      if (!options_.element_shape.fully_known()) {
        return InvalidArgument(
            "TensorArray ", options_.name, ": Could not read from index ", index,
            ": it was not written to, and the element shape is not fully defined: ",
            options_.element_shape.ToString(),
            ". If you set the full element_shape property on the forward TensorArray, the proper "
            "all-zeros tensor will be returned instead of incurring this error.");
      }
      TROUPE_ASSIGN_OR_RETURN(element.shape, options_.element_shape.ToShape());
    }
    TROUPE_ASSIGN_OR_RETURN(element.tensor, memory.Zeros(options_.type, element.shape));
  }
  element.read = true;
  if (!options_.clear_after_read) return element.tensor;
  element.cleared = true;
  return std::move(element.tensor);
}

absl::Status TensorArrayResource::Write(int64_t index, Tensor value, const ElementMemory& memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckOpen());
  return WriteLocked(index, std::move(value), memory);
}

absl::Status TensorArrayResource::WriteMany(absl::Span<const int32_t> indices,
                                            std::vector<Tensor> values,
                                            const ElementMemory& memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckOpen());
  for (size_t k = 0; k < indices.size(); ++k) {
    TROUPE_RETURN_IF_ERROR(WriteLocked(indices[k], std::move(values[k]), memory));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TensorArrayResource::Read(int64_t index, const ElementMemory& memory) {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckOpen());
  return ReadLocked(index, memory);
}

absl::Status TensorArrayResource::ReadMany(absl::Span<const int32_t> indices,
                                           const ElementMemory& memory,
                                           std::vector<Tensor>* values) {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckOpen());
  values->reserve(indices.size());
  for (int32_t index : indices) {
    TROUPE_ASSIGN_OR_RETURN(Tensor value, ReadLocked(index, memory));
    values->push_back(std::move(value));
  }
  return absl::OkStatus();
}

absl::Status TensorArrayResource::ReadAll(const ElementMemory& memory,
                                          std::vector<Tensor>* values) {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckOpen());
  TROUPE_RETURN_IF_ERROR(StoreUpTo(size_));
  values->reserve(size_);
  for (int64_t i = 0; i < size_; ++i) {
    TROUPE_ASSIGN_OR_RETURN(Tensor value, ReadLocked(i, memory));
    values->push_back(std::move(value));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TensorArrayResource::Size() {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckOpen());
  return size_;
}

bool TensorArrayResource::dynamic_size() {
  std::lock_guard<std::mutex> lock(mutex_);
  return options_.dynamic_size;
}

PartialShape TensorArrayResource::element_shape() {
  std::lock_guard<std::mutex> lock(mutex_);
  return options_.element_shape;
}

absl::Status TensorArrayResource::MergeElementShape(const PartialShape& shape) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (shape.unknown_rank() || shape == options_.element_shape) return absl::OkStatus();
  absl::StatusOr<PartialShape> merged = options_.element_shape.MergeWith(shape);
  if (!merged.ok()) {
    return InvalidArgument("TensorArray ", options_.name, ": its elements have shape ",
                           options_.element_shape.ToString(), ", not ", shape.ToString());
  }
  options_.element_shape = *std::move(merged);
  return absl::OkStatus();
}

void TensorArrayResource::Close() {
  std::vector<Element> elements;
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  elements.swap(stored_);
}

absl::StatusOr<RefPtr<TensorArrayResource>> TensorArrayResource::Gradient(
    std::string_view source, absl::Span<const int64_t> prepend) {
  std::lock_guard<std::mutex> lock(mutex_);
  TROUPE_RETURN_IF_ERROR(CheckOpen());
  for (const auto& [name, array] : gradients_) {
    if (name == source) return array;
  }
  options_.dynamic_size = false;
  Options options;
  options.name = StrCat(options_.name, "@", source);
  options.type = options_.type;
  options.device = options_.device;
  options.identical_element_shapes = options_.identical_element_shapes && prepend.empty();
  options.aggregate = true;
  // Where writes were added up, the gradient of each of them is that of the sum: it is read as
  // often.
  options.clear_after_read = !added_up_;
  const PartialShape before(prepend);
  options.element_shape =
      prepend.empty() ? options_.element_shape : before.Concatenate(options_.element_shape);
  auto gradient = MakeRef<TensorArrayResource>(std::move(options), size_);
  // The gradient of what was written has its shape, even where no gradient is ever written.
  TROUPE_RETURN_IF_ERROR(gradient->StoreUpTo(stored_.size()));
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (!stored_[i].written) continue;
    Element& element = gradient->stored_[i];
    if (prepend.empty()) {
      element.shape = stored_[i].shape;
    } else {
      std::vector<int64_t> dims(prepend.begin(), prepend.end());
      const absl::Span<const int64_t> own = stored_[i].shape.dims();
      dims.insert(dims.end(), own.begin(), own.end());
      TROUPE_ASSIGN_OR_RETURN(element.shape, Shape::Create(dims));
    }
    element.written = true;
  }
  gradients_.emplace_back(std::string(source), gradient);
  return gradient;
}

namespace {

absl::StatusOr<RefPtr<TensorArrayResource>> Found(KernelContext& ctx, TensorArrayResource* array) {
  const Device *const made_by = array->device(), *const device = ctx.step().device;
  const auto has_memory = [](const Device* d) {
    return d != nullptr && d->memory_space() == MemorySpace::kDevice;
  };
  if (made_by != device && (has_memory(made_by) || has_memory(device))) {
    return InvalidArgument("TensorArray ", array->array_name(), " was made on ", made_by->name(),
                           ", and this node runs on ", device->name());
  }
  return RefPtr<TensorArrayResource>::Share(array);
}

}  // namespace

namespace {

absl::StatusOr<RefPtr<TensorArrayResource>> FindNamed(KernelContext& ctx,
                                                      const std::string& container,
                                                      const std::string& name) {
  if (ctx.step().step_resources == nullptr) {
    return absl::FailedPreconditionError("tensor arrays need a step to live in");
  }
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Resource> resource,
                          ctx.step().step_resources->FindOrCreate(container, name, nullptr));
  auto* array = dynamic_cast<TensorArrayResource*>(resource.get());
  if (array == nullptr) {
    return InvalidArgument("'", name, "' is no TensorArray: ", resource->DebugString());
  }
  return Found(ctx, array);
}

}  // namespace

absl::StatusOr<RefPtr<TensorArrayResource>> FindTensorArray(KernelContext& ctx) {
  // A reference is called like its array, so that the variable need not be borrowed.
  if (const Variable* name = ctx.input_ref(0))
    return FindNamed(ctx, kTensorArrayContainer, name->name());
  const Tensor& handle = ctx.input(0);
  if (handle.type() == ElementType::kResource) {
    if (handle.num_elements() != 1) {
      return InvalidArgument("the handle of a TensorArray must be a scalar, got shape ",
                             handle.shape().ToString());
    }
    const ResourceHandle& resource = *handle.unchecked_data<ResourceHandle>();
    auto* array = dynamic_cast<TensorArrayResource*>(resource.resource.get());
    if (array == nullptr) {
      return InvalidArgument("the handle '", resource.name, "' of type '", resource.type_name,
                             "' does not refer to a TensorArray of this process");
    }
    return Found(ctx, array);
  }
  if (handle.rank() != 1 || handle.dim(0) != 2) {
    return InvalidArgument("Tensor array handle must be 2-element vector, but had shape: ",
                           handle.shape().ToString());
  }
  const std::string* parts = handle.unchecked_data<std::string>();
  return FindNamed(ctx, parts[0], parts[1]);
}

absl::StatusOr<RefPtr<TensorArrayResource>> FindTensorArray(KernelContext& ctx, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<TensorArrayResource> array, FindTensorArray(ctx));
  if (array->type() != type) {
    return InvalidArgument("TensorArray ", array->array_name(), " has dtype ",
                           ElementTypeName(array->type()), " but the op requested dtype ",
                           ElementTypeName(type), ".");
  }
  return array;
}

}  // namespace troupe
