// Loads the extension and uses its op in a graph, and in a gradient: use_cube [LIBRARY].
#include <troupe/troupe.h>

#include <iostream>
#include <string>

#include "api/extension.h"
#include "examples/extension/cube.h"

int main(int argc, char** argv) {
  // Beside this program's folder, where the build puts it, unless it is named.
  std::string program = argv[0];
  const size_t slash = program.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : program.substr(0, slash);
  const std::string library = argc > 1 ? argv[1] : folder + "/../lib/troupe_cube.so";
  if (const absl::Status status = troupe::LoadLibrary(library); !status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }

  troupe::Scope s = troupe::Scope::NewRoot();
  troupe::Output x = troupe::ops::Placeholder(s, troupe::ElementType::kFloat);
  troupe::Output y = Cube(s, x);
  troupe::Output slope = troupe::Gradients(s, {y}, {x})[0];
  if (!s.ok()) {
    std::cerr << s.status() << "\n";
    return 1;
  }
  auto session = troupe::Session::Create(s.graph());
  if (!session.ok()) {
    std::cerr << session.status() << "\n";
    return 1;
  }
  auto values = (*session)->Run({{x, troupe::Tensor::Vector<float>({1, 2, 3})}}, {y, slope});
  if (!values.ok()) {
    std::cerr << values.status() << "\n";
    return 1;
  }
  const auto cubes = (*values)[0].values<float>(), slopes = (*values)[1].values<float>();
  if (!cubes.ok() || !slopes.ok()) {
    std::cerr << cubes.status() << slopes.status() << "\n";
    return 1;
  }
  for (size_t i = 0; i < cubes->size(); ++i) {
    std::cout << "cube " << (*cubes)[i] << ", slope " << (*slopes)[i] << "\n";
  }
  return 0;
}
