/// Runs the program `troupe` as a user would.
#ifndef TROUPE_TESTS_API_CLI_RUN_TROUPE_H_
#define TROUPE_TESTS_API_CLI_RUN_TROUPE_H_

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "api/program/child_process.h"

/// Names of its files begin with `folder_`.
class TroupeTest : public testing::Test {
 protected:
  struct Result {
    int status;
    std::string out, err;
  };

  explicit TroupeTest(std::string folder) : folder_(std::move(folder)) {}

  static std::string ReadFile(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  Result Run(const std::string& arguments) const { return Shell(TROUPE_PROGRAM " " + arguments); }
  Result Shell(const std::string& script) const {
    const std::string out = folder_ + "out", err = folder_ + "err";
    const std::string command = "{ " + script + "\n} >" + out + " 2>" + err + " </dev/null";
    const auto ran = troupe::RunProgram({.arguments = {"/bin/sh", "-c", command}});
    return {ran.ok() ? ran->status.code.value_or(-1) : -1, ReadFile(out), ReadFile(err)};
  }

  const std::string folder_;
};

#endif  // TROUPE_TESTS_API_CLI_RUN_TROUPE_H_
