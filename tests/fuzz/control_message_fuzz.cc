// Messages of a cluster, to a task that serves as worker and master: from the other task, from two
// clients, and from somebody whose number nobody has. Each begins with four bytes: who sends it and
// how it is put right (so that what is behind the first checks is reached), a number, and the size
// of a serialized `cluster::Message` that follows.

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "tests/actors/cluster/task_node.h"

namespace {

using namespace troupe;  // NOLINT: a short program

/// The sessions, callables and requests that the task has told of.
struct Known {
  std::string session, handle;
  uint64_t asked = 0;  ///< The last request of the task.

  void Learn(const std::deque<std::pair<PeerId, cluster::Message>>& sent) {
    for (const auto& [to, message] : sent) {
      if (message.has_create_session_reply()) session = message.create_session_reply().session();
      if (message.has_make_callable_reply()) handle = message.make_callable_reply().callable();
      if (message.has_partial_run_setup_reply()) {
        handle = message.partial_run_setup_reply().partial_run();
      }
      if (IsRequest(message)) asked = message.id();
    }
  }
};

const google::protobuf::OneofDescriptor* Bodies() {
  return cluster::Message::descriptor()->FindOneofByName("body");
}

/// What the body is, read as one of another type.
void ChangeBody(int type, cluster::Message* message) {
  const google::protobuf::Reflection* fields = message->GetReflection();
  const auto* before = fields->GetOneofFieldDescriptor(*message, Bodies());
  const std::string bytes =
      before == nullptr ? "" : fields->GetMessage(*message, before).SerializeAsString();
  const auto* after = Bodies()->field(type % Bodies()->field_count());
  fields->MutableMessage(message, after)->ParseFromString(bytes);
}

/// Has the body name what there is.
void SetNames(const std::string& session, const std::string& handle, uint64_t step,
              cluster::Message* message) {
  const auto* which = message->GetReflection()->GetOneofFieldDescriptor(*message, Bodies());
  if (which == nullptr) return;
  auto* body = message->GetReflection()->MutableMessage(message, which);
  const google::protobuf::Reflection* fields = body->GetReflection();
  for (int i = 0; i < which->message_type()->field_count(); ++i) {
    const auto* field = which->message_type()->field(i);
    const std::string& name = field->name();
    if (name == "session") {
      fields->SetString(body, field, session);
    } else if (name == "handle" || name == "partial_run" ||
               (name == "callable" && fields->HasField(*body, field))) {
      fields->SetString(body, field, handle);
    } else if (name == "step") {
      fields->SetUInt64(body, field, step);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TaskNode node;
  Known known;
  uint64_t next_id = 1;
  for (int count = 0; size >= 4 && count < 64; ++count) {
    const uint8_t who = data[0], number = data[1];
    const size_t length = std::min<size_t>(data[2] | data[3] << 8, size - 4);
    cluster::Message message;
    const bool readable = message.ParseFromArray(data + 4, static_cast<int>(length));
    data += 4 + length;
    size -= 4 + length;
    constexpr PeerId kPeers[] = {1, kFirstClient + 1, kFirstClient + 2, 77};
    const PeerId from = kPeers[who & 3];
    if ((who & 0xe0) == 0xe0) {
      number & 1 ? node.OnLinkDown(from) : node.Pass(number * kSecond / 10);
      continue;
    }
    if (!readable) continue;
    if (who & 4) {
      message.set_version(kProtocolVersion);
      message.mutable_sender()->set_incarnation(10 + from);
      message.set_to_incarnation(0);
      if (from == 1) message.mutable_sender()->set_task(TaskNode::Task(1));
    }
    if (who & 32) ChangeBody(number & 0x3f, &message);
    if (who & 8) {
      message.clear_status();
      message.set_id(next_id++);
    }
    if (who & 16) {
      SetNames(from == 1 ? "s" : known.session, from == 1 ? "g" : known.handle, number >> 6,
               &message);
      if (message.has_status()) message.set_id(known.asked);
    }
    if (message.has_register_graph() && number & 0x80) {
      for (auto& partition : *message.mutable_register_graph()->mutable_partitions()) {
        partition.set_device(TaskNode::Task(0) + "/device:CPU:0");
      }
    }
    node.OnMessage(from, std::move(message));
    known.Learn(node.sent());
    node.sent().clear();
  }
  node.Stop();
  return 0;
}
