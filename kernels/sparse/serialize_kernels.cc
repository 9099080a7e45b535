// SerializeSparse, SerializeManySparse, DeserializeSparse, DeserializeManySparse.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/resource_handle.h"
#include "devices/storage/coding.h"
#include "devices/tensor_proto.h"
#include "graph/protos/tensor.pb.h"
#include "kernels/argument_spaces.h"
#include "kernels/common/registration.h"
#include "kernels/control/optional.h"
#include "kernels/sparse/sparse_stack.h"

namespace troupe {
namespace {

/// As TensorFlow writes it, byte for byte: elements as the content, also those of strings.
absl::Status Serialize(const Tensor& tensor, std::string* bytes) {
  TensorProto proto;
  if (tensor.type() == ElementType::kString) {
    proto.set_dtype(static_cast<DataType>(tensor.type()));
    tensor.shape().ToProto(proto.mutable_tensor_shape());
    std::string& content = *proto.mutable_tensor_content();
    for (const std::string& text : tensor.unchecked_values<std::string>()) {
      AppendVarint(text.size(), &content);
    }
    for (const std::string& text : tensor.unchecked_values<std::string>()) content += text;
  } else if (IsPlain(tensor.type())) {
    proto.set_dtype(static_cast<DataType>(tensor.type()));
    tensor.shape().ToProto(proto.mutable_tensor_shape());
    proto.set_tensor_content(tensor.raw_data(), tensor.bytes());
  } else {
    return absl::UnimplementedError(
        StrCat("values of type ", ElementTypeName(tensor.type()), " cannot be made bytes"));
  }
  if (proto.SerializeToString(bytes)) return absl::OkStatus();
  return InvalidArgument("a tensor of the shape ", tensor.shape().ToString(),
                         " is too large for a message");
}
/// An optional, so that the tensor moves between devices and processes as others in variants do.
absl::Status Serialize(const Tensor& tensor, Variant* value) {
  auto part = MakeRef<Optional>();
  TROUPE_RETURN_IF_ERROR(part->Set({tensor}));
  *value = Variant(RefPtr<VariantValue>(std::move(part)));
  return absl::OkStatus();
}

/// A sparse tensor's part whose bytes are parsed, and whose elements are not.
absl::StatusOr<TensorProto> ParseProto(const std::string& bytes) {
  TensorProto proto;
  if (proto.ParseFromString(bytes)) return proto;
  return InvalidArgument("the bytes are no TensorProto");
}

/// Refuses parts whose shapes do not fit, before memory is taken for them: a message of a few bytes
/// may claim a gigabyte of one value. Rows of indices differ, so that they cannot be so short; few
/// may, all the same.
absl::Status CheckClaims(const TensorProto& indices, const TensorProto& values,
                         const TensorProto& shape, size_t bytes_of_indices) {
  constexpr int64_t kFew = 1 << 12;
  TROUPE_ASSIGN_OR_RETURN(const Shape of_indices, Shape::FromProto(indices.tensor_shape()));
  TROUPE_ASSIGN_OR_RETURN(const Shape of_values, Shape::FromProto(values.tensor_shape()));
  TROUPE_ASSIGN_OR_RETURN(const Shape of_shape, Shape::FromProto(shape.tensor_shape()));
  if (of_indices.rank() != 2 || of_values.rank() != 1 || of_shape.rank() != 1 ||
      of_indices.dim(0) != of_values.dim(0) || of_indices.dim(1) != of_shape.dim(0)) {
    return InvalidArgument(
        "a serialized sparse tensor must have indices [n, rank], values [n] and a "
        "shape [rank], got ",
        of_indices.ToString(), ", ", of_values.ToString(), " and ", of_shape.ToString());
  }
  const int64_t most = std::max<int64_t>(kFew, static_cast<int64_t>(bytes_of_indices));
  if (of_indices.num_elements() > most || of_values.num_elements() > most) {
    return InvalidArgument("the indices of a serialized sparse tensor are of the shape ",
                           of_indices.ToString(), ", but have only ", bytes_of_indices, " bytes");
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredSparse> Deserialize(const std::string* three) {
  TROUPE_ASSIGN_OR_RETURN(TensorProto indices, ParseProto(three[0]));
  TROUPE_ASSIGN_OR_RETURN(TensorProto values, ParseProto(three[1]));
  TROUPE_ASSIGN_OR_RETURN(TensorProto shape, ParseProto(three[2]));
  TROUPE_RETURN_IF_ERROR(CheckClaims(indices, values, shape, three[0].size()));
  StoredSparse part;
  TROUPE_ASSIGN_OR_RETURN(part.indices, TakeTensorFromProto(&indices));
  TROUPE_ASSIGN_OR_RETURN(part.values, TakeTensorFromProto(&values));
  TROUPE_ASSIGN_OR_RETURN(part.shape, TakeTensorFromProto(&shape));
  return part;
}

absl::StatusOr<Tensor> DeserializePart(const Variant& value) {
  const VariantValue* held = ValueOf(value);
  if (held != nullptr && held->kind() == VariantValue::Kind::kOptional) {
    const auto& components = static_cast<const Optional*>(held)->components();
    if (components.size() == 1) return components[0];
  }
  return InvalidArgument("the variant is no part of a serialized sparse tensor");
}

absl::StatusOr<StoredSparse> Deserialize(const Variant* three) {
  StoredSparse part;
  TROUPE_ASSIGN_OR_RETURN(part.indices, DeserializePart(three[0]));
  TROUPE_ASSIGN_OR_RETURN(part.values, DeserializePart(three[1]));
  TROUPE_ASSIGN_OR_RETURN(part.shape, DeserializePart(three[2]));
  return part;
}

template <typename T>
absl::Status Serialize(const StoredSparse& part, T* three) {
  TROUPE_RETURN_IF_ERROR(Serialize(part.indices, &three[0]));
  TROUPE_RETURN_IF_ERROR(Serialize(part.values, &three[1]));
  return Serialize(part.shape, &three[2]);
}

template <typename T>
absl::Status SerializeSparse(KernelContext& ctx) {
  TROUPE_RETURN_IF_ERROR(ReadSparse(ctx, 0, "sparse tensor").status());
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, kElementType<T>, Shape({3})));
  return Serialize({ctx.input(0), ctx.input(1), ctx.input(2)}, output->mutable_data<T>());
}

template <typename T>
absl::Status SerializeManySparse(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const SparseTensor tensor, ReadSparse(ctx, 0, "sparse tensor"));
  TROUPE_RETURN_IF_ERROR(CheckHasRows(tensor));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, kElementType<T>, Shape({tensor.shape.dim(0), 3})));
  T* three = output->mutable_data<T>();
  return ForEachRow(ctx, tensor, [&](int64_t row, const StoredSparse& part) {
    return Serialize(part, three + 3 * row);
  });
}

template <typename T>
absl::Status DeserializeTo(KernelContext& ctx, ElementType type) {
  const Tensor& serialized = ctx.input(0);
  const int rank = serialized.rank();
  if (rank < 1 || serialized.dim(rank - 1) != 3) {
    return InvalidArgument("serialized_sparse must have 3 columns, got shape ",
                           serialized.shape().ToString());
  }
  const T* three = serialized.unchecked_data<T>();
  std::vector<StoredSparse> parts;
  for (int64_t i = 0; i < serialized.num_elements() / 3; ++i, three += 3) {
    TROUPE_ASSIGN_OR_RETURN(StoredSparse part, Deserialize(three));
    parts.push_back(std::move(part));
  }
  return PutStacked(ctx, parts, serialized.shape().dims().subspan(0, rank - 1), type);
}

absl::Status DeserializeManySparse(KernelContext& ctx, ElementType type) {
  if (ctx.input(0).rank() != 2) {
    return InvalidArgument("serialized_sparse must be a matrix, got shape ",
                           ctx.input(0).shape().ToString());
  }
  return DeserializeTo<std::string>(ctx, type);
}

REGISTER_KERNEL(KernelSpec("SerializeSparse").Types("out_type", {ElementType::kString}),
                MakeKernel<SerializeSparse<std::string>>);
REGISTER_KERNEL(KernelSpec("SerializeSparse").Types("out_type", {ElementType::kVariant}),
                MakeKernel<SerializeSparse<Variant>>);
REGISTER_KERNEL(KernelSpec("SerializeManySparse").Types("out_type", {ElementType::kString}),
                MakeKernel<SerializeManySparse<std::string>>);
REGISTER_KERNEL(KernelSpec("SerializeManySparse").Types("out_type", {ElementType::kVariant}),
                MakeKernel<SerializeManySparse<Variant>>);
REGISTER_KERNEL(KernelSpec("DeserializeSparse").Types("Tserialized", {ElementType::kString}),
                (MakeAttrKernel<DeserializeTo<std::string>, "dtype">));
// Variants are on the host, wherever they come from.
REGISTER_KERNEL(KernelSpec("DeserializeSparse")
                    .Device("DEFAULT")
                    .Types("Tserialized", {ElementType::kVariant})
                    .HostMemory(kAllArguments),
                (MakeAttrKernel<DeserializeTo<Variant>, "dtype">));
REGISTER_KERNEL(KernelSpec("DeserializeManySparse"),
                (MakeAttrKernel<DeserializeManySparse, "dtype">));

}  // namespace
}  // namespace troupe
