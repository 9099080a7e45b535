#include "kernels/data/release.h"

#include <iterator>
#include <utility>

namespace troupe {

void Release(std::vector<Tensor> tensors) {
  thread_local std::vector<Tensor>* waiting = nullptr;
  if (waiting != nullptr) {
    waiting->insert(waiting->end(), std::make_move_iterator(tensors.begin()),
                    std::make_move_iterator(tensors.end()));
    return;
  }
  waiting = &tensors;
  while (!tensors.empty()) {
    const Tensor last = std::move(tensors.back());
    tensors.pop_back();
  }
  waiting = nullptr;
}

}  // namespace troupe
