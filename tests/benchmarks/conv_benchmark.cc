// Conv2D and its gradients against oneDNN with cached primitives, on one thread: run
// conv_benchmark; `speed` is oneDNN's time divided by ours. oneDNN gets NHWC images and the
// filter's layout of its choice; changes of layout are not counted. Arguments: batch, size, depth,
// output depth, window, stride.
#include <omp.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "benchmark/benchmark.h"
#include "oneapi/dnnl/dnnl.hpp"
#include "tests/benchmarks/compare.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using dnnl::memory;

enum Which { kForward, kInput, kFilter };

void Convolution(benchmark::State& state, Which which) {
  omp_set_num_threads(1);
  const int64_t n = state.range(0), size = state.range(1), in = state.range(2),
                out = state.range(3);
  const int64_t window = state.range(4), stride = state.range(5);
  const int64_t out_size = (size + stride - 1) / stride;
  const int64_t pad = std::max<int64_t>(0, (out_size - 1) * stride + window - size);
  Tensor x = RandomTensor(ElementType::kFloat, Shape({n, size, size, in}), -1, 1, 1);
  Tensor f = RandomTensor(ElementType::kFloat, Shape({window, window, in, out}), -1, 1, 2);
  Tensor y = RandomTensor(ElementType::kFloat, Shape({n, out_size, out_size, out}), -1, 1, 3);
  const auto sizes = [](const Tensor& t) {
    return Tensor::Vector<int32_t>({static_cast<int32_t>(t.dim(0)), static_cast<int32_t>(t.dim(1)),
                                    static_cast<int32_t>(t.dim(2)),
                                    static_cast<int32_t>(t.dim(3))});
  };
  OpTest op(which == kForward ? "Conv2D"
            : which == kInput ? "Conv2DBackpropInput"
                              : "Conv2DBackpropFilter");
  op.Attr("strides", {1, stride, stride, 1}).Attr("padding", "SAME");
  if (which == kForward) op.Input(x).Input(f);
  if (which == kInput) op.Input(sizes(x)).Input(f).Input(y);
  if (which == kFilter) op.Input(x).Input(sizes(f)).Input(y);
  if (!op.Run().ok()) return state.SkipWithError("the kernel failed");

  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto f32 = memory::data_type::f32;
  const auto nhwc = memory::format_tag::nhwc;
  const memory::desc x_desc({n, in, size, size}, f32, nhwc);
  const memory::desc y_desc({n, out, out_size, out_size}, f32, nhwc);
  const memory::desc any({out, in, window, window}, f32, memory::format_tag::any);
  const memory::dims strides = {stride, stride}, before = {pad / 2, pad / 2},
                     after = {pad - pad / 2, pad - pad / 2};
  const auto direct = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, direct, x_desc, any, y_desc, strides, before, after},
      engine);
  memory x_memory(x_desc, engine), y_memory(y_desc, engine), f_memory;
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  if (which == kForward) {
    f_memory = memory(forward.weights_desc(), engine);
    primitive = dnnl::convolution_forward(forward);
    arguments = {{DNNL_ARG_SRC, x_memory}, {DNNL_ARG_WEIGHTS, f_memory}, {DNNL_ARG_DST, y_memory}};
  } else if (which == kInput) {
    const dnnl::convolution_backward_data::primitive_desc backward(
        {direct, x_desc, any, y_desc, strides, before, after}, engine, forward);
    f_memory = memory(backward.weights_desc(), engine);
    primitive = dnnl::convolution_backward_data(backward);
    arguments = {
        {DNNL_ARG_DIFF_SRC, x_memory}, {DNNL_ARG_WEIGHTS, f_memory}, {DNNL_ARG_DIFF_DST, y_memory}};
  } else {
    const dnnl::convolution_backward_weights::primitive_desc backward(
        {direct, x_desc, any, y_desc, strides, before, after}, engine, forward);
    f_memory = memory(backward.diff_weights_desc(), engine);
    primitive = dnnl::convolution_backward_weights(backward);
    arguments = {
        {DNNL_ARG_SRC, x_memory}, {DNNL_ARG_DIFF_WEIGHTS, f_memory}, {DNNL_ARG_DIFF_DST, y_memory}};
  }
  // Denormal garbage would slow oneDNN down.
  for (auto& [id, m] : arguments) {
    float* data = static_cast<float*>(m.get_data_handle());
    std::fill(data, data + m.get_desc().get_size() / sizeof(float), 0.5f);
  }
  Compare(
      state,
      2.0 * static_cast<double>(n * out_size * out_size * in) *
          static_cast<double>(out * window * window),
      [&] { benchmark::DoNotOptimize(op.RunRepeatedly(1)); },
      [&] { primitive.execute(stream, arguments); });
}

void Sizes(benchmark::internal::Benchmark* b) {
  for (const auto& s : {std::array<int64_t, 6>{100, 28, 1, 6, 6, 1},
                        {100, 28, 6, 12, 5, 2},
                        {100, 14, 12, 24, 4, 2},
                        {32, 32, 3, 16, 3, 1},
                        {32, 32, 8, 16, 3, 1},
                        {32, 32, 12, 12, 3, 1},
                        {32, 32, 16, 16, 3, 1},
                        {32, 32, 16, 32, 3, 2},
                        {32, 28, 6, 12, 5, 1},
                        {32, 28, 10, 20, 5, 2},
                        {32, 28, 9, 9, 3, 2},
                        {32, 16, 32, 32, 3, 1},
                        {64, 14, 16, 8, 1, 1},
                        {8, 56, 64, 64, 3, 1},
                        {8, 14, 256, 256, 3, 1},
                        {1, 56, 64, 64, 3, 1}}) {
    b->Args({s[0], s[1], s[2], s[3], s[4], s[5]});
  }
  b->Iterations(1)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(Convolution, forward, kForward)->Apply(Sizes);
BENCHMARK_CAPTURE(Convolution, input, kInput)->Apply(Sizes);
BENCHMARK_CAPTURE(Convolution, filter, kFilter)->Apply(Sizes);

}  // namespace
}  // namespace troupe::testing

BENCHMARK_MAIN();
