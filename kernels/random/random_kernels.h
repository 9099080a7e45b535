/// Kernels of random ops but for the numbers themselves: arguments, outputs, and which part of the
/// stream a run takes. For all devices, so that the same seeds give the same numbers on each.
#ifndef TROUPE_KERNELS_RANDOM_RANDOM_KERNELS_H_
#define TROUPE_KERNELS_RANDOM_RANDOM_KERNELS_H_

#include <cstdint>
#include <limits>

#include "kernels/common/integer_input.h"
#include "kernels/kernel.h"
#include "kernels/random/random_stream_kernel.h"
#include "kernels/type_switch.h"

namespace troupe {

/// A run reserves this many blocks for each output, so that distributions that need more words for
/// some outputs than for others have room.
inline constexpr uint64_t kBlocksPerOutput = 256;

class RandomKernel : public RandomStreamKernel {
 protected:
  explicit RandomKernel(KernelConstruction& construction)
      : RandomStreamKernel(construction), type_(construction.output_type(0)) {}

  const ElementType type_;
};

/// RandomUniform, RandomStandardNormal, TruncatedNormal.
class RandomFillKernel : public RandomKernel {
 public:
  absl::Status Compute(KernelContext& ctx) final {
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "the shape"));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    const int64_t n = shape.num_elements();
    if (n == 0) return absl::OkStatus();
    return Fill(ctx, stream_.Reserve(static_cast<uint64_t>(n) * kBlocksPerOutput), out);
  }

 protected:
  using RandomKernel::RandomKernel;
  /// `out` is not empty.
  virtual absl::Status Fill(KernelContext& ctx, const Philox& position, Tensor* out) = 0;
};

/// The integers of [low, low + size); `low` modulo 2^64.
struct IntegerRange {
  uint64_t low, size;
};

inline absl::Status CheckRangeInputs(const Tensor& low, const Tensor& high) {
  if (low.rank() == 0 && high.rank() == 0) return absl::OkStatus();
  return InvalidArgument("minval and maxval must be scalars, got shapes ", low.shape().ToString(),
                         " and ", high.shape().ToString());
}

/// From the inputs `minval` and `maxval`, of one type; there must be a number between them.
inline absl::StatusOr<IntegerRange> ReadRange(const Tensor& low, const Tensor& high) {
  TROUPE_RETURN_IF_ERROR(CheckRangeInputs(low, high));
  IntegerRange range = {};
  TROUPE_RETURN_IF_ERROR((SwitchType<int32_t,
                                     int64_t>(low.type(), [&]<typename T>() -> absl::Status {
    const T from = low.unchecked_scalar<T>(), to = high.unchecked_scalar<T>();
    if (from >= to) {
      return InvalidArgument("minval must be less than maxval, got ", from, " and ", to);
    }
    range = {static_cast<uint64_t>(from), static_cast<uint64_t>(to) - static_cast<uint64_t>(from)};
    return absl::OkStatus();
  })));
  return range;
}

class RandomUniformIntKernel : public RandomKernel {
 public:
  absl::Status Compute(KernelContext& ctx) final {
    TROUPE_RETURN_IF_ERROR(CheckRangeInputs(ctx.input(1), ctx.input(2)));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeVector(ctx.input(0), "the shape"));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, type_, shape));
    const int64_t n = shape.num_elements();
    if (n == 0) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const IntegerRange range, ReadRange(ctx.input(1), ctx.input(2)));
    return Fill(ctx, stream_.Reserve(static_cast<uint64_t>(n) * kBlocksPerOutput),
                static_cast<int64_t>(range.low), range.size, out);
  }

 protected:
  using RandomKernel::RandomKernel;
  /// With numbers of [low, low + range). `out` is not empty.
  virtual absl::Status Fill(KernelContext& ctx, const Philox& position, int64_t low, uint64_t range,
                            Tensor* out) = 0;
};

/// Checks logits and a number of samples, inputs 0 and 1, and makes output 0, of integers `type`,
/// for as many classes for each row of the logits.
inline absl::StatusOr<Tensor*> AllocateClasses(KernelContext& ctx, ElementType type) {
  const Tensor& logits = ctx.input(0);
  if (logits.rank() != 2) {
    return InvalidArgument("logits must be a matrix, got shape ", logits.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(const int64_t samples, ReadIntegerScalar(ctx.input(1), "num_samples"));
  if (samples < 0) return InvalidArgument("num_samples must not be negative, got ", samples);
  const int64_t rows = logits.dim(0), classes = logits.dim(1);
  if (classes == 0) {
    return InvalidArgument("there must be at least one class, logits has the shape ",
                           logits.shape().ToString());
  }
  if (type == ElementType::kInt32 && classes > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument(classes, " classes are too many for output_dtype int32");
  }
  const int64_t dims[] = {rows, samples};
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  return ctx.AllocateOutput(0, type, shape);
}

class MultinomialKernel : public RandomKernel {
 public:
  absl::Status Compute(KernelContext& ctx) final {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, AllocateClasses(ctx, type_));
    if (out->num_elements() == 0) return absl::OkStatus();
    const uint64_t rows = static_cast<uint64_t>(out->dim(0));
    const uint64_t rounded = (static_cast<uint64_t>(out->dim(1)) + 3) / 4 * 4;
    return Draw(ctx, stream_.Reserve(rows * rounded * 2 * kBlocksPerOutput), out);
  }

 protected:
  using RandomKernel::RandomKernel;
  /// Of the logits of input 0, as many classes for each row as `out` has columns. None is empty.
  /// A class takes two words, half a block.
  virtual absl::Status Draw(KernelContext& ctx, const Philox& position, Tensor* out) = 0;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_RANDOM_RANDOM_KERNELS_H_
