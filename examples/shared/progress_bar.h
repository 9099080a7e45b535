// How far a training is, for who watches it.

#ifndef TROUPE_EXAMPLES_SHARED_PROGRESS_BAR_H_
#define TROUPE_EXAMPLES_SHARED_PROGRESS_BAR_H_

#include <unistd.h>

#include <chrono>
#include <cstdint>

namespace examples {

/// One line on the terminal that is written over; nothing if the output is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(int64_t total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  void Update(int64_t step, double loss);

 private:
  int64_t total_;
  std::chrono::steady_clock::time_point start_;
  bool terminal_ = isatty(2) != 0;
};

}  // namespace examples

#endif  // TROUPE_EXAMPLES_SHARED_PROGRESS_BAR_H_
