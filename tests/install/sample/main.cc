// A project of its own that uses an installed Troupe: it builds, differentiates and runs a graph
// with an op of an extension, imports a graph, reads a trace, and has headers and messages whose
// names are those of Troupe's sources.

#include <troupe/troupe.h>

#include <iostream>
#include <memory>
#include <string>

#include "api/scope.h"
#include "graph/graph.h"
#include "graph/protos/graph.pb.h"

namespace {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << status << "\n";
  std::exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

void Require(bool condition, const char* what) {
  if (condition) return;
  std::cerr << "failed: " << what << "\n";
  std::exit(1);
}

/// Triple is the extension's op; its gradient too.
void BuildAndDifferentiate() {
  using namespace troupe;
  Scope scope = Scope::NewRoot();
  Output x = ops::Placeholder(scope, ElementType::kFloat);
  // Twice x, by three times x less x.
  Node* triple = scope.AddNode("Triple", [&](ScopedSpec& spec) { spec.Input(x); });
  Output y = ops::Sub(scope, Output(triple), x);
  Output sum = Cond(
      scope, true, [&](const Scope& s) { return ops::Sum(s, y, 0); },
      [](const Scope& s) { return Const(s, 0.0f); });
  const std::vector<Output> gradients = Gradients(scope, {y}, {x});
  Check(scope.status());

  const auto session = Check(Session::Create(scope.graph()));
  const auto values =
      Check(session->Run({{x, Tensor::Vector<float>({1, 20})}}, {sum, gradients[0]}));
  Require(Check(ScalarValue<float>(values[0])) == 42, "2 * (1 + 20)");
  Require(Check(Values<float>(values[1]))[1] == 2, "the gradient of 3 x - x");
}

/// From a file, by name, with a trace.
void ImportAndTrace() {
  using namespace troupe;
  GraphDef def;
  Check(ReadGraphDef(MODEL, &def));
  Require(def.node_size() == 3 && def.node(1).op() == "Neg", "the file's nodes");
  const std::shared_ptr<Graph> graph = Check(ReadGraph(MODEL));
  const auto session = Check(Session::Create(graph, {.threads = 1}));
  RunOptions options;
  options.trace = true;
  RunMetadata metadata;
  std::vector<Tensor> values;
  Check(session->Run(options, {{"x", Tensor::Scalar(2.0f)}}, {"y"}, {}, &values, &metadata));
  Require(Check(ScalarValue<float>(values[0])) == -2, "-2");
  bool traced = false;
  for (const auto& device : metadata.step_stats().dev_stats()) {
    for (const auto& node : device.node_stats()) traced = traced || node.node_name() == "y";
  }
  Require(traced, "y in the trace");
}

}  // namespace

int main() {
  Check(troupe::LoadLibrary(TRIPLE_LIBRARY));
  BuildAndDifferentiate();
  ImportAndTrace();
  tensorflow::GraphDef mine;
  mine.add_node()->set_name("n");
  Require(mine.ShortDebugString() == "node { name: \"n\" }", "the sample's own messages");
  Require(OwnGraphHeader() + OwnScopeHeader() == 3, "the sample's own headers");
  std::cout << "the answer is 42\n";
}
