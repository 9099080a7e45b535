/// The functions that a graph brings along: finding them, and binding their attributes.
#ifndef TROUPE_GRAPH_FUNCTION_LIBRARY_H_
#define TROUPE_GRAPH_FUNCTION_LIBRARY_H_

#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

using AttrMap = google::protobuf::Map<std::string, AttrValue>;

/// Functions and their gradients by name. Both arguments of the constructor must outlive it.
/// Thread-safe.
class FunctionLibrary {
 public:
  using Nodes = google::protobuf::RepeatedPtrField<NodeDef>;
  using Follow = absl::FunctionRef<bool(const NodeDef&)>;
  static bool Everything(const NodeDef&) { return true; }

  FunctionLibrary(const FunctionDefLibrary& library, const OpRegistry& ops);

  /// nullptr if there is no such function.
  const FunctionDef* Find(const std::string& name) const;
  /// NotFound names the function.
  absl::StatusOr<const FunctionDef*> Get(const std::string& name) const;
  /// The function that computes the gradient of `name`, if the library says so; else "".
  const std::string& GradientOf(const std::string& name) const;
  /// Of a function or of an op. NotFound if it is neither.
  absl::StatusOr<const OpDef*> Signature(const std::string& op) const;
  const OpRegistry& ops() const { return ops_; }

  /// What `node` calls: its op if that is a function, and the functions that its attributes name.
  std::vector<std::string> CalledBy(const NodeDef& node) const;
  /// The functions that `nodes` call, those that these call, and so on for `depth` calls, with
  /// their gradients; of calls beyond that the signatures. Of nodes that call by attribute, only
  /// those are looked at for which `follow` is true.
  FunctionDefLibrary Reachable(const Nodes& nodes, Follow follow = Everything,
                               int depth = std::numeric_limits<int>::max()) const;
  /// True if running the function may come to call it again.
  bool CallsItself(const std::string& name) const { return CallsOf(name).itself; }
  /// True if a node of the function, or of one that it may come to call, asks for a device.
  bool AsksForDevices(const std::string& name) const { return CallsOf(name).ask_for_devices; }

 private:
  /// What a function may come to call.
  struct Calls {
    bool itself = false, ask_for_devices = false;
  };
  Calls CallsOf(const std::string& name) const;
  void FollowCalls() const;
  /// What its nodes call, and its gradient.
  std::vector<const FunctionDef*> Callees(const FunctionDef& function) const;

  const OpRegistry& ops_;
  std::unordered_map<std::string, const FunctionDef*> functions_;
  std::unordered_map<std::string, std::string> gradients_;
  mutable std::once_flag calls_followed_;  ///< Most libraries are never asked.
  mutable std::unordered_map<const FunctionDef*, Calls> calls_;
};

/// The attributes with the defaults of `signature` for those that are missing.
AttrMap WithDefaults(AttrMap attrs, const OpDef& signature);

/// The element types of an argument, one per tensor. InvalidArgument if an attribute is missing, of
/// the wrong kind, or counts more than a million tensors.
absl::StatusOr<std::vector<DataType>> ArgumentTypes(const OpDef::ArgDef& arg, const AttrMap& attrs);

/// A tensor that stands for an argument of a function.
struct BoundArgument {
  std::string tensor;  ///< "node:port" of the surrounding graph.
  /// False: it may be alive where the body must not run (a loop's invariant), so that nodes that
  /// take only such arguments must wait for the body's controls.
  bool gated = true;
};

struct BindOptions {
  /// The name of a body's node in the surrounding graph.
  std::function<std::string(const std::string&)> rename;
  std::vector<BoundArgument> arguments;
  /// "^node": what the body waits for.
  std::vector<std::string> controls;
  /// Of the call: for what the body's nodes leave open.
  std::string device;
};

/// A function's body with attributes, arguments and names filled in: nodes for a GraphDef.
struct BoundFunction {
  std::vector<NodeDef> nodes;
  /// Per node: it takes an argument that is not gated.
  std::vector<bool> takes_ungated;
  std::vector<DataType> arg_types, result_types;
  std::vector<std::string> results;  ///< "node:port", or the tensor of an argument.
  /// Nodes outside of loops that must have run when the function is done: stateful ones and control
  /// results.
  std::vector<std::string> effects;
  /// Effects may be dead because the body has primitive branches of its own.
  bool effects_may_be_dead = false;
};

/// The device of a body's node that asks for `node`: what that leaves open is as for the call.
std::string DeviceWithin(const std::string& call, const std::string& node);

/// Fills in a function's body. The number of arguments must be right. Nodes that take nothing of
/// the body and no gated argument get the controls. InvalidArgument names what is wrong in the
/// function: missing attributes, inputs from nowhere, results that do not exist; NotFound: an op
/// that does not exist.
absl::StatusOr<BoundFunction> BindFunction(const FunctionLibrary& library,
                                           const FunctionDef& function, const AttrMap& attrs,
                                           const BindOptions& options);

}  // namespace troupe

#endif  // TROUPE_GRAPH_FUNCTION_LIBRARY_H_
