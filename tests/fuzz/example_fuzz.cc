// A serialized Example or SequenceExample from outside: an error, or what protobuf reads, too.
#include <cstdint>
#include <string>
#include <vector>

#include "graph/protos/example.pb.h"
#include "kernels/io/example_parser.h"

namespace {

using troupe::ElementType;
using troupe::FeatureSpec;
using Kind = FeatureSpec::Kind;

std::vector<FeatureSpec> Specs(bool lists, ElementType type) {
  std::vector<FeatureSpec> specs(4);
  specs[0].kind = Kind::kRagged;
  specs[0].key = "i";
  specs[0].type = ElementType::kInt64;
  specs[1].kind = Kind::kSparse;
  specs[1].key = "s";
  specs[1].type = ElementType::kString;
  specs[2].kind = lists ? Kind::kFixed : Kind::kVariable;
  specs[2].key = "v";
  specs[2].type = ElementType::kFloat;
  specs[2].shape = troupe::Shape({2});
  specs[2].default_value = troupe::Tensor::Scalar(1.0f);
  specs[2].may_be_missing = true;
  specs[3].kind = Kind::kFixed;
  specs[3].key = "f";
  specs[3].type = type;
  specs[3].shape = troupe::Shape({1});
  specs[3].default_value = troupe::Tensor::Uninitialized(type, specs[3].shape);
  if (type == ElementType::kInt64) *specs[3].default_value.mutable_data<int64_t>() = 0;
  specs[3].may_be_missing = true;
  if (lists) specs[2].default_value = specs[3].default_value = {};
  return specs;
}

void Check(bool right) {
  if (!right) __builtin_trap();
}

template <typename Values>
void CheckInts(const troupe::Tensor& got, const Values& want) {
  Check(got.num_elements() == want.size());
  for (int i = 0; i < want.size(); ++i) Check(got.unchecked_data<int64_t>()[i] == want.Get(i));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const ElementType type = data[0] % 2 == 0 ? ElementType::kInt64 : ElementType::kString;
  const bool single = data[0] / 2 % 2 == 0;
  std::vector<std::string> batch(single ? 1 : 2);
  batch[0].assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto features =
      troupe::ParseFeatures({.serialized = batch, .single = single}, Specs(false, type));
  troupe::SequenceExample example;
  const bool read = example.ParseFromString(batch[0]);
  if (features.ok() && read) {
    const auto& map = example.context().feature();
    const auto found = map.find("i");
    if (found != map.end() && found->second.has_int64_list()) {
      CheckInts((*features)[0].values, found->second.int64_list().value());
    }
  }
  const auto lists =
      troupe::ParseFeatureLists({.serialized = batch, .single = single}, Specs(true, type));
  if (!lists.ok()) return 0;
  const auto splits = (*lists)[0].inner_splits.unchecked_values<int64_t>();
  Check(splits.back() == (*lists)[0].values.num_elements());
  for (size_t i = 1; i < splits.size(); ++i) Check(splits[i - 1] <= splits[i]);
  return 0;
}
