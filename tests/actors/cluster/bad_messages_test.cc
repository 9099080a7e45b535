// What nobody who is well-meaning sends: every message is answered with an error or dropped, and
// nothing is left of it. The fuzz target control_message_fuzz plays many more.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include "graph/protos/graph.pb.h"
#include "tests/actors/cluster/messages.h"
#include "tests/actors/cluster/task_node.h"

namespace troupe {
namespace {

using absl::StatusCode;

constexpr PeerId kTask = 1, kClient = kFirstClient + 1, kStranger = 77;

/// A message as text; what every sender gives is added.
cluster::Message Say(PeerId from, const std::string& text) {
  return MessageFrom(from == kTask ? TaskNode::Task(1) : "", 10 + from, text);
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
      if (to == from && message.has_status() && message.id() == id) {
        error_ = message.status().error();
        return message.status().code();
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
      {kTask, "version: 99 get_status {}", StatusCode::kFailedPrecondition},
      {kTask, "version: 0 get_status {}", StatusCode::kFailedPrecondition},
      {kTask, "sender { incarnation: 0 } get_status {}", StatusCode::kInvalidArgument},
      {kTask, "to_incarnation: 4 get_status {}", StatusCode::kAborted},
      {kTask, "", StatusCode::kUnimplemented},
      {kTask, "get_status_reply {}", StatusCode::kUnimplemented},
      {kTask, "add_task {}", StatusCode::kInvalidArgument},
      {kTask, "create_worker_session {}", StatusCode::kInvalidArgument},
      {kTask, "register_graph { session: 'none' handle: 'g' }", StatusCode::kNotFound},
      {kTask, "run_graph { session: 'none' handle: 'g' step: 1 }", StatusCode::kNotFound},
      {kTask, "run_graph {}", StatusCode::kNotFound},
      {kTask, "get_resources { session: 'none' wanted {} }", StatusCode::kNotFound},
      {kTask, "set_resource { session: 'none' }", StatusCode::kNotFound},
      {kClient, "save_resources { session: 'none' }", StatusCode::kAborted},
      {kClient, "restore_resource {}", StatusCode::kAborted},
      {kClient, "run_step { session: 'none' }", StatusCode::kAborted},
      {kClient, "run_step { session: 'none' callable: 'c' }", StatusCode::kAborted},
      {kClient, "make_callable {}", StatusCode::kAborted},
      {kClient, "extend_session { session: 'none' graph: 'x' }", StatusCode::kAborted},
      {kClient, "close_session { session: 'none' }", StatusCode::kAborted},
      {kClient, "release_callable {}", StatusCode::kAborted},
      {kClient, "partial_run_setup {}", StatusCode::kAborted},
      {kClient, "partial_run { session: 'none' feeds {} }", StatusCode::kAborted},
      {kClient, "join_cluster {}", StatusCode::kInvalidArgument},
      {kClient, "add_task {}", StatusCode::kPermissionDenied},
      {kStranger, "run_step { session: 'none' }", StatusCode::kAborted},
      {kStranger, "run_graph { session: 'none' step: 1 }", StatusCode::kNotFound},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Ask(row.from, row.message), static_cast<int>(row.code)) << row.message;
    EXPECT_FALSE(error_.empty()) << row.message;
  }
  EXPECT_EQ(Left(), 0u);
}

TEST_F(BadMessagesTest, WhatEndsThingsThatAreNotThereSucceeds) {
  EXPECT_EQ(Ask(kTask, "delete_worker_session { session: 'none' }"), 0);
  EXPECT_EQ(Ask(kTask, "deregister_graph { session: 'none' handle: 'g' }"), 0);
  EXPECT_EQ(Ask(kTask, "cleanup_graph { step: 17 }"), 0);
  EXPECT_EQ(Ask(kTask, "cleanup_all { containers: 'none' containers: '' }"), 0);
  EXPECT_EQ(Ask(kClient, "cancel { ids: 1 ids: 2 reason { code: 99 } }"), 0);
  EXPECT_EQ(Left(), 0u);
}

TEST_F(BadMessagesTest, OtherKindsAreDropped) {
  for (PeerId from : {kTask, kClient, kStranger}) {
    for (const char* message : {
             "status {}",
             "id: 12345 status { code: 3 error: 'x' }",
             "id: 12345 status { code: -7 } run_graph_reply {}",
             "id: 12345 status {} run_graph { session: 's' }",
             "status { code: 77 } pong { timeout_us: -1 }",
             "status { code: 77 } ping {}",
         }) {
      node_.OnMessage(from, Say(from, message));
    }
  }
  EXPECT_EQ(Left(), 0u);
}

// A reply counts once, if its number is that of a request to whoever sends it.
TEST_F(BadMessagesTest, RepliesThatNobodyWaitsForAreDropped) {
  node_.OnMessage(kTask, Say(kTask, "ping {}"));  // Task 1 is up, and is asked for its status.
  uint64_t asked = 0;
  for (const auto& [to, message] : node_.sent()) {
    if (to == kTask && message.has_get_status()) asked = message.id();
  }
  ASSERT_NE(asked, 0u);
  const auto reply = [&](PeerId from, uint64_t id, const char* rest) {
    cluster::Message message = Say(from, rest);
    message.set_id(id);
    node_.OnMessage(from, std::move(message));
  };
  const auto flood = [&] {
    for (uint64_t id = 0; id < 1000; ++id) {
      for (const PeerId from : {kTask, kClient, kStranger}) {
        if (id == asked && from == kTask) continue;
        reply(from, id, "status {} get_status_reply { tasks { name: 'x' address: 'y:1' } }");
        reply(from, ~id, "status { code: 14 error: 'lost' } run_graph_reply {}");
      }
    }
  };
  flood();
  node_.sent().clear();
  const size_t before = mallinfo2().uordblks;  // 0 with the address sanitizer's allocator
  flood();
  EXPECT_LE(mallinfo2().uordblks, before + 4096);
  EXPECT_TRUE(node_.sent().empty());
  EXPECT_EQ(node_.role()->calls()->num_pending(), 1u);
  EXPECT_EQ(Left(), 0u);
  for (int i = 0; i < 2; ++i) {
    reply(kTask, asked, "status {} get_status_reply {}");
    EXPECT_EQ(node_.role()->calls()->num_pending(), 0u);
  }
  EXPECT_EQ(Ask(kTask, "get_status {}"), 0);
}

TEST_F(BadMessagesTest, SessionsOfOthersCannotBeTouched) {
  ASSERT_EQ(Ask(kTask, "create_worker_session { session: 's' }"), 0);
  EXPECT_EQ(Ask(kClient, "create_worker_session { session: 's' }"),
            static_cast<int>(StatusCode::kAlreadyExists));
  EXPECT_EQ(Ask(kClient, "register_graph { session: 's' handle: 'g' }"),
            static_cast<int>(StatusCode::kNotFound));
  EXPECT_EQ(Ask(kTask, "register_graph { session: 's' handle: '' }"),
            static_cast<int>(StatusCode::kAlreadyExists));
  EXPECT_EQ(node_.role()->worker()->num_sessions(), 1u);
}

TEST_F(BadMessagesTest, GraphsThatAreNoneAreRefused) {
  ASSERT_EQ(Ask(kTask, "create_worker_session { session: 's' }"), 0);
  const std::string start = "register_graph { session: 's' handle: 'g' ";
  const std::string device = "device: '/job:a/replica:0/task:0/device:CPU:0' ";
  for (const std::string& rest : {
           std::string(),
           std::string("partitions {}"),
           std::string("partitions { device: '/job:b/replica:0/task:0/device:CPU:0' }"),
           "partitions { " + device + "graph: '\\377\\377' }",
           "partitions { " + device + "feeds { tensor: 'x:0' } }",
           "partitions { " + device + "feeds { tensor: 'x:0' index: -1 } }",
           "partitions { " + device + "fetches { tensor: 'x:0' index: -1 } }",
           "partitions { " + device + "targets: 'nobody' }",
       }) {
    EXPECT_GT(Ask(kTask, start + rest + "}"), 0) << rest;
    EXPECT_FALSE(error_.empty()) << rest;
  }
}

// The request that deletes a session may overtake the one that creates it.
TEST_F(BadMessagesTest, DeletedSessionIsNotCreatedLater) {
  EXPECT_EQ(Ask(kTask, "delete_worker_session { session: 's' }"), 0);
  EXPECT_EQ(Ask(kTask, "create_worker_session { session: 's' }"),
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
  cluster::Message request = Say(kTask, "register_graph { session: 's' handle: 'g' } id: 7");
  cluster::Partition* partition = request.mutable_register_graph()->add_partitions();
  partition->set_device(TaskNode::Task(0) + "/device:CPU:0");
  partition->set_graph(graph.SerializeAsString());
  partition->add_fetches()->set_tensor("c:0");
  ASSERT_EQ(Ask(kTask, "create_worker_session { session: 's' }"), 0);
  node_.Enter([&] {  // Both before the engine's jobs.
    node_.role()->OnMessage(kTask, request, kSecond);
    node_.role()->OnMessage(kTask, Say(kTask, "delete_worker_session { session: 's' } id: 8"),
                            kSecond);
  });
  node_.Pass(1);
  EXPECT_EQ(HostAllocator()->stats().bytes_in_use, before);
}

// A task that has lost sight of this one says which steps it has ended: they cannot end here.
TEST_F(BadMessagesTest, StepsThatAPeerHasLostDoNotBegin) {
  node_.OnMessage(kTask, Say(kTask, "id: 1 get_status { ended_steps: 5 }"));
  ASSERT_EQ(Ask(kTask, "create_worker_session { session: 's' }"), 0);
  cluster::Message request = Say(kTask, "register_graph { session: 's' handle: 'g' } id: 7");
  request.mutable_register_graph()->add_partitions()->set_device(TaskNode::Task(0) +
                                                                 "/device:CPU:0");
  node_.OnMessage(kTask, request);
  EXPECT_EQ(Ask(kTask, "run_graph { session: 's' handle: 'g' step: 5 }"),
            static_cast<int>(StatusCode::kUnavailable));
  EXPECT_THAT(error_, testing::HasSubstr(TaskNode::Task(1)));
  EXPECT_EQ(Ask(kTask, "run_graph { session: 's' handle: 'g' step: 6 }"), -1);  // It runs.
  node_.OnMessage(kTask, Say(kTask, "id: 9 get_status { ended_steps: 6 }"));
  EXPECT_EQ(node_.role()->worker()->num_steps(), 0u);
}

}  // namespace
}  // namespace troupe
