/// Moving averages of variables and tensors.
#ifndef TROUPE_API_TRAINING_MOVING_AVERAGE_H_
#define TROUPE_API_TRAINING_MOVING_AVERAGE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/scope.h"
#include "api/training/variables.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// Keeps for each variable or tensor an average of its values, average -= (1 - decay) * (average -
/// value), in a shadow variable called "<name>/ExponentialMovingAverage". Models often test better
/// with averages in the variables' place.
///
///     ExponentialMovingAverage averages(0.999f, step.value());
///     Node* train = averages.Apply(s.WithControlDependencies({optimizer.Minimize(s, loss,
///     step)}));
///
/// With `num_updates` the decay is at most (1 + num_updates) / (10 + num_updates), so that the
/// average is not late at the beginning. Errors go to the scope. Not thread-safe.
class ExponentialMovingAverage {
 public:
  /// `decay` is a scalar, near 1; `num_updates` a scalar of any number type, or not valid.
  explicit ExponentialMovingAverage(Input decay, Output num_updates = {}, bool zero_debias = false,
                                    std::string name = "ExponentialMovingAverage")
      : decay_(std::move(decay)),
        num_updates_(num_updates),
        zero_debias_(zero_debias),
        name_(std::move(name)) {}

  /// Adds a node that updates the averages of `variables` (empty: all trainable ones), reading
  /// their values after the scope's control inputs. An average starts as its variable does.
  Node* Apply(const Scope& scope, std::vector<ModelVariable> variables = {});
  /// The same for tensors of floating types and known shapes. These averages start at 0; with
  /// `zero_debias` they are corrected for that, as in Adam: divided by 1 - decay^t.
  Node* Apply(const Scope& scope, const std::vector<Output>& tensors);

  /// The shadow variable; an invalid one without `Apply`.
  ModelVariable Average(const ModelVariable& variable) const;
  ModelVariable Average(const Output& tensor) const;
  /// The shadow variable's name, whether it has been made or not.
  std::string AverageName(const ModelVariable& variable) const;
  std::string AverageName(const Output& tensor) const;
  /// Under which name a saved average is to be loaded into which variable: the averages in place of
  /// the variables that have one (given or trainable), the other variables under their own names.
  std::map<std::string, ModelVariable> VariablesToRestore(const Graph& graph) const;

 private:
  /// 1 - decay.
  Output Rate(const Scope& scope, ElementType type) const;
  Node* UpdateAverage(const Scope& scope, const ModelVariable& average, const Output& value) const;
  Node* UpdateWithoutBias(const Scope& scope, const ModelVariable& average, const Output& value);

  Input decay_;
  Output num_updates_;
  bool zero_debias_;
  std::string name_;
  std::map<std::string, ModelVariable> averages_;  // By the name of what is averaged.
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_MOVING_AVERAGE_H_
