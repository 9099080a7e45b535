// What users of the extension include: a function for its op, as api/ops.h has them.
#ifndef TROUPE_EXAMPLES_EXTENSION_CUBE_H_
#define TROUPE_EXAMPLES_EXTENSION_CUBE_H_

#include "api/scope.h"

/// x * x * x element by element. The library of the op must have been loaded.
inline troupe::Output Cube(const troupe::Scope& scope, const troupe::Input& x) {
  const troupe::Output tensor = x.ToOutput(scope);
  return troupe::Output(
      scope.AddNode("Cube", [&](troupe::ScopedSpec& spec) { spec.Input(tensor); }));
}

#endif  // TROUPE_EXAMPLES_EXTENSION_CUBE_H_
