// QuantizedConcat, QuantizedConcatV2, QuantizedMaxPool, QuantizedAvgPool.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/nn/pool_shape.h"
#include "kernels/quantization/quantized_range.h"
#include "kernels/simd/pool_loops.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// 8-bit integers are summed in 32 bits.
template <>
struct PoolType<int8_t> {
  typedef int32_t Type;
};
template <>
struct PoolType<uint8_t> {
  typedef int32_t Type;
};

/// Copies `count` elements, from one range to another.
template <typename Q>
void CopyRequantized(const Q* from, int64_t count, const QuantizedRange& range,
                     const QuantizedRange& to_range, Q* to) {
  if (range == to_range) {
    std::copy_n(from, count, to);
    return;
  }
  RequantizeAll(from, count, range, to_range, to);
}

/// A range that holds all of `ranges`; symmetric about 0 for signed integers.
template <typename Q>
QuantizedRange CommonRange(const std::vector<QuantizedRange>& ranges) {
  QuantizedRange common = ranges[0];
  for (const QuantizedRange& r : ranges) {
    common = {std::min(common.min, r.min), std::max(common.max, r.max)};
  }
  if (kLowestOf<Q> == 0) return common;
  const float most = std::max(std::abs(common.min), std::abs(common.max));
  return {-most, most};
}

/// Inputs: n values beginning at `values`, the axis before or behind them, their minima, their
/// maxima.
absl::Status JoinQuantized(KernelContext& ctx, int values, int dim) {
  const int n = (ctx.num_inputs() - 1) / 3;
  const Shape& first = ctx.input(values).shape();
  DimVector dims(first.dims().begin(), first.dims().end());
  std::vector<QuantizedRange> ranges;
  for (int i = 0; i < n; ++i) {
    const Shape& value = ctx.input(values + i).shape();
    bool fits = value.rank() == first.rank();
    for (int d = 0; fits && d < value.rank(); ++d) fits = d == dim || value.dim(d) == first.dim(d);
    if (!fits) {
      return InvalidArgument("the values must have the same shape but for dimension ", dim,
                             ": value 0 has ", first.ToString(), ", value ", i, " has ",
                             value.ToString());
    }
    if (i > 0) dims[dim] += value.dim(dim);
    const Tensor& min = ctx.input(1 + n + i);
    const Tensor& max = ctx.input(1 + 2 * n + i);
    if (min.num_elements() != 1 || max.num_elements() != 1) {
      return InvalidArgument("a range's minimum and maximum are scalars; value ", i,
                             " has them of shapes ", min.shape().ToString(), " and ",
                             max.shape().ToString());
    }
    ranges.push_back({min.unchecked_scalar<float>(), max.unchecked_scalar<float>()});
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(values).type(), shape));
  int64_t rows = 1;
  for (int d = 0; d < dim; ++d) rows *= shape.dim(d);
  return SwitchType<quint8, qint8, qint32>(out->type(), [&]<typename Q>() {
    const QuantizedRange common = CommonRange<Q>(ranges);
    const int64_t out_run = rows == 0 ? 0 : out->num_elements() / rows;
    int64_t at = 0;
    for (int i = 0; i < n && out_run > 0; ++i) {
      const Tensor& value = ctx.input(values + i);
      const int64_t run = value.num_elements() / rows;
      ctx.ParallelFor(rows, KernelContext::GrainFor(2.0 * static_cast<double>(run)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t r = begin; r < end; ++r) {
                          CopyRequantized(value.unchecked_data<Q>() + r * run, run, ranges[i],
                                          common, out->mutable_data<Q>() + r * out_run + at);
                        }
                      });
      at += run;
    }
    return SetRange(ctx, 1, common);
  });
}

absl::Status QuantizedConcat(KernelContext& ctx) {
  const Shape& first = ctx.input(1).shape();
  TROUPE_ASSIGN_OR_RETURN(const int64_t axis, ReadOneInteger(ctx.input(0), "concat_dim"));
  if (axis < 0 || axis >= first.rank()) {
    return InvalidArgument("concat_dim must be a dimension of values of shape ", first.ToString(),
                           ", got ", axis);
  }
  return JoinQuantized(ctx, 1, static_cast<int>(axis));
}

absl::Status QuantizedConcatV2(KernelContext& ctx) {
  const Tensor& at = ctx.input((ctx.num_inputs() - 1) / 3);
  TROUPE_ASSIGN_OR_RETURN(const int64_t axis, ReadOneInteger(at, "axis"));
  TROUPE_ASSIGN_OR_RETURN(const int dim, ResolveAxis(axis, ctx.input(0).rank(), "axis"));
  return JoinQuantized(ctx, 0, dim);
}

template <bool kMax>
class QuantizedPool final : public Kernel {
 public:
  QuantizedPool(const KernelConstruction& c, absl::Status* status) : attributes_(c.num_inputs()) {
    *status = attributes_.Read(c, /*takes_nchw=*/false);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const PoolShape s, attributes_.Resolve(ctx, in.shape(), kMax));
    TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 1));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() > 0) {
      // Of one range, integers compare and average as what they stand for.
      TROUPE_RETURN_IF_ERROR((SwitchType<quint8, qint8>(in.type(), [&]<typename Q>() {
        Run(ctx, s, &in.unchecked_data<Q>()->value, &out->mutable_data<Q>()->value,
            out->num_elements());
        return absl::OkStatus();
      })));
    }
    return SetRange(ctx, 1, range);
  }

 private:
  template <typename Int>
  static void Run(KernelContext& ctx, const PoolShape& s, const Int* in, Int* out,
                  int64_t outputs) {
    if (s.depth_window > 1) {
      for (int64_t i = 0; i < outputs; ++i) {
        const Int* window = in + i * s.depth_window;
        out[i] = *std::max_element(window, window + s.depth_window);
      }
      return;
    }
    const auto axis = [](const Window& w) {
      return PoolAxis{w.input, w.output, w.size, w.stride, w.pad_before};
    };
    const Int lowest = std::numeric_limits<Int>::lowest();
    const PoolForm form{axis(s.rows), axis(s.columns), s.depth, &lowest};
    const double row_ns =
        0.3 * static_cast<double>(s.columns.output * s.depth * s.rows.size * s.columns.size);
    ctx.ParallelFor(s.batch * s.rows.output, KernelContext::GrainFor(row_ns),
                    [&](int64_t begin, int64_t end) {
                      if constexpr (kMax) {
                        MaxPoolRows(form, in, out, begin, end);
                      } else {
                        AvgPoolRows(form, in, out, begin, end);
                      }
                    });
  }

  PoolAttributes attributes_;
};

KernelSpec Pooling(const char* op) {
  return KernelSpec(op).Types("T", {ElementType::kQuint8, ElementType::kQint8});
}

REGISTER_KERNEL(
    KernelSpec("QuantizedConcat").Types("T", {ElementType::kQuint8, ElementType::kQint32}),
    MakeKernel<QuantizedConcat>);
REGISTER_KERNEL(KernelSpec("QuantizedConcatV2")
                    .Types("T", {ElementType::kQuint8, ElementType::kQint8, ElementType::kQint32}),
                MakeKernel<QuantizedConcatV2>);
REGISTER_KERNEL(Pooling("QuantizedMaxPool"), MakeKernel<QuantizedPool<true>>);
REGISTER_KERNEL(Pooling("QuantizedAvgPool"), MakeKernel<QuantizedPool<false>>);

}  // namespace
}  // namespace troupe
