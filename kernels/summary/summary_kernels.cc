// ScalarSummary, HistogramSummary, ImageSummary, AudioSummary, TensorSummary, MergeSummary.
#include <string>
#include <unordered_set>

#include "devices/tensor_proto.h"
#include "graph/protos/summary.pb.h"
#include "graph/protos/tensor.pb.h"
#include "kernels/common/registration.h"
#include "kernels/summary/summary_values.h"

namespace troupe {
namespace {

/// Output 0 is the message, serialized.
absl::Status PutSummary(KernelContext& ctx, const Summary& summary) {
  std::string bytes;
  if (summary.ByteSizeLong() > INT32_MAX || !summary.SerializeToString(&bytes)) {
    return InvalidArgument("the summary has ", summary.ByteSizeLong(), " bytes; at most ",
                           INT32_MAX, " are possible");
  }
  ctx.set_output(0, Tensor::Scalar(std::move(bytes)));
  return absl::OkStatus();
}

absl::Status ScalarSummary(KernelContext& ctx) {
  Summary summary;
  TROUPE_RETURN_IF_ERROR(AddScalars(ctx.input(0), ctx.input(1), &summary));
  return PutSummary(ctx, summary);
}

absl::Status HistogramSummary(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const std::string tag, ScalarText(ctx.input(0), "tag"));
  Summary summary;
  TROUPE_RETURN_IF_ERROR(AddHistogram(tag, ctx.input(1), &summary));
  return PutSummary(ctx, summary);
}

class ImageSummaryKernel final : public Kernel {
 public:
  ImageSummaryKernel(KernelConstruction& construction, absl::Status* status)
      : most_(construction.Attr<int64_t>("max_images")) {
    *status = construction.GetAttr("bad_color", &bad_color_);
    if (!status->ok()) return;
    if (most_ > INT32_MAX) {
      *status = InvalidArgument("max_images must be less than 2^31, got ", most_);
    } else if (bad_color_.type() != ElementType::kUint8 || bad_color_.rank() != 1) {
      *status = InvalidArgument("bad_color must be a vector of uint8, got ",
                                ElementTypeName(bad_color_.type()), " of shape ",
                                bad_color_.shape().ToString());
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const std::string tag, ScalarText(ctx.input(0), "tag"));
    Summary summary;
    TROUPE_RETURN_IF_ERROR(AddImages(tag, ctx.input(1), most_, bad_color_, &summary));
    return PutSummary(ctx, summary);
  }

 private:
  const int64_t most_;
  Tensor bad_color_;
};

absl::Status PutSounds(KernelContext& ctx, float rate, int64_t most) {
  TROUPE_ASSIGN_OR_RETURN(const std::string tag, ScalarText(ctx.input(0), "tag"));
  Summary summary;
  TROUPE_RETURN_IF_ERROR(AddSounds(tag, ctx.input(1), rate, most, &summary));
  return PutSummary(ctx, summary);
}

absl::Status AudioSummaryV2(KernelContext& ctx, int64_t most) {
  if (ctx.input(2).num_elements() != 1) {
    return InvalidArgument("sample_rate must be one number, got shape ",
                           ctx.input(2).shape().ToString());
  }
  return PutSounds(ctx, *ctx.input(2).unchecked_data<float>(), most);
}

class TensorSummaryKernel final : public Kernel {
 public:
  TensorSummaryKernel(KernelConstruction& construction, absl::Status*)
      : name_(construction.node_name()) {}
  absl::Status Compute(KernelContext& ctx) override {
    Summary summary;
    AddTensor(ctx.input(0), &summary);
    summary.mutable_value(0)->set_node_name(name_);
    return PutSummary(ctx, summary);
  }

 private:
  const std::string name_;
};

absl::Status TensorSummaryV2(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const std::string tag, ScalarText(ctx.input(0), "tag"));
  TROUPE_ASSIGN_OR_RETURN(const std::string metadata,
                          ScalarText(ctx.input(2), "serialized_summary_metadata"));
  Summary summary;
  AddTensor(ctx.input(1), &summary);
  summary.mutable_value(0)->set_tag(tag);
  // As in TensorFlow, what can be read of it counts.
  static_cast<void>(summary.mutable_value(0)->mutable_metadata()->ParseFromString(metadata));
  return PutSummary(ctx, summary);
}

absl::Status MergeSummary(KernelContext& ctx) {
  Summary merged;
  std::unordered_set<std::string> tags;
  for (int i = 0; i < ctx.num_inputs(); ++i) {
    for (const std::string& bytes : ctx.input(i).unchecked_values<std::string>()) {
      Summary summary;
      if (bytes.size() > INT32_MAX || !summary.ParseFromString(bytes)) {
        return InvalidArgument("input ", i, " holds a string that is no message Summary");
      }
      for (Summary::Value& value : *summary.mutable_value()) {
        // A TensorSummary has no tag.
        if (!value.tag().empty() && !tags.insert(value.tag()).second) {
          return InvalidArgument("two of the merged summaries have the tag '", value.tag(), "'");
        }
        merged.add_value()->Swap(&value);
      }
    }
  }
  return PutSummary(ctx, merged);
}

REGISTER_KERNEL(KernelSpec("ScalarSummary").Types("T", RealNumberTypes()),
                MakeKernel<ScalarSummary>);
REGISTER_KERNEL(KernelSpec("HistogramSummary").Types("T", RealNumberTypes()),
                MakeKernel<HistogramSummary>);
REGISTER_KERNEL(KernelSpec("ImageSummary").Cost(KernelCost::kExpensive),
                MakeKernel<ImageSummaryKernel>);
REGISTER_KERNEL(KernelSpec("AudioSummary"),
                (MakeAttrKernel<PutSounds, "sample_rate", "max_outputs">));
REGISTER_KERNEL(KernelSpec("AudioSummaryV2"), (MakeAttrKernel<AudioSummaryV2, "max_outputs">));
REGISTER_KERNEL(KernelSpec("TensorSummary").Types("T", AllTypes()),
                MakeKernel<TensorSummaryKernel>);
REGISTER_KERNEL(KernelSpec("TensorSummaryV2").Types("T", AllTypes()), MakeKernel<TensorSummaryV2>);
REGISTER_KERNEL(KernelSpec("MergeSummary"), MakeKernel<MergeSummary>);

}  // namespace
}  // namespace troupe
