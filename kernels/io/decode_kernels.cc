// Strings to tensors: DecodeCSV, DecodeRaw, DecodePaddedRaw, DecodeCompressed, DecodeJSONExample,
// ParseTensor; and SerializeTensor.
#include <algorithm>
#include <climits>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/compressed_file.h"
#include "devices/storage/record_writer.h"
#include "devices/tensor_proto.h"
#include "graph/protos/tensor.pb.h"
#include "kernels/common/registration.h"
#include "kernels/io/csv.h"
#include "kernels/io/for_rows.h"
#include "kernels/io/json_example.h"

namespace troupe {
namespace {

absl::StatusOr<Shape> WithLast(const Shape& shape, int64_t last) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims.push_back(last);
  return Shape::Create(dims);
}

// --- CSV -----------------------------------------------------------------------------------------

class DecodeCsv final : public Kernel {
 public:
  DecodeCsv(KernelConstruction& c, absl::Status* status) { *status = Read(c); }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& records = ctx.input(0);
    std::vector<Tensor> defaults, columns;
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const Tensor& value = ctx.input(i + 1);
      if (value.rank() > 1 || value.num_elements() > 1) {
        return InvalidArgument("the default of field ", i, " has the shape ",
                               value.shape().ToString(), "; expected one element or none");
      }
      defaults.push_back(value);
      TROUPE_ASSIGN_OR_RETURN(Tensor * column,
                              ctx.AllocateOutput(i, value.type(), records.shape()));
      columns.push_back(*column);
    }
    return ParseCsv(records.unchecked_values<std::string>(), defaults, options_, ctx.step().pool,
                    absl::MakeSpan(columns));
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    std::string delimiter;
    TROUPE_RETURN_IF_ERROR(c.GetAttr("field_delim", &delimiter));
    if (delimiter.size() != 1) {
      return InvalidArgument("field_delim must be one character, got '", delimiter, "'");
    }
    options_.delimiter = delimiter[0];
    TROUPE_RETURN_IF_ERROR(c.GetAttr("use_quote_delim", &options_.quotes));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("na_value", &options_.missing));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("select_cols", &options_.columns));
    if (!options_.columns.empty() &&
        options_.columns.size() != static_cast<size_t>(c.num_outputs())) {
      return InvalidArgument("select_cols names ", options_.columns.size(), " columns, but ",
                             c.num_outputs(), " are put out");
    }
    int64_t last = -1;
    for (const int64_t column : options_.columns) {
      if (column <= last) {
        return InvalidArgument("select_cols must be ascending and not negative, got ", column,
                               last < 0 ? "" : StrCat(" after ", last));
      }
      last = column;
    }
    return absl::OkStatus();
  }

  CsvOptions options_;
};

// --- raw bytes -----------------------------------------------------------------------------------

/// Bytes of the numbers that an element consists of: those of a complex one are two.
size_t NumberBytes(ElementType type) {
  const bool complex = type == ElementType::kComplex64 || type == ElementType::kComplex128;
  return complex ? ElementSize(type) / 2 : ElementSize(type);
}

void Reverse(char* bytes, size_t total, size_t width) {
  for (size_t i = 0; i < total; i += width) std::reverse(bytes + i, bytes + i + width);
}

/// Each string becomes `width` bytes of the output, the last of which are zeros where it is
/// shorter.
absl::Status CopyRaw(KernelContext& ctx, ElementType type, int64_t width, bool little_endian) {
  const Tensor& input = ctx.input(0);
  const auto element = static_cast<int64_t>(ElementSize(type));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, WithLast(input.shape(), width / element));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, type, shape));
  char* to = static_cast<char*>(output->mutable_raw_data());
  const auto bytes = static_cast<size_t>(width);
  for (const std::string& one : input.unchecked_values<std::string>()) {
    const size_t taken = std::min(one.size(), bytes);
    if (taken > 0) std::memcpy(to, one.data(), taken);
    if (bytes > taken) std::memset(to + taken, 0, bytes - taken);
    if (!little_endian) Reverse(to, bytes, NumberBytes(type));
    if (type == ElementType::kBool) {
      // A bool of other bits would be none.
      for (size_t i = 0; i < bytes; ++i) to[i] = to[i] != 0 ? 1 : 0;
    }
    to += bytes;
  }
  return absl::OkStatus();
}

absl::Status DecodeRaw(KernelContext& ctx, ElementType out_type, bool little_endian) {
  const auto strings = ctx.input(0).unchecked_values<std::string>();
  const size_t width = strings.empty() ? 0 : strings[0].size();
  for (size_t i = 1; i < strings.size(); ++i) {
    if (strings[i].size() == width) continue;
    return InvalidArgument("all strings must have the same length: the first has ", width,
                           " bytes, that at ", i, " has ", strings[i].size());
  }
  if (width % ElementSize(out_type) != 0) {
    return InvalidArgument("strings of ", width, " bytes are no ", ElementTypeName(out_type), "s, ",
                           "which have ", ElementSize(out_type));
  }
  return CopyRaw(ctx, out_type, static_cast<int64_t>(width), little_endian);
}

absl::Status DecodePaddedRaw(KernelContext& ctx, ElementType out_type, bool little_endian) {
  if (ctx.input(1).rank() != 0) {
    return InvalidArgument("fixed_length must be a scalar, got shape ",
                           ctx.input(1).shape().ToString());
  }
  const int64_t width = ctx.input(1).unchecked_scalar<int32_t>();
  if (width <= 0 || width % static_cast<int64_t>(ElementSize(out_type)) != 0) {
    return InvalidArgument("fixed_length must be positive and a multiple of the ",
                           ElementSize(out_type), " bytes of a ", ElementTypeName(out_type),
                           ", got ", width);
  }
  return CopyRaw(ctx, out_type, width, little_endian);
}

// --- compressed bytes ----------------------------------------------------------------------------

/// Bytes in memory as a file.
class BytesFile final : public RandomAccessFile {
 public:
  explicit BytesFile(std::string_view bytes) : bytes_(bytes) {}
  absl::StatusOr<size_t> Read(uint64_t offset, absl::Span<char> to) const override {
    if (offset >= bytes_.size()) return 0;
    return bytes_.copy(to.data(), to.size(), static_cast<size_t>(offset));
  }
  absl::StatusOr<uint64_t> Size() const override { return bytes_.size(); }

 private:
  const std::string_view bytes_;
};

/// Appends what `source` gives; memory grows with it.
absl::Status ReadAll(ByteSource* source, const std::string& name, std::string* to) {
  constexpr size_t kFirst = size_t{16} << 10, kMost = size_t{1} << 30;
  size_t used = 0;
  while (true) {
    to->resize(used + std::max(kFirst, used));
    TROUPE_ASSIGN_OR_RETURN(const size_t n,
                            source->Read(absl::MakeSpan(to->data() + used, to->size() - used)));
    const bool end = used + n < to->size();
    used += n;
    if (used > kMost) {
      return absl::ResourceExhaustedError(
          StrCat(name, ": more than ", kMost, " bytes, which is as much as is decompressed"));
    }
    if (!end) continue;
    to->resize(used);
    to->shrink_to_fit();
    return absl::OkStatus();
  }
}

class DecodeCompressed final : public Kernel {
 public:
  DecodeCompressed(KernelConstruction& c, absl::Status* status) {
    absl::StatusOr<FileCompression> found =
        ParseFileCompression(c.Attr<std::string>("compression_type"));
    *status = found.status();
    if (found.ok()) compression_ = *found;
  }

  absl::Status Compute(KernelContext& ctx) override {
    if (compression_ == FileCompression::kNone) {
      ctx.PassThrough(0, 0);
      return absl::OkStatus();
    }
    const Tensor& input = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                            ctx.AllocateOutput(0, ElementType::kString, input.shape()));
    const ZlibFormat format =
        compression_ == FileCompression::kGzip ? ZlibFormat::kGzip : ZlibFormat::kZlib;
    const auto* from = input.unchecked_data<std::string>();
    auto* const to = output->mutable_data<std::string>();
    return ForRows(ctx.step().pool, input.num_elements(), 1,
                   [&](int64_t begin, int64_t end, RowFailed failed) {
                     for (int64_t i = begin; i < end; ++i) {
                       absl::Status status = Inflate(from[i], StrCat("string ", i), format, &to[i]);
                       if (!status.ok()) return failed(i, std::move(status));
                     }
                   });
  }

 private:
  static absl::Status Inflate(std::string_view bytes, const std::string& name, ZlibFormat format,
                              std::string* to) {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                            NewInflatingSource(std::make_shared<BytesFile>(bytes), name, format));
    return ReadAll(source.get(), name, to);
  }

  FileCompression compression_ = FileCompression::kNone;
};

// --- messages ------------------------------------------------------------------------------------

absl::Status DecodeJsonExample(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kString, input.shape()));
  const auto* from = input.unchecked_data<std::string>();
  auto* const to = output->mutable_data<std::string>();
  return ForRows(ctx.step().pool, input.num_elements(), 1,
                 [&](int64_t begin, int64_t end, RowFailed failed) {
                   for (int64_t i = begin; i < end; ++i) {
                     absl::StatusOr<std::string> example = ExampleFromJson(from[i]);
                     if (!example.ok()) {
                       return failed(i, WithContext(StrCat("string ", i, ": "), example.status()));
                     }
                     to[i] = *std::move(example);
                   }
                 });
}

class ParseTensor final : public Kernel {
 public:
  ParseTensor(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("out_type", &type_);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& serialized = ctx.input(0);
    if (serialized.rank() != 0) {
      return InvalidArgument("serialized must be a scalar, got shape ",
                             serialized.shape().ToString());
    }
    TensorProto proto;
    if (!proto.ParseFromString(serialized.unchecked_scalar<std::string>())) {
      return InvalidArgument("the bytes are no serialized TensorProto");
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor tensor, TakeTensorFromProto(&proto));
    if (tensor.type() != type_) {
      return InvalidArgument("the tensor is of type ", ElementTypeName(tensor.type()), ", not ",
                             ElementTypeName(type_));
    }
    ctx.set_output(0, std::move(tensor));
    return absl::OkStatus();
  }

 private:
  ElementType type_ = ElementType::kInvalid;
};

absl::Status SerializeTensor(KernelContext& ctx) {
  const Tensor& tensor = ctx.input(0);
  TensorProto proto;
  if (tensor.type() == ElementType::kString) {
    TensorToProto(tensor, &proto);
  } else if (tensor.type() == ElementType::kResource || tensor.type() == ElementType::kVariant) {
    return absl::UnimplementedError(
        StrCat("tensors of type ", ElementTypeName(tensor.type()), " cannot be serialized"));
  } else {
    // As TensorFlow has it here, also for a few elements.
    proto.set_dtype(static_cast<DataType>(tensor.type()));
    tensor.shape().ToProto(proto.mutable_tensor_shape());
    proto.set_tensor_content(tensor.raw_data(), tensor.bytes());
  }
  std::string bytes;
  if (proto.ByteSizeLong() > INT_MAX || !proto.SerializeToString(&bytes)) {
    return absl::ResourceExhaustedError(
        StrCat("a tensor of ", tensor.bytes(), " bytes is too large for a message"));
  }
  ctx.set_output(0, Tensor::Scalar(std::move(bytes)));
  return absl::OkStatus();
}

const std::vector<ElementType> kRaw = {
    ElementType::kHalf,   ElementType::kFloat,   ElementType::kDouble, ElementType::kInt32,
    ElementType::kUint16, ElementType::kUint8,   ElementType::kInt16,  ElementType::kInt8,
    ElementType::kInt64,  ElementType::kBfloat16};

KernelSpec Raw(const char* op, std::initializer_list<ElementType> more) {
  std::vector<ElementType> types = kRaw;
  types.insert(types.end(), more);
  return KernelSpec(op).Types("out_type", types);
}

REGISTER_KERNEL(KernelSpec("DecodeCSV"), MakeKernel<DecodeCsv>);
REGISTER_KERNEL(Raw("DecodeRaw",
                    {ElementType::kComplex64, ElementType::kComplex128, ElementType::kBool}),
                (MakeAttrKernel<DecodeRaw, "out_type", "little_endian">));
REGISTER_KERNEL(Raw("DecodePaddedRaw", {}),
                (MakeAttrKernel<DecodePaddedRaw, "out_type", "little_endian">));
REGISTER_KERNEL(KernelSpec("DecodeCompressed"), MakeKernel<DecodeCompressed>);
REGISTER_KERNEL(KernelSpec("DecodeJSONExample"), MakeKernel<DecodeJsonExample>);
REGISTER_KERNEL(KernelSpec("ParseTensor"), MakeKernel<ParseTensor>);
REGISTER_KERNEL(KernelSpec("SerializeTensor"), MakeKernel<SerializeTensor>);

}  // namespace
}  // namespace troupe
