// Raw oneDNN on one thread, timed as `troupe bench` times Troupe: a peer of scripts/bench-peers.
//
//   onednn_raw matmul M K N CALLS INPUTS --seconds S
//   onednn_raw forward|data|filter BATCH SIDE DEPTH SIZE FILTERS STRIDE CALLS INPUTS --seconds S
//
// A run executes one primitive CALLS times, on INPUTS different inputs in turn. Layouts are plain:
// ab for matrices, NHWC for pictures, HWIO for filters (of the convolution, its gradient to the
// input or to the filter; SAME padding, square pictures). A filter may be brought into the layout
// that oneDNN likes best if that happens anew in each call: both ways are timed, and the faster one
// is reported.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "oneapi/dnnl/dnnl.hpp"

namespace {

using dnnl::memory;
using tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

class Raw {
 public:
  Raw() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

  memory Make(const memory::desc& layout) {
    memory made(layout, engine_);
    float* data = static_cast<float*>(made.get_data_handle());
    for (size_t i = 0; i < layout.get_size() / sizeof(float); ++i) {
      data[i] = static_cast<float>((i * 2654435761u >> 16) % 1000) / 500 - 1;
    }
    return made;
  }

  /// One way of running a product.
  std::function<void()> MatMul(int64_t m, int64_t k, int64_t n, int calls, int inputs) {
    const memory::desc a({m, k}, kFloat, tag::ab), b({k, n}, kFloat, tag::ab),
        c({m, n}, kFloat, tag::ab);
    const dnnl::matmul product(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), engine_));
    std::vector<memory> as, bs;
    for (int i = 0; i < inputs; ++i) {
      as.push_back(Make(a));
      bs.push_back(Make(b));
    }
    return [=, this, result = Make(c)]() mutable {
      for (int i = 0; i < calls; ++i) {
        product.execute(stream_, {{DNNL_ARG_SRC, as[i % inputs]},
                                  {DNNL_ARG_WEIGHTS, bs[i % inputs]},
                                  {DNNL_ARG_DST, result}});
      }
    };
  }

  struct Convolution {
    int64_t batch, side, depth, size, filters, stride;
  };

  /// A convolution (or a gradient of it) with the filter as it is, or brought into oneDNN's layout
  /// in each call.
  std::function<void()> Conv(const std::string& kind, const Convolution& s, bool reorders,
                             int calls, int inputs) {
    const int64_t out = (s.side + s.stride - 1) / s.stride;
    const int64_t padding = std::max<int64_t>(0, (out - 1) * s.stride + s.size - s.side);
    const memory::dims strides = {s.stride, s.stride}, before = {padding / 2, padding / 2},
                       after = {padding - padding / 2, padding - padding / 2};
    const memory::desc x({s.batch, s.depth, s.side, s.side}, kFloat, tag::nhwc);
    const memory::desc y({s.batch, s.filters, out, out}, kFloat, tag::nhwc);
    const memory::dims filter = {s.filters, s.depth, s.size, s.size};
    const memory::desc plain(filter, kFloat, tag::hwio);
    const memory::desc asked = reorders ? memory::desc(filter, kFloat, tag::any) : plain;
    const auto direct = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, direct, x, asked, y, strides, before, after}, engine_);

    dnnl::primitive primitive;
    memory::desc packed, from, to;
    int from_id, to_id, filter_id;
    if (kind == "forward") {
      primitive = dnnl::convolution_forward(forward);
      packed = forward.weights_desc();
      from = x, to = y, from_id = DNNL_ARG_SRC, to_id = DNNL_ARG_DST, filter_id = DNNL_ARG_WEIGHTS;
    } else if (kind == "data") {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {direct, x, asked, y, strides, before, after}, engine_, forward);
      primitive = dnnl::convolution_backward_data(backward);
      packed = backward.weights_desc();
      from = y, to = x, from_id = DNNL_ARG_DIFF_DST, to_id = DNNL_ARG_DIFF_SRC,
      filter_id = DNNL_ARG_WEIGHTS;
    } else {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {direct, x, asked, y, strides, before, after}, engine_, forward);
      primitive = dnnl::convolution_backward_weights(backward);
      packed = backward.diff_weights_desc();
      from = x, to = y, from_id = DNNL_ARG_SRC, to_id = DNNL_ARG_DIFF_DST,
      filter_id = DNNL_ARG_DIFF_WEIGHTS;
    }
    const bool writes_filter = kind == "filter";
    const bool changes = packed != plain;
    dnnl::reorder reorder;
    if (changes) {
      reorder = dnnl::reorder(writes_filter
                                  ? dnnl::reorder::primitive_desc(engine_, packed, engine_, plain)
                                  : dnnl::reorder::primitive_desc(engine_, plain, engine_, packed));
    }
    std::vector<memory> froms, plains, tos;
    for (int i = 0; i < inputs; ++i) {
      froms.push_back(Make(from));
      plains.push_back(Make(plain));
      tos.push_back(i == 0 || writes_filter ? Make(to) : tos[0]);
    }
    memory space = changes ? Make(packed) : memory();
    return [=, this]() mutable {
      for (int i = 0; i < calls; ++i) {
        const int j = i % inputs;
        if (changes && !writes_filter) reorder.execute(stream_, plains[j], space);
        primitive.execute(
            stream_,
            {{from_id, froms[j]}, {to_id, tos[j]}, {filter_id, changes ? space : plains[j]}});
        if (changes && writes_filter) reorder.execute(stream_, space, plains[j]);
      }
    };
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
};

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const std::string kind = argc > 1 ? argv[1] : "";
  const int wanted = kind == "matmul" ? 5 : 8;
  double seconds = 1;
  std::vector<int64_t> n;
  for (int i = 2; i < argc; ++i) {
    if (std::string(argv[i]) == "--seconds" && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
    } else {
      n.push_back(std::atoll(argv[i]));
    }
  }
  if ((kind != "matmul" && kind != "forward" && kind != "data" && kind != "filter") ||
      static_cast<int>(n.size()) != wanted || *std::min_element(n.begin(), n.end()) < 1) {
    std::cerr << "usage: onednn_raw matmul M K N CALLS INPUTS [--seconds S]\n"
                 "       onednn_raw forward|data|filter BATCH SIDE DEPTH SIZE FILTERS STRIDE CALLS "
                 "INPUTS "
                 "[--seconds S]\n";
    return 2;
  }
  omp_set_num_threads(1);
  Raw raw;
  const int calls = static_cast<int>(n[wanted - 2]), inputs = static_cast<int>(n[wanted - 1]);
  std::vector<std::function<void()>> ways;
  if (kind == "matmul") {
    ways.push_back(raw.MatMul(n[0], n[1], n[2], calls, inputs));
  } else {
    for (bool reorders : {false, true}) {
      ways.push_back(raw.Conv(kind, {n[0], n[1], n[2], n[3], n[4], n[5]}, reorders, calls, inputs));
    }
  }
  std::vector<double> best;
  const size_t num_ways = ways.size();
  size_t best_way = 0;
  for (size_t way = 0; way < num_ways; ++way) {
    ways[way]();
    const auto end =
        Clock::now() + std::chrono::duration<double>(seconds / static_cast<double>(num_ways));
    std::vector<double> micros;
    do {
      const Clock::time_point before = Clock::now();
      ways[way]();
      micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
    } while (Clock::now() < end);
    std::sort(micros.begin(), micros.end());
    if (best.empty() || micros[0] < best[0]) {
      best = micros;
      best_way = way;
    }
  }
  std::printf(
      "{\"threads\": 1, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f, "
      "\"reorders\": %s}\n",
      best.size(), best[0], best[best.size() / 2],
      best[std::min(best.size() - 1, best.size() * 99 / 100)], best_way == 1 ? "true" : "false");
  return 0;
}
