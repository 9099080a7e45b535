// A project of its own that builds and runs a graph with an installed Troupe, an op of its own and
// a branch included.

#include <troupe/troupe.h>

#include <iostream>
#include <memory>

int main() {
  using namespace troupe;

  if (const absl::Status status = LoadLibrary(TRIPLE_LIBRARY); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  Scope scope = Scope::NewRoot();
  Output x = ops::Placeholder(scope, ElementType::kFloat);
  // Twice x, by three times x less x.
  Node* triple = scope.AddNode("Triple", [&](ScopedSpec& spec) { spec.Input(x); });
  Output y = ops::Sub(scope, Output(triple), x);
  Output sum = Cond(
      scope, true, [&](const Scope& s) { return ops::Sum(s, y, 0); },
      [](const Scope& s) { return Const(s, 0.0f); });

  absl::StatusOr<std::unique_ptr<Session>> session = Session::Create(scope.graph());
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  auto values = (*session)->Run({{x, Tensor::Vector<float>({1, 20})}}, {sum});
  if (!values.ok()) {
    std::cerr << values.status() << "\n";
    return 1;
  }
  const absl::StatusOr<float> result = ScalarValue<float>(values->front());
  std::cout << "the answer is " << *result << "\n";
  return *result == 42 ? 0 : 1;
}
