// A graph that asks an actor of the application.

#include <troupe/api/actors.h>
#include <troupe/troupe.h>

#include <iostream>

int main() {
  using namespace troupe;
  auto twice = FunctionActor("twice", [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{Tensor::Scalar(2 * *in[0].scalar<float>())};
  });
  if (!twice.ok()) {
    std::cerr << twice.status() << "\n";
    return 1;
  }
  Scope s = Scope::NewRoot();
  Output y = ops::AskActor(s, {Const(s, 21.0f)}, "twice", {ElementType::kFloat})[0];
  auto session = Session::Create(s.graph());
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  const absl::StatusOr<std::vector<Tensor>> values = (*session)->Run({y});
  if (!values.ok()) {
    std::cerr << values.status() << "\n";
    return 1;
  }
  std::cout << "the actor says " << *(*values)[0].scalar<float>() << "\n";
}
