// What functions promise about time and memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "api/session.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

/// While i < n: i + 1, for the lowered and the direct form; n below 0 never ends.
std::shared_ptr<Graph> LoopGraph(bool lowered) {
  std::string text = R"pb(
    library {
      function {
        signature {
          name: "Go"
          input_arg { name: "i" type: DT_INT32 }
          input_arg { name: "n" type: DT_INT32 }
          output_arg { name: "r" type: DT_BOOL }
        }
        node_def {
          name: "ne"
          op: "NotEqual"
          input: "i"
          input: "n"
          attr {
            key: "T"
            value { type: DT_INT32 }
          }
        }
        ret { key: "r" value: "ne:z:0" }
      }
      function {
        signature {
          name: "Step"
          input_arg { name: "i" type: DT_INT32 }
          input_arg { name: "n" type: DT_INT32 }
          output_arg { name: "r" type: DT_INT32 }
          output_arg { name: "s" type: DT_INT32 }
        }
        node_def {
          name: "mod"
          op: "Const"
          attr {
            key: "dtype"
            value { type: DT_INT32 }
          }
          attr {
            key: "value"
            value {
              tensor {
                dtype: DT_INT32
                tensor_shape {}
                int_val: 2000000000
              }
            }
          }
        }
        node_def {
          name: "one"
          op: "Const"
          attr {
            key: "dtype"
            value { type: DT_INT32 }
          }
          attr {
            key: "value"
            value {
              tensor {
                dtype: DT_INT32
                tensor_shape {}
                int_val: 1
              }
            }
          }
        }
        node_def {
          name: "a"
          op: "Add"
          input: "i"
          input: "one:output:0"
          attr {
            key: "T"
            value { type: DT_INT32 }
          }
        }
        node_def {
          name: "m"
          op: "FloorMod"
          input: "a:z:0"
          input: "mod:output:0"
          attr {
            key: "T"
            value { type: DT_INT32 }
          }
        }
        ret { key: "r" value: "m:z:0" }
        ret { key: "s" value: "n" }
      }
    }
    node {
      name: "n"
      op: "Placeholder"
      attr {
        key: "dtype"
        value { type: DT_INT32 }
      }
    }
    node {
      name: "zero"
      op: "Const"
      attr {
        key: "dtype"
        value { type: DT_INT32 }
      }
      attr {
        key: "value"
        value {
          tensor {
            dtype: DT_INT32
            tensor_shape {}
            int_val: 0
          }
        }
      }
    }
    node {
      name: "w"
      op: "StatelessWhile"
      input: "zero"
      input: "n"
      attr {
        key: "T"
        value { list { type: DT_INT32 type: DT_INT32 } }
      }
      attr {
        key: "cond"
        value { func { name: "Go" } }
      }
      attr {
        key: "body"
        value { func { name: "Step" } }
      }
    }
  )pb";
  GraphDef def;
  EXPECT_TRUE(ParseGraphDef(text, &def).ok());
  for (NodeDef& node : *def.mutable_node()) {
    if (lowered && node.name() == "w") {
      (*node.mutable_attr())["_lower_using_switch_merge"].set_b(true);
    }
  }
  auto graph = std::make_shared<Graph>();
  const absl::Status status = ImportGraphDef(def, {}, graph.get());
  EXPECT_TRUE(status.ok()) << status;
  return graph;
}

int64_t ResidentBytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class LoopTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(DirectAndLowered, LoopTest, testing::Bool());

TEST_P(LoopTest, AnEndlessLoopObeysTheDeadlineAndTheClosingOfItsSession) {
  for (int threads : {1, 2}) {
    SessionOptions options;
    options.threads = threads;
    auto session = *Session::Create(LoopGraph(GetParam()), options);
    std::vector<Tensor> values;
    RunOptions run;
    run.timeout = absl::Milliseconds(100);
    auto start = std::chrono::steady_clock::now();
    absl::Status status =
        session->Run(run, {{"n", Tensor::Scalar<int32_t>(-1)}}, {"w"}, {}, &values);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200));

    std::thread closer([&] {
      // The loop below is to be running; a session does not tell.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      start = std::chrono::steady_clock::now();
      EXPECT_TRUE(session->Close().ok());
    });
    status = session->Run({{"n", Tensor::Scalar<int32_t>(-1)}}, {"w"}, {}, &values);
    closer.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(100));
  }
}

TEST_P(LoopTest, MemoryIsFlatOverAMillionIterations) {
  auto session = *Session::Create(LoopGraph(GetParam()));
  std::vector<Tensor> values;
  auto run = [&](int32_t n) {
    const absl::Status status = session->Run({{"n", Tensor::Scalar(n)}}, {"w"}, {}, &values);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(values[0].scalar<int32_t>(), n);
  };
  run(10000);
  const int64_t before = ResidentBytes();
  run(1000000);
  EXPECT_LT(ResidentBytes() - before, 1 << 20);
}

}  // namespace
}  // namespace troupe
