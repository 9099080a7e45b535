/// The table of docs/faults.md.
#ifndef TROUPE_TESTS_FAULTS_TABLE_H_
#define TROUPE_TESTS_FAULTS_TABLE_H_

#include <string>
#include <vector>

#include "tests/faults/cluster.h"

namespace troupe::faults {

/// Markdown: a line per fault and victim, a column per moment but `kTraining`, what is afterwards,
/// and TensorFlow.
std::string Table(const std::vector<Row>& rows, const std::vector<Outcome>& outcomes);

/// Of trainings: who is killed and started again, and how long it takes until it trains again.
std::string TrainingTable(const std::vector<Row>& rows, const std::vector<Outcome>& outcomes);

/// What TensorFlow was seen to do; empty: not measured.
std::string TensorFlow(Fault fault, Victim victim);

}  // namespace troupe::faults

#endif  // TROUPE_TESTS_FAULTS_TABLE_H_
