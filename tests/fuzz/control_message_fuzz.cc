// Messages of a cluster, to a task that serves as worker and master: from the other task,
// from two clients, and from somebody whose number nobody has. Each begins with four bytes: who
// sends it and how it is put right (so that what is behind the first checks is reached), which
// method, and the size of a serialized `cluster::Message` that follows.

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
      if (!message.session().empty()) session = message.session();
      if (!message.handle().empty()) handle = message.handle();
      if (message.kind() == cluster::REQUEST) asked = message.id();
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TaskNode node;
  Known known;
  uint64_t next_id = 1;
  for (int count = 0; size >= 4 && count < 64; ++count) {
    const uint8_t who = data[0], method = data[1];
    const size_t length = std::min<size_t>(data[2] | data[3] << 8, size - 4);
    cluster::Message message;
    const bool readable = message.ParseFromArray(data + 4, static_cast<int>(length));
    data += 4 + length;
    size -= 4 + length;
    constexpr PeerId kPeers[] = {1, kFirstClient + 1, kFirstClient + 2, 77};
    const PeerId from = kPeers[who & 3];
    if ((who & 0xe0) == 0xe0) {
      method & 1 ? node.OnLinkDown(from) : node.Pass(method * kSecond / 10);
      continue;
    }
    if (!readable) continue;
    if (who & 4) {
      message.set_version(kProtocolVersion);
      message.set_incarnation(10 + from);
      message.set_to_incarnation(0);
      if (from == 1) message.set_task(TaskNode::Task(1));
    }
    if (who & 8) {
      message.set_kind(cluster::REQUEST);
      message.set_id(next_id++);
      message.set_method(static_cast<cluster::Method>(method % 40));
      for (cluster::Partition& partition : *message.mutable_partitions()) {
        if (method & 0x80) partition.set_device(TaskNode::Task(0) + "/device:CPU:0");
      }
    }
    if (who & 16) {
      message.set_session(from == 1 ? "s" : known.session);
      message.set_handle(from == 1 ? "g" : known.handle);
      message.set_step(method >> 6);
      if (message.kind() == cluster::REPLY) message.set_id(known.asked);
    }
    node.OnMessage(from, std::move(message));
    known.Learn(node.sent());
    node.sent().clear();
  }
  node.Stop();
  return 0;
}
