#include "tests/benchmarks/gpu_graphs.h"

#include <gtest/gtest.h>

namespace troupe::benchmarks {
namespace {

TEST(GpuGraphs, LstmsByLoopAndByBlockAreTheSame) {
  const Scope s = Scope::NewRoot();
  const Lstm lstm(s, 5, 3, 4);
  const Output x = Random(s, {5, 3, 4});
  std::vector<Output> fetches;
  for (const Output& y : {lstm.Loop(s, x), lstm.Block(s, x)}) {
    fetches.push_back(ReduceMean(s, ops::Square(s, y)));
    for (const Output& gradient : Gradients(s, {fetches.back()}, lstm.parameters())) {
      fetches.push_back(gradient);
    }
  }
  Node* const init = GlobalVariablesInitializer(s);
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = Session::Create(s.graph());
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE((*session)->RunTargets({init}).ok());
  const auto values = (*session)->Run(fetches);
  ASSERT_TRUE(values.ok()) << values.status();
  const size_t half = values->size() / 2;
  for (size_t i = 0; i < half; ++i) {
    const Tensor &loop = (*values)[i], &block = (*values)[half + i];
    ASSERT_EQ(loop.shape(), block.shape());
    for (int64_t k = 0; k < loop.num_elements(); ++k) {
      EXPECT_NEAR(loop.unchecked_data<float>()[k], block.unchecked_data<float>()[k], 1e-7);
      EXPECT_TRUE(i > 0 || loop.unchecked_data<float>()[k] > 0);
    }
  }
}

}  // namespace
}  // namespace troupe::benchmarks
