/// Running one kernel in a test, without a graph or a session.
///
///     OpTest op("AddV2");
///     op.Input(Tensor::Vector<float>({1, 2})).Input(Tensor::Scalar(3.0f));
///     ASSERT_TRUE(op.Run().ok());
///     ExpectNear(op.output(0), Tensor::Vector<float>({4, 5}));
#ifndef TROUPE_TESTS_KERNELS_KERNEL_TEST_UTIL_H_
#define TROUPE_TESTS_KERNELS_KERNEL_TEST_UTIL_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "devices/cpu/compute_pool.h"
#include "devices/tensor.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel.h"

namespace troupe::testing {

/// One node and its kernel. Type and number attributes that are not set follow from the inputs,
/// others from the op's defaults. The kernel is made by the first `Run` and kept for the next ones.
class OpTest {
 public:
  /// `threads`: of the compute pool; 1 has none.
  explicit OpTest(std::string_view op, int threads = 1);
  ~OpTest();

  /// Appends an input. `forwardable`: the kernel may take its buffer over (if nothing else holds
  /// it).
  OpTest& Input(Tensor tensor, bool forwardable = false);
  /// Appends an input that the kernel is told to be a constant.
  OpTest& ConstantInput(Tensor tensor);
  /// Appends a reference to a variable.
  OpTest& InputRef(Variable* variable);
  OpTest& ClearInputs();

  OpTest& Attr(std::string_view name, bool value);
  OpTest& Attr(std::string_view name, int value) { return Attr(name, int64_t{value}); }
  OpTest& Attr(std::string_view name, int64_t value);
  OpTest& Attr(std::string_view name, float value);
  OpTest& Attr(std::string_view name, double value) {
    return Attr(name, static_cast<float>(value));
  }
  OpTest& Attr(std::string_view name, const char* value) { return Attr(name, std::string(value)); }
  OpTest& Attr(std::string_view name, const std::string& value);
  OpTest& Attr(std::string_view name, ElementType value);
  OpTest& Attr(std::string_view name, const Shape& value);
  OpTest& Attr(std::string_view name, const Tensor& value);
  OpTest& Attr(std::string_view name, std::initializer_list<int64_t> value);
  OpTest& Attr(std::string_view name, const std::vector<float>& value);
  OpTest& Attr(std::string_view name, const std::vector<ElementType>& value);
  OpTest& Attr(std::string_view name, const std::vector<std::string>& value);

  /// Steps share these if set before the first `Run` (for stateful ops).
  OpTest& Resources(ResourceProvider* resources);

  /// Cancels the kernel's waits.
  OpTest& Cancellation(CancellationToken* token);

  /// Makes the kernel; its error if that fails.
  absl::Status Init();
  /// Runs the kernel once (waits if it is asynchronous).
  absl::Status Run();
  /// Runs an initialised kernel `n` times on the same inputs (for benchmarks).
  absl::Status RunRepeatedly(int n);

  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  const Tensor& output(int i) const { return outputs_[i].tensor; }
  const Slot& output_slot(int i) const { return outputs_[i]; }
  /// True if the last run worked in place: input `in`'s buffer became output `out`'s.
  bool InPlace(int in, int out) const {
    return step_inputs_[in].tensor.raw_data() == outputs_[out].tensor.raw_data();
  }

 private:
  absl::Status InferAttrs();
  absl::Status Compute();

  NodeDef def_;
  const OpDef* op_def_ = nullptr;
  std::vector<Slot> inputs_;
  std::vector<Slot> step_inputs_;
  std::vector<int32_t> input_slots_;
  std::vector<Slot> outputs_;
  std::vector<ElementType> input_types_, output_types_;
  uint64_t forwardable_ = 0;
  std::unique_ptr<ComputePool> pool_;
  StepContext step_;
  std::unique_ptr<Kernel> kernel_;
};

/// Same type, same shape, and elements |got - want| <= atol + rtol |want|, NaN equal to NaN;
/// strings, bools and integers exactly.
void ExpectNear(const Tensor& got, const Tensor& want, double rtol = 1e-5, double atol = 1e-6);
inline void ExpectEqual(const Tensor& got, const Tensor& want) { ExpectNear(got, want, 0, 0); }

/// Element i of a real or bool tensor as a double.
double At(const Tensor& tensor, int64_t i);
/// Writes `value` to element i, converted (bool: value != 0; complex: real part).
void Set(Tensor* tensor, int64_t i, double value);

/// A tensor of any numeric type from doubles (converted).
Tensor MakeTensor(ElementType type, const Shape& shape, absl::Span<const double> values);
inline Tensor MakeTensor(ElementType type, const Shape& shape,
                         std::initializer_list<double> values) {
  return MakeTensor(type, shape, absl::MakeConstSpan(values.begin(), values.size()));
}
/// Reproducible values, uniform in [low, high] (integers: both ends included).
Tensor RandomTensor(ElementType type, const Shape& shape, double low, double high,
                    uint32_t seed = 1);

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_KERNEL_TEST_UTIL_H_
