#include "examples/shared/options.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

namespace examples {

void Die(const absl::Status& status) {
  std::cerr << status << "\n";
  std::exit(1);
}

CommandLine::CommandLine(char** argv, const std::string& description, Options* options)
    : troupe::CommandLine(std::filesystem::path(argv[0]).filename().string(), description) {
  using troupe::AddValue;
  using troupe::WholeNumber;
  AddValue(this, "--steps N", &options->steps, "Steps of training")
      ->check(WholeNumber(0, 1'000'000'000'000));
  AddValue(this, "--batch N", &options->batch, "Examples in a step")
      ->check(WholeNumber(1, 100'000));
  AddValue(this, "--threads N", &options->threads, "Threads that compute; 0: one per core")
      ->check(WholeNumber(0, 4096));
  AddValue(this, "--seed N", &options->seed, "Of all random numbers")
      ->check(WholeNumber(0, INT64_MAX));
}

void CommandLine::ReadOrExit(int argc, char** argv) {
  if (const std::optional<int> status = Read(argc, argv)) std::exit(*status);
}

}  // namespace examples
