#include <complex>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "devices/cpu/instruction_set.h"
#include "gtest/gtest.h"
#include "kernels/linalg/product.h"
#include "kernels/simd/gemm.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using Complex = std::complex<double>;

Complex ComplexAt(const Tensor& t, int64_t i) {
  if (t.type() == ElementType::kComplex64) return Complex(t.unchecked_data<complex64>()[i]);
  if (t.type() == ElementType::kComplex128) return t.unchecked_data<complex128>()[i];
  return At(t, i);
}

Tensor RandomMatrix(ElementType type, const Shape& shape, uint32_t seed) {
  if (!IsComplex(type)) {
    const bool is_unsigned = type == ElementType::kUint16 || type == ElementType::kUint32 ||
                             type == ElementType::kUint64;
    const double bound = IsFloating(type) ? 1 : is_unsigned ? 10 : 20;
    return RandomTensor(type, shape, is_unsigned ? 0 : -bound, bound, seed);
  }
  const Tensor re = RandomTensor(ElementType::kDouble, shape, -1, 1, seed);
  const Tensor im = RandomTensor(ElementType::kDouble, shape, -1, 1, seed + 1000);
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

// The product of the matrices that begin at elements a0 and b0, in double precision.
std::vector<Complex> Naive(const Tensor& a, int64_t a0, const Tensor& b, int64_t b0, int64_t m,
                           int64_t k, int64_t n, bool ta, bool tb, bool conjugate) {
  std::vector<Complex> c(m * n);
  if (!IsComplex(a.type())) {  // The same, faster.
    std::vector<double> x(m * k), y(n * k);
    for (int64_t i = 0; i < m * k; ++i) x[i] = At(a, a0 + (ta ? i % k * m + i / k : i));
    for (int64_t i = 0; i < n * k; ++i) y[i] = At(b, b0 + (tb ? i : i % k * n + i / k));
    for (int64_t i = 0; i < m * n; ++i) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += x[i / n * k + l] * y[i % n * k + l];
      c[i] = sum;
    }
    return c;
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Complex sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        Complex x = ComplexAt(a, a0 + (ta ? l * m + i : i * k + l));
        Complex y = ComplexAt(b, b0 + (tb ? j * k + l : l * n + j));
        if (ta && conjugate) x = std::conj(x);
        if (tb && conjugate) y = std::conj(y);
        sum += x * y;
      }
      c[i * n + j] = sum;
    }
  }
  return c;
}

double Tolerance(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return 2e-3;
    case ElementType::kBfloat16:
      return 2e-2;
    case ElementType::kFloat:
    case ElementType::kComplex64:
      return 2e-6;
    case ElementType::kDouble:
    case ElementType::kComplex128:
      return 1e-14;
    default:
      return 0;
  }
}

void ExpectProduct(const Tensor& got, int64_t g0, const std::vector<Complex>& want, int64_t k) {
  const double tolerance = Tolerance(got.type()) * std::sqrt(static_cast<double>(k) + 1) + 1e-300;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_LE(std::abs(ComplexAt(got, g0 + i) - want[i]), tolerance * (1 + std::abs(want[i])))
        << "element " << i << ": " << ComplexAt(got, g0 + i) << " instead of " << want[i];
  }
}

const ElementType kTypes[] = {
    ElementType::kFloat,    ElementType::kDouble,    ElementType::kHalf,
    ElementType::kBfloat16, ElementType::kInt16,     ElementType::kInt32,
    ElementType::kInt64,    ElementType::kComplex64, ElementType::kComplex128};

Tensor RunMatMul(const Tensor& a, const Tensor& b, bool ta, bool tb, int threads) {
  OpTest op("MatMul", threads);
  op.Attr("transpose_a", ta).Attr("transpose_b", tb).Input(a).Input(b);
  const absl::Status status = op.Run();
  EXPECT_EQ(status, absl::OkStatus());
  return status.ok() ? op.output(0) : Tensor();
}

TEST(MatMulTest, AgreesWithNaiveProducts) {
  const int64_t shapes[][3] = {{1, 1, 1},   {1, 7, 33},   {2, 300, 70}, {3, 5, 2},   {17, 1, 19},
                               {31, 40, 1}, {6, 16, 16},  {13, 257, 5}, {1, 600, 1}, {2, 9, 1},
                               {50, 3, 65}, {7, 130, 31}, {90, 2, 1},   {70, 90, 85}};
  uint32_t seed = 1;
  for (ElementType type : kTypes) {
    for (const auto& [m, k, n] : shapes) {
      for (int t = 0; t < 4; ++t) {
        const bool ta = t & 1, tb = t & 2;
        SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", m, "x", k, "x", n, " ", ta, tb));
        const Tensor a = RandomMatrix(type, ta ? Shape({k, m}) : Shape({m, k}), seed++);
        const Tensor b = RandomMatrix(type, tb ? Shape({n, k}) : Shape({k, n}), seed++);
        const Tensor c = RunMatMul(a, b, ta, tb, 1);
        ASSERT_EQ(c.shape(), Shape({m, n}));
        ExpectProduct(c, 0, Naive(a, 0, b, 0, m, k, n, ta, tb, false), k);
      }
    }
  }
}

TEST(MatMulTest, LargeFloatingProducts) {
  // The second row: few columns (cut by rows), few rows and columns (cut by the sum).
  const int64_t shapes[][3] = {{400, 512, 65},  {100, 784, 100}, {391, 20, 600}, {1025, 100, 24},
                               {100, 1001, 30}, {9, 20011, 11},  {1, 200003, 5}, {31, 9000, 1}};
  uint32_t seed = 1;
  for (ElementType type :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kHalf, ElementType::kBfloat16}) {
    for (const auto& [m, k, n] : shapes) {
      for (int t = 0; t < 4; ++t) {
        const bool ta = t & 1, tb = t & 2;
        SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", m, "x", k, "x", n, " ", ta, tb));
        const Tensor a = RandomMatrix(type, ta ? Shape({k, m}) : Shape({m, k}), seed++);
        const Tensor b = RandomMatrix(type, tb ? Shape({n, k}) : Shape({k, n}), seed++);
        const Tensor one = RunMatMul(a, b, ta, tb, 1);
        ExpectProduct(one, 0, Naive(a, 0, b, 0, m, k, n, ta, tb, false), k);
        for (int threads : {2, 5}) ExpectEqual(RunMatMul(a, b, ta, tb, threads), one);
      }
    }
  }
}

// Beside products of floats; with AMX these are cut by rows, by columns and by both.
TEST(MatMulTest, LargeProductsOfBfloat16) {
  const int64_t shapes[][3] = {{330, 1030, 400}, {40, 2000, 2003}, {65, 3001, 1500}};
  uint32_t seed = 1;
  for (const auto& [m, k, n] : shapes) {
    for (int t = 0; t < 4; ++t) {
      const bool ta = t & 1, tb = t & 2;
      SCOPED_TRACE(absl::StrCat(m, "x", k, "x", n, " ", ta, tb));
      const Tensor a =
          RandomMatrix(ElementType::kBfloat16, ta ? Shape({k, m}) : Shape({m, k}), seed++);
      const Tensor b =
          RandomMatrix(ElementType::kBfloat16, tb ? Shape({n, k}) : Shape({k, n}), seed++);
      const auto wide = [](const Tensor& x) {
        Tensor y = Tensor::Uninitialized(ElementType::kFloat, x.shape());
        for (int64_t i = 0; i < x.num_elements(); ++i) {
          y.mutable_data<float>()[i] = x.unchecked_data<bfloat16>()[i];
        }
        return y;
      };
      const Tensor got = RunMatMul(a, b, ta, tb, 1);
      const Tensor want = RunMatMul(wide(a), wide(b), ta, tb, 1);
      const double scale = std::sqrt(static_cast<double>(k));
      for (int64_t i = 0; i < got.num_elements(); ++i) {
        const float x = got.unchecked_data<bfloat16>()[i], y = want.unchecked_data<float>()[i];
        ASSERT_LE(std::abs(x - y), 5e-3 * (std::abs(y) + scale)) << i;
      }
      for (int threads : {2, 5}) ExpectEqual(RunMatMul(a, b, ta, tb, threads), got);
    }
  }
}

// However a product is cut into tiles, every element has the same bits, with every instruction set.
template <typename T>
void TilesAgree(void (*tile)(const GemmProblem<T>&, int64_t, int64_t, int64_t, int64_t, T*)) {
  std::vector<T> scratch(kGemmScratchBytes / sizeof(T) + 64);
  void* begin = scratch.data();
  size_t space = scratch.size() * sizeof(T);
  T* aligned = static_cast<T*>(std::align(64, kGemmScratchBytes, begin, space));
  const int64_t shapes[][3] = {{1, 500, 200}, {2, 70, 77}, {23, 600, 133}, {64, 512, 96}};
  for (const auto& [m, k, n] : shapes) {
    for (int t = 0; t < 4; ++t) {
      const bool ta = t & 1, tb = t & 2;
      const Tensor a = RandomMatrix(kElementType<T>, Shape({m, k}), 5);
      const Tensor b = RandomMatrix(kElementType<T>, Shape({k, n}), 6);
      std::vector<T> whole(m * n), pieces(m * n);
      GemmProblem<T> p{.m = m,
                       .n = n,
                       .k = k,
                       .a = a.unchecked_data<T>(),
                       .a_row = ta ? 1 : k,
                       .a_col = ta ? m : 1,
                       .b = b.unchecked_data<T>(),
                       .b_row = tb ? 1 : n,
                       .b_col = tb ? k : 1,
                       .c = whole.data(),
                       .ldc = n};
      tile(p, 0, m, 0, n, aligned);
      Tensor got = Tensor::FromValues<T>(whole, Shape({m, n})).value();
      ExpectProduct(got, 0, Naive(a, 0, b, 0, m, k, n, ta, tb, false), k);
      p.c = pieces.data();
      std::mt19937 random(7);
      for (int64_t r = 0; r < m;) {
        const int64_t r1 = std::min<int64_t>(m, r + 1 + random() % 20);
        for (int64_t c = 0; c < n;) {
          const int64_t c1 = std::min<int64_t>(n, c + 32 * (1 + random() % 3));
          tile(p, r, r1, c, c1, aligned);
          c = c1;
        }
        r = r1;
      }
      EXPECT_EQ(whole, pieces) << m << "x" << k << "x" << n << " " << ta << tb;
    }
  }
}

TEST(GemmTest, ElementsDoNotDependOnTiles) {
  TilesAgree<float>(Gemm<float>().tile);
  TilesAgree<double>(Gemm<double>().tile);
  TilesAgree<uint16_t>(Gemm<uint16_t>().tile);
  TilesAgree<uint32_t>(Gemm<uint32_t>().tile);
  TilesAgree<uint64_t>(Gemm<uint64_t>().tile);
  TilesAgree<float>(v2::GemmTile);
  TilesAgree<double>(v2::GemmTile);
  TilesAgree<uint16_t>(v2::GemmTile);
  TilesAgree<uint32_t>(v2::GemmTile);
  TilesAgree<uint64_t>(v2::GemmTile);
#if defined(__x86_64__)
  if (CanRun(InstructionSet::kV3)) {
    TilesAgree<float>(v3::GemmTile);
    TilesAgree<double>(v3::GemmTile);
    TilesAgree<uint16_t>(v3::GemmTile);
    TilesAgree<uint32_t>(v3::GemmTile);
    TilesAgree<uint64_t>(v3::GemmTile);
  }
  if (CanRun(InstructionSet::kV4)) {
    TilesAgree<float>(v4::GemmTile);
    TilesAgree<double>(v4::GemmTile);
    TilesAgree<uint16_t>(v4::GemmTile);
    TilesAgree<uint32_t>(v4::GemmTile);
    TilesAgree<uint64_t>(v4::GemmTile);
  }
#endif
}

TEST(MatMulTest, EmptyMatrices) {
  for (ElementType type : kTypes) {
    const Tensor c = RunMatMul(Tensor::Uninitialized(type, Shape({2, 0})),
                               Tensor::Uninitialized(type, Shape({0, 3})), false, false, 1);
    ASSERT_EQ(c.shape(), Shape({2, 3}));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(ComplexAt(c, i), Complex(0));
    EXPECT_EQ(RunMatMul(Tensor::Uninitialized(type, Shape({0, 4})),
                        Tensor::Uninitialized(type, Shape({4, 3})), false, false, 1)
                  .shape(),
              Shape({0, 3}));
  }
}

TEST(MatMulTest, RefusesShapesThatDoNotFit) {
  const auto run = [](const char* name, const Shape& a, const Shape& b) {
    OpTest op(name);
    op.Input(RandomTensor(ElementType::kFloat, a, 0, 1))
        .Input(RandomTensor(ElementType::kFloat, b, 0, 1));
    return op.Run().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(run("MatMul", Shape({2, 3}), Shape({4, 2})), invalid);
  EXPECT_EQ(run("MatMul", Shape({2, 3, 1}), Shape({3, 2})), invalid);
  EXPECT_EQ(run("MatMul", Shape({3}), Shape({3, 2})), invalid);
  EXPECT_EQ(run("BatchMatMul", Shape({3}), Shape({3, 2})), invalid);
  EXPECT_EQ(run("BatchMatMul", Shape({1, 2, 3}), Shape({2, 3, 2})), invalid);
  EXPECT_EQ(run("BatchMatMul", Shape({2, 3}), Shape({1, 3, 2})), invalid);
  EXPECT_EQ(run("BatchMatMulV2", Shape({3, 2, 3}), Shape({2, 3, 2})), invalid);
  EXPECT_EQ(run("BatchMatMulV2", Shape({2, 2, 3}), Shape({2, 4, 2})), invalid);
}

TEST(BatchMatMulTest, BroadcastsAndTakesAdjoints) {
  const struct {
    Shape x_batch, y_batch, batch;
  } cases[] = {{Shape(), Shape(), Shape()},
               {Shape({3}), Shape({3}), Shape({3})},
               {Shape({2, 1}), Shape({3}), Shape({2, 3})},
               {Shape({1}), Shape({4, 2, 1}), Shape({4, 2, 1})},
               {Shape({2, 0}), Shape({1, 1}), Shape({2, 0})}};
  const int64_t m = 3, k = 4, n = 5;
  uint32_t seed = 1;
  for (ElementType type : kTypes) {
    for (const auto& c : cases) {
      for (int t = 0; t < 4; ++t) {
        const bool ax = t & 1, ay = t & 2;
        SCOPED_TRACE(absl::StrCat(ElementTypeName(type), " ", c.x_batch.ToString(),
                                  c.y_batch.ToString(), ax, ay));
        Shape xs = c.x_batch, ys = c.y_batch, want = c.batch;
        for (int64_t d : {ax ? k : m, ax ? m : k}) xs.AddDim(d);
        for (int64_t d : {ay ? n : k, ay ? k : n}) ys.AddDim(d);
        for (int64_t d : {m, n}) want.AddDim(d);
        const Tensor x = RandomMatrix(type, xs, seed++), y = RandomMatrix(type, ys, seed++);
        OpTest op("BatchMatMulV2", 2);
        op.Attr("adj_x", ax).Attr("adj_y", ay).Input(x).Input(y);
        ASSERT_EQ(op.Run(), absl::OkStatus());
        ASSERT_EQ(op.output(0).shape(), want);
        // Index of a result in an operand: the operand's sizes aligned to the right, 1s repeated.
        const auto index = [&](const Shape& operand, int64_t i) {
          int64_t index = 0, stride = 1;
          for (int d = c.batch.rank() - 1, o = operand.rank() - 1; d >= 0; --d, --o) {
            const int64_t coordinate = i % c.batch.dim(d);
            i /= c.batch.dim(d);
            if (o < 0) continue;
            if (operand.dim(o) != 1) index += coordinate * stride;
            stride *= operand.dim(o);
          }
          return index;
        };
        for (int64_t i = 0; i < c.batch.num_elements(); ++i) {
          ExpectProduct(op.output(0), i * m * n,
                        Naive(x, index(c.x_batch, i) * m * k, y, index(c.y_batch, i) * k * n, m, k,
                              n, ax, ay, true),
                        k);
        }
      }
    }
  }
}

}  // namespace
}  // namespace troupe::testing
