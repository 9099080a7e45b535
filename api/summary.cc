#include "api/summary.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "api/ops.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/protos/summary.pb.h"

namespace troupe::summary {
namespace {

/// With underscores for what names of nodes cannot have, and no slash in front.
std::string CleanTag(std::string_view name) {
  std::string clean(name);
  for (char& c : clean) {
    const bool fine = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '/' ||
                      c == '_' || c == '.';
    if (!fine) c = '_';
  }
  return clean.substr(std::min(clean.size(), clean.find_first_not_of('/')));
}

/// A summary's own scope, for the node that is called like it, and the tag that follows.
struct Named {
  Named(const Scope& outer, std::string_view name, const Options& options)
      : scope(outer.NewSubScope(BaseName(name, options))), tag(scope.prefix()) {
    if (!tag.empty()) tag.pop_back();
    const std::string family = CleanTag(options.family);
    if (!family.empty()) tag = StrCat(family, "/", tag);
    scope = scope.WithOpName(scope.prefix());
  }
  /// A constant, called like an input of the op.
  Output Constant(const char* input, const std::string& value) const {
    return Const(scope.WithOpName(input), Tensor::Scalar<std::string>(value));
  }
  static std::string BaseName(std::string_view name, const Options& options) {
    const std::string family = CleanTag(options.family), clean = CleanTag(name);
    return family.empty() ? clean : StrCat(family, "/", clean);
  }

  Scope scope;
  std::string tag;
};

Output Collect(const Scope& scope, Output made, const Options& options) {
  if (!made.valid()) return made;
  for (const std::string& key : options.collections) {
    scope.graph()->AddToCollection(key, made.name());
  }
  return made;
}

}  // namespace

Output Scalar(const Scope& scope, std::string_view name, const Input& value,
              const Options& options) {
  const Named named(scope, name, options);
  return Collect(scope, ops::ScalarSummary(named.scope, named.Constant("tags", named.tag), value),
                 options);
}

Output Histogram(const Scope& scope, std::string_view name, const Input& values,
                 const Options& options) {
  const Named named(scope, name, options);
  return Collect(
      scope, ops::HistogramSummary(named.scope, named.Constant("tag", named.tag), values), options);
}

Output Image(const Scope& scope, std::string_view name, const Input& images, int64_t most,
             const Options& options) {
  const Named named(scope, name, options);
  return Collect(scope,
                 ops::ImageSummary(named.scope, named.Constant("tag", named.tag), images,
                                   {.max_images = most}),
                 options);
}

Output Audio(const Scope& scope, std::string_view name, const Input& sounds, const Input& rate,
             int64_t most, const Options& options) {
  const Named named(scope, name, options);
  return Collect(scope,
                 ops::AudioSummaryV2(named.scope, named.Constant("tag", named.tag), sounds, rate,
                                     {.max_outputs = most}),
                 options);
}

Output TensorValue(const Scope& scope, std::string_view name, const Input& tensor,
                   const std::string& metadata, const Options& options) {
  const Named named(scope, name, options);
  return Collect(scope,
                 ops::TensorSummaryV2(named.scope, named.Constant("tag", named.tag), tensor,
                                      named.Constant("serialized_summary_metadata", metadata)),
                 options);
}

Output Text(const Scope& scope, std::string_view name, const Input& text, const Options& options) {
  const Output strings = text.ToOutput(scope);
  if (strings.valid() && strings.type() != ElementType::kString) {
    scope.UpdateStatus(InvalidArgument("the text summary '", name, "' is given a tensor of type ",
                                       ElementTypeName(strings.type()), ", not of strings"));
  }
  SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name("text");
  return TensorValue(scope, name, strings, metadata.SerializeAsString(), options);
}

Output Merge(const Scope& scope, absl::Span<const Output> summaries) {
  return ops::MergeSummary(scope.NewSubScope("Merge").WithOpName("MergeSummary"), summaries);
}

Output MergeAll(const Scope& scope, std::string_view collection) {
  std::vector<Output> summaries;
  for (const std::string& name : scope.graph()->Collection(collection)) {
    absl::StatusOr<Output> found = scope.graph()->FindOutput(name);
    if (!found.ok()) {
      scope.UpdateStatus(WithContext(StrCat("collection '", collection, "': "), found.status()));
      return Output();
    }
    summaries.push_back(*found);
  }
  return summaries.empty() ? Output() : Merge(scope, summaries);
}

}  // namespace troupe::summary
