/// What TensorFlow has recorded of its models (scripts/golden/record_saved_models.py).
#ifndef TROUPE_TESTS_API_SAVED_MODEL_RECORDED_H_
#define TROUPE_TESTS_API_SAVED_MODEL_RECORDED_H_

#include <string>
#include <vector>

#include "api/saved_model.h"

namespace troupe {

/// A file or folder of the recorded ones.
std::string Recorded(const std::string& name);
/// The text of expected.json for a model and a signature: its inputs and its outputs.
struct RecordedRun {
  std::string inputs, outputs;
};
RecordedRun RecordedRunOf(const std::string& model, const std::string& signature,
                          const std::string& folder = Recorded(""));

/// The tensor of an object of JSON, in the type that is wanted.
Tensor RecordedTensor(const std::string& object, const std::string& name, ElementType type);

/// A run of a signature that was recorded.
struct RecordedCase {
  std::string model;
  std::vector<std::string> tags;
  std::string run;  ///< Its name in expected.json.
  std::string signature;
};
std::vector<RecordedCase> RecordedCases();
/// The signature's inputs with the recorded values.
NamedTensors RecordedInputs(const SavedModelBundle& model, const RecordedCase& c);
/// Loads the model from a folder like the recorded ones', and expects it to give what its own
/// expected.json says.
void ExpectLoadsAndGives(const std::string& folder, const RecordedCase& c);

/// Expects the tensors to be those of an object of JSON, to 1e-6 of their size.
void ExpectRecorded(const NamedTensors& got, const std::string& object);

}  // namespace troupe

#endif  // TROUPE_TESTS_API_SAVED_MODEL_RECORDED_H_
