// Discrete Fourier transforms of the innermost one, two or three dimensions.
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/shape_helpers.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

using C = InferenceContext;

template <int kRank>
absl::Status ComplexShape(InferenceContext* c) {
  return SetShape(c, C::WithRankAtLeast(c->input(0), kRank));
}

/// The sizes of a transform of real numbers: input 1, but that the complex side, the output if
/// `forward`, keeps only half of the last one.
template <int kRank, bool kForward>
absl::Status RealShape(InferenceContext* c) {
  TROUPE_ASSIGN_OR_RETURN(PartialShape shape, C::WithRankAtLeast(c->input(0), kRank));
  TROUPE_ASSIGN_OR_RETURN(const PartialShape lengths, C::WithRank(c->input(1), 1));
  TROUPE_RETURN_IF_ERROR(WithValue(lengths.dim(0), kRank).status());
  const Tensor& known = c->input_tensor(1);
  if (shape.unknown_rank()) return UnknownShape(c);
  for (int d = 0; d < kRank; ++d) {
    int64_t size = known.valid() ? IntegerValues(known)[d] : -1;
    if (size < 0) {
      size = -1;  // A negative one is refused by the kernel.
    } else if (kForward && d == kRank - 1 && size != 0) {
      size = size / 2 + 1;
    }
    shape = C::ReplaceDim(shape, d - kRank, size);
  }
  return SetShape(c, shape);
}

const char* const kSizes[] = {"[..., n]", "[..., m, n]", "[..., l, m, n]"};

OpDefBuilder Complex(const char* name, int rank, bool forward, ShapeFn shape_fn) {
  OpDefBuilder op(name);
  op.Signature("input: Tcomplex -> output: Tcomplex")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .SetShapeFn(shape_fn)
      .Doc(StrCat("Gives the ", forward ? "" : "inverse ",
                  "discrete Fourier transforms of `input` ", kSizes[rank - 1],
                  " over the innermost ", rank, rank == 1 ? " dimension" : " dimensions",
                  forward ? "." : ", which are divided by the number of elements.",
                  " Same shape as input."));
  return op;
}

OpDefBuilder Real(const char* name, int rank, bool forward, ShapeFn shape_fn) {
  OpDefBuilder op(name);
  op.Signature(forward ? "input: Treal, fft_length: int32 -> output: Tcomplex"
                       : "input: Tcomplex, fft_length: int32 -> output: Treal")
      .Attr("Treal: {float, double} = DT_FLOAT")
      .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
      .SetShapeFn(shape_fn);
  const std::string dimensions =
      StrCat("the innermost ", rank, rank == 1 ? " dimension" : " dimensions");
  if (forward) {
    op.Doc(StrCat("Gives the discrete Fourier transforms of the real `input` ", kSizes[rank - 1],
                  " over ", dimensions, ", cropped to the sizes `fft_length` [", rank,
                  "]. Of the last dimension only the first fft_length / 2 + 1 elements are given: "
                  "the others are their conjugates."));
  } else {
    op.Doc(StrCat("Gives the real numbers of which `input` ", kSizes[rank - 1],
                  " is the transform by ", /*without the I*/ name + 1, ": the sizes of ",
                  dimensions, " are `fft_length` [", rank,
                  "]; of the input only the first elements that such a transform has are read, of "
                  "the last dimension fft_length / 2 + 1."));
  }
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kTransforms[] = {
    Complex("FFT", 1, true, ComplexShape<1>),    Complex("IFFT", 1, false, ComplexShape<1>),
    Complex("FFT2D", 2, true, ComplexShape<2>),  Complex("IFFT2D", 2, false, ComplexShape<2>),
    Complex("FFT3D", 3, true, ComplexShape<3>),  Complex("IFFT3D", 3, false, ComplexShape<3>),
    Real("RFFT", 1, true, RealShape<1, true>),   Real("IRFFT", 1, false, RealShape<1, false>),
    Real("RFFT2D", 2, true, RealShape<2, true>), Real("IRFFT2D", 2, false, RealShape<2, false>),
    Real("RFFT3D", 3, true, RealShape<3, true>), Real("IRFFT3D", 3, false, RealShape<3, false>),
};

}  // namespace
}  // namespace troupe
