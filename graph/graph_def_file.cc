#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

// Messages nested deeper are taken for an attack: graphs that TensorFlow writes stay below twenty.
constexpr int kMaxNesting = 64;

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

bool ParseBinary(std::string_view bytes, GraphDef* def) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  return def->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

/// Text has no control characters but white space; the first byte of a binary GraphDef is a tag, of
/// which most are such characters, and what follows is the length.
bool LooksLikeText(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, 4096);
  for (const char c : head) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (u < 0x20 && u != '\n' && u != '\r' && u != '\t') return false;
  }
  return true;
}

}  // namespace

absl::Status ParseGraphDef(std::string_view bytes, GraphDef* def) {
  def->Clear();
  google::protobuf::LogSilencer silencer;  // the error is the caller's to report
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return InvalidArgument("a GraphDef of ", bytes.size(),
                           " bytes is too large; the format ends at 2 GB");
  }
  const bool text = LooksLikeText(bytes);
  if (!text) {
    if (ParseBinary(bytes, def)) return absl::OkStatus();
    def->Clear();
    return InvalidArgument("not a GraphDef: ", bytes.size(),
                           " bytes that are neither text nor a valid binary message (cut off, "
                           "damaged, or nested deeper than ",
                           kMaxNesting, " messages)");
  }
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMaxNesting);
  parser.AllowUnknownField(true);
  if (parser.ParseFromString(std::string(bytes), def)) return absl::OkStatus();
  // A binary message may by chance look like text.
  if (ParseBinary(bytes, def)) return absl::OkStatus();
  def->Clear();
  return InvalidArgument("not a GraphDef in text form: ", error.text());
}

absl::Status ReadGraphDef(const std::string& file, GraphDef* def) {
  return CatchExceptions([&]() -> absl::Status {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rb"),
                                                             std::fclose);
    if (in == nullptr) {
      return absl::NotFoundError(StrCat("cannot open '", file, "': ", std::strerror(errno)));
    }
    std::string bytes;
    char block[64 << 10];
    while (const size_t n = std::fread(block, 1, sizeof(block), in.get())) bytes.append(block, n);
    if (std::ferror(in.get())) {
      if (errno == EISDIR) return InvalidArgument("'", file, "' is a directory, not a graph");
      return absl::DataLossError(StrCat("cannot read '", file, "': ", std::strerror(errno)));
    }
    return WithContext(StrCat("'", file, "': "), ParseGraphDef(bytes, def));
  });
}

}  // namespace troupe
