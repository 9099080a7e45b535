/// Scopes: where nodes are added, and what they have in common.
#ifndef TROUPE_API_SCOPE_H_
#define TROUPE_API_SCOPE_H_

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "devices/tensor.h"
#include "graph/graph.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class Scope;
struct TROUPE_LOCAL FlowContext;
struct VariableSettings;
struct VariableStore;

/// What an op function takes: a tensor of the graph, or a value from which a constant is made in
/// the scope of the op. Implicit: `Mul(s, x, 2.0f)`, `Add(s, x, {1.0f, 2.0f})`. A value.
class Input {
 public:
  Input(Output output) : output_(output) {}          // NOLINT: conversions are the point
  Input(Node* node) : output_(node) {}               // NOLINT
  Input(Tensor value) : value_(std::move(value)) {}  // NOLINT
  /// A literal: op functions give it the type of the op's other inputs.
  template <typename T>
  requires(std::is_arithmetic_v<T>) Input(T value)  // NOLINT
      : value_(Tensor::Scalar<T>(value)), is_literal_(true) {}
  Input(const char* value) : value_(Tensor::Scalar(value)) {}                      // NOLINT
  Input(const std::string& value) : value_(Tensor::Scalar<std::string>(value)) {}  // NOLINT
  /// A vector; a literal.
  template <typename T>
  requires(std::is_arithmetic_v<T>) Input(std::initializer_list<T> values)  // NOLINT
      : value_(Tensor::Vector<T>(values)), is_literal_(true) {}
  /// Numbers of the program, of their own type.
  template <typename T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
      Input(const std::vector<T>& values)  // NOLINT
      : value_(Tensor::Vector<T>(values)) {}

  /// The tensor, after a constant has been made for a value. A literal becomes one of `type`, if
  /// that is a type of numbers; InvalidArgument, in the scope, if it is 0.5, or 300, and the type
  /// has no such number.
  Output ToOutput(const Scope& scope, ElementType type = ElementType::kInvalid) const;
  bool is_value() const { return value_.valid(); }
  /// A number, or numbers in braces, as it was written: not a tensor of the graph, nor a `Tensor`.
  bool is_literal() const { return is_literal_; }
  const Tensor& value() const { return value_; }
  Output output() const { return output_; }

 private:
  Output output_;
  Tensor value_;
  bool is_literal_ = false;
};

/// A list of what op functions take: `{x, 0, y}`, or tensors of the graph in a vector, an array or
/// a span. A value.
class InputList {
 public:
  InputList() = default;
  InputList(std::initializer_list<Input> inputs) : inputs_(inputs) {}   // NOLINT
  InputList(std::vector<Input> inputs) : inputs_(std::move(inputs)) {}  // NOLINT
  template <typename List>
  requires(std::is_convertible_v<const List&, absl::Span<const Output>>)
      InputList(const List& outputs) {  // NOLINT
    const absl::Span<const Output> span = outputs;
    inputs_.assign(span.begin(), span.end());
  }

  size_t size() const { return inputs_.size(); }
  bool empty() const { return inputs_.empty(); }
  const Input& operator[](size_t i) const { return inputs_[i]; }
  /// The tensors, after constants have been made for values. Literals become ones of `type`, as in
  /// `Input::ToOutput`.
  std::vector<Output> ToOutputs(const Scope& scope, ElementType type = ElementType::kInvalid) const;

 private:
  std::vector<Input> inputs_;
};

/// The type of the first input, and else the first in the lists, that is no literal and whose type
/// is known; kInvalid: there is none.
ElementType TypeOfOthers(std::initializer_list<const Input*> inputs,
                         std::initializer_list<const InputList*> lists = {});

/// Tensors that a function gives: a vector in which `[i]` past the end is an invalid output. After
/// an error lists hold invalid outputs, as many as were asked for where that is known, so that
/// `QueueDequeueV2(...)[0]` can be written down before the status is looked at. A value.
class OutputList : public std::vector<Output> {
 public:
  using std::vector<Output>::vector;
  OutputList(std::vector<Output> outputs)  // NOLINT: a conversion
      : std::vector<Output>(std::move(outputs)) {}

  Output operator[](size_t i) const { return i < size() ? data()[i] : Output(); }
  Output& operator[](size_t i) { return i < size() ? data()[i] : PastTheEnd(); }

 private:
  static Output& PastTheEnd();
};

/// What `Scope::AddNode` is given to fill in: a NodeSpec whose inputs are brought into the branch
/// or loop that the scope is in. Used while the node is added.
class ScopedSpec {
 public:
  ScopedSpec& Input(Output tensor);
  ScopedSpec& Input(absl::Span<const Output> list);
  ScopedSpec& ControlInput(Node* node);
  ScopedSpec& Device(std::string device);
  template <typename T>
  ScopedSpec& Attr(std::string_view name, const T& value) {
    if constexpr (std::is_same_v<T, ElementType>) {
      if (name == "dtype") type_ = value;
    } else if constexpr (std::is_same_v<T, PartialShape>) {
      if (name == "shape") shape_ = value;
    }
    spec_.Attr(name, value);
    return *this;
  }

 private:
  friend class Scope;
  ScopedSpec(const Scope& scope, NodeSpec spec) : scope_(scope), spec_(std::move(spec)) {}
  const Scope& scope_;
  NodeSpec spec_;
  std::string device_;
  ElementType type_ = ElementType::kInvalid;
  PartialShape shape_;
  std::vector<Output> inputs_;
  std::vector<Node*> controls_;
};

/// What a device function is told of a node that is about to be added. A value; what it refers to
/// lives as long as the call.
struct NodeToPlace {
  std::string_view op;
  std::string_view name;                     ///< Complete.
  ElementType type = ElementType::kInvalid;  ///< Of a variable: attribute `dtype`, if there is one.
  PartialShape shape;                        ///< The same: attribute `shape`.
  /// What scopes within that of the function ask for: it wins over the function's result.
  std::string_view device;
};

/// Gives the full or partial name of a node's device; "": no wish.
using DeviceFunction = std::function<std::string(const NodeToPlace& node)>;

/// Adds nodes to a graph under a common prefix, device, control inputs and so on. A value that
/// shares its graph and its error with all scopes derived from it: op functions after the first
/// error add nothing and give invalid outputs (lists of them, see `OutputList`), so that a whole
/// graph can be written down and checked once with `status()`. Not thread-safe; scopes on one graph
/// may be used by different threads if each thread starts from a root of its own.
class Scope {
 public:
  /// The root scope of a new graph.
  static Scope NewRoot();
  /// A root scope of a graph that is there.
  explicit Scope(std::shared_ptr<Graph> graph);

  const std::shared_ptr<Graph>& graph() const;
  bool ok() const { return status().ok(); }
  /// The first error of any op added through this scope or its relatives.
  absl::Status status() const;
  /// Sets the error, unless there is one.
  void UpdateStatus(absl::Status status) const;

  /// Names below get `name/` before them; the prefix is made unique. A name that ends in a slash is
  /// a prefix as it stands, that of a scope to go on with.
  Scope NewSubScope(std::string_view name) const;
  /// The next op is called `name` (made unique), instead of after its type. A name that ends in a
  /// slash is complete: with `prefix()` the op is called as the scope itself.
  Scope WithOpName(std::string_view name) const;
  /// Nodes added run after `nodes`, in addition to those of this scope.
  Scope WithControlDependencies(absl::Span<Node* const> nodes) const;
  Scope WithControlDependencies(std::initializer_list<Output> outputs) const;
  Scope WithNoControlDependencies() const;
  /// A full or partial device name; parts given here win over those of this scope. "": nodes ask
  /// for no device, whatever the scopes around say. A node that takes a resource (a variable's
  /// handle) is placed with it in any case.
  Scope WithDevice(std::string_view device) const;
  /// The device as a function of the node: parts that it gives win over those of this scope.
  Scope WithDeviceFunction(DeviceFunction device) const;
  /// With the device, or device function, of another scope.
  Scope WithDevicesOf(const Scope& other) const;
  /// The device that a node of `op` added here would ask for.
  std::string DeviceOf(std::string_view op) const;
  /// Nodes are placed with `node` (attribute `_class`).
  Scope ColocateWith(Node* node) const;
  Scope ClearColocation() const;
  /// Container of the variables, queues and so on.
  Scope WithContainer(std::string_view container) const;
  /// Seed of random ops that name none.
  void SetGraphSeed(int64_t seed) const { graph()->set_seed(seed); }

  /// Adds a node with everything that the scope brings; an invalid node after an error. `spec`'s
  /// name is set by the scope.
  Node* AddNode(std::string_view op, const std::function<void(ScopedSpec&)>& fill) const;
  /// A full name for `base`: with the prefix, unique.
  std::string UniqueName(std::string_view base) const;
  /// "a/b/" or "".
  std::string prefix() const;
  const std::string& container() const;
  /// The name that the next op gets, "" if it is named after its type.
  const std::string& op_name() const;

  /// `tensor` as nodes of this scope see it. In a branch of `Cond` or in a `WhileLoop` a tensor
  /// from outside comes in by a Switch or an Enter, which this adds if need be; AddNode does so
  /// with all inputs. InvalidArgument (in the status) for a tensor of a loop that the scope is not
  /// in.
  Output Bring(Output tensor) const;
  /// The branch or loop that the scope is in; nullptr: neither. For `control_flow.cc`.
  const std::shared_ptr<FlowContext>& flow_context() const;
  /// Without control inputs, colocation and op name, in a branch or loop.
  Scope WithFlowContext(std::shared_ptr<FlowContext> context) const;
  /// Where and how `GetVariable` makes variables; never nullptr. For `VariableScope`.
  const std::shared_ptr<const VariableSettings>& variables() const;
  Scope WithVariables(std::shared_ptr<const VariableSettings> variables) const;
  /// Of all scopes that share this one's root.
  VariableStore& variable_store() const;
  /// With a prefix ("a/b/") as it stands, of names that are there already.
  Scope WithPrefix(std::string prefix) const;
  /// The branch or loop that `node` was added in, by a scope that shares this one's root.
  std::shared_ptr<FlowContext> FlowContextOf(const Node* node) const;
  void SetFlowContextOf(const Node* node, std::shared_ptr<FlowContext> context) const;

 private:
  friend class ScopedSpec;
  struct Shared;
  struct Local;
  Scope(std::shared_ptr<Shared> shared, std::shared_ptr<const Local> local)
      : shared_(std::move(shared)), local_(std::move(local)) {}
  template <typename Change>
  Scope Derive(Change change) const;
  std::string ChooseDevice(NodeToPlace node) const;

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<const Local> local_;
};

/// A constant. T is the element type of the tensor.
Output Const(const Scope& scope, Tensor value);
template <typename T>
requires(std::is_arithmetic_v<T>) Output Const(const Scope& scope, T value) {
  return Const(scope, Tensor::Scalar<T>(value));
}
/// A vector, as `Const(scope, {1.0f, 2.0f})`.
template <typename T>
requires(std::is_arithmetic_v<T>) Output
    Const(const Scope& scope, std::initializer_list<T> values) {
  return Const(scope, Tensor::Vector<T>(values));
}
/// A matrix, as `Const(scope, {{1.0f, 2.0f}, {3.0f, 4.0f}})`. InvalidArgument, in the scope, if its
/// rows differ in length.
template <typename T>
requires(std::is_arithmetic_v<T>) Output
    Const(const Scope& scope, std::initializer_list<std::initializer_list<T>> rows) {
  const size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  Tensor matrix = Tensor::Uninitialized(
      kElementType<T>, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(columns)});
  T* to = matrix.mutable_data<T>();
  for (const std::initializer_list<T>& row : rows) {
    if (row.size() != columns) {
      scope.UpdateStatus(absl::InvalidArgumentError("the rows of a matrix differ in length"));
      return Output();
    }
    to = std::copy(row.begin(), row.end(), to);
  }
  return Const(scope, std::move(matrix));
}

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_SCOPE_H_
