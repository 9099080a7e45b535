#include "examples/shared/progress_bar.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace examples {

void ProgressBar::Update(int64_t step, double loss) {
  if (!terminal_ || (step % 20 != 0 && step != total_)) return;
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(kWidth * step / std::max<int64_t>(total_, 1));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::fprintf(stderr, "\r[%s%s] step %lld of %lld  loss %7.3f  %5.0f steps/s ",
               std::string(filled, '#').c_str(), std::string(kWidth - filled, '.').c_str(),
               static_cast<long long>(step), static_cast<long long>(total_), loss,
               static_cast<double>(step) / std::max(seconds, 1e-9));
  if (step == total_) std::fprintf(stderr, "\n");
}

}  // namespace examples
