/// What kernels of recurrent cells share.
#ifndef TROUPE_KERNELS_NN_RECURRENT_H_
#define TROUPE_KERNELS_NN_RECURRENT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace troupe {

/// A matrix of floats in memory, row after row.
struct FloatMatrix {
  const float* data;
  int64_t rows, columns;
  bool transposed = false;  ///< Stands for its transpose.
};

/// out = a * b.
absl::Status MultiplyMatrices(KernelContext& ctx, const FloatMatrix& a, const FloatMatrix& b,
                              float* out);

/// x = 1 / (1 + exp(-x)) and x = tanh(x) for n elements.
void SigmoidInPlace(float* x, int64_t n);
void TanhInPlace(float* x, int64_t n);

/// Inputs and outputs of a kernel as floats, whatever their type is.
class FloatArguments {
 public:
  /// All inputs from number `first` on; inputs before it are nullptr.
  static absl::StatusOr<FloatArguments> Read(KernelContext& ctx, int first);

  const float* in(int i) const { return inputs_[i].unchecked_data<float>(); }
  /// Makes output i, of the type of the last input.
  absl::StatusOr<float*> Allocate(int i, const Shape& shape);
  /// Rounds the outputs to their type.
  void Finish();

 private:
  explicit FloatArguments(KernelContext* ctx) : ctx_(ctx) {}

  KernelContext* ctx_;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_NN_RECURRENT_H_
