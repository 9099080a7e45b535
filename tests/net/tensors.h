/// Tensors of every type, for tests of what carries them.
#ifndef TROUPE_TESTS_NET_TENSORS_H_
#define TROUPE_TESTS_NET_TENSORS_H_

#include <string>
#include <vector>

#include "devices/tensor.h"

namespace troupe {

/// One tensor of every type that tensors have but variants, of several shapes each: scalars, empty
/// ones, of rank 1 to 6; elements are different from one another.
std::vector<Tensor> TensorsOfAllTypes();

/// Type, shape and elements are the same (bit by bit for plain types).
bool SameTensor(const Tensor& a, const Tensor& b);

}  // namespace troupe

#endif  // TROUPE_TESTS_NET_TENSORS_H_
