// QuantizedBiasAdd, QuantizedRelu and its kin, QuantizedAdd, QuantizedMul.
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/common/broadcast.h"
#include "kernels/common/registration.h"
#include "kernels/quantization/quantized_range.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// Sums wrap around.
qint32 Add(qint32 a, qint32 b) {
  return qint32(
      static_cast<int32_t>(static_cast<uint32_t>(a.value) + static_cast<uint32_t>(b.value)));
}

float LargestMagnitude(const QuantizedRange& a, const QuantizedRange& b) {
  return std::max(std::max(a.max, -a.min), std::max(b.max, -b.min));
}

template <typename Q>
absl::Status AddBias(KernelContext& ctx, const QuantizedRange& range,
                     const QuantizedRange& bias_range, Tensor* output) {
  // Symmetric about 0, with 17 bits to spare for the fraction and for sums of several.
  const float most = LargestMagnitude(range, bias_range) * (1 << 17);
  const QuantizedRange sums{-most, most};
  const qint32 zero = QuantizeOne<qint32>(0.0f, sums);
  const Tensor& bias = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(Tensor shifts, ctx.AllocateTemp(ElementType::kQint32, bias.shape()));
  const int64_t depth = bias.num_elements();
  qint32* shift = shifts.mutable_data<qint32>();
  RequantizeAll(bias.unchecked_data<Q>(), depth, bias_range, sums, shift);
  for (int64_t c = 0; c < depth; ++c) shift[c] = Add(shift[c], zero);
  const Q* in = ctx.input(0).unchecked_data<Q>();
  qint32* out = output->mutable_data<qint32>();
  const int64_t rows = depth == 0 ? 0 : output->num_elements() / depth;
  ctx.ParallelFor(
      rows, KernelContext::GrainFor(static_cast<double>(depth)), [&](int64_t begin, int64_t end) {
        RequantizeAll(in + begin * depth, (end - begin) * depth, range, sums, out + begin * depth);
        for (int64_t i = begin * depth; i < end * depth; i += depth) {
          for (int64_t c = 0; c < depth; ++c) out[i + c] = Add(out[i + c], shift[c]);
        }
      });
  return SetRange(ctx, 1, sums);
}

absl::Status QuantizedBiasAdd(KernelContext& ctx) {
  const Shape& shape = ctx.input(0).shape();
  const Shape& bias = ctx.input(1).shape();
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, 2));
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange bias_range, ReadRange(ctx, 4));
  if (shape.rank() < 2 || bias.rank() != 1 || bias.dim(0) != shape.dim(shape.rank() - 1)) {
    return InvalidArgument("the bias must be a vector of the size of the last dimension of an ",
                           "input of at least 2, got shapes ", bias.ToString(), " and ",
                           shape.ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kQint32, shape));
  return SwitchType<quint8, qint8>(ctx.input(0).type(), [&]<typename Q>() {
    return AddBias<Q>(ctx, range, bias_range, output);
  });
}

/// Clips input 0, whose range inputs `range_input` and the next are, to [0, upper] where there is
/// an upper limit.
absl::Status Clip(KernelContext& ctx, int range_input, const float* upper) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange range, ReadRange(ctx, range_input));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
  const Tensor& input = ctx.input(0);
  TROUPE_RETURN_IF_ERROR((SwitchType<quint8, qint32>(output->type(), [&]<typename Q>() {
    const auto least = QuantizeOne<Q>(0.0f, range).value;
    const auto most = upper == nullptr ? std::numeric_limits<typename Q::Storage>::max()
                                       : QuantizeOne<Q>(*upper, range).value;
    const Q* in = input.unchecked_data<Q>();
    Q* out = output->mutable_data<Q>();
    ctx.ParallelFor(output->num_elements(), KernelContext::GrainFor(0.5),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        out[i] = Q(std::min(std::max(in[i].value, least), most));
                      }
                    });
    return absl::OkStatus();
  })));
  return SetRange(ctx, 1, range);
}

absl::Status QuantizedRelu(KernelContext& ctx) { return Clip(ctx, 1, nullptr); }
absl::Status QuantizedRelu6(KernelContext& ctx) {
  const float six = 6;
  return Clip(ctx, 1, &six);
}
absl::Status QuantizedReluX(KernelContext& ctx) {
  const Tensor& upper = ctx.input(1);
  if (upper.num_elements() != 1) {
    return InvalidArgument("max_value must be a scalar, got the shape ", upper.shape().ToString());
  }
  return Clip(ctx, 2, upper.unchecked_data<float>());
}

/// What each integer of an operand contributes to a sum or product.
using Contributions = std::array<int32_t, 256>;

/// out = combine(of_x[x], of_y[y]) for all x and y, broadcast against each other.
template <typename F>
absl::Status Combine(KernelContext& ctx, const Contributions& of_x, const Contributions& of_y,
                     F combine) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape(), y.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * z, ctx.AllocateOutput(0, ElementType::kQint32, shape));
  const BroadcastWalk walk(shape, {&x.shape(), &y.shape()});
  const double run_ns = 1.0 * static_cast<double>(walk.run_length());
  ctx.ParallelFor(
      walk.num_runs(), KernelContext::GrainFor(run_ns), [&](int64_t begin, int64_t end) {
        walk.ForEach(begin, end, [&](int64_t at, const BroadcastWalk::Offsets& from) {
          const quint8* x_run = x.unchecked_data<quint8>() + from[0];
          const quint8* y_run = y.unchecked_data<quint8>() + from[1];
          qint32* out = z->mutable_data<qint32>() + at;
          for (int64_t i = 0; i < walk.run_length(); ++i) {
            out[i] = qint32(static_cast<int32_t>(
                combine(static_cast<uint32_t>(of_x[x_run[i * walk.run_step(0)].value]),
                        static_cast<uint32_t>(of_y[y_run[i * walk.run_step(1)].value]))));
          }
        });
      });
  return absl::OkStatus();
}

/// The integers of an operand in the range of the sums. All but a single one go along a straight
/// line through those for 0 and 1, as in TensorFlow.
Contributions InRange(const QuantizedRange& range, const QuantizedRange& sums, bool single) {
  Contributions values;
  const auto unclamped = [&](uint8_t q) {
    return QuantizeUnclamped<qint32>(DequantizeOne(quint8(q), range), sums);
  };
  const int64_t first = unclamped(0), step = static_cast<int32_t>(unclamped(1) - first);
  for (int i = 0; i < 256; ++i) {
    const int64_t value = single ? unclamped(static_cast<uint8_t>(i)) : first + i * step;
    values[i] = static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
  }
  return values;
}

absl::Status QuantizedAdd(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange x, ReadWideRange(ctx, 2));
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange y, ReadWideRange(ctx, 4));
  // Symmetric about 0, with 14 bits to spare.
  const float most =
      std::max(std::abs(std::min(x.min, y.min)), std::abs(std::max(x.max, y.max))) * (1 << 14);
  const QuantizedRange sums{-most, most};
  const bool x_single = ctx.input(0).num_elements() == 1;
  const bool y_single = !x_single && ctx.input(1).num_elements() == 1;
  TROUPE_RETURN_IF_ERROR(Combine(ctx, InRange(x, sums, x_single), InRange(y, sums, y_single),
                                 [](uint32_t a, uint32_t b) { return a + b; }));
  return SetRange(ctx, 1, sums);
}

/// The integers of an operand less that for 0.
Contributions LessZero(const QuantizedRange& range) {
  const auto zero = static_cast<uint32_t>(QuantizeUnclamped<quint8>(0.0f, range));
  Contributions values;
  for (uint32_t i = 0; i < 256; ++i) values[i] = static_cast<int32_t>(i - zero);
  return values;
}

absl::Status QuantizedMul(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange x, ReadWideRange(ctx, 2));
  TROUPE_ASSIGN_OR_RETURN(const QuantizedRange y, ReadWideRange(ctx, 4));
  TROUPE_RETURN_IF_ERROR(
      Combine(ctx, LessZero(x), LessZero(y), [](uint32_t a, uint32_t b) { return a * b; }));
  return SetRange(ctx, 1, ProductRange<quint8, quint8, qint32>(x, y));
}

constexpr ElementType kUnsigned = ElementType::kQuint8, kSigned = ElementType::kQint8,
                      kSum = ElementType::kQint32;

KernelSpec Operands(const char* op, const char* out, ElementType type) {
  return KernelSpec(op).Types("T1", {type}).Types("T2", {type}).Types(out, {kSum});
}
KernelSpec Activation(const char* op, ElementType type) {
  return KernelSpec(op).Types("Tinput", {type}).Types("out_type", {type});
}

REGISTER_KERNEL(Operands("QuantizedBiasAdd", "out_type", kUnsigned), MakeKernel<QuantizedBiasAdd>);
REGISTER_KERNEL(Operands("QuantizedBiasAdd", "out_type", kSigned), MakeKernel<QuantizedBiasAdd>);
REGISTER_KERNEL(Operands("QuantizedAdd", "Toutput", kUnsigned), MakeKernel<QuantizedAdd>);
REGISTER_KERNEL(Operands("QuantizedMul", "Toutput", kUnsigned), MakeKernel<QuantizedMul>);
REGISTER_KERNEL(Activation("QuantizedRelu", kUnsigned), MakeKernel<QuantizedRelu>);
REGISTER_KERNEL(Activation("QuantizedRelu", kSum), MakeKernel<QuantizedRelu>);
REGISTER_KERNEL(Activation("QuantizedRelu6", kUnsigned), MakeKernel<QuantizedRelu6>);
REGISTER_KERNEL(Activation("QuantizedRelu6", kSum), MakeKernel<QuantizedRelu6>);
REGISTER_KERNEL(Activation("QuantizedReluX", kUnsigned), MakeKernel<QuantizedReluX>);
REGISTER_KERNEL(Activation("QuantizedReluX", kSum), MakeKernel<QuantizedReluX>);

}  // namespace
}  // namespace troupe
