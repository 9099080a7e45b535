#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
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
#include "graph/protos/meta_graph.pb.h"

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

/// For a file of TensorFlow's that holds a graph among other things: what it is, and what to do.
absl::Status HoldsAGraph(std::string_view kind) {
  return InvalidArgument("this is a ", kind,
                         ", not a GraphDef: write the graph alone with TensorFlow's "
                         "tf.io.write_graph(graph.as_graph_def(), folder, name), variables frozen "
                         "(convert_variables_to_constants) if their values are to come along");
}

/// The same for text, told by its first field. A parser that skips unknown fields would find an
/// empty graph.
absl::Status CheckFirstField(std::string_view text) {
  while (!text.empty() && (std::isspace(static_cast<unsigned char>(text[0])) || text[0] == '#')) {
    text.remove_prefix(text[0] == '#' ? std::min(text.find('\n'), text.size()) : 1);
  }
  const std::string_view field = text.substr(0, text.find_first_of(" :{\n\r\t"));
  for (std::string_view name : {"saved_model_schema_version", "meta_graphs"}) {
    if (field == name) return HoldsAGraph("SavedModel");
  }
  for (std::string_view name : {"meta_info_def", "graph_def", "saver_def", "collection_def",
                                "signature_def", "asset_file_def", "object_graph_def"}) {
    if (field == name) return HoldsAGraph("MetaGraphDef");
  }
  return absl::OkStatus();
}

template <typename Message>
bool ParseBinary(std::string_view bytes, Message* def) {
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
    // A SavedModel begins with a number, its version; a GraphDef never does.
    SavedModel saved_model;
    if (bytes[0] == 8 && ParseBinary(bytes, &saved_model)) return HoldsAGraph("SavedModel");
    if (ParseBinary(bytes, def)) return absl::OkStatus();
    def->Clear();
    MetaGraphDef meta_graph;
    if (ParseBinary(bytes, &meta_graph) && meta_graph.graph_def().node_size() > 0) {
      return HoldsAGraph("MetaGraphDef");
    }
    return InvalidArgument("not a GraphDef: ", bytes.size(),
                           " bytes that are neither text nor a valid binary message (cut off, "
                           "damaged, or nested deeper than ",
                           kMaxNesting, " messages)");
  }
  TROUPE_RETURN_IF_ERROR(CheckFirstField(bytes));
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
