/// Ops by name, for code that chooses the op as it runs.
#ifndef TROUPE_API_TRAINING_RAW_OP_H_
#define TROUPE_API_TRAINING_RAW_OP_H_

#include <string_view>
#include <vector>

#include "api/scope.h"

namespace troupe {

/// Adds a node of op `op`; nullptr after an error, of which an invalid input is the sign.
inline Node* RawOp(const Scope& scope, std::string_view op, const std::vector<Output>& inputs) {
  for (const Output& input : inputs) {
    if (!input.valid()) return nullptr;
  }
  return scope.AddNode(op, [&](ScopedSpec& spec) {
    for (const Output& input : inputs) spec.Input(input);
  });
}

}  // namespace troupe

#endif  // TROUPE_API_TRAINING_RAW_OP_H_
