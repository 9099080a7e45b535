#include "tests/graph/gradients/numeric_cases.h"

namespace troupe::numeric {

void AddRandomCases(std::vector<Case>*) {}

}  // namespace troupe::numeric
