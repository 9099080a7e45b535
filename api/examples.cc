#include "api/examples.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "graph/message_file.h"
#include "graph/protos/example.pb.h"

namespace troupe {
namespace {

/// Features by name have no order of their own: sorted, so that equal messages have equal bytes.
template <typename Message>
std::string SerializeSorted(const Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

template <typename Message>
absl::StatusOr<std::shared_ptr<const Message>> ParseMessage(std::string_view bytes,
                                                            const char* what) {
  auto message = std::make_shared<Message>();
  if (!ParseBinaryMessage(bytes, message.get())) {
    return InvalidArgument("the record of ", bytes.size(), " bytes is no ", what);
  }
  return message;
}

template <typename Map>
std::vector<std::string> SortedNames(const Map& map) {
  std::vector<std::string> names;
  for (const auto& entry : map) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  return names;
}

const char* NameOf(FeatureValues::Kind kind) {
  switch (kind) {
    case FeatureValues::Kind::kFloats:
      return "floats";
    case FeatureValues::Kind::kInts:
      return "integers";
    case FeatureValues::Kind::kStrings:
      return "strings";
    case FeatureValues::Kind::kNone:
      break;
  }
  return "nothing";
}

/// The feature, if it has values of the kind.
absl::StatusOr<FeatureValues> FindKind(const FeatureMap& map, std::string_view name,
                                       FeatureValues::Kind kind) {
  TROUPE_ASSIGN_OR_RETURN(const FeatureValues values, map.Find(name));
  if (values.kind() == kind) return values;
  return InvalidArgument("feature '", name, "' holds ", NameOf(values.kind()), ", not ",
                         NameOf(kind));
}

}  // namespace

// --- builders ------------------------------------------------------------------------------------

void FeatureInput::CopyTo(Feature* feature) const {
  switch (kind_) {
    case Kind::kFloats:
      feature->mutable_float_list()->mutable_value()->Assign(floats_.begin(), floats_.end());
      return;
    case Kind::kInts:
      feature->mutable_int64_list()->mutable_value()->Assign(ints_.begin(), ints_.end());
      return;
    case Kind::kStrings:
      feature->mutable_bytes_list()->mutable_value()->Assign(strings_.begin(), strings_.end());
      return;
  }
}

ExampleBuilder::ExampleBuilder() : example_(std::make_unique<Example>()) {}
ExampleBuilder::~ExampleBuilder() = default;
ExampleBuilder::ExampleBuilder(ExampleBuilder&&) noexcept = default;
ExampleBuilder& ExampleBuilder::operator=(ExampleBuilder&&) noexcept = default;

ExampleBuilder& ExampleBuilder::Add(std::string_view name, const FeatureInput& values) {
  values.CopyTo(&(*example_->mutable_features()->mutable_feature())[std::string(name)]);
  return *this;
}
std::string ExampleBuilder::Serialize() const { return SerializeSorted(*example_); }

SequenceExampleBuilder::SequenceExampleBuilder() : example_(std::make_unique<SequenceExample>()) {}
SequenceExampleBuilder::~SequenceExampleBuilder() = default;
SequenceExampleBuilder::SequenceExampleBuilder(SequenceExampleBuilder&&) noexcept = default;
SequenceExampleBuilder& SequenceExampleBuilder::operator=(SequenceExampleBuilder&&) noexcept =
    default;

SequenceExampleBuilder& SequenceExampleBuilder::AddContext(std::string_view name,
                                                           const FeatureInput& values) {
  values.CopyTo(&(*example_->mutable_context()->mutable_feature())[std::string(name)]);
  return *this;
}
SequenceExampleBuilder& SequenceExampleBuilder::AddStep(std::string_view name,
                                                        const FeatureInput& values) {
  auto* lists = example_->mutable_feature_lists()->mutable_feature_list();
  values.CopyTo((*lists)[std::string(name)].add_feature());
  return *this;
}
std::string SequenceExampleBuilder::Serialize() const { return SerializeSorted(*example_); }

// --- readers -------------------------------------------------------------------------------------

FeatureValues::Kind FeatureValues::kind() const {
  switch (feature_->kind_case()) {
    case Feature::kFloatList:
      return Kind::kFloats;
    case Feature::kInt64List:
      return Kind::kInts;
    case Feature::kBytesList:
      return Kind::kStrings;
    case Feature::KIND_NOT_SET:
      break;
  }
  return Kind::kNone;
}

int64_t FeatureValues::size() const {
  return feature_->float_list().value_size() + feature_->int64_list().value_size() +
         feature_->bytes_list().value_size();
}

absl::Span<const float> FeatureValues::floats() const {
  const auto& values = feature_->float_list().value();
  return {values.data(), static_cast<size_t>(values.size())};
}
absl::Span<const int64_t> FeatureValues::ints() const {
  const auto& values = feature_->int64_list().value();
  static_assert(sizeof(*values.data()) == sizeof(int64_t));
  return {values.data(), static_cast<size_t>(values.size())};
}
std::vector<std::string_view> FeatureValues::strings() const {
  const auto& values = feature_->bytes_list().value();
  return {values.begin(), values.end()};
}

std::vector<std::string> FeatureMap::names() const { return SortedNames(features_->feature()); }

bool FeatureMap::Has(std::string_view name) const {
  return features_->feature().contains(std::string(name));
}

absl::StatusOr<FeatureValues> FeatureMap::Find(std::string_view name) const {
  const auto found = features_->feature().find(std::string(name));
  if (found != features_->feature().end()) return FeatureValues(&found->second);
  return absl::NotFoundError(StrCat("the example has no feature '", name, "'"));
}
absl::StatusOr<absl::Span<const float>> FeatureMap::Floats(std::string_view name) const {
  TROUPE_ASSIGN_OR_RETURN(const auto values, FindKind(*this, name, FeatureValues::Kind::kFloats));
  return values.floats();
}
absl::StatusOr<absl::Span<const int64_t>> FeatureMap::Ints(std::string_view name) const {
  TROUPE_ASSIGN_OR_RETURN(const auto values, FindKind(*this, name, FeatureValues::Kind::kInts));
  return values.ints();
}
absl::StatusOr<std::vector<std::string_view>> FeatureMap::Strings(std::string_view name) const {
  TROUPE_ASSIGN_OR_RETURN(const auto values, FindKind(*this, name, FeatureValues::Kind::kStrings));
  return values.strings();
}

absl::StatusOr<ExampleReader> ExampleReader::Parse(std::string_view bytes) {
  TROUPE_ASSIGN_OR_RETURN(auto example, ParseMessage<Example>(bytes, "Example"));
  return ExampleReader(std::move(example));
}
FeatureMap ExampleReader::features() const { return FeatureMap(&example_->features()); }

absl::StatusOr<SequenceExampleReader> SequenceExampleReader::Parse(std::string_view bytes) {
  TROUPE_ASSIGN_OR_RETURN(auto example, ParseMessage<SequenceExample>(bytes, "SequenceExample"));
  return SequenceExampleReader(std::move(example));
}
FeatureMap SequenceExampleReader::context() const { return FeatureMap(&example_->context()); }
std::vector<std::string> SequenceExampleReader::list_names() const {
  return SortedNames(example_->feature_lists().feature_list());
}
absl::StatusOr<std::vector<FeatureValues>> SequenceExampleReader::Steps(
    std::string_view name) const {
  const auto& lists = example_->feature_lists().feature_list();
  const auto found = lists.find(std::string(name));
  if (found == lists.end()) {
    return absl::NotFoundError(StrCat("the example has no list of features '", name, "'"));
  }
  std::vector<FeatureValues> steps;
  for (const Feature& feature : found->second.feature()) steps.emplace_back(&feature);
  return steps;
}

}  // namespace troupe
