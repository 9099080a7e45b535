#include "devices/storage/checkpoint_state.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "devices/storage/path.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "graph/protos/checkpoint.pb.h"

namespace troupe {
namespace {

using google::protobuf::TextFormat;

/// A list of a million checkpoints is no list of checkpoints.
constexpr size_t kMaxStateBytes = 64 << 20;

/// Keeps the first mistake.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty()) text_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// `prefix` as the file has it: a path that is not absolute begins in the file's folder.
std::string ForFile(const std::string& prefix, const std::string& directory, bool relative) {
  if (!IsAbsolutePath(prefix)) return RelativePath(prefix, directory);
  const std::string inside = relative ? RelativePath(prefix, directory) : prefix;
  return inside.starts_with("../") ? prefix : inside;
}

}  // namespace

absl::Status WriteCheckpointState(FileSystem* file_system, const std::string& directory,
                                  CheckpointHistory history,
                                  const CheckpointStateOptions& options) {
  if (!history.timestamps.empty() && history.timestamps.size() != history.all.size()) {
    return InvalidArgument("There are ", history.all.size(), " checkpoints, but ",
                           history.timestamps.size(), " timestamps");
  }
  if (history.timestamps.empty() && (history.all.empty() || history.all.back() != history.latest)) {
    history.all.push_back(history.latest);
  }
  CheckpointState state;
  const auto for_file = [&](const std::string& prefix) {
    return ForFile(prefix, directory, options.relative_paths);
  };
  state.set_model_checkpoint_path(for_file(history.latest));
  for (const std::string& prefix : history.all) {
    state.add_all_model_checkpoint_paths(for_file(prefix));
  }
  state.mutable_all_model_checkpoint_timestamps()->Add(history.timestamps.begin(),
                                                       history.timestamps.end());
  state.set_last_preserved_timestamp(history.last_preserved);
  TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(false);
  std::string text;
  if (!printer.PrintToString(state, &text)) {
    return absl::InternalError("A list of checkpoints cannot be printed");
  }
  return ReplaceFile(file_system, JoinPath(directory, options.file_name), text, options.replace);
}

absl::StatusOr<CheckpointHistory> ReadCheckpointState(FileSystem* file_system,
                                                      const std::string& directory,
                                                      const std::string& file_name) {
  const std::string path = JoinPath(directory, file_name);
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file_system, path, kMaxStateBytes));
  CheckpointState state;
  FirstError error;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (!parser.ParseFromString(text, &state)) {
    return absl::DataLossError(StrCat(path, ", ", error.text(),
                                      ": the list of checkpoints is damaged; remove the file and "
                                      "name the checkpoint"));
  }
  CheckpointHistory history;
  history.latest = JoinPath(directory, state.model_checkpoint_path());
  for (const std::string& prefix : state.all_model_checkpoint_paths()) {
    history.all.push_back(JoinPath(directory, prefix));
  }
  history.timestamps.assign(state.all_model_checkpoint_timestamps().begin(),
                            state.all_model_checkpoint_timestamps().end());
  history.last_preserved = state.last_preserved_timestamp();
  if (state.model_checkpoint_path().empty()) {
    return absl::DataLossError(StrCat(path, ": the file names no latest checkpoint"));
  }
  return history;
}

}  // namespace troupe
