#include "api/cli/records_command.h"

#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "api/cli/cli.h"
#include "api/examples.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/whole_file.h"

namespace troupe::cli {
namespace {

constexpr int64_t kEdge = 8;  // values of a long feature that are shown at its beginning and end

/// The paths that the arguments stand for. A file of that very name is no pattern.
absl::StatusOr<std::vector<std::string>> Expand(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  for (const std::string& argument : arguments) {
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(argument));
    if (argument.find_first_of("*?[") == argument.npos || files->Exists(argument).ok()) {
      paths.push_back(argument);
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const auto found, MatchFiles(files, argument));
    if (found.empty()) return absl::NotFoundError(argument + ": no file matches");
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

// --- examples ------------------------------------------------------------------------------------

std::string ValuesText(const FeatureValues& values) {
  switch (values.kind()) {
    case FeatureValues::Kind::kFloats:
      return ToJson(Tensor::Vector<float>(values.floats()), kEdge);
    case FeatureValues::Kind::kInts:
      return ToJson(Tensor::Vector<int64_t>(values.ints()), kEdge);
    case FeatureValues::Kind::kStrings: {
      const std::vector<std::string_view> views = values.strings();
      const std::vector<std::string> strings(views.begin(), views.end());
      return ToJson(Tensor::Vector<std::string>(absl::MakeConstSpan(strings)), kEdge);
    }
    case FeatureValues::Kind::kNone:
      break;
  }
  return "[]";
}

/// "label=[3] name=[\"cat\"]".
std::string Line(const FeatureMap& features) {
  std::string line;
  for (const std::string& name : features.names()) {
    line +=
        StrCat(line.empty() ? "" : " ", EscapeLine(name), "=", ValuesText(*features.Find(name)));
  }
  return line;
}

/// The features of an Example or a SequenceExample; nothing if the record is none, or has none.
std::optional<std::string> Features(const std::string& record) {
  // Each reads as the other one, with what it does not know left out.
  const auto sequence = SequenceExampleReader::Parse(record);
  if (sequence.ok() && !sequence->list_names().empty()) {
    std::string line = Line(sequence->context());
    for (const std::string& name : sequence->list_names()) {
      line += StrCat(line.empty() ? "" : " ", EscapeLine(name), "=[");
      const std::vector<FeatureValues> steps = *sequence->Steps(name);
      for (size_t i = 0; i < steps.size(); ++i) line += (i > 0 ? "," : "") + ValuesText(steps[i]);
      line += "]";
    }
    return line;
  }
  const auto example = ExampleReader::Parse(record);
  if (!example.ok() || example->features().names().empty()) return std::nullopt;
  return Line(example->features());
}

// --- files ---------------------------------------------------------------------------------------

absl::Status Show(const std::string& path, const RecordsOptions& options) {
  RecordReaderOptions how{.compression = FileCompression::kAny};
  if (!options.compression.empty()) {
    TROUPE_ASSIGN_OR_RETURN(how.compression,
                            ParseFileCompression(absl::AsciiStrToUpper(options.compression)));
  }
  TROUPE_ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(path, how));
  const bool all = options.count || options.verify || options.head == 0;
  std::string record;
  int64_t n = 0;
  for (; all || n < options.head; ++n) {
    TROUPE_ASSIGN_OR_RETURN(const bool more, reader->Next(&record));
    if (!more) break;
    if (n >= options.head) continue;
    const auto features = options.examples ? Features(record) : std::nullopt;
    std::cout << (features ? *features : EscapeLine(record)) << "\n";
  }
  if (options.count || (!options.verify && options.head == 0)) {
    std::cout << EscapeLine(path) << ": " << n << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RecordsCommand(const RecordsOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Expand(options.files));
  for (const std::string& path : paths) TROUPE_RETURN_IF_ERROR(Show(path, options));
  return 0;
}

}  // namespace troupe::cli
