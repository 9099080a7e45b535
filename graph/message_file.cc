#include "graph/message_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

// What a message can have at most.
constexpr size_t kMaxMessageBytes = std::numeric_limits<int>::max();

/// Keeps the parser's first complaint.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = StrCat("line ", line + 1, ", column ", column + 1, ": ", message);
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

bool LooksLikeText(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 4096);
  for (const char c : head) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (u < 0x20 && u != '\n' && u != '\r' && u != '\t') return false;
  }
  return true;
}

std::string_view FirstTextField(std::string_view text) {
  while (!text.empty() && (std::isspace(static_cast<unsigned char>(text[0])) || text[0] == '#')) {
    text.remove_prefix(text[0] == '#' ? std::min(text.find('\n'), text.size()) : 1);
  }
  return text.substr(0, text.find_first_of(" :{\n\r\t"));
}

bool ParseBinaryMessage(std::string_view bytes, google::protobuf::Message* message) {
  message->Clear();
  if (bytes.size() > kMaxMessageBytes) return false;
  const google::protobuf::LogSilencer silencer;  // the error is the caller's to report
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxMessageNesting);
  return message->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

absl::Status ParseTextMessage(std::string_view text, UnknownFields unknown,
                              google::protobuf::Message* message) {
  message->Clear();
  if (text.size() > kMaxMessageBytes) return InvalidArgument("the text has 2 GB or more");
  const google::protobuf::LogSilencer silencer;
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxMessageNesting);
  parser.AllowUnknownField(unknown == UnknownFields::kSkip);
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (parser.Parse(&stream, message)) return absl::OkStatus();
  message->Clear();
  return InvalidArgument(error.text());
}

absl::Status ParseMessage(std::string_view bytes, UnknownFields unknown,
                          google::protobuf::Message* message) {
  const std::string kind = message->GetDescriptor()->name();
  if (!LooksLikeText(bytes)) {
    if (ParseBinaryMessage(bytes, message)) return absl::OkStatus();
    message->Clear();
    return InvalidArgument("not a ", kind, ": ", bytes.size(),
                           " bytes that are neither text nor a valid binary message (cut off, "
                           "damaged, or nested deeper than ",
                           kMaxMessageNesting, " messages)");
  }
  const absl::Status status = ParseTextMessage(bytes, unknown, message);
  // A binary message may by chance look like text.
  if (status.ok() || ParseBinaryMessage(bytes, message)) return absl::OkStatus();
  message->Clear();
  return WithContext(StrCat("not a ", kind, " in text form: "), status);
}

absl::StatusOr<std::string> ReadFileBytes(const std::string& file) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(file));
  return ReadWholeFile(files, file, kMaxMessageBytes);
}

absl::Status ReadMessage(const std::string& file, UnknownFields unknown,
                         google::protobuf::Message* message) {
  return CatchExceptions([&]() -> absl::Status {
    TROUPE_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(file));
    return WithContext(StrCat("'", file, "': "), ParseMessage(bytes, unknown, message));
  });
}

absl::StatusOr<std::string> SerializeMessage(const google::protobuf::Message& message,
                                             bool as_text) {
  std::string bytes;
  if (as_text) {
    if (google::protobuf::TextFormat::PrintToString(message, &bytes)) return bytes;
  } else if (message.ByteSizeLong() <= kMaxMessageBytes) {
    // The same message gives the same bytes, maps or not.
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    if (message.SerializeToCodedStream(&coded)) {
      coded.Trim();
      return bytes;
    }
  }
  return InvalidArgument("a ", message.GetDescriptor()->name(), " takes 2 GB at most");
}

}  // namespace troupe
