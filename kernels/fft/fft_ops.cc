#include "kernels/fft/fft_ops.h"

#include <string>
#include <string_view>
#include <utility>

#include "kernels/common/integer_input.h"
#include "kernels/common/strided_copy.h"

namespace troupe::fft {
namespace {

absl::Status CheckRank(const Shape& input, int rank) {
  if (input.rank() >= rank) return absl::OkStatus();
  return InvalidArgument("the input must have at least ", rank, " dimensions, got shape ",
                         input.ToString());
}

/// The sizes of the real side, from the input `fft_length`.
absl::StatusOr<DimVector> ReadLengths(const Tensor& lengths, int rank) {
  if (lengths.rank() != 1 || lengths.num_elements() != rank) {
    return InvalidArgument("fft_length must be a vector of ", rank, " sizes, got shape ",
                           lengths.shape().ToString());
  }
  TROUPE_ASSIGN_OR_RETURN(DimVector sizes, ReadIntegers(lengths, "fft_length"));
  for (const int64_t size : sizes) {
    if (size < 0) return InvalidArgument("fft_length must not be negative, got ", size);
  }
  return sizes;
}

/// The batch dimensions of `input`, then `sizes`.
DimVector BatchAnd(const Shape& input, absl::Span<const int64_t> sizes) {
  DimVector dims(input.dims().begin(), input.dims().end() - sizes.size());
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  return dims;
}

/// The first elements of `input` along its innermost dimensions, of which it must have as many as
/// `dims` says, or, as in TensorFlow, none: the input itself, or a copy.
absl::StatusOr<Tensor> Cropped(KernelContext& ctx, const Tensor& input,
                               absl::Span<const int64_t> dims) {
  for (int d = 0; d < input.rank(); ++d) {
    if (input.dim(d) < dims[d] && input.dim(d) != 0) {
      return InvalidArgument("dimension ", d, " of the input of shape ", input.shape().ToString(),
                             " must have at least the ", dims[d],
                             " elements that fft_length asks for");
    }
  }
  if (input.shape().dims() == dims || input.num_elements() == 0) return input;
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(input.type(), shape));
  StridedCopy(ctx, input.type(), dims, copy.mutable_raw_data(), RowMajorStrides(dims),
              input.raw_data(), RowMajorStrides(input.shape().dims()));
  return copy;
}

class FftKernel final : public Kernel {
 public:
  FftKernel(KernelConstruction& construction, std::unique_ptr<const Engine> engine)
      : engine_(std::move(engine)) {
    std::string_view op = construction.op();
    const auto take = [&op](std::string_view prefix) {
      const bool is = op.substr(0, prefix.size()) == prefix;
      if (is) op.remove_prefix(prefix.size());
      return is;
    };
    forward_ = !take("I");
    real_ = take("R");
    rank_ = op == "FFT3D" ? 3 : op == "FFT2D" ? 2 : 1;
    output_type_ = construction.output_type(0);
  }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_RETURN_IF_ERROR(CheckRank(ctx.input(0).shape(), rank_));
    if (!real_) return Complex(ctx);
    TROUPE_ASSIGN_OR_RETURN(const DimVector sizes, ReadLengths(ctx.input(1), rank_));
    return forward_ ? Real(ctx, sizes) : InverseReal(ctx, sizes);
  }

 private:
  absl::Status Complex(KernelContext& ctx) const {
    const Shape shape = ctx.input(0).shape();
    const void* in = ctx.input(0).raw_data();
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
    if (shape.num_elements() == 0) return absl::OkStatus();
    void* const to = out->mutable_raw_data();
    for (int d = shape.rank() - 1; d >= shape.rank() - rank_; --d) {
      TROUPE_RETURN_IF_ERROR(engine_->Complex(ctx, out->type(), Lines::Along(shape.dims(), d),
                                              shape.dim(d), forward_, in, to));
      in = to;
    }
    return absl::OkStatus();
  }

  absl::Status Real(KernelContext& ctx, const DimVector& sizes) const {
    const Tensor& input = ctx.input(0);
    const DimVector in_dims = BatchAnd(input.shape(), sizes);
    const int64_t n = sizes.back();
    DimVector dims = in_dims;
    dims.back() = n == 0 ? 0 : n / 2 + 1;
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, output_type_, shape));
    TROUPE_ASSIGN_OR_RETURN(const Tensor cropped, Cropped(ctx, input, in_dims));
    if (input.num_elements() == 0) {
      ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
      return absl::OkStatus();
    }
    if (shape.num_elements() == 0) return absl::OkStatus();
    void* const to = out->mutable_raw_data();
    const int64_t count = shape.num_elements() / dims.back();
    TROUPE_RETURN_IF_ERROR(engine_->Real(ctx, input.type(), count, n, cropped.raw_data(), to));
    for (int d = shape.rank() - 2; d >= shape.rank() - rank_; --d) {
      TROUPE_RETURN_IF_ERROR(engine_->Complex(ctx, output_type_, Lines::Along(dims, d), dims[d],
                                              /*forward=*/true, to, to));
    }
    return absl::OkStatus();
  }

  absl::Status InverseReal(KernelContext& ctx, const DimVector& sizes) const {
    const Tensor& input = ctx.input(0);
    const DimVector dims = BatchAnd(input.shape(), sizes);
    const int64_t n = sizes.back();
    DimVector in_dims = dims;
    in_dims.back() = n == 0 ? 0 : n / 2 + 1;
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, output_type_, shape));
    TROUPE_ASSIGN_OR_RETURN(const Tensor cropped, Cropped(ctx, input, in_dims));
    if (input.num_elements() == 0) {
      ZeroElements(ctx, out->type(), out->mutable_raw_data(), out->num_elements());
      return absl::OkStatus();
    }
    if (shape.num_elements() == 0) return absl::OkStatus();
    const void* in = cropped.raw_data();
    Tensor between;  // The outer dimensions' results, if there are any.
    if (rank_ > 1) {
      TROUPE_ASSIGN_OR_RETURN(between, ctx.AllocateTemp(input.type(), cropped.shape()));
      void* const to = between.mutable_raw_data();
      for (int d = shape.rank() - 2; d >= shape.rank() - rank_; --d) {
        TROUPE_RETURN_IF_ERROR(engine_->Complex(ctx, input.type(), Lines::Along(in_dims, d),
                                                dims[d], /*forward=*/false, in, to));
        in = to;
      }
    }
    return engine_->InverseReal(ctx, output_type_, shape.num_elements() / n, n, in,
                                out->mutable_raw_data());
  }

  const std::unique_ptr<const Engine> engine_;
  bool forward_, real_;
  int rank_;
  ElementType output_type_;
};

}  // namespace

Lines Lines::Along(absl::Span<const int64_t> dims, int d) {
  Lines lines;
  for (int i = 0; i < d; ++i) lines.outer *= dims[i];
  for (int i = d + 1; i < static_cast<int>(dims.size()); ++i) lines.inner *= dims[i];
  return lines;
}

absl::StatusOr<std::unique_ptr<Kernel>> Make(KernelConstruction& construction,
                                             std::unique_ptr<const Engine> engine) {
  return std::make_unique<FftKernel>(construction, std::move(engine));
}

void ForEachSpec(absl::FunctionRef<void(const KernelSpec& spec)> add) {
  for (const char* op : {"FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D"}) {
    add(KernelSpec(op)
            .Types("Tcomplex", {ElementType::kComplex64, ElementType::kComplex128})
            .Cost(KernelCost::kExpensive));
  }
  for (const char* op : {"RFFT", "RFFT2D", "RFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D"}) {
    for (const bool wide : {false, true}) {
      add(KernelSpec(op)
              .Types("Treal", {wide ? ElementType::kDouble : ElementType::kFloat})
              .Types("Tcomplex", {wide ? ElementType::kComplex128 : ElementType::kComplex64})
              .Cost(KernelCost::kExpensive));
    }
  }
}

}  // namespace troupe::fft
