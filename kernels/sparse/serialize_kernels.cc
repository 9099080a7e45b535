// SerializeSparse, SerializeManySparse, DeserializeSparse, DeserializeManySparse.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/resource_handle.h"
#include "devices/storage/coding.h"
#include "devices/tensor_proto.h"
#include "graph/protos/tensor.pb.h"
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

absl::StatusOr<Tensor> Deserialize(const std::string& bytes) {
  TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidArgument("the bytes are no TensorProto");
  return TakeTensorFromProto(&proto);
}
absl::StatusOr<Tensor> Deserialize(const Variant& value) {
  const VariantValue* held = ValueOf(value);
  if (held != nullptr && held->kind() == VariantValue::Kind::kOptional) {
    const auto& components = static_cast<const Optional*>(held)->components();
    if (components.size() == 1) return components[0];
  }
  return InvalidArgument("the variant is no part of a serialized sparse tensor");
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
  TROUPE_ASSIGN_OR_RETURN(const std::vector<StoredSparse> rows, SplitRows(ctx, tensor));
  TROUPE_ASSIGN_OR_RETURN(
      Tensor * output,
      ctx.AllocateOutput(0, kElementType<T>, Shape({static_cast<int64_t>(rows.size()), 3})));
  T* three = output->mutable_data<T>();
  for (size_t i = 0; i < rows.size(); ++i, three += 3) {
    TROUPE_RETURN_IF_ERROR(Serialize(rows[i], three));
  }
  return absl::OkStatus();
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
    StoredSparse part;
    TROUPE_ASSIGN_OR_RETURN(part.indices, Deserialize(three[0]));
    TROUPE_ASSIGN_OR_RETURN(part.values, Deserialize(three[1]));
    TROUPE_ASSIGN_OR_RETURN(part.shape, Deserialize(three[2]));
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
REGISTER_KERNEL(KernelSpec("DeserializeSparse").Types("Tserialized", {ElementType::kVariant}),
                (MakeAttrKernel<DeserializeTo<Variant>, "dtype">));
REGISTER_KERNEL(KernelSpec("DeserializeManySparse"),
                (MakeAttrKernel<DeserializeManySparse, "dtype">));

}  // namespace
}  // namespace troupe
