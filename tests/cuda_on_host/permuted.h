/// Tensors of the other data format.
#ifndef TROUPE_TESTS_CUDA_ON_HOST_PERMUTED_H_
#define TROUPE_TESTS_CUDA_ON_HOST_PERMUTED_H_

#include <cstring>
#include <vector>

#include "devices/tensor.h"

namespace troupe::testing {

/// Dimension d of the result is dimension order[d] of `tensor`.
inline Tensor Permuted(const Tensor& tensor, const std::vector<int>& order) {
  const int rank = tensor.rank();
  std::vector<int64_t> dims, steps(rank, 1);
  for (const int d : order) dims.push_back(tensor.dim(d));
  for (int d = rank - 2; d >= 0; --d) steps[d] = steps[d + 1] * tensor.dim(d + 1);
  Tensor result = *Tensor::Allocate(tensor.type(), Shape(dims));
  const size_t size = ElementSize(tensor.type());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    int64_t rest = i, from = 0;
    for (int d = rank - 1; d >= 0; --d) {
      from += rest % dims[d] * steps[order[d]];
      rest /= dims[d];
    }
    std::memcpy(static_cast<char*>(result.mutable_raw_data()) + i * size,
                static_cast<const char*>(tensor.raw_data()) + from * size, size);
  }
  return result;
}

/// From [batch, ..., channels] to [batch, channels, ...], and back.
inline Tensor ChannelsFirst(const Tensor& tensor) {
  std::vector<int> order = {0, tensor.rank() - 1};
  for (int d = 1; d < tensor.rank() - 1; ++d) order.push_back(d);
  return Permuted(tensor, order);
}
inline Tensor ChannelsLast(const Tensor& tensor) {
  std::vector<int> order = {0};
  for (int d = 2; d < tensor.rank(); ++d) order.push_back(d);
  order.push_back(1);
  return Permuted(tensor, order);
}

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_CUDA_ON_HOST_PERMUTED_H_
