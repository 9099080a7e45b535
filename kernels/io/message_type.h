/// Types of protocol buffer messages that are known only when a graph runs.
#ifndef TROUPE_KERNELS_IO_MESSAGE_TYPE_H_
#define TROUPE_KERNELS_IO_MESSAGE_TYPE_H_

#include <google/protobuf/descriptor.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace troupe {

/// A message type and what holds its descriptor.
struct MessageType {
  std::unique_ptr<google::protobuf::DescriptorPool> pool;  ///< nullptr: the pool linked in.
  const google::protobuf::Descriptor* descriptor = nullptr;
};

/// Finds the message type called `name` ("package.Message", nested ones "package.Outer.Inner")
/// where `source` says: "local://" is the pool of what is linked into the program, in which
/// TensorFlow's own messages have TensorFlow's names too; "bytes://" is followed by a serialized
/// FileDescriptorSet; anything else is the path of a file that holds one. Files of a set come after
/// those that they import. InvalidArgument if there is no such source or type.
absl::StatusOr<MessageType> FindMessageType(const std::string& source, const std::string& name);

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_MESSAGE_TYPE_H_
