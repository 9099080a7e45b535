/// Programs in Python beside tests: the Python that the environment variable TROUPE_PEERS_PYTHON
/// names, or python3.
#ifndef TROUPE_TESTS_API_PROGRAM_RUN_PYTHON_H_
#define TROUPE_TESTS_API_PROGRAM_RUN_PYTHON_H_

#include <string>
#include <vector>

namespace troupe {

/// What it prints, errors as well; empty if it could not be run.
std::string RunPython(std::vector<std::string> arguments);

/// Where it has none, a test is skipped: `if (!PythonHasTensorFlow()) GTEST_SKIP() <<
/// kNoTensorFlow;`.
bool PythonHasTensorFlow();
inline constexpr char kNoTensorFlow[] =
    "Python has no tensorflow: set TROUPE_PEERS_PYTHON to one that has";

}  // namespace troupe

#endif  // TROUPE_TESTS_API_PROGRAM_RUN_PYTHON_H_
