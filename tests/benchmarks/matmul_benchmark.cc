// MatMul against oneDNN's matmul with a cached primitive, on one thread: run matmul_benchmark;
// `speed` is oneDNN's time divided by ours. Arguments: m, k, n, form (0: a b, 1: a b', 2: a' b).
#include <omp.h>

#include <array>
#include <unordered_map>

#include "benchmark/benchmark.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/benchmarks/compare.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

void MatMul(benchmark::State& state) {
  omp_set_num_threads(1);
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const bool ta = state.range(3) == 2, tb = state.range(3) == 1;
  Tensor a = RandomTensor(ElementType::kFloat, ta ? Shape({k, m}) : Shape({m, k}), -1, 1, 1);
  Tensor b = RandomTensor(ElementType::kFloat, tb ? Shape({n, k}) : Shape({k, n}), -1, 1, 2);
  Tensor c = Tensor::Uninitialized(ElementType::kFloat, Shape({m, n}));
  OpTest op("MatMul");
  op.Attr("transpose_a", ta).Attr("transpose_b", tb).Input(a).Input(b);
  if (!op.Run().ok()) return state.SkipWithError("MatMul failed");

  using dnnl::memory;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto matrix = [](int64_t rows, int64_t columns, bool transposed) {
    return memory::desc({rows, columns}, memory::data_type::f32,
                        transposed ? memory::format_tag::ba : memory::format_tag::ab);
  };
  const memory::desc a_desc = matrix(m, k, ta), b_desc = matrix(k, n, tb),
                     c_desc = matrix(m, n, false);
  const dnnl::matmul product(dnnl::matmul::primitive_desc({a_desc, b_desc, c_desc}, engine));
  const std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SRC, memory(a_desc, engine, a.mutable_raw_data())},
      {DNNL_ARG_WEIGHTS, memory(b_desc, engine, b.mutable_raw_data())},
      {DNNL_ARG_DST, memory(c_desc, engine, c.mutable_raw_data())}};
  Compare(
      state, 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n),
      [&] { benchmark::DoNotOptimize(op.RunRepeatedly(1)); },
      [&] { product.execute(stream, arguments); });
}

void Sizes(benchmark::internal::Benchmark* b) {
  for (int form = 0; form < 3; ++form) {
    for (const int64_t side : {16, 32, 64, 128, 256, 512, 1024, 2048}) {
      b->Args({side, side, side, form});
    }
    // Batches times layers, vectors, and products with one long side.
    for (const auto& s : {std::array<int64_t, 3>{100, 784, 200},
                          {128, 1024, 1024},
                          {100, 60, 30},
                          {8, 1024, 1024},
                          {1, 1024, 1024},
                          {1024, 1024, 1},
                          {10000, 64, 64},
                          {64, 10000, 64},
                          {64, 64, 10000}}) {
      b->Args({s[0], s[1], s[2], form});
    }
  }
  b->Iterations(1)->Unit(benchmark::kMillisecond);
}
BENCHMARK(MatMul)->Apply(Sizes);

}  // namespace
}  // namespace troupe::testing

BENCHMARK_MAIN();
