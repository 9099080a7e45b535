/// Random cases of ops: a graph, and steps to run. Nobody knows what they should give.
#ifndef TROUPE_TESTS_RANDOM_OPS_DRAWN_CASE_H_
#define TROUPE_TESTS_RANDOM_OPS_DRAWN_CASE_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/golden/golden.pb.h"
#include "tests/random_ops/random_source.h"

namespace troupe::random_ops {

/// An op that does what its name says.
inline constexpr std::string_view kEndsTheProcess = "Abort";

/// Recorded cases by the ops of their graphs. The cases outlive it.
using CasesByOp = std::map<std::string, std::vector<const golden::Case*>>;
/// Adds the cases of a file, but for those that end the process.
void AddCases(const golden::CaseFile& file, CasesByOp* cases);

/// A case of one registered op, alone: attributes and inputs from its definition; handles come from
/// any op that makes some.
golden::Case CaseFromDefinition(const std::string& op, RandomSource* random);

/// A recorded case with other attributes, values, shapes, types and edges.
golden::Case CaseFromCase(const std::string& op, const golden::Case& recorded,
                          RandomSource* random);

/// Draw number `number` of the op: from its definition, or from one of `cases`, if there are any.
/// The same for the same arguments. Its tags say how a session shall run it.
golden::Case DrawCase(const std::string& op, uint64_t seed, int64_t number, const CasesByOp& cases);

}  // namespace troupe::random_ops

#endif  // TROUPE_TESTS_RANDOM_OPS_DRAWN_CASE_H_
