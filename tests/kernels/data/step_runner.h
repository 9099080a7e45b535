/// Running kernels one after another on values that move from one to the next, as in a step.
///
///     StepRunner step;
///     step.Attr("element_dtype", ElementType::kFloat);
///     auto list = step.Run("TensorListReserve", {shape, size}, {ElementType::kVariant});
#ifndef TROUPE_TESTS_KERNELS_DATA_STEP_RUNNER_H_
#define TROUPE_TESTS_KERNELS_DATA_STEP_RUNNER_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "actors/state/containers.h"
#include "devices/tensor.h"
#include "graph/protos/graph.pb.h"
#include "kernels/kernel.h"

namespace troupe::testing {

/// A step: its resources, and the kernels of its nodes, one for each op and set of attributes.
/// Thread-safe but for `Attr`.
class StepRunner {
 public:
  using Tensors = std::vector<Tensor>;

  /// Attributes of the nodes to come; those that an op does not have do no harm.
  StepRunner& Attr(std::string_view name, ElementType value);
  StepRunner& Attr(std::string_view name, bool value);
  StepRunner& Attr(std::string_view name, int64_t value);
  StepRunner& Attr(std::string_view name, const std::string& value);
  StepRunner& Attr(std::string_view name, const PartialShape& value);
  StepRunner& Attr(std::string_view name, const std::vector<ElementType>& value);
  StepRunner& Attr(std::string_view name, const std::vector<PartialShape>& value);

  /// Makes the kernel. Attributes with defaults must have been set if the kernel reads them.
  absl::StatusOr<Kernel*> Make(std::string_view op, const std::vector<ElementType>& inputs,
                               const std::vector<ElementType>& outputs);
  /// Runs a kernel; inputs that nobody else holds may be taken over.
  absl::StatusOr<Tensors> Run(Kernel* kernel, Tensors inputs, int num_outputs);
  absl::StatusOr<Tensors> Run(std::string_view op, Tensors inputs,
                              const std::vector<ElementType>& outputs);
  /// The first output.
  absl::StatusOr<Tensor> One(std::string_view op, Tensors inputs, ElementType output);

  Containers& resources() { return resources_; }

 private:
  NodeDef def_;
  Containers resources_;
  std::vector<std::unique_ptr<NodeDef>> defs_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<std::vector<ElementType>>> types_;
};

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_DATA_STEP_RUNNER_H_
