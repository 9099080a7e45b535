#include "tests/api/program/run_python.h"

#include <cstdlib>

#include "api/program/child_process.h"

namespace troupe {

std::string RunPython(std::vector<std::string> arguments) {
  const char* const python = std::getenv("TROUPE_PEERS_PYTHON");
  ChildProcess::Options options;
  options.arguments = {"/usr/bin/env", python != nullptr ? python : "python3"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.output = options.errors = true;
  auto process = ChildProcess::Start(options);
  return process.ok() ? process->Rest() : "";
}

bool PythonHasTensorFlow() {
  return RunPython({"-c",
                    "import importlib.util as u; print('yes' if u.find_spec('tensorflow') else "
                    "'no')"}) == "yes\n";
}

}  // namespace troupe
