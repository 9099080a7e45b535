// Conv: a convolution over images or volumes, whichever the rank of its input tells.
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"
#include "kernels/kernel_registry.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/conv_windows.h"

namespace troupe {
namespace {

class GeneralConvKernel final : public Kernel {
 public:
  GeneralConvKernel(KernelConstruction& construction, absl::Status* status)
      : engine_(ConvOp::kForward) {
    *status = Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    // All batch dimensions are as good as one.
    const int rank = static_cast<int>(windows_.strides.size());
    const absl::Span<const int64_t> dims = input.shape().dims();
    if (batch_dims_ < 0 || batch_dims_ > input.rank() || input.rank() - batch_dims_ != rank - 1) {
      return InvalidArgument("the input must have ", batch_dims_, " batch dimensions, ", rank - 2,
                             " spatial ones and the channels, got shape ",
                             input.shape().ToString());
    }
    const size_t batch_dims = static_cast<size_t>(batch_dims_);
    TROUPE_ASSIGN_OR_RETURN(const Shape batch, Shape::Create(dims.first(batch_dims)));
    std::vector<int64_t> sizes = {batch.num_elements()};
    sizes.insert(sizes.end(), dims.begin() + batch_dims_, dims.end());
    TROUPE_ASSIGN_OR_RETURN(const Shape one_batch, Shape::Create(sizes));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, windows_.Resolve(one_batch, filter.shape()));
    std::vector<int64_t> result(dims.begin(), dims.begin() + batch_dims_);
    const Shape output = shape.output_shape();
    result.insert(result.end(), output.dims().begin() + 1, output.dims().end());
    TROUPE_ASSIGN_OR_RETURN(const Shape result_shape, Shape::Create(result));
    return engine_.Run(ctx, shape, input, filter, result_shape, ctx.InputIsConstant(1));
  }

 private:
  absl::Status Read(const KernelConstruction& construction) {
    int64_t groups;
    std::string format, padding;
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("groups", &groups));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("data_format", &format));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("padding", &padding));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("batch_dims", &batch_dims_));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &windows_.strides));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("dilations", &windows_.dilations));
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("explicit_paddings", &windows_.paddings));
    if (groups != 1) return absl::UnimplementedError("Conv takes one group only");
    if (format != "CHANNELS_LAST") {
      return absl::UnimplementedError("Conv takes channels last only on this device");
    }
    const size_t rank = windows_.strides.size();
    if (rank != 4 && rank != 5) {
      return InvalidArgument("strides must have 4 or 5 elements, got ", rank);
    }
    if (windows_.dilations.empty()) windows_.dilations.assign(rank, 1);
    windows_.padding = padding == "SAME"    ? PaddingMode::kSame
                       : padding == "VALID" ? PaddingMode::kValid
                                            : PaddingMode::kExplicit;
    const std::vector<int64_t>& paddings = windows_.paddings;
    if (windows_.padding != PaddingMode::kExplicit) {
      if (!paddings.empty()) {
        return InvalidArgument("explicit_paddings go with the padding EXPLICIT only, not with ",
                               padding);
      }
    } else {
      if (paddings.size() != 2 * rank) {
        return InvalidArgument("explicit_paddings must have ", 2 * rank, " elements, got ",
                               paddings.size());
      }
      for (size_t i = 0; i < paddings.size(); ++i) {
        if (paddings[i] < 0) {
          return InvalidArgument("explicit_paddings must not be negative, got ", paddings[i]);
        }
        if (paddings[i] != 0 && (i < 2 || i + 2 >= paddings.size())) {
          return InvalidArgument("explicit_paddings of the batch and depth dimensions must be 0");
        }
      }
    }
    return windows_.Check();
  }

  int64_t batch_dims_ = 1;
  ConvWindows windows_;
  ConvEngine engine_;
};

std::vector<ElementType> Types() {
  std::vector<ElementType> types = FloatTypes();
  types.push_back(ElementType::kInt32);
  return types;
}

REGISTER_KERNEL(KernelSpec("Conv").Types("T", Types()).Cost(KernelCost::kExpensive),
                MakeKernel<GeneralConvKernel>);

}  // namespace
}  // namespace troupe
