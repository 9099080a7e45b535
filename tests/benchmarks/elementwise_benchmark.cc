// Element-wise kernels, reductions and softmax, without an executor around them.
//
//     build/release/bin/elementwise_benchmark --benchmark_filter=Neg
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "devices/tensor.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

// One float node with its kernel and slots.
class Node {
 public:
  Node(const char* op, std::vector<Tensor> inputs)
      : slots_(inputs.size()), indices_(inputs.size()) {
    def_.set_name("node");
    def_.set_op(op);
    const OpRegistration* registration = OpRegistry::Global()->LookUp(op).value();
    std::vector<ElementType> input_types;
    for (size_t i = 0; i < inputs.size(); ++i) {
      input_types.push_back(inputs[i].type());
      slots_[i].tensor = std::move(inputs[i]);
      indices_[i] = static_cast<int32_t>(i);
    }
    for (const auto& attr : registration->def->attr()) {
      if (attr.has_default_value()) (*def_.mutable_attr())[attr.name()] = attr.default_value();
    }
    (*def_.mutable_attr())["T"].set_type(DT_FLOAT);
    const std::vector<ElementType> output_types(1, ElementType::kFloat);
    KernelConstruction construction(&def_, registration->def.get(), nullptr, input_types,
                                    output_types);
    kernel_ = KernelRegistry::Global()->Create(construction, "CPU").value();
    step_.allocator = HostAllocator();
  }

  void Run() {
    KernelContext ctx(&step_, slots_.data(), indices_.data(), static_cast<int>(slots_.size()),
                      &output_, 1, 0);
    benchmark::DoNotOptimize(kernel_->Compute(ctx).ok());
  }

 private:
  NodeDef def_;
  std::unique_ptr<Kernel> kernel_;
  StepContext step_;
  std::vector<Slot> slots_;
  std::vector<int32_t> indices_;
  Slot output_;
};

Tensor Filled(const Shape& shape) {
  Tensor t = Tensor::Uninitialized(ElementType::kFloat, shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    t.mutable_data<float>()[i] = static_cast<float>(i % 37) * 0.1f - 1.5f;
  }
  return t;
}

void Measure(benchmark::State& state, Node node, int64_t elements) {
  for (auto _ : state) node.Run();
  state.SetItemsProcessed(state.iterations() * elements);
}

void Unary(benchmark::State& state, const char* op) {
  const int64_t n = state.range(0);
  Measure(state, Node(op, {Filled(n == 1 ? Shape() : Shape({n}))}), n);
}

void Binary(benchmark::State& state, const char* op) {
  const int64_t n = state.range(0);
  const Shape shape = n == 1 ? Shape() : Shape({n});
  Measure(state, Node(op, {Filled(shape), Filled(shape)}), n);
}

void RowBroadcast(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1);
  Measure(state, Node("AddV2", {Filled(Shape({rows, cols})), Filled(Shape({cols}))}), rows * cols);
}

void Sum(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1);
  Measure(state,
          Node("Sum",
               {Filled(Shape({rows, cols})), Tensor::Scalar(static_cast<int32_t>(state.range(2)))}),
          rows * cols);
}

void Softmax(benchmark::State& state) {
  const int64_t rows = state.range(0), cols = state.range(1);
  Measure(state, Node("Softmax", {Filled(Shape({rows, cols}))}), rows * cols);
}

#define TROUPE_UNARY(OP) BENCHMARK_CAPTURE(Unary, OP, #OP)->Arg(1)->Arg(1000)->Arg(1000000)
TROUPE_UNARY(Neg);
TROUPE_UNARY(Relu);
TROUPE_UNARY(Exp);
TROUPE_UNARY(Log);
TROUPE_UNARY(Tanh);
TROUPE_UNARY(Sigmoid);
TROUPE_UNARY(Sqrt);
#define TROUPE_BINARY(OP) BENCHMARK_CAPTURE(Binary, OP, #OP)->Arg(1)->Arg(1000)->Arg(1000000)
TROUPE_BINARY(Minimum);
TROUPE_BINARY(AddV2);
TROUPE_BINARY(ReluGrad);
TROUPE_BINARY(Pow);
BENCHMARK(RowBroadcast)->Args({100, 200})->Args({78400, 6})->Args({1000, 1000});
BENCHMARK(Sum)
    ->Args({1, 100, 1})
    ->Args({1000, 1000, 0})
    ->Args({1000, 1000, 1})
    ->Args({78400, 6, 0});
BENCHMARK(Softmax)->Args({100, 10})->Args({1024, 1024});

}  // namespace
}  // namespace troupe

BENCHMARK_MAIN();
