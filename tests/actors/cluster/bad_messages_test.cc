// What nobody who is well-meaning sends: every message is answered with an error or dropped, and
// nothing is left of it. The fuzz target control_message_fuzz plays many more.

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "graph/protos/graph.pb.h"
#include "tests/actors/cluster/task_node.h"

namespace troupe {
namespace {

using absl::StatusCode;

constexpr PeerId kTask = 1, kClient = kFirstClient + 1, kStranger = 77;

/// A message as text; what every sender gives is added.
cluster::Message Say(PeerId from, const std::string& text) {
  cluster::Message message;
  message.set_version(kProtocolVersion);
  message.set_incarnation(10 + from);
  message.set_kind(cluster::REQUEST);
  if (from == kTask) message.set_task(TaskNode::Task(1));
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(text, &message)) << text;
  return message;
}

class BadMessagesTest : public testing::Test {
 protected:
  ~BadMessagesTest() override { node_.Stop(); }

  /// The code of the reply to a request; -1 if there is none.
  int Ask(PeerId from, const std::string& text) {
    cluster::Message request = Say(from, text);
    if (request.id() == 0) request.set_id(next_id_++);
    const uint64_t id = request.id();
    node_.sent().clear();
    node_.OnMessage(from, std::move(request));
    for (const auto& [to, message] : node_.sent()) {
      if (to == from && message.kind() == cluster::REPLY && message.id() == id) {
        error_ = message.error();
        return message.code();
      }
    }
    return -1;
  }
  size_t Left() {
    NodeRole* role = node_.role();
    return role->worker()->num_sessions() + role->worker()->num_steps() +
           role->worker()->num_early_feeds() + role->master()->num_sessions() +
           role->master()->num_steps();
  }

  TaskNode node_;
  uint64_t next_id_ = 1000;
  std::string error_;
};

TEST_F(BadMessagesTest, RequestsAreRefused) {
  struct Row {
    PeerId from;
    const char* message;
    StatusCode code;
  };
  const Row rows[] = {
      {kTask, "version: 99 method: GET_STATUS", StatusCode::kFailedPrecondition},
      {kTask, "version: 0 method: GET_STATUS", StatusCode::kFailedPrecondition},
      {kTask, "incarnation: 0 method: GET_STATUS", StatusCode::kInvalidArgument},
      {kTask, "to_incarnation: 4 method: GET_STATUS", StatusCode::kAborted},
      {kTask, "method: NO_METHOD", StatusCode::kUnimplemented},
      {kTask, "method: CREATE_WORKER_SESSION", StatusCode::kInvalidArgument},
      {kTask, "method: REGISTER_GRAPH session: 'none' handle: 'g'", StatusCode::kNotFound},
      {kTask, "method: RUN_GRAPH session: 'none' handle: 'g' step: 1", StatusCode::kNotFound},
      {kTask, "method: RUN_GRAPH", StatusCode::kNotFound},
      {kClient, "method: RUN_STEP session: 'none'", StatusCode::kAborted},
      {kClient, "method: RUN_CALLABLE session: 'none' handle: 'c'", StatusCode::kAborted},
      {kClient, "method: MAKE_CALLABLE", StatusCode::kAborted},
      {kClient, "method: EXTEND_SESSION session: 'none' graph: 'x'", StatusCode::kAborted},
      {kClient, "method: CLOSE_SESSION session: 'none'", StatusCode::kAborted},
      {kClient, "method: RELEASE_CALLABLE", StatusCode::kAborted},
      {kStranger, "method: RUN_STEP session: 'none'", StatusCode::kAborted},
      {kStranger, "method: RUN_GRAPH session: 'none' step: 1", StatusCode::kNotFound},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Ask(row.from, row.message), static_cast<int>(row.code)) << row.message;
    EXPECT_FALSE(error_.empty()) << row.message;
  }
  EXPECT_EQ(Left(), 0u);
}

TEST_F(BadMessagesTest, WhatEndsThingsThatAreNotThereSucceeds) {
  EXPECT_EQ(Ask(kTask, "method: DELETE_WORKER_SESSION session: 'none'"), 0);
  EXPECT_EQ(Ask(kTask, "method: DEREGISTER_GRAPH session: 'none' handle: 'g'"), 0);
  EXPECT_EQ(Ask(kTask, "method: CLEANUP_GRAPH step: 17"), 0);
  EXPECT_EQ(Ask(kTask, "method: CLEANUP_ALL containers: 'none' containers: ''"), 0);
  EXPECT_EQ(Ask(kClient, "method: CANCEL ids: 1 ids: 2 code: 99"), 0);
  EXPECT_EQ(Left(), 0u);
}

TEST_F(BadMessagesTest, OtherKindsAreDropped) {
  for (PeerId from : {kTask, kClient, kStranger}) {
    for (const char* message : {
             "kind: NO_KIND",
             "kind: REPLY id: 12345 code: 3 error: 'x'",
             "kind: REPLY id: 12345 code: -7",
             "kind: PONG code: 77 timeout_us: -1",
         }) {
      node_.OnMessage(from, Say(from, message));
    }
  }
  EXPECT_EQ(Left(), 0u);
}

TEST_F(BadMessagesTest, SessionsOfOthersCannotBeTouched) {
  ASSERT_EQ(Ask(kTask, "method: CREATE_WORKER_SESSION session: 's'"), 0);
  EXPECT_EQ(Ask(kClient, "method: CREATE_WORKER_SESSION session: 's' reset: true"),
            static_cast<int>(StatusCode::kAlreadyExists));
  EXPECT_EQ(Ask(kClient, "method: REGISTER_GRAPH session: 's' handle: 'g'"),
            static_cast<int>(StatusCode::kNotFound));
  EXPECT_EQ(Ask(kTask, "method: REGISTER_GRAPH session: 's' handle: ''"),
            static_cast<int>(StatusCode::kAlreadyExists));
  EXPECT_EQ(node_.role()->worker()->num_sessions(), 1u);
}

TEST_F(BadMessagesTest, GraphsThatAreNoneAreRefused) {
  ASSERT_EQ(Ask(kTask, "method: CREATE_WORKER_SESSION session: 's'"), 0);
  const std::string start = "method: REGISTER_GRAPH session: 's' handle: 'g' ";
  const std::string device = "device: '/job:a/replica:0/task:0/device:CPU:0' ";
  for (const std::string& rest : {
           std::string(),
           std::string("partitions {}"),
           std::string("partitions { device: '/job:b/replica:0/task:0/device:CPU:0' }"),
           "partitions { " + device + "graph: '\\377\\377' }",
           "partitions { " + device + "feeds: 'x:0' }",
           "partitions { " + device + "feeds: 'x:0' feed_index: 0 }",
           "partitions { " + device + "fetches: 'x:0' fetch_index: -1 }",
           "partitions { " + device + "targets: 'nobody' }",
       }) {
    EXPECT_GT(Ask(kTask, start + rest), 0) << rest;
    EXPECT_FALSE(error_.empty()) << rest;
  }
}

// The request that deletes a session may overtake the one that creates it.
TEST_F(BadMessagesTest, DeletedSessionIsNotCreatedLater) {
  EXPECT_EQ(Ask(kTask, "method: DELETE_WORKER_SESSION session: 's'"), 0);
  EXPECT_EQ(Ask(kTask, "method: CREATE_WORKER_SESSION session: 's'"),
            static_cast<int>(StatusCode::kCancelled));
  EXPECT_EQ(Left(), 0u);
}

// A graph is compiled while its session is deleted: the two must not hold each other.
TEST_F(BadMessagesTest, GraphOfADeletedSessionIsDropped) {
  const int64_t before = HostAllocator()->stats().bytes_in_use;
  GraphDef graph;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "node { name: 'c' op: 'Const' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: "
      "'value' value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 100 } } float_val: 1 } "
      "} } }",
      &graph));
  cluster::Message request = Say(kTask, "method: REGISTER_GRAPH session: 's' handle: 'g' id: 7");
  cluster::Partition* partition = request.add_partitions();
  partition->set_device(TaskNode::Task(0) + "/device:CPU:0");
  partition->set_graph(graph.SerializeAsString());
  partition->add_fetches("c:0");
  partition->add_fetch_index(0);
  ASSERT_EQ(Ask(kTask, "method: CREATE_WORKER_SESSION session: 's'"), 0);
  node_.Enter([&] {  // Both before the engine's jobs.
    node_.role()->OnMessage(kTask, request, kSecond);
    node_.role()->OnMessage(kTask, Say(kTask, "method: DELETE_WORKER_SESSION session: 's' id: 8"),
                            kSecond);
  });
  node_.Pass(1);
  EXPECT_EQ(HostAllocator()->stats().bytes_in_use, before);
}

// A task that has lost sight of this one says which steps it has ended: they cannot end here.
TEST_F(BadMessagesTest, StepsThatAPeerHasLostDoNotBegin) {
  node_.OnMessage(kTask, Say(kTask, "method: GET_STATUS id: 1 reset: true ids: 5"));
  ASSERT_EQ(Ask(kTask, "method: CREATE_WORKER_SESSION session: 's'"), 0);
  cluster::Message request = Say(kTask, "method: REGISTER_GRAPH session: 's' handle: 'g' id: 7");
  request.add_partitions()->set_device(TaskNode::Task(0) + "/device:CPU:0");
  node_.OnMessage(kTask, request);
  EXPECT_EQ(Ask(kTask, "method: RUN_GRAPH session: 's' handle: 'g' step: 5"),
            static_cast<int>(StatusCode::kUnavailable));
  EXPECT_THAT(error_, testing::HasSubstr(TaskNode::Task(1)));
  EXPECT_EQ(Ask(kTask, "method: RUN_GRAPH session: 's' handle: 'g' step: 6"), -1);  // It runs.
  node_.OnMessage(kTask, Say(kTask, "method: GET_STATUS id: 9 reset: true ids: 6"));
  EXPECT_EQ(node_.role()->worker()->num_steps(), 0u);
}

}  // namespace
}  // namespace troupe
