// DecodeProtoV2 and EncodeProto.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/common/registration.h"
#include "kernels/io/message_decoder.h"
#include "kernels/io/message_encoder.h"

namespace troupe {
namespace {

/// What both ops have in common: the message type and the names of fields.
absl::StatusOr<MessageType> ReadAttrs(KernelConstruction& c, std::vector<std::string>* names) {
  std::string source, type;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("descriptor_source", &source));
  TROUPE_RETURN_IF_ERROR(c.GetAttr("message_type", &type));
  TROUPE_RETURN_IF_ERROR(c.GetAttr("field_names", names));
  return FindMessageType(source, type);
}

class DecodeProto final : public Kernel {
 public:
  DecodeProto(KernelConstruction& c, absl::Status* status) { *status = Read(c); }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                            decoder_->Decode(ctx.input(0), ctx.step().pool));
    for (size_t i = 0; i < outputs.size(); ++i) {
      ctx.set_output(static_cast<int>(i), std::move(outputs[i]));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    std::vector<std::string> names;
    std::vector<ElementType> types;
    std::string format;
    MessageDecoderOptions options;
    TROUPE_ASSIGN_OR_RETURN(MessageType type, ReadAttrs(c, &names));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("output_types", &types));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("message_format", &format));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("sanitize", &options.sanitize));
    if (format != "binary" && format != "text") {
      return InvalidArgument("message_format must be 'binary' or 'text', got '", format, "'");
    }
    options.text = format == "text";
    TROUPE_ASSIGN_OR_RETURN(decoder_,
                            MessageDecoder::Create(std::move(type), names, types, options));
    return absl::OkStatus();
  }

  std::unique_ptr<MessageDecoder> decoder_;
};

class EncodeProto final : public Kernel {
 public:
  EncodeProto(KernelConstruction& c, absl::Status* status) { *status = Read(c); }

  absl::Status Compute(KernelContext& ctx) override {
    std::vector<Tensor> values;
    for (int i = 1; i < ctx.num_inputs(); ++i) values.push_back(ctx.input(i));
    TROUPE_ASSIGN_OR_RETURN(Tensor output, encoder_->Encode(ctx.input(0), values, ctx.step().pool));
    ctx.set_output(0, std::move(output));
    return absl::OkStatus();
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    std::vector<std::string> names;
    std::vector<ElementType> types;
    TROUPE_ASSIGN_OR_RETURN(MessageType type, ReadAttrs(c, &names));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("Tinput_types", &types));
    TROUPE_ASSIGN_OR_RETURN(encoder_, MessageEncoder::Create(std::move(type), names, types));
    return absl::OkStatus();
  }

  std::optional<MessageEncoder> encoder_;
};

REGISTER_KERNEL(KernelSpec("DecodeProtoV2"), MakeKernel<DecodeProto>);
REGISTER_KERNEL(KernelSpec("EncodeProto"), MakeKernel<EncodeProto>);

}  // namespace
}  // namespace troupe
