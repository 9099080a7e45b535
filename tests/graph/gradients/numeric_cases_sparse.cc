#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

void AddSparseCases(std::vector<Case>*) {}

}  // namespace troupe::numeric
