#include "api/data/element.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "devices/status_macros.h"
#include "kernels/argument_spaces.h"

namespace troupe::data {
namespace {

std::string Describe(const Element& element, size_t i) {
  if (element.is_bytes(i)) return "string[]";
  const Tensor& tensor = element.components[i];
  return StrCat(ElementTypeName(tensor.type()), tensor.shape().ToString());
}

ElementType TypeOf(const Element& element, size_t i) {
  return element.is_bytes(i) ? ElementType::kString : element.components[i].type();
}

absl::Status Differs(const Block& elements, size_t i, const Element& other) {
  return InvalidArgument("component ", i, " of an element is ", Describe(other, i),
                         ", that of the first of its batch ", Describe(elements[0], i));
}

/// Copies `count` values of a type, moving nothing.
void CopyValues(ElementType type, const void* from, int64_t count, void* to) {
  if (type == ElementType::kString) {
    std::copy_n(static_cast<const std::string*>(from), count, static_cast<std::string*>(to));
  } else {
    std::memcpy(to, from, static_cast<size_t>(count) * ElementSize(type));
  }
}

char* At(Tensor* tensor, int64_t i) {
  return static_cast<char*>(tensor->mutable_raw_data()) +
         static_cast<size_t>(i) * ElementSize(tensor->type());
}
const char* At(const Tensor& tensor, int64_t i) {
  return static_cast<const char*>(tensor.raw_data()) +
         static_cast<size_t>(i) * ElementSize(tensor.type());
}

/// Writes `from` into the part of `to` that begins at its value `begin` and has shape `shape`.
void CopyInto(const Tensor& from, const Shape& shape, int64_t begin, Tensor* to) {
  const int rank = shape.rank();
  const int64_t row = from.dim(rank - 1), wide = shape.dim(rank - 1);
  const int64_t rows = row == 0 ? 0 : from.num_elements() / row;
  std::vector<int64_t> index(rank, 0);
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = 0;
    for (int d = 0; d + 1 < rank; ++d) at = at * shape.dim(d) + index[d];
    CopyValues(from.type(), At(from, r * row), row, At(to, begin + at * wide));
    for (int d = rank - 2; d >= 0; --d) {
      if (++index[d] < from.dim(d)) break;
      index[d] = 0;
    }
  }
}

void Fill(const Tensor& padding, Tensor* to) {
  if (to->type() == ElementType::kString) {  // made empty
    if (!padding.valid()) return;
    auto values = to->mutable_values<std::string>();
    std::fill(values.begin(), values.end(), padding.unchecked_scalar<std::string>());
    return;
  }
  if (!padding.valid()) {
    std::memset(to->mutable_raw_data(), 0, to->bytes());
    return;
  }
  for (int64_t i = 0; i < to->num_elements(); ++i) {
    CopyValues(to->type(), padding.raw_data(), 1, At(to, i));
  }
}

absl::Status CheckStackable(ElementType type) {
  if (IsPlain(type) || type == ElementType::kString) return absl::OkStatus();
  return InvalidArgument("tensors of type ", ElementTypeName(type), " cannot be stacked");
}

absl::StatusOr<Shape> Stacked(int64_t n, const Shape& shape) {
  std::vector<int64_t> dims{n};
  dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  return Shape::Create(dims);
}

}  // namespace

Element BytesElement(RefPtr<Buffer> buffer, const char* data, size_t size) {
  Element element;
  element.components.emplace_back(ElementType::kUint8, Shape({static_cast<int64_t>(size)}),
                                  std::move(buffer), const_cast<char*>(data));
  element.as_bytes = 1;
  element.of_block = true;
  return element;
}

void Append(Element from, Element* to) {
  const size_t begin = to->components.size();
  for (size_t i = 0; i < from.components.size(); ++i) {
    if (!from.is_bytes(i)) {
      to->components.push_back(std::move(from.components[i]));
    } else if (begin + i < 64) {
      to->components.push_back(std::move(from.components[i]));
      to->as_bytes |= uint64_t{1} << (begin + i);
    } else {
      to->components.push_back(Tensor::Scalar(std::string(BytesOf(from.components[i]))));
    }
  }
  to->of_block = to->of_block || from.of_block;
}

absl::Status MakeCompact(Element* element) {
  if (!element->of_block) return absl::OkStatus();
  for (Tensor& tensor : element->components) {
    if (tensor.buffer() == nullptr || tensor.buffer()->bytes() <= 2 * tensor.bytes()) continue;
    TROUPE_ASSIGN_OR_RETURN(tensor, tensor.Clone());
  }
  element->of_block = false;
  return absl::OkStatus();
}

void BeginUpload(Device* device, Element* element) {
  auto uploaded = std::make_shared<UploadedComponents>(element->components.size());
  for (size_t i = 0; i < element->components.size(); ++i) {
    const Tensor& component = element->components[i];
    if (element->is_bytes(i) || !LivesOnDevice(component.type())) continue;
    absl::StatusOr<UploadAhead> begun = UploadAhead::Begin(device, component);
    if (begun.ok()) (*uploaded)[i] = *std::move(begun);
  }
  element->uploaded = std::move(uploaded);
}

std::vector<Tensor> ToTensors(Element element) {
  std::vector<Tensor> tensors;
  tensors.reserve(element.components.size());
  for (size_t i = 0; i < element.components.size(); ++i) {
    if (element.uploaded != nullptr && (*element.uploaded)[i].has_value()) {
      absl::StatusOr<Tensor> there = std::move(*(*element.uploaded)[i]).Take();
      // Else whoever copies it once more hears what is wrong with the device.
      tensors.push_back(there.ok() ? *std::move(there) : std::move(element.components[i]));
    } else if (element.is_bytes(i)) {
      tensors.push_back(Tensor::Scalar(std::string(BytesOf(element.components[i]))));
    } else {
      tensors.push_back(std::move(element.components[i]));
    }
  }
  return tensors;
}

absl::StatusOr<Element> ToElement(std::vector<Tensor> tensors) {
  Element element;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].valid()) return InvalidArgument("component ", i, " is no tensor");
    if (tensors[i].space() == MemorySpace::kDevice) {
      return InvalidArgument("component ", i, " is in the memory of a device");
    }
    element.components.push_back(std::move(tensors[i]));
  }
  return element;
}

absl::StatusOr<Tensor> Stack(const Block& elements, size_t i) {
  const Element& first = elements[0];
  const auto n = static_cast<int64_t>(elements.size());
  const ElementType type = TypeOf(first, i);
  TROUPE_RETURN_IF_ERROR(CheckStackable(type));
  const Shape shape = first.is_bytes(i) ? Shape() : first.components[i].shape();
  TROUPE_ASSIGN_OR_RETURN(const Shape stacked, Stacked(n, shape));
  TROUPE_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(type, stacked));
  const int64_t size = shape.num_elements();
  for (int64_t k = 0; k < n; ++k) {
    const Element& element = elements[k];
    const Tensor& tensor = element.components[i];
    if (element.is_bytes(i)) {
      if (type != ElementType::kString || shape.rank() != 0) return Differs(elements, i, element);
      out.mutable_data<std::string>()[k] = BytesOf(tensor);
      continue;
    }
    if (tensor.type() != type || !(tensor.shape() == shape)) return Differs(elements, i, element);
    CopyValues(type, tensor.raw_data(), size, At(&out, k * size));
  }
  return out;
}

absl::StatusOr<Tensor> StackPadded(const Block& elements, size_t i, const PartialShape& shape,
                                   const Tensor& padding) {
  const Element& first = elements[0];
  const ElementType type = TypeOf(first, i);
  const int rank = first.is_bytes(i) ? 0 : first.components[i].rank();
  if (padding.valid() && (padding.type() != type || padding.num_elements() != 1)) {
    return InvalidArgument("component ", i, " is ", Describe(first, i), ", its padding ",
                           padding.ToString(1));
  }
  if (!shape.unknown_rank() && shape.rank() != rank) return Differs(elements, i, first);
  if (rank == 0) return Stack(elements, i);
  TROUPE_RETURN_IF_ERROR(CheckStackable(type));
  std::vector<int64_t> largest(rank, 0);
  for (const Element& element : elements) {
    const Tensor& tensor = element.components[i];
    if (element.is_bytes(i) || tensor.type() != type || tensor.rank() != rank) {
      return Differs(elements, i, element);
    }
    for (int d = 0; d < rank; ++d) largest[d] = std::max(largest[d], tensor.dim(d));
  }
  if (!shape.unknown_rank()) {
    for (int d = 0; d < rank; ++d) {
      if (shape.dim(d) < 0) continue;
      if (largest[d] > shape.dim(d)) {
        return InvalidArgument("component ", i, " of an element has ", largest[d],
                               " values in dimension ", d, "; it is padded to ", shape.ToString());
      }
      largest[d] = shape.dim(d);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape padded, Shape::Create(largest));
  const auto n = static_cast<int64_t>(elements.size());
  TROUPE_ASSIGN_OR_RETURN(const Shape stacked, Stacked(n, padded));
  TROUPE_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(type, stacked));
  Fill(padding, &out);
  for (int64_t k = 0; k < n; ++k) {
    CopyInto(elements[k].components[i], padded, k * padded.num_elements(), &out);
  }
  return out;
}

void BatchAhead::Take(Block* elements, size_t first) {
  // Less stays in the cache until the batch is complete, or costs less than to look at it.
  const size_t large = std::max((size_t{1} << 20) / n_, size_t{1} << 12);
  if (first == 0) {
    batch_.clear();
    const Element& element = (*elements)[0];
    for (size_t i = 0; i < element.components.size(); ++i) {
      batch_.emplace_back();
      const Tensor& tensor = element.components[i];
      if (element.is_bytes(i) || !IsPlain(tensor.type()) || tensor.bytes() < large) continue;
      const absl::StatusOr<Shape> shape = data::Stacked(static_cast<int64_t>(n_), tensor.shape());
      absl::StatusOr<Tensor> batch =
          shape.ok() ? Tensor::Allocate(tensor.type(), *shape) : shape.status();
      if (batch.ok()) batch_.back() = *std::move(batch);  // Else Stack says why.
    }
  }
  for (size_t k = first; k < elements->size(); ++k) {
    Element& element = (*elements)[k];
    for (size_t i = 0; i < std::min(batch_.size(), element.components.size()); ++i) {
      Tensor& batch = batch_[i];
      Tensor& tensor = element.components[i];
      if (!batch.valid() || element.is_bytes(i) || tensor.type() != batch.type() ||
          !(tensor.shape() == (*elements)[0].components[i].shape())) {
        continue;
      }
      char* const at = At(&batch, static_cast<int64_t>(k) * tensor.num_elements());
      CopyValues(tensor.type(), tensor.raw_data(), tensor.num_elements(), at);
      tensor = Tensor(tensor.type(), tensor.shape(), batch.buffer(), at);
    }
  }
}

Tensor BatchAhead::Stacked(const Block& elements, size_t i) {
  if (elements.size() != n_ || i >= batch_.size() || !batch_[i].valid()) return Tensor();
  for (const Element& element : elements) {
    if (i >= element.components.size() || element.components[i].buffer() != batch_[i].buffer()) {
      return Tensor();
    }
  }
  return std::move(batch_[i]);
}

}  // namespace troupe::data
