// Messages of every type, changed on their way, to a task that serves as worker and master: it
// answers or drops them, goes on, and nothing is left of them. TROUPE_MUTATIONS=N makes N of each
// type.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <random>

#include "tests/actors/cluster/task_node.h"
#include "tests/how_many.h"
#include "tests/net/mutate.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr PeerId kPeers[] = {1, kFirstClient + 1, 77};
// A task's worth of them: then it is stopped, and looked at.
constexpr int kOfOneTask = 1000;

class Maker {
 public:
  explicit Maker(unsigned seed) : random(seed) {}

  size_t Below(size_t n) { return random() % n; }
  /// Of a field that holds `bytes`, or else UTF-8, without which a message cannot be read.
  std::string Text(bool bytes) {
    static const std::string kTexts[] = {"",
                                         "s",
                                         "g",
                                         "x:0",
                                         "nobody",
                                         TaskNode::Task(0),
                                         TaskNode::Task(1),
                                         TaskNode::Task(0) + "/device:CPU:0",
                                         "h:2",
                                         std::string(300, 'x'),
                                         std::string("\0\xff", 2)};
    return kTexts[Below(std::size(kTexts) - (bytes ? 0 : 1))];
  }
  uint64_t Number() {
    static constexpr uint64_t kNumbers[] = {0, 1, 2, 5, 7, 255, 1 << 20, INT32_MAX, INT64_MAX};
    const uint64_t number = kNumbers[Below(std::size(kNumbers))];
    return Below(4) == 0 ? ~number : number;
  }
  /// Sets most of its fields.
  void Fill(Message* message, int depth) {
    const auto* type = message->GetDescriptor();
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* field = type->field(i);
      if (field->real_containing_oneof() != nullptr || Below(4) == 0) continue;
      for (size_t n = field->is_repeated() ? Below(3) : 1; n > 0; --n) Set(field, depth, message);
    }
  }

  std::mt19937 random;

 private:
  void Set(const FieldDescriptor* field, int depth, Message* message) {
    const auto* fields = message->GetReflection();
    const bool many = field->is_repeated();
    const uint64_t n = Number();
    const bool bytes = field->type() == FieldDescriptor::TYPE_BYTES;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth > 3) return;
        return Fill(
            many ? fields->AddMessage(message, field) : fields->MutableMessage(message, field),
            depth + 1);
      case FieldDescriptor::CPPTYPE_STRING:
        return many ? fields->AddString(message, field, Text(bytes))
                    : fields->SetString(message, field, Text(bytes));
      case FieldDescriptor::CPPTYPE_BOOL:
        return many ? fields->AddBool(message, field, n & 1)
                    : fields->SetBool(message, field, n & 1);
      case FieldDescriptor::CPPTYPE_ENUM:
        return many ? fields->AddEnumValue(message, field, static_cast<int>(n % 30))
                    : fields->SetEnumValue(message, field, static_cast<int>(n % 30));
      case FieldDescriptor::CPPTYPE_INT32:
        return many ? fields->AddInt32(message, field, static_cast<int32_t>(n))
                    : fields->SetInt32(message, field, static_cast<int32_t>(n));
      case FieldDescriptor::CPPTYPE_UINT32:
        return many ? fields->AddUInt32(message, field, static_cast<uint32_t>(n))
                    : fields->SetUInt32(message, field, static_cast<uint32_t>(n));
      case FieldDescriptor::CPPTYPE_INT64:
        return many ? fields->AddInt64(message, field, static_cast<int64_t>(n))
                    : fields->SetInt64(message, field, static_cast<int64_t>(n));
      case FieldDescriptor::CPPTYPE_UINT64:
        return many ? fields->AddUInt64(message, field, n) : fields->SetUInt64(message, field, n);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return many ? fields->AddDouble(message, field, static_cast<double>(n))
                    : fields->SetDouble(message, field, static_cast<double>(n));
      case FieldDescriptor::CPPTYPE_FLOAT:
        return many ? fields->AddFloat(message, field, static_cast<float>(n))
                    : fields->SetFloat(message, field, static_cast<float>(n));
    }
  }
};

/// A message of that type as a well-meaning sender would frame it.
cluster::Message MessageOf(const FieldDescriptor* body, PeerId from, Maker* maker) {
  cluster::Message message;
  message.set_version(kProtocolVersion);
  message.mutable_sender()->set_incarnation(10 + from);
  if (from == 1) message.mutable_sender()->set_task(TaskNode::Task(1));
  message.set_id(1 + maker->Below(1 << 20));
  if (maker->Below(4) == 0) message.mutable_status()->set_code(static_cast<int>(maker->Below(20)));
  maker->Fill(message.GetReflection()->MutableMessage(&message, body), 0);
  return message;
}

TEST(MutatedMessages, EveryTypeIsAnsweredOrDropped) {
  const auto* bodies = cluster::Message::descriptor()->FindOneofByName("body");
  const int of_each = HowMany("TROUPE_MUTATIONS", 500, /*one_in=*/5);
  Maker maker(20261);
  const google::protobuf::LogSilencer silence;  // A line for every string that is none.
  int64_t read = 0, answered = 0;
  size_t in_use = 0;
  for (int type = 0; type < bodies->field_count(); ++type) {
    SCOPED_TRACE(bodies->field(type)->name());
    for (int done = 0; done < of_each;) {
      TaskNode node;
      // What the messages name is there, now and then.
      for (const PeerId from : {PeerId{1}, kFirstClient + 1}) {
        cluster::Message begin = MessageOf(bodies->field(type), from, &maker);
        begin.clear_status();
        begin.mutable_create_worker_session()->set_session("s");
        node.OnMessage(from, std::move(begin));
      }
      std::string bytes;
      PeerId from = 1;
      for (int i = 0; i < kOfOneTask && done < of_each; ++i, ++done) {
        if (i % 16 == 0) {
          from = kPeers[maker.Below(std::size(kPeers))];
          bytes = MessageOf(bodies->field(type), from, &maker).SerializeAsString();
        }
        cluster::Message message;
        if (!message.ParseFromString(Mutated(bytes, &maker.random))) continue;
        ++read;
        node.sent().clear();
        node.OnMessage(from, std::move(message));
        answered += node.sent().empty() ? 0 : 1;
      }
      node.Stop();  // Aborts if something is left.
    }
    // After the first types all pools and tables have been made.
    if (type == 2) in_use = mallinfo2().uordblks;
  }
  EXPECT_LT(mallinfo2().uordblks, in_use + (32 << 20));
  EXPECT_GT(read, int64_t{of_each} * bodies->field_count() / 10);
  EXPECT_GT(answered, read / 10);
  std::printf("%d mutations of each of %d types, %lld could be read, %lld were answered\n", of_each,
              bodies->field_count(), static_cast<long long>(read),
              static_cast<long long>(answered));
}

}  // namespace
}  // namespace troupe
