#include "tests/api/saved_model/recorded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "devices/status_macros.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

void Flatten(const Json& value, size_t depth, std::vector<int64_t>* dims, std::vector<double>* to) {
  if (!value.is_array()) {
    to->push_back(value.get<double>());
    return;
  }
  if (dims->size() == depth) dims->push_back(static_cast<int64_t>(value.size()));
  for (const Json& element : value) Flatten(element, depth + 1, dims, to);
}

template <typename T>
Tensor Make(const std::vector<double>& values, const std::vector<int64_t>& dims) {
  std::vector<T> elements(values.begin(), values.end());
  return Tensor::Vector<T>(elements).Reshaped(Shape(dims));
}

}  // namespace

std::string Recorded(const std::string& name) {
  return StrCat("tests/api/saved_model/testdata/", name);
}

RecordedRun RecordedRunOf(const std::string& model, const std::string& signature,
                          const std::string& folder) {
  std::ifstream file(folder + "/expected.json");
  const Json run = Json::parse(file).at(model).at(signature);
  return {run.at("inputs").dump(), run.at("outputs").dump()};
}

Tensor RecordedTensor(const std::string& object, const std::string& name, ElementType type) {
  std::vector<int64_t> dims;
  std::vector<double> values;
  Flatten(Json::parse(object).at(name), 0, &dims, &values);
  switch (type) {
    case ElementType::kFloat:
      return Make<float>(values, dims);
    case ElementType::kInt32:
      return Make<int32_t>(values, dims);
    case ElementType::kInt64:
      return Make<int64_t>(values, dims);
    default:
      ADD_FAILURE() << "no recorded values of type " << ElementTypeName(type);
      return {};
  }
}

std::vector<RecordedCase> RecordedCases() {
  return {{"v1", {"serve"}, "serve", "serving_default"},
          {"v1", {"gpu", "train"}, "train/gpu", "serving_default"},
          {"v2", {"serve"}, "serving_default", "serving_default"},
          {"v2", {"serve"}, "lookup", "lookup"},
          {"v2", {"serve"}, "count", "count"},
          {"tables", {"serve"}, "serving_default", "serving_default"},
          {"keras", {"serve"}, "serving_default", "serving_default"}};
}

NamedTensors RecordedInputs(const SavedModelBundle& model, const RecordedCase& c) {
  const RecordedRun run = RecordedRunOf(c.model, c.run);
  NamedTensors inputs;
  for (const auto& [name, info] : (*model.Signature(c.signature))->inputs()) {
    inputs.emplace_back(name,
                        RecordedTensor(run.inputs, name, static_cast<ElementType>(info.dtype())));
  }
  return inputs;
}

void ExpectLoadsAndGives(const std::string& folder, const RecordedCase& c) {
  SCOPED_TRACE(StrCat(folder, " ", c.model, " ", c.run));
  auto model = LoadSavedModel(StrCat(folder, "/", c.model), c.tags);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto outputs = model->Run(c.signature, RecordedInputs(*model, c));
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ExpectRecorded(*outputs, RecordedRunOf(c.model, c.run, folder).outputs);
}

void ExpectRecorded(const NamedTensors& got, const std::string& object) {
  EXPECT_EQ(got.size(), Json::parse(object).size());
  for (const auto& [name, tensor] : got) {
    const Tensor want = RecordedTensor(object, name, tensor.type());
    ASSERT_EQ(tensor.shape(), want.shape()) << name;
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      if (tensor.type() == ElementType::kFloat) {
        const float expected = want.unchecked_data<float>()[i];
        EXPECT_NEAR(tensor.unchecked_data<float>()[i], expected,
                    1e-6 * std::max(1.0F, std::fabs(expected)))
            << name << " " << i;
      } else if (tensor.type() == ElementType::kInt32) {
        EXPECT_EQ(tensor.unchecked_data<int32_t>()[i], want.unchecked_data<int32_t>()[i]) << name;
      } else {
        EXPECT_EQ(tensor.unchecked_data<int64_t>()[i], want.unchecked_data<int64_t>()[i]) << name;
      }
    }
  }
}

}  // namespace troupe
