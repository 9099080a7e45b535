// A project of its own that builds and runs a graph with an installed Troupe.

#include <troupe/troupe.h>

#include <iostream>
#include <memory>

int main() {
  using namespace troupe;

  Scope scope = Scope::NewRoot();
  Output x = ops::Placeholder(scope, ElementType::kFloat);
  Output y = ops::Mul(scope, x, 2.0f);
  Output sum = ops::Sum(scope, y, 0);

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
