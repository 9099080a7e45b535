/// What TensorFlow has recorded of its models (scripts/golden/record_saved_models.py).
#ifndef TROUPE_TESTS_API_SAVED_MODEL_RECORDED_H_
#define TROUPE_TESTS_API_SAVED_MODEL_RECORDED_H_

#include <string>

#include "api/session.h"

namespace troupe {

/// A file or folder of the recorded ones.
std::string Recorded(const std::string& name);
/// The text of expected.json for a model and a signature: its inputs and its outputs.
struct RecordedRun {
  std::string inputs, outputs;
};
RecordedRun RecordedRunOf(const std::string& model, const std::string& signature);

/// The tensor of an object of JSON, in the type that is wanted.
Tensor RecordedTensor(const std::string& object, const std::string& name, ElementType type);

/// Expects the tensors to be those of an object of JSON, to 1e-6 of their size.
void ExpectRecorded(const NamedTensors& got, const std::string& object);

}  // namespace troupe

#endif  // TROUPE_TESTS_API_SAVED_MODEL_RECORDED_H_
