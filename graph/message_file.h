/// Messages from outside, binary or text.
#ifndef TROUPE_GRAPH_MESSAGE_FILE_H_
#define TROUPE_GRAPH_MESSAGE_FILE_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace troupe {

/// Messages nested deeper are taken for an attack: graphs that TensorFlow writes stay below twenty.
inline constexpr int kMaxMessageNesting = 64;

/// Text has no control characters but white space; the first byte of a binary message with graphs
/// is a tag, of which most are such characters, and what follows is the length.
bool LooksLikeText(std::string_view bytes);

/// The name of the first field of a message in text form; empty if there is none.
std::string_view FirstTextField(std::string_view text);

/// False, with `message` in any state, if the bytes are no such message, are nested too deep, or
/// are 2 GB or more.
bool ParseBinaryMessage(std::string_view bytes, google::protobuf::Message* message);

/// What to do with fields of a text that the message does not have.
enum class UnknownFields { kSkip, kRefuse };

/// InvalidArgument with line, column and what is wrong there.
absl::Status ParseTextMessage(std::string_view text, UnknownFields unknown,
                              google::protobuf::Message* message);

/// Either form, told by the content. InvalidArgument; `message` is empty then.
absl::Status ParseMessage(std::string_view bytes, UnknownFields unknown,
                          google::protobuf::Message* message);

/// All of a file of any file system, if a message can be as long. NotFound.
absl::StatusOr<std::string> ReadFileBytes(const std::string& file);
/// `ParseMessage` of a file's bytes; errors name the file.
absl::Status ReadMessage(const std::string& file, UnknownFields unknown,
                         google::protobuf::Message* message);

/// The message's bytes, or its text. InvalidArgument if it takes 2 GB or more.
absl::StatusOr<std::string> SerializeMessage(const google::protobuf::Message& message,
                                             bool as_text);

}  // namespace troupe

#endif  // TROUPE_GRAPH_MESSAGE_FILE_H_
