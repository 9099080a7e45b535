// Fourier transforms of cards against the CPU's.
#include "tests/cuda_on_host/against_cpu.h"

namespace troupe::testing {
namespace {

using enum ElementType;

class Fft : public ::testing::Test {
 protected:
  void SetUp() override { LoadCards(); }
};

/// Errors grow with the logarithm of the number of terms, of a size of about its root.
Within WithinFor(ElementType type, int64_t terms) {
  const bool narrow = type == kComplex64 || type == kFloat;
  const double n = static_cast<double>(std::max<int64_t>(terms, 2));
  return {8, (narrow ? 0x1p-24 : 0x1p-53) * 40 * std::sqrt(n) * std::log2(n)};
}

Tensor Some(ElementType type, std::vector<int64_t> dims, uint64_t seed) {
  return Numbers(type, Shape(dims), seed, Values::kModerate);
}

// Each small radix; primes up to 31, which need no chirp, and above; lengths of one pass and of
// several, with and without factors other than 2.
constexpr int64_t kLengths[] = {1,   2,   3,   4,   5,   6,    7,    8,    9,    11,   12,   13,
                                15,  16,  17,  25,  29,  31,   32,   37,   60,   64,   97,   100,
                                210, 256, 509, 512, 513, 1000, 1024, 1331, 2048, 2049, 2187, 4096};

TEST_F(Fft, Lines) {
  for (const ElementType type : {kComplex64, kComplex128}) {
    AgainstCpu both;
    for (const int64_t n : kLengths) {
      for (const char* op : {"FFT", "IFFT"}) {
        both.Add(op, {{Some(type, {n}, 1)}}, WithinFor(type, n));
        both.Add(op, {{Some(type, {3, n}, 2), Operand::kCopy}}, WithinFor(type, n));
      }
    }
    for (const char* op : {"FFT", "IFFT"}) {
      both.Add(op, {{Some(type, {2, 19, 4}, 3), Operand::kView}}, WithinFor(type, 4));
      both.Add(op, {{Some(type, {700, 6}, 3)}}, WithinFor(type, 6));
      both.Add(op, {{Some(type, {0, 4}, 3)}});
      both.Add(op, {{Some(type, {4, 0}, 3)}});
    }
    both.Compare(/*runs=*/2);
  }
}

TEST_F(Fft, LongLines) {
  for (const ElementType type : {kComplex64, kComplex128}) {
    AgainstCpu both;
    for (const int64_t n : {1 << 15, 3 * 5 * 7 * 11 * 13, 65536, 10007, 1 << 17}) {
      both.Add("FFT", {{Some(type, {n}, 1)}}, WithinFor(type, n));
      both.Add("IFFT", {{Some(type, {n}, 1)}}, WithinFor(type, n));
    }
    both.Compare();
  }
}

TEST_F(Fft, SeveralDimensions) {
  for (const ElementType type : {kComplex64, kComplex128}) {
    AgainstCpu both;
    for (const bool forward : {false, true}) {
      const std::string op = forward ? "FFT" : "IFFT";
      for (const std::vector<int64_t>& dims : {std::vector<int64_t>{4, 5},
                                               {8, 1},
                                               {1, 8},
                                               {3, 37, 6},
                                               {2, 5, 16},
                                               {600, 3},
                                               {2100, 2},
                                               {2, 3, 4, 5},
                                               {0, 3, 4}}) {
        const int64_t rank = static_cast<int64_t>(dims.size());
        both.Add(op + "2D", {{Some(type, dims, 1)}},
                 WithinFor(type, dims[rank - 1] * dims[rank - 2]));
        if (rank < 3) continue;
        both.Add(op + "3D", {{Some(type, dims, 2), Operand::kCopy}},
                 WithinFor(type, dims[rank - 1] * dims[rank - 2] * dims[rank - 3]));
      }
    }
    both.Compare();
  }
}

TEST_F(Fft, RealNumbers) {
  for (const bool wide : {false, true}) {
    AgainstCpu both;
    const ElementType real = wide ? kDouble : kFloat, complex = wide ? kComplex128 : kComplex64;
    const auto add = [&](const std::string& op, std::vector<int64_t> dims,
                         std::vector<int32_t> lengths) {
      const bool forward = op[0] == 'R';
      int64_t terms = 1;
      for (const int32_t length : lengths) terms *= length;
      both.Add(
          op, {{Some(forward ? real : complex, dims, 1)}, OnHost(Tensor::Vector<int32_t>(lengths))},
          WithinFor(real, terms), [=](NodeSpec& node) {
            forward ? node.Attr("Tcomplex", complex) : node.Attr("Treal", real);
          });
    };
    for (const int32_t n : {1, 2, 3, 4, 7, 8, 15, 30, 74, 97, 194, 256, 1001, 4096, 5000, 32768}) {
      add("RFFT", {3, n}, {n});
      add("IRFFT", {3, n / 2 + 1}, {n});
    }
    add("RFFT", {2, 9}, {6});  // The input is cut.
    add("IRFFT", {2, 9}, {7});
    add("RFFT", {2, 0}, {6});
    add("IRFFT", {0, 4}, {6});
    add("RFFT", {2, 3}, {0});
    add("RFFT2D", {2, 5, 6}, {5, 6});
    add("RFFT2D", {2, 8, 7}, {5, 7});
    add("IRFFT2D", {2, 5, 4}, {5, 6});
    add("IRFFT2D", {2, 6, 4}, {5, 7});
    add("RFFT3D", {2, 4, 5, 6}, {4, 5, 6});
    add("IRFFT3D", {2, 4, 5, 4}, {4, 5, 7});
    both.Compare();
  }
}

TEST_F(Fft, RefusesLengths) {
  const auto status = [](std::vector<int32_t> lengths) {
    return AgainstCpu::StatusOf(
        "RFFT", {{Some(kFloat, {2, 5}, 1)}, OnHost(Tensor::Vector<int32_t>(lengths))},
        [](NodeSpec& node) { node.Attr("Tcomplex", kComplex64); });
  };
  EXPECT_TRUE(absl::IsInvalidArgument(status({6})));
  EXPECT_TRUE(absl::IsInvalidArgument(status({-1})));
}

}  // namespace
}  // namespace troupe::testing
