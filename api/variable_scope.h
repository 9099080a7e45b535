/// Variables that layers find by name: made where they are asked for first, shared where they are
/// asked for again.
///
///     Scope net = VariableScope(s, "net", {.regularizer = L2Regularizer(1e-4)});
///     ModelVariable w = GetVariable(net, "w", {784, 10});           // "net/w"
///     Scope again = VariableScope(s, "net", {.reuse = Reuse::kYes});
///     ModelVariable same = GetVariable(again, "w", {784, 10});      // the same variable
///
/// The semantics are those of TensorFlow 1.x's `variable_scope` and `get_variable`. The graph
/// itself is where variables are found, so that those of an imported graph are shared as well.
#ifndef TROUPE_API_VARIABLE_SCOPE_H_
#define TROUPE_API_VARIABLE_SCOPE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/scope.h"
#include "api/training/initializers.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

namespace collections {
/// Losses that regularizers add, as names of scalars.
inline constexpr char kRegularizationLosses[] = "regularization_losses";
/// Nodes that are to run with each training step: moving averages of batch normalization.
inline constexpr char kUpdateOps[] = "update_ops";
}  // namespace collections

/// Whether `GetVariable` may find a variable that is there.
enum class Reuse {
  kNo,    ///< It makes one; AlreadyExists if there is one of the name. The default.
  kYes,   ///< It finds one; NotFound if there is none.
  kAuto,  ///< It finds one, else it makes one.
};

/// A scalar of the weights' type that is added to the loss; an invalid output adds nothing.
using Regularizer = std::function<Output(const Scope& scope, const Output& weights)>;
/// scale * sum(|w|); scale * sum(w * w) / 2; both. A scale of 0: none.
Regularizer L1Regularizer(double scale);
Regularizer L2Regularizer(double scale);
Regularizer L1L2Regularizer(double l1, double l2);

/// What optimizers apply to weights after each update: gives the projected weights, of the same
/// shape. A graph is saved without them: `GetVariable` gives them again to the variables that it
/// finds, if they have none.
using Constraint = std::function<Output(const Scope& scope, const Output& weights)>;
/// Negative elements become 0.
Constraint NonNegative();
/// Norms along `axes` are at most `maximum`: longer vectors are scaled down.
Constraint MaxNorm(double maximum, std::vector<int32_t> axes = {0});
/// Norms along `axes` are 1.
Constraint UnitNorm(std::vector<int32_t> axes = {0});

/// How many parts a variable has along each of its axes; more than one along one axis at most.
using Partitioner = std::function<std::vector<int64_t>(const Shape& shape, ElementType type)>;
/// So many parts along `axis`, or fewer if it is shorter.
Partitioner FixedSizePartitioner(int64_t parts, int axis = 0);
/// As few parts along `axis` as keep each part within `max_bytes`, `max_parts` (0: any number) at
/// most. A string counts as 16 bytes.
Partitioner BySizePartitioner(int64_t max_bytes, int axis = 0, int64_t max_parts = 0);

struct VariableRequest;
/// Gives the variable that is asked for; `next` does what is done without the getter. For wrapping
/// (a variable's moving average in place of the variable) and for changing requests.
using VariableGetter = std::function<ModelVariable(
    const Scope& scope, const VariableRequest& request,
    const std::function<ModelVariable(const Scope&, const VariableRequest&)>& next)>;

/// What a variable scope gives the variables within. A value.
struct VariableScopeOptions {
  /// Not set, or kNo: as the scope around says. kYes and kAuto hold for all scopes within.
  std::optional<Reuse> reuse = std::nullopt;
  /// Not set (null): as the scope around says.
  Initializer initializer = nullptr;
  Regularizer regularizer = nullptr;
  Constraint constraint = nullptr;
  Partitioner partitioner = nullptr;
  std::optional<ElementType> type = std::nullopt;
  /// Called first; the getters of the scopes around are its `next`.
  VariableGetter getter = nullptr;
};

/// Those of all scopes around, put together. A value; for `VariableScope` and `GetVariable`.
struct VariableSettings {
  std::string prefix;  ///< "a/b/" or "".
  Reuse reuse = Reuse::kNo;
  Initializer initializer;  ///< None: Glorot's for floating types, else zeros.
  Regularizer regularizer;
  Constraint constraint;
  Partitioner partitioner;
  ElementType type = ElementType::kFloat;
  std::vector<VariableGetter> getters;  ///< From the outermost to the innermost.
  /// Names of the variable scopes opened directly within, since this one was entered: what
  /// `DefaultVariableScope` tells names apart by. Shared by the scopes of one entry.
  std::shared_ptr<std::set<std::string>> opened = std::make_shared<std::set<std::string>>();
};

/// A scope in which variables are called `name/...` under the variable scope around, whatever the
/// prefix of nodes is; nodes are under `name/`, made unique as `NewSubScope` does. InvalidArgument,
/// in the scope, for a name that is empty or has an empty part.
Scope VariableScope(const Scope& scope, std::string_view name,
                    const VariableScopeOptions& options = {});
/// The same with the first of the names `base`, `base_1` and so on that this entry of the variable
/// scope around has not opened yet. Each call of `VariableScope` is an entry and counts anew:
/// whoever enters a scope again and opens the same ones in the same order gets the same names, and
/// finds the variables if the scope reuses them. At the top, which is entered once, names are
/// unique among nodes, too.
Scope DefaultVariableScope(const Scope& scope, std::string_view base,
                           const VariableScopeOptions& options = {});
/// The same with a name that is made unique among nodes and variables, for variables that nobody
/// shares: within, nothing is reused unless the options say so.
Scope UniqueVariableScope(const Scope& scope, std::string_view base,
                          const VariableScopeOptions& options = {});

/// What is asked for. Null and unset members: as the variable scope says. A value.
struct VariableOptions {
  Initializer initializer = nullptr;
  Regularizer regularizer = nullptr;
  Constraint constraint = nullptr;
  bool trainable = true;
  std::optional<ElementType> type = std::nullopt;
  /// In the collection of local variables, in no checkpoint, and never trainable.
  bool local = false;
};
struct VariableRequest {
  std::string name;  ///< Without the variable scope's prefix.
  Shape shape;
  VariableOptions options;  ///< Complete.
};

/// The variable `name` of the variable scope. It is made outside of any branch or loop that the
/// scope is in, and without its control inputs. It is found by the name of its handle,
/// "net/w/handle" or, in a graph that TensorFlow wrote, "net/w". Errors are the scope's, and the
/// result is invalid: see `Reuse`; InvalidArgument if the variable that is there has another shape
/// or type, or if a node has the variable's name.
ModelVariable GetVariable(const Scope& scope, std::string_view name, const Shape& shape,
                          const VariableOptions& options = {});

/// An object that makes its variables in the first call and shares them in later ones, in whatever
/// scopes of one root: a cell of a recurrent network. Copies, and what is assigned to, are other
/// objects. Custom getters of the first call's scope are asked by later calls, too. Thread-safe,
/// but for assignment.
class VariableOwner {
 public:
  VariableOwner() = default;
  VariableOwner(const VariableOwner&) {}
  VariableOwner& operator=(const VariableOwner& other) {
    if (this != &other) identity_ = std::make_shared<char>();
    return *this;
  }

 protected:
  ~VariableOwner() = default;
  /// The variable scope of a call: `VariableScope(scope, name)`. From the second call on, by scopes
  /// of one root, it is the first call's again, with kYes. Another object that is called
  /// in the same variable scope gets AlreadyExists from `GetVariable` unless the scope reuses.
  Scope CallScope(const Scope& scope, std::string_view name) const;

 private:
  std::shared_ptr<const char> identity_ = std::make_shared<char>();
};

/// What the variables of scopes of one root have beside their nodes. For `GetVariable`,
/// `VariableOwner` and optimizers.
struct VariableStore {
  /// What projects values after updates, by the variable's handle.
  std::vector<std::pair<const Node*, Constraint>> constraints;
  /// What the variable scope of the first call was, by the owner's identity.
  std::map<std::shared_ptr<const char>, std::shared_ptr<const VariableSettings>> owners;
  /// Null if there is none.
  Constraint ConstraintOf(const ModelVariable& variable) const;
};

/// A variable in parts, as the variable scope's partitioner says: one part if it has none. A value.
class PartitionedModelVariable {
 public:
  bool valid() const { return !parts_.empty(); }
  const std::vector<ModelVariable>& parts() const { return parts_; }
  /// The axis along which it has more than one part.
  int axis() const { return axis_; }
  const Shape& shape() const { return shape_; }
  /// The whole: the parts, one after the other.
  Output Value(const Scope& scope) const;
  /// Rows of a variable in parts along axis 0, as `EmbeddingLookup` gives them.
  Output Lookup(const Scope& scope, const Input& ids) const;

 private:
  friend PartitionedModelVariable GetPartitionedVariable(const Scope& scope, std::string_view name,
                                                         const Shape& shape,
                                                         const VariableOptions& options);
  std::vector<ModelVariable> parts_;
  int axis_ = 0;
  Shape shape_;
};

/// As `GetVariable`; parts are called `name/part_0` and so on, and checkpoints have them as one
/// tensor. Getters are not asked for parts. With reuse the partitioner must say the same again.
PartitionedModelVariable GetPartitionedVariable(const Scope& scope, std::string_view name,
                                                const Shape& shape,
                                                const VariableOptions& options = {});

/// The regularization losses of the graph, and their sum (a scalar; 0 without any).
std::vector<Output> RegularizationLosses(const Scope& scope);
Output RegularizationLoss(const Scope& scope);

/// The nodes of the collection "update_ops".
std::vector<Node*> UpdateOps(const Graph& graph);
/// What a variable holds; its initial value if it is not initialized yet. For initial values of
/// variables that depend on others'.
Output InitializedValue(const Scope& scope, const ModelVariable& variable);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_VARIABLE_SCOPE_H_
