// Fourier transforms against sums of the definition, and against FFTW's.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include <fftw3.h>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using Complex = std::complex<double>;

/// The transforms of lines of n numbers that are `step` apart.
void NaiveDft(std::vector<Complex>* x, int64_t begin, int64_t n, int64_t step, bool forward) {
  std::vector<Complex> y(n);
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < n; ++j) {
      const double angle = (forward ? -2 : 2) * M_PI * static_cast<double>(j * k % n) / n;
      y[k] += (*x)[begin + j * step] * std::polar(1.0, angle);
    }
    if (!forward) y[k] /= static_cast<double>(n);
  }
  for (int64_t k = 0; k < n; ++k) (*x)[begin + k * step] = y[k];
}

/// Over the last `rank` dimensions.
void NaiveDft(std::vector<Complex>* x, const Shape& shape, int rank, bool forward) {
  int64_t step = 1;
  for (int d = shape.rank() - 1; d >= shape.rank() - rank; --d) {
    const int64_t n = shape.dim(d);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      if (i / step % n == 0) NaiveDft(x, i, n, step, forward);
    }
    step *= n;
  }
}

Tensor Random(ElementType type, const Shape& shape) {
  if (!IsComplex(type)) return RandomTensor(type, shape, -1, 1);
  const Tensor re = RandomTensor(ElementType::kDouble, shape, -1, 1, 1);
  const Tensor im = RandomTensor(ElementType::kDouble, shape, -1, 1, 2);
  Tensor out = Tensor::Uninitialized(type, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    const Complex x(At(re, i), At(im, i));
    if (type == ElementType::kComplex64) {
      out.mutable_data<complex64>()[i] = complex64(x);
    } else {
      out.mutable_data<complex128>()[i] = x;
    }
  }
  return out;
}

std::vector<Complex> Values(const Tensor& t) {
  std::vector<Complex> values(t.num_elements());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    values[i] = t.type() == ElementType::kComplex64    ? Complex(t.unchecked_data<complex64>()[i])
                : t.type() == ElementType::kComplex128 ? t.unchecked_data<complex128>()[i]
                                                       : Complex(At(t, i));
  }
  return values;
}

void ExpectClose(const Tensor& got, const std::vector<Complex>& want, int64_t n) {
  const bool narrow = got.type() == ElementType::kFloat || got.type() == ElementType::kComplex64;
  const double tolerance = (narrow ? 1e-6 : 2e-15) * std::sqrt(static_cast<double>(n)) * 4;
  const std::vector<Complex> values = Values(got);
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_LE(std::abs(values[i] - want[i]), tolerance) << "element " << i;
  }
}

// Sizes with small factors, large ones, and primes for which a chirp is used.
const int64_t kSizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  13,  14, 15,
                          16, 17, 25, 27, 31, 37, 49, 60, 64, 74, 97, 120, 121, 169};

TEST(Fft, AgreesWithTheDefinition) {
  for (const ElementType type : {ElementType::kComplex64, ElementType::kComplex128}) {
    for (const int64_t n : kSizes) {
      for (const int64_t lines : {1, 3, 19}) {
        for (const bool forward : {true, false}) {
          SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", n, " ", lines, " ", forward));
          const Shape shape({lines, n});
          const Tensor x = Random(type, shape);
          OpTest op(forward ? "FFT" : "IFFT", 2);
          op.Input(x);
          ASSERT_EQ(op.Run(), absl::OkStatus());
          std::vector<Complex> want = Values(x);
          NaiveDft(&want, shape, 1, forward);
          ExpectClose(op.output(0), want, n);
        }
      }
    }
  }
}

TEST(Fft, SeveralDimensions) {
  for (const int rank : {2, 3}) {
    for (const bool forward : {true, false}) {
      const Shape shape({2, 3, 37, 10});
      const Tensor x = Random(ElementType::kComplex128, shape);
      OpTest op(absl::StrCat(forward ? "FFT" : "IFFT", rank, "D"), 2);
      op.Input(x);
      ASSERT_EQ(op.Run(), absl::OkStatus());
      std::vector<Complex> want = Values(x);
      NaiveDft(&want, shape, rank, forward);
      ExpectClose(op.output(0), want, 3 * 37 * 10);
    }
  }
}

TEST(Fft, RealNumbersThereAndBack) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
    const ElementType complex =
        type == ElementType::kFloat ? ElementType::kComplex64 : ElementType::kComplex128;
    for (const int64_t n : kSizes) {
      for (const int64_t lines : {1, 4, 19}) {
        SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", n, " ", lines));
        const Tensor x = Random(type, Shape({lines, n}));
        const Tensor length = Tensor::Vector<int32_t>({static_cast<int32_t>(n)});
        OpTest op("RFFT", 2);
        op.Attr("Tcomplex", complex).Input(x).Input(length);
        ASSERT_EQ(op.Run(), absl::OkStatus());
        std::vector<Complex> all = Values(x), want;
        NaiveDft(&all, x.shape(), 1, true);
        for (size_t i = 0; i < all.size(); ++i) {
          if (static_cast<int64_t>(i) % n <= n / 2) want.push_back(all[i]);
        }
        ExpectClose(op.output(0), want, n);
        OpTest back("IRFFT", 2);
        back.Attr("Treal", type).Input(op.output(0)).Input(length);
        ASSERT_EQ(back.Run(), absl::OkStatus());
        ExpectClose(back.output(0), Values(x), n);
      }
    }
  }
}

// Passes of a long line, and a chirp: a pure oscillation has one element.
TEST(Fft, LongLines) {
  for (const int64_t n : {int64_t{1} << 16, int64_t{65537}, int64_t{3 * 5 * 7 * 11 * 13}}) {
    const int64_t frequency = n / 3;
    Tensor x = Tensor::Uninitialized(ElementType::kComplex128, Shape({n}));
    for (int64_t j = 0; j < n; ++j) {
      x.mutable_data<complex128>()[j] =
          std::polar(1.0, 2 * M_PI * static_cast<double>(j * frequency % n) / n);
    }
    OpTest op("FFT", 2);
    op.Input(x);
    ASSERT_EQ(op.Run(), absl::OkStatus());
    for (int64_t k = 0; k < n; ++k) {
      const Complex want = k == frequency ? n : 0;
      ASSERT_LE(std::abs(op.output(0).unchecked_data<complex128>()[k] - want), 1e-9) << k;
    }
  }
}

// --- beside FFTW -------------------------------------------------------------------------------

/// Runs a plan of FFTW's, which must not touch its arguments before.
void Execute(fftw_plan plan) {
  ASSERT_NE(plan, nullptr);
  fftw_execute(plan);
  fftw_destroy_plan(plan);
}
fftw_complex* Raw(std::vector<Complex>* x) { return reinterpret_cast<fftw_complex*>(x->data()); }

/// What FFTW gives for the transforms of `lines` arrays of these sizes, in double precision.
std::vector<Complex> FftwOf(std::vector<Complex> x, const std::vector<int>& sizes, int lines,
                            bool forward) {
  std::vector<Complex> y(x.size());
  const int rank = static_cast<int>(sizes.size()), count = static_cast<int>(x.size()) / lines;
  Execute(fftw_plan_many_dft(rank, sizes.data(), lines, Raw(&x), nullptr, 1, count, Raw(&y),
                             nullptr, 1, count, forward ? FFTW_FORWARD : FFTW_BACKWARD,
                             FFTW_ESTIMATE));
  if (!forward) {
    for (Complex& value : y) value /= count;
  }
  return y;
}
std::vector<Complex> FftwOfReals(const std::vector<Complex>& x, const std::vector<int>& sizes,
                                 int lines) {
  std::vector<double> reals;
  for (const Complex& value : x) reals.push_back(value.real());
  const int count = static_cast<int>(x.size()) / lines;
  const int half = count / sizes.back() * (sizes.back() / 2 + 1);
  std::vector<Complex> y(static_cast<size_t>(half) * lines);
  Execute(fftw_plan_many_dft_r2c(static_cast<int>(sizes.size()), sizes.data(), lines, reals.data(),
                                 nullptr, 1, count, Raw(&y), nullptr, 1, half, FFTW_ESTIMATE));
  return y;
}

/// Every element is off by rounding at most, which grows with the number of passes.
void ExpectRounded(const Tensor& got, const std::vector<Complex>& want, double count) {
  const bool narrow = got.type() == ElementType::kFloat || got.type() == ElementType::kComplex64;
  const double epsilon =
      narrow ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  const std::vector<Complex> values = Values(got);
  ASSERT_EQ(values.size(), want.size());
  double squares = 0, worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    squares += std::norm(want[i]);
    worst = std::max(worst, std::abs(values[i] - want[i]));
  }
  const double size = std::sqrt(squares / static_cast<double>(want.size()));
  EXPECT_LE(worst / size, 4 * epsilon * (2 + std::log2(count)));
}

std::string WithRank(const char* name, size_t rank) {
  return rank == 1 ? name : absl::StrCat(name, rank, "D");
}

void CompareWithFftw(ElementType real, const std::vector<int>& sizes, int lines) {
  SCOPED_TRACE(absl::StrCat(ElementTypeName(real), " ", absl::StrJoin(sizes, "x"), ", ", lines));
  const ElementType complex =
      real == ElementType::kFloat ? ElementType::kComplex64 : ElementType::kComplex128;
  Shape shape({lines});
  for (const int size : sizes) shape.AddDim(size);
  const double count = static_cast<double>(shape.num_elements()) / lines;
  const Tensor x = Random(complex, shape), reals = Random(real, shape);
  for (const bool forward : {true, false}) {
    OpTest op(WithRank(forward ? "FFT" : "IFFT", sizes.size()), 2);
    op.Input(x);
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectRounded(op.output(0), FftwOf(Values(x), sizes, lines, forward), count);
  }
  const Tensor lengths = Tensor::Vector<int32_t>(sizes);
  OpTest op(WithRank("RFFT", sizes.size()), 2);
  op.Attr("Tcomplex", complex).Input(reals).Input(lengths);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectRounded(op.output(0), FftwOfReals(Values(reals), sizes, lines), count);
  OpTest back(WithRank("IRFFT", sizes.size()), 2);
  back.Attr("Treal", real).Input(op.output(0)).Input(lengths);
  ASSERT_EQ(back.Run(), absl::OkStatus());
  ExpectRounded(back.output(0), Values(reals), count);
}

TEST(Fft, AgreesWithFftw) {
  const std::vector<std::vector<int>> all_sizes = {// Powers of two.
                                                   {1},
                                                   {2},
                                                   {4},
                                                   {8},
                                                   {16},
                                                   {32},
                                                   {64},
                                                   {128},
                                                   {256},
                                                   {512},
                                                   {1024},
                                                   {2048},
                                                   {8192},
                                                   {65536},

                                                   // Several factors.
                                                   {6},
                                                   {12},
                                                   {60},
                                                   {100},
                                                   {243},
                                                   {360},
                                                   {625},
                                                   {1000},
                                                   {2401},
                                                   {2431},
                                                   {5040},
                                                   {19683},
                                                   {30030},
                                                   {44100},
                                                   {100000},
                                                   // Primes, and products of them.
                                                   {3},
                                                   {5},
                                                   {7},
                                                   {11},
                                                   {13},
                                                   {17},
                                                   {19},
                                                   {23},
                                                   {29},
                                                   {31},
                                                   {37},
                                                   {97},
                                                   {101},
                                                   {211},
                                                   {1009},
                                                   {4099},
                                                   {10007},
                                                   {65537},
                                                   {99991},
                                                   {9797},
                                                   {20014},
                                                   {11 * 1009},
                                                   // Images and volumes.
                                                   {1, 1},
                                                   {64, 64},
                                                   {37, 10},
                                                   {101, 103},
                                                   {128, 243},
                                                   {1, 1009},
                                                   {1009, 2},
                                                   {256, 120},
                                                   {1, 1, 1},
                                                   {8, 16, 32},
                                                   {7, 9, 11},
                                                   {3, 37, 10},
                                                   {31, 32, 33},
                                                   {2, 1, 101}};
  for (const std::vector<int>& sizes : all_sizes) {
    for (const ElementType real : {ElementType::kFloat, ElementType::kDouble}) {
      for (const int lines : {1, 3}) CompareWithFftw(real, sizes, lines);
    }
  }
}

TEST(Fft, RefusesBadInputs) {
  const auto run = [](const char* name, const Tensor& x, const Tensor& lengths) {
    OpTest op(name);
    op.Input(x).Input(lengths);
    return op.Run().code();
  };
  const Tensor real = Random(ElementType::kFloat, Shape({2, 6}));
  const Tensor complex = Random(ElementType::kComplex64, Shape({2, 4}));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run("RFFT", real, Tensor::Vector<int32_t>({7})), invalid);
  EXPECT_EQ(run("RFFT", real, Tensor::Vector<int32_t>({-1})), invalid);
  EXPECT_EQ(run("RFFT", real, Tensor::Vector<int32_t>({2, 6})), invalid);
  EXPECT_EQ(run("RFFT", real, Tensor::Scalar<int32_t>(6)), invalid);
  EXPECT_EQ(run("RFFT3D", real, Tensor::Vector<int32_t>({1, 2, 6})), invalid);
  EXPECT_EQ(run("IRFFT", complex, Tensor::Vector<int32_t>({8})), invalid);
  EXPECT_EQ(run("IRFFT2D", complex, Tensor::Vector<int32_t>({3, 6})), invalid);
  EXPECT_EQ(run("RFFT", real, Tensor::Vector<int32_t>({0})), absl::StatusCode::kOk);
  OpTest scalar("FFT2D");
  scalar.Input(Random(ElementType::kComplex64, Shape({3})));
  EXPECT_EQ(scalar.Run().code(), invalid);
}

}  // namespace
}  // namespace troupe::testing
