/// Gradient functions of ops.
///
///     REGISTER_GRADIENT("Mul", MulGrad);
///     void MulGrad(GradientContext& g) { ... g.set(0, ...); ... }
#ifndef TROUPE_GRAPH_GRADIENTS_GRADIENT_REGISTRY_H_
#define TROUPE_GRAPH_GRADIENTS_GRADIENT_REGISTRY_H_

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "devices/tensor.h"
#include "graph/gradients/gradient.h"
#include "graph/graph.h"
#include "graph/op_registry.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Where the nodes that a gradient function adds are put when the node that it differentiates is
/// part of a loop: the gradient is computed by another loop, which runs after the first one has
/// ended, so that values of the forward loop must be saved for it. Implemented by differentiation.
class GradientPlace {
 public:
  virtual ~GradientPlace() = default;
  /// The tensor that has the value of `x` here; x itself if it is here already.
  virtual absl::StatusOr<Output> Value(Output x) = 0;
  /// True if a node of `op` is better added beside `x`, its only input, than here (its result is
  /// smaller: Shape).
  virtual bool BelongsBeside(std::string_view op, Output x) = 0;
  /// Told of every node that was added here.
  virtual absl::Status Added(Node* node) = 0;
};

/// Adds nodes for gradient functions: a thin layer over Graph::AddNode. After an error every call
/// is without effect and gives an invalid Output; `status()` has the first error. Names are made
/// unique under the scope's prefix. Not thread-safe.
class GradientBuilder {
 public:
  GradientBuilder(Graph* graph, std::string prefix, GradientPlace* place = nullptr)
      : graph_(graph), prefix_(std::move(prefix)), place_(place) {}

  /// One node of any op; `attrs` fills in the specification before the node is added.
  Node* Add(std::string_view op, absl::Span<const Output> inputs,
            const std::function<void(NodeSpec&)>& attrs = nullptr);
  /// For ops with list arguments: fills in everything. Tensors of the forward graph should be given
  /// to the specification through `Value`.
  Node* Add(NodeSpec spec);
  /// The tensor that has the value of a forward tensor where this builder adds nodes: in a loop's
  /// gradient what was saved of it, else x itself.
  Output Value(Output x);
  std::vector<Output> Values(absl::Span<const Output> xs);
  /// A gradient as one tensor: the rows of a sparse one are added up where they belong.
  Output Dense(const Gradient& gradient);
  /// First output of a node of `op` on `inputs` (each input is one argument).
  Output Op(std::string_view op, std::initializer_list<Output> inputs,
            const std::function<void(NodeSpec&)>& attrs = nullptr);
  Output Const(const Tensor& value);
  template <typename T>
  Output Scalar(T value) {
    return Const(Tensor::Scalar<T>(value));
  }
  /// A scalar of any numeric type with the value `value`.
  Output ScalarOfType(ElementType type, double value);
  Output IntVector(absl::Span<const int32_t> values);
  /// int32 vector of x's sizes: a constant if they are all known.
  Output Shape(Output x);
  Output ZerosLike(Output x);
  Output OnesLike(Output x);
  /// For gradients of complex functions: Conj for complex types, else x itself.
  Output Conj(Output x);

  /// What nodes added from now on ask for.
  void set_device(std::string device) { device_ = std::move(device); }

  /// A node name that is not taken: the prefix, '/', the op, a number if need be.
  std::string NewName(std::string_view op);
  const std::string& prefix() const { return prefix_; }
  Graph* graph() const { return graph_; }
  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

 private:
  Node* AddNode(NodeSpec spec);

  Graph* graph_;
  std::string prefix_;
  std::string device_;
  GradientPlace* place_;
  absl::Status status_;
};

/// What a gradient function sees: a node, the gradients of its outputs; it sets those of its
/// inputs.
class GradientContext : public GradientBuilder {
 public:
  /// `wanted`: for every input, whether its gradient is of use; empty: all.
  GradientContext(Node* node, std::vector<Gradient> grads, std::string prefix,
                  std::vector<bool> wanted = {}, GradientPlace* place = nullptr)
      : GradientBuilder(node->graph(), std::move(prefix), place),
        node_(node),
        grads_(std::move(grads)),
        results_(node->num_inputs()),
        wanted_(std::move(wanted)) {}

  Node* node() const { return node_; }
  Output input(int i) const { return node_->input(i); }
  Output output(int i) const { return Output(node_, i); }
  /// The gradient of output i, made dense if it is sparse; invalid if nothing depends on that
  /// output through y.
  Output grad(int i = 0) {
    if (grads_[i].sparse()) grads_[i] = Dense(grads_[i]);
    return grads_[i].values;
  }
  /// The gradient of output i as it is: sparse ones need not be made dense to be passed on.
  const Gradient& gradient(int i = 0) const { return grads_[i]; }
  /// The gradient of output i; zeros, made now, if nothing depends on that output.
  Output GradOrZeros(int i) {
    if (!grads_[i].valid()) grads_[i] = ZerosLike(output(i));
    return grad(i);
  }
  /// False if nobody will use the gradient of input i: gradient functions need not build it.
  bool wanted(int i) const { return wanted_.empty() || wanted_[i]; }
  /// The gradient of input i; never set: no gradient flows there.
  void set(int i, Output grad) { results_[i] = Gradient(grad); }
  /// The same, perhaps sparse.
  void set(int i, const Gradient& grad) { results_[i] = grad; }
  const std::vector<Gradient>& results() const { return results_; }

 private:
  Node* node_;
  std::vector<Gradient> grads_;
  std::vector<Gradient> results_;
  std::vector<bool> wanted_;
};

/// Sets the gradients of a node's inputs in the context. An error, of an op or by `Fail`, ends the
/// differentiation.
using GradientFn = void (*)(GradientContext& g);

/// Registry of gradient functions by op. Thread-safe.
class GradientRegistry {
 public:
  static GradientRegistry* Global();
  /// fn == nullptr: the op is known to have no gradient (it ends the chain).
  void Register(std::string_view op, GradientFn fn);
  /// NotFound if nothing is registered; a nullptr function for ops without a gradient.
  absl::StatusOr<GradientFn> LookUp(std::string_view op) const;
  /// All ops with an entry, sorted.
  std::vector<std::string> Names() const;

 private:
  GradientRegistry();
  struct Impl;
  Impl* impl_;
};

namespace internal {
struct GradientRegistrar {
  GradientRegistrar(std::string_view op, GradientFn fn) {
    GradientRegistry::Global()->Register(op, fn);
  }
};
}  // namespace internal

#define REGISTER_GRADIENT(OP, FN)                                                    \
  [[maybe_unused]] static const ::troupe::internal::GradientRegistrar TROUPE_CONCAT( \
      troupe_gradient_registrar_, __COUNTER__)(OP, FN)
#define REGISTER_NO_GRADIENT(OP) REGISTER_GRADIENT(OP, nullptr)

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_GRADIENTS_GRADIENT_REGISTRY_H_
