// FusedPadConv2D and FusedResizeAndPadConv2D. They were made for one image: as in TensorFlow every
// image of a batch gives what the first one does.
#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/image/resize_axis.h"
#include "kernels/kernel.h"
#include "kernels/nn/conv_engine.h"
#include "kernels/nn/conv_windows.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// Which elements of a dimension stand in its place once it is mirrored at both ends.
std::vector<int64_t> MirroredIndices(int64_t size, int64_t before, int64_t after,
                                     bool repeats_border) {
  const int64_t shift = repeats_border ? 1 : 0;
  std::vector<int64_t> indices;
  for (int64_t i = before; i > 0; --i) indices.push_back(i - shift);
  for (int64_t i = 0; i < size; ++i) indices.push_back(i);
  for (int64_t i = 1; i <= after; ++i) indices.push_back(size - 1 - i + shift);
  return indices;
}

class FusedPadConvKernel final : public Kernel {
 public:
  FusedPadConvKernel(KernelConstruction& construction, absl::Status* status)
      : engine_(ConvOp::kForward), resizes_(construction.num_inputs() == 4) {
    *status = Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& filter = ctx.input(ctx.num_inputs() - 1);
    Tensor input = ctx.input(0);
    if (input.rank() != 4) {
      return InvalidArgument("the input must be of rank 4, got shape ", input.shape().ToString());
    }
    if (filter.rank() != 4) {
      return InvalidArgument("the filter must be of rank 4, got shape ", filter.shape().ToString());
    }
    if (resizes_) {
      TROUPE_ASSIGN_OR_RETURN(input, Resized(ctx, input));
    }
    TROUPE_ASSIGN_OR_RETURN(const Tensor padded, Padded(ctx, input));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape,
                            windows_.Resolve(padded.shape(), filter.shape()));
    return engine_.Run(ctx, shape, padded, filter, shape.output_shape(),
                       ctx.InputIsConstant(ctx.num_inputs() - 1));
  }

 private:
  absl::Status Read(const KernelConstruction& construction) {
    repeats_border_ = construction.Attr<std::string>("mode") == "SYMMETRIC";
    align_corners_ = construction.attrs().GetOr<bool>("resize_align_corners", false);
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("strides", &windows_.strides));
    if (windows_.strides.size() != 4) {
      return InvalidArgument("strides must have 4 elements, got ", windows_.strides.size());
    }
    windows_.dilations.assign(4, 1);
    TROUPE_RETURN_IF_ERROR(windows_.Check(/*is_cpu=*/true));
    return ReadPadding(construction, &windows_.padding, &windows_.paddings);
  }

  // The images in a new size, by bilinear interpolation.
  absl::StatusOr<Tensor> Resized(KernelContext& ctx, const Tensor& images) const {
    TROUPE_ASSIGN_OR_RETURN(const DimVector size, ReadIntegerVector(ctx.input(1), "size"));
    if (size.size() != 2 || size[0] <= 0 || size[1] <= 0) {
      return InvalidArgument("size must be two positive numbers, got shape ",
                             ctx.input(1).shape().ToString());
    }
    const Shape& from = images.shape();
    if (from.dim(1) == 0 || from.dim(2) == 0) {
      return InvalidArgument("images of shape ", from.ToString(), " cannot be resized");
    }
    TROUPE_ASSIGN_OR_RETURN(const Shape to,
                            Shape::Create({from.dim(0), size[0], size[1], from.dim(3)}));
    TROUPE_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(images.type(), to));
    if (out.num_elements() == 0) return out;
    const ResizeMode mode{.align_corners = align_corners_, .half_pixel_centers = false};
    const ResizeAxis rows = BilinearAxis(from.dim(1), to.dim(1), mode);
    const ResizeAxis columns = BilinearAxis(from.dim(2), to.dim(2), mode);
    const auto run = [&]<typename T>() {
      const double ns = 4.0 * static_cast<double>(to.dim(2) * to.dim(3));
      ctx.ParallelFor(to.dim(0) * to.dim(1), KernelContext::GrainFor(ns),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t y = i % to.dim(1);
                          const T* image = images.unchecked_data<T>() +
                                           i / to.dim(1) * from.dim(1) * from.dim(2) * from.dim(3);
                          T* row = out.mutable_data<T>() + i * to.dim(2) * to.dim(3);
                          ResizeRow(image, from, rows, columns, y, to.dim(2), row);
                        }
                      });
      return absl::OkStatus();
    };
    TROUPE_RETURN_IF_ERROR((SwitchType<float, double, half>(images.type(), run)));
    return out;
  }

  // Each new pixel lies between two rows and two columns.
  template <typename T>
  static void ResizeRow(const T* image, const Shape& from, const ResizeAxis& rows,
                        const ResizeAxis& columns, int64_t y, int64_t width, T* out) {
    using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const int64_t depth = from.dim(3), row_size = from.dim(2) * depth;
    const T* top = image + rows.indices[2 * y] * row_size;
    const T* bottom = image + rows.indices[2 * y + 1] * row_size;
    const Sum down = rows.weights[2 * y + 1];
    for (int64_t x = 0; x < width; ++x) {
      const int64_t left = columns.indices[2 * x] * depth,
                    right = columns.indices[2 * x + 1] * depth;
      const Sum across = columns.weights[2 * x + 1];
      for (int64_t c = 0; c < depth; ++c) {
        const auto between = [&](const T* row) {
          const Sum a = static_cast<Sum>(row[left + c]), b = static_cast<Sum>(row[right + c]);
          return a + (b - a) * across;
        };
        const Sum upper = between(top), lower = between(bottom);
        *out++ = T(upper + (lower - upper) * down);
      }
    }
  }

  // The images with their mirrored borders.
  absl::StatusOr<Tensor> Padded(KernelContext& ctx, const Tensor& images) const {
    const Tensor& paddings = ctx.input(ctx.num_inputs() - 2);
    if (paddings.rank() != 2 || paddings.dim(0) != 4 || paddings.dim(1) != 2) {
      return InvalidArgument("paddings must be of shape [4,2], got ", paddings.shape().ToString());
    }
    const int32_t* pads = paddings.unchecked_data<int32_t>();
    std::vector<int64_t> sizes;
    for (int d = 0; d < 4; ++d) {
      const int64_t size = images.dim(d), before = pads[2 * d], after = pads[2 * d + 1];
      const int64_t most = repeats_border_ ? size : std::max<int64_t>(0, size - 1);
      if (before < 0 || after < 0 || before > most || after > most) {
        return InvalidArgument("paddings must be in [0, ", most, "] for a dimension of ", size,
                               " elements, got ", before, " and ", after);
      }
      sizes.push_back(size + before + after);
    }
    const bool has_pads = std::any_of(pads, pads + 8, [](int32_t pad) { return pad != 0; });
    if (!has_pads && images.dim(0) <= 1) return images;
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(sizes));
    TROUPE_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(images.type(), shape));
    if (out.num_elements() == 0) return out;
    std::vector<int64_t> from[4];
    for (int d = 0; d < 4; ++d) {
      from[d] = MirroredIndices(images.dim(d), pads[2 * d], pads[2 * d + 1], repeats_border_);
    }
    const auto copy = [&]<typename T>() {
      const T* in = static_cast<const T*>(images.raw_data());
      T* to = static_cast<T*>(out.mutable_raw_data());
      const int64_t row_size = sizes[2] * sizes[3];
      ctx.ParallelFor(sizes[0] * sizes[1],
                      KernelContext::GrainFor(0.5 * static_cast<double>(row_size)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t y = from[0][0] * images.dim(1) + from[1][i % sizes[1]];
                          const T* row = in + y * images.dim(2) * images.dim(3);
                          T* target = to + i * row_size;
                          for (const int64_t x : from[2]) {
                            for (const int64_t c : from[3]) *target++ = row[x * images.dim(3) + c];
                          }
                        }
                      });
      return absl::OkStatus();
    };
    TROUPE_RETURN_IF_ERROR(SwitchBySize(images.type(), copy));
    return out;
  }

  ConvWindows windows_;
  ConvEngine engine_;
  const bool resizes_;
  bool repeats_border_ = false, align_corners_ = false;
};

KernelSpec Spec(const char* op, std::vector<ElementType> types) {
  return KernelSpec(op).Types("T", std::move(types)).Cost(KernelCost::kExpensive);
}
REGISTER_KERNEL(Spec("FusedPadConv2D", FloatTypes()), MakeKernel<FusedPadConvKernel>);
REGISTER_KERNEL(Spec("FusedResizeAndPadConv2D",
                     {ElementType::kHalf, ElementType::kFloat, ElementType::kDouble}),
                MakeKernel<FusedPadConvKernel>);

}  // namespace
}  // namespace troupe
