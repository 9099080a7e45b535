#include "actors/cluster/node_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <new>

#include "devices/log.h"
#include "tests/actors/cluster/messages.h"

namespace troupe {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

class Sent final : public Outbox {
 public:
  void Send(PeerId to, cluster::Message message) override { messages.emplace_back(to, message); }
  std::vector<std::pair<PeerId, cluster::Message>> messages;
};

/// Steps begin and do not end by themselves.
class Engine final : public WorkerEngine {
 public:
  std::vector<cluster::DeviceInfo> Devices() override { return {}; }
  void Register(cluster::RegisterGraphRequest, Done done) override {
    if (throws) throw std::bad_alloc();
    registered.push_back(std::move(done));
  }
  void Deregister(const std::string&, const std::string&) override {}
  void DeleteSession(const std::string&) override { ++deleted; }
  void Start(cluster::RunGraphRequest request, StepDone done) override {
    if (throws) throw std::bad_alloc();
    times[request.step()] = request.times();
    started[request.step()] = std::move(done);
  }
  std::string TakeTrace(uint64_t step) override {
    taken.push_back(step);
    return times[step] ? "abc" : "";
  }
  void Abort(uint64_t step, const absl::Status&) override { aborted.push_back(step); }
  void ResetContainers(const std::vector<std::string>&) override {}
  void States(const std::string&, StatesDone) override {}
  void GetResources(const cluster::GetResourcesRequest&, ResourcesDone) override {}
  void SetResource(cluster::SetResourceRequest, Done) override {}
  std::vector<uint64_t> DropEarly(ClusterTime, ClusterTime) override {
    return std::exchange(dropped, {});
  }

  std::vector<Done> registered;
  std::map<uint64_t, StepDone> started;
  std::map<uint64_t, bool> times;  ///< What is asked of the steps that were started.
  std::vector<uint64_t> aborted, dropped, taken;
  int deleted = 0;
  bool throws = false;  ///< There is no memory.
};

/// Task 0, a worker, to which task 1 talks as a master.
class NodeRoleTest : public testing::Test {
 protected:
  NodeRoleTest() : node_(Options(), &sent_, &engine_, nullptr, 0) {}
  static NodeRole::Options Options() {
    NodeRole::Options options;
    options.task = "/job:a/replica:0/task:0";
    options.incarnation = 5;
    options.tasks = {{"/job:a/replica:0/task:0", "h:1"}, {"/job:a/replica:0/task:1", "h:2"}};
    options.worker.max_early_feeds = 10;
    return options;
  }
  cluster::Message Request(const std::string& text) {
    cluster::Message request = MessageFrom("/job:a/replica:0/task:1", 9, text);
    request.set_id(next_id_++);
    return request;
  }
  /// The reply, or nothing if there is none yet.
  std::optional<cluster::Message> Ask(const cluster::Message& request) {
    node_.OnMessage(1, request, now_);
    return ReplyTo(request);
  }
  /// The code of the reply, which must have come.
  StatusCode CodeFor(const cluster::Message& request) {
    const auto reply = Ask(request);
    EXPECT_TRUE(reply) << request.ShortDebugString();
    return reply ? CodeOf(*reply) : StatusCode::kUnknown;
  }
  StatusCode CodeFor(const std::string& text) { return CodeFor(Request(text)); }
  std::optional<cluster::Message> ReplyTo(const cluster::Message& request) {
    for (const auto& [to, message] : sent_.messages) {
      if (message.has_status() && message.id() == request.id()) return message;
    }
    return std::nullopt;
  }
  /// A client asks.
  cluster::Message AskFrom(PeerId client, const std::string& text) {
    cluster::Message request = MessageFrom("", client, text);
    request.set_id(next_id_++);
    node_.OnMessage(client, request, now_);
    return request;
  }
  void RunStep(uint64_t step, const absl::Status& status = absl::OkStatus()) {
    cluster::Message run = Request("run_graph { session: 's' handle: 'g' times: true }");
    run.mutable_run_graph()->set_step(step);
    ASSERT_FALSE(Ask(run));
    engine_.started[step](status, {});
    ASSERT_TRUE(ReplyTo(run));
    EXPECT_EQ(ReplyTo(run)->run_graph_reply().metadata(), "") << "its master has not asked";
  }
  void Open() {
    ASSERT_EQ(CodeFor("create_worker_session { session: 's' }"), StatusCode::kOk);
    const cluster::Message request = Request(kRegister);
    ASSERT_FALSE(Ask(request));
    engine_.registered[0](absl::OkStatus());
    ASSERT_EQ(CodeOf(*ReplyTo(request)), StatusCode::kOk);
  }
  cluster::Message FeedOf(uint64_t step) {
    cluster::Message feed = Request("feed_graph {}");
    feed.mutable_feed_graph()->set_step(step);
    return feed;
  }

  static constexpr char kRegister[] = "register_graph { session: 's' handle: 'g' }";
  static constexpr char kRun[] = "run_graph { session: 's' handle: 'g' step: 77 }";
  static constexpr char kRunOther[] = "run_graph { session: 's' handle: 'g' step: 78 }";
  static constexpr PeerId kClient = kFirstClient + 1, kOther = kFirstClient + 2;
  ClusterTime now_ = kSecond;
  uint64_t next_id_ = 1;
  Sent sent_;
  Engine engine_;
  NodeRole node_;
};

TEST_F(NodeRoleTest, RefusesOtherVersions) {
  cluster::Message request = Request("get_status {}");
  request.set_version(kProtocolVersion + 1);
  for (int i = 0; i < 2; ++i) {
    const auto reply = Ask(request);
    ASSERT_TRUE(reply);
    EXPECT_EQ(CodeOf(*reply), StatusCode::kFailedPrecondition);
    EXPECT_THAT(reply->status().error(), HasSubstr("version 3"));
    request.clear_body();  // One that this version does not know.
    request.set_id(next_id_++);
  }
}

TEST_F(NodeRoleTest, RefusesMessagesForAnEarlierLife) {
  EXPECT_EQ(CodeFor("to_incarnation: 4 get_status {}"), StatusCode::kAborted);
  EXPECT_EQ(CodeFor("to_incarnation: 5 get_status {}"), StatusCode::kOk);
}

TEST_F(NodeRoleTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(CodeFor("run_step {}"), StatusCode::kUnimplemented);  // No master.
  EXPECT_EQ(CodeFor(""), StatusCode::kUnimplemented);
  EXPECT_EQ(CodeFor("run_graph_reply {}"), StatusCode::kUnimplemented);  // No request.
  EXPECT_EQ(CodeFor(kRegister), StatusCode::kNotFound);
  EXPECT_EQ(CodeFor(kRun), StatusCode::kNotFound);
}

TEST_F(NodeRoleTest, FailedRepliesHaveNoBody) {
  Open();
  const cluster::Message run = Request(kRun);
  ASSERT_FALSE(Ask(run));
  engine_.started[77](absl::InternalError("a kernel failed"), {TensorProto()});
  EXPECT_EQ(CodeOf(*ReplyTo(run)), StatusCode::kInternal);
  EXPECT_EQ(ReplyTo(run)->body_case(), cluster::Message::BODY_NOT_SET);
  const cluster::Message other = Request(kRunOther);
  ASSERT_FALSE(Ask(other));
  engine_.started[78](absl::OkStatus(), {TensorProto()});
  EXPECT_EQ(ReplyTo(other)->run_graph_reply().fetches_size(), 1);
}

TEST_F(NodeRoleTest, RequestsAreAnsweredWithoutMemory) {
  Open();
  engine_.throws = true;
  EXPECT_EQ(CodeFor(kRun), StatusCode::kResourceExhausted);
  EXPECT_EQ(node_.worker()->num_steps(), 0u);
  cluster::Message second = Request("register_graph { session: 's' handle: 'h' }");
  EXPECT_EQ(CodeFor(second), StatusCode::kResourceExhausted);
  engine_.throws = false;
  second.set_id(next_id_++);
  EXPECT_FALSE(Ask(second)) << "it may be tried again";
  const cluster::Message again = Request(kRunOther);
  ASSERT_FALSE(Ask(again));
  engine_.started[78](absl::OkStatus(), {});
  EXPECT_EQ(CodeOf(*ReplyTo(again)), StatusCode::kOk);
}

TEST_F(NodeRoleTest, FeedsWithoutAStepAreBounded) {
  for (uint64_t step = 100; step < 200; ++step) node_.OnMessage(1, FeedOf(step), now_);
  EXPECT_EQ(node_.worker()->num_early_feeds(), 10u);
  node_.Tick(now_ + 60 * kSecond);
  EXPECT_EQ(node_.worker()->num_early_feeds(), 10u);
  node_.Tick(now_ + 120 * kSecond);
  EXPECT_EQ(node_.worker()->num_early_feeds(), 0u);
}

TEST_F(NodeRoleTest, StepsWhoseValuesWereDroppedDoNotBegin) {
  node_.OnMessage(1, FeedOf(77), now_);
  engine_.dropped = {78};
  node_.Tick(now_ + 120 * kSecond);
  Open();
  const auto reply = Ask(Request(kRun));
  ASSERT_TRUE(reply);
  EXPECT_EQ(CodeOf(*reply), StatusCode::kUnavailable);
  EXPECT_THAT(reply->status().error(), HasSubstr("120 s before"));
  EXPECT_EQ(CodeFor(kRunOther), StatusCode::kUnavailable);
}

TEST_F(NodeRoleTest, CleanupBeforeRunIsRemembered) {
  Open();
  EXPECT_EQ(CodeFor("cleanup_graph { step: 77 }"), StatusCode::kOk);
  EXPECT_EQ(CodeFor(kRun), StatusCode::kCancelled);
}

// A master that has lost sight of the task for a while gives up what may still be on its way.
TEST_F(NodeRoleTest, AGraphThatIsGivenUpBeforeItComesIsNotKept) {
  EXPECT_EQ(CodeFor("deregister_graph { session: 's' handle: 'late' }"), StatusCode::kOk);
  Open();
  EXPECT_EQ(CodeFor("register_graph { session: 's' handle: 'late' }"), StatusCode::kCancelled);
  EXPECT_EQ(node_.worker()->num_graphs(), 1u);
  EXPECT_EQ(engine_.registered.size(), 1u);
}

TEST_F(NodeRoleTest, StepsAndSessionsEndWithTheirMaster) {
  Open();
  EXPECT_FALSE(Ask(Request(kRun)));
  node_.OnLinkDown(1, now_);
  EXPECT_EQ(engine_.aborted, std::vector<uint64_t>{77});
  EXPECT_EQ(engine_.deleted, 1);
  EXPECT_EQ(node_.worker()->num_sessions(), 0u);
}

TEST_F(NodeRoleTest, DrainingBeginsNothingAndEndsThings) {
  Open();
  node_.Drain();
  EXPECT_EQ(CodeFor(kRun), StatusCode::kUnavailable);
  EXPECT_EQ(CodeFor("delete_worker_session { session: 's' }"), StatusCode::kOk);
}

// A client may do what a master does; what it leaves behind is nobody's.
// Its kernels may go on: nobody is to wait for them.
TEST_F(NodeRoleTest, AStoppedTaskIsNotHeardOf) {
  const auto pinged = [this](ClusterTime at) {
    sent_.messages.clear();
    node_.OnMessage(1, MessageFrom("/job:a/replica:0/task:1", 9, "ping {}"), at);
    node_.Tick(at);
    bool ping = false, pong = false;
    for (const auto& [to, message] : sent_.messages) {
      ping |= message.has_ping();
      pong |= message.has_pong();
    }
    return std::pair(ping, pong);
  };
  EXPECT_EQ(pinged(2 * kSecond), std::pair(true, true));
  node_.Stop(2 * kSecond);
  EXPECT_EQ(pinged(4 * kSecond), std::pair(false, false));
}

TEST_F(NodeRoleTest, SessionsOfAClientEndWithIt) {
  EXPECT_EQ(CodeOf(*ReplyTo(AskFrom(kClient, "create_worker_session { session: 'c' }"))),
            StatusCode::kOk);
  node_.OnLinkDown(kOther, now_);
  EXPECT_EQ(node_.worker()->num_sessions(), 1u);
  node_.OnLinkDown(kClient, now_);
  EXPECT_EQ(node_.worker()->num_sessions(), 0u);
}

// Its connection may be half-open, or that of somebody who keeps it and says nothing.
TEST_F(NodeRoleTest, AClientThatIsNotHeardIsDropped) {
  std::vector<PeerId> lost;
  node_.set_watcher([&](PeerId peer, FailureDetectorRole::Change change, uint64_t) {
    if (change == FailureDetectorRole::Change::kLost && peer >= kFirstClient) lost.push_back(peer);
  });
  node_.OnLinkUp(kClient, 1, now_);
  node_.OnLinkUp(kOther, 2, now_);
  const ClusterTime end = now_ + Options().health.timeout * 3 / 2;
  for (; now_ < end; now_ += kSecond / 2) {
    AskFrom(kOther, "ping {}");
    node_.Tick(now_);
    EXPECT_TRUE(lost.empty());
  }
  // A process that stood still does not know yet who has spoken meanwhile.
  now_ += 2 * Options().health.timeout;
  node_.Tick(now_);
  EXPECT_TRUE(lost.empty());
  AskFrom(kOther, "ping {}");
  node_.Tick(now_);
  EXPECT_EQ(lost, std::vector<PeerId>{kClient});
}

// --- tracing and the log ---

TEST_F(NodeRoleTest, StepsAreTracedForAWhile) {
  Open();
  RunStep(1);
  EXPECT_FALSE(engine_.times[1]) << "what a master says of it does not count";
  EXPECT_TRUE(engine_.taken.empty());
  const cluster::Message trace = AskFrom(kClient, "trace { duration_us: 1000000 max_bytes: 100 }");
  EXPECT_FALSE(ReplyTo(trace));
  EXPECT_EQ(CodeOf(*ReplyTo(AskFrom(kOther, "trace { duration_us: 1 }"))),
            StatusCode::kAlreadyExists);
  RunStep(2);
  EXPECT_TRUE(engine_.times[2]);
  RunStep(3);
  ASSERT_FALSE(Ask(Request(kRun)));
  node_.Tick(now_ + kSecond - 1);
  EXPECT_FALSE(ReplyTo(trace));
  node_.Tick(now_ + kSecond);
  ASSERT_TRUE(ReplyTo(trace));
  EXPECT_EQ(ReplyTo(trace)->trace_reply().metadata(), "abcabc");
  EXPECT_EQ(ReplyTo(trace)->trace_reply().num_steps(), 2);
  EXPECT_FALSE(ReplyTo(trace)->trace_reply().full());
  // What is over too late is nobody's, and the engine does not keep it.
  engine_.started[77](absl::OkStatus(), {});
  EXPECT_EQ(engine_.taken, (std::vector<uint64_t>{2, 3, 77}));
  RunStep(4);
  EXPECT_FALSE(engine_.times[4]);
}

TEST_F(NodeRoleTest, AFullTraceEndsEarly) {
  Open();
  const cluster::Message trace = AskFrom(kClient, "trace { duration_us: 1000000 max_bytes: 5 }");
  RunStep(1);
  EXPECT_FALSE(ReplyTo(trace));
  RunStep(2);
  ASSERT_TRUE(ReplyTo(trace));
  EXPECT_EQ(ReplyTo(trace)->trace_reply().metadata(), "abc");
  EXPECT_EQ(ReplyTo(trace)->trace_reply().num_steps(), 1);
  EXPECT_TRUE(ReplyTo(trace)->trace_reply().full());
  EXPECT_FALSE(ReplyTo(AskFrom(kOther, "trace { duration_us: 1 }"))) << "the next one may begin";
}

TEST_F(NodeRoleTest, ATraceEndsWithItsClientOrTheTask) {
  Open();
  const cluster::Message first = AskFrom(kClient, "trace { duration_us: 1000000 max_bytes: 100 }");
  node_.OnLinkDown(kOther, now_);
  EXPECT_EQ(CodeOf(*ReplyTo(AskFrom(kOther, "trace {}"))), StatusCode::kAlreadyExists);
  node_.OnLinkDown(kClient, now_);
  RunStep(1);
  EXPECT_FALSE(engine_.times[1]);
  const cluster::Message second = AskFrom(kOther, "trace { duration_us: 1000000 max_bytes: 100 }");
  RunStep(2);
  node_.Stop(now_);
  EXPECT_FALSE(ReplyTo(first));
  ASSERT_TRUE(ReplyTo(second));
  EXPECT_EQ(ReplyTo(second)->trace_reply().metadata(), "abc");
}

TEST_F(NodeRoleTest, TracesAreBoundedWhateverIsAsked) {
  Open();
  node_.AddLocalClient(kClient);  // It need not be heard.
  const cluster::Message none = AskFrom(kClient, "trace { duration_us: 1 max_bytes: -1 }");
  RunStep(1);
  ASSERT_TRUE(ReplyTo(none));
  EXPECT_TRUE(ReplyTo(none)->trace_reply().full());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  struct Row {
    int64_t duration, bytes;
    ClusterTime ends;
  };
  const Row rows[] = {{kMost, kMost, 600 * kSecond},
                      {-kMost, 100, 0},
                      {-1, -kMost, 0},
                      {kSecond, -1, kSecond},
                      {0, 0, 0}};
  for (const Row& row : rows) {
    const cluster::Message trace = AskFrom(
        kClient, StrCat("trace { duration_us: ", row.duration, " max_bytes: ", row.bytes, " }"));
    if (row.ends > 0) node_.Tick(now_ + row.ends - 1);
    EXPECT_FALSE(ReplyTo(trace)) << row.duration;
    node_.Tick(now_ += row.ends);
    EXPECT_TRUE(ReplyTo(trace)) << row.duration;
  }
}

TEST_F(NodeRoleTest, ATaskShowsItsOwnLinesOfTheLog) {
  NodeRole::Options options = Options();
  const std::string task = options.task = options.tasks[0].name = "/job:log/replica:0/task:0";
  NodeRole node(options, &sent_, &engine_, nullptr, 0);
  SetLogLevel(LogLevel::kWarning);
  SetLogSink([](const LogRecord&) {});
  for (const char* line : {"first", "second"}) WriteLog(LogLevel::kError, task, {line}, line);
  WriteLog(LogLevel::kWarning, task, {"third"}, "third");
  WriteLog(LogLevel::kError, "", {"process"}, "the process's");
  WriteLog(LogLevel::kError, "client:1", {"client"}, "a client's");
  WriteLog(LogLevel::kError, StrCat(task, "0"), {"other"}, "another task's");
  SetLogSink(nullptr);
  struct Row {
    const char* request;
    std::vector<std::string> texts;
  };
  const Row rows[] = {{"level: 4 lines: 100", {"first", "second"}},
                      {"level: 3 lines: 2", {"second", "third"}},
                      {"level: 5 lines: 100", {}},
                      {"level: 99 lines: 100", {}},
                      {"lines: 0", {}},
                      {"level: 4 lines: -1", {}},
                      {"level: -7 lines: 1", {"third"}},
                      {"lines: 2147483647", {"first", "second", "third"}}};
  for (const Row& row : rows) {
    const cluster::Message ask = Request(StrCat("get_log { ", row.request, " }"));
    node.OnMessage(1, ask, now_);
    const auto reply = ReplyTo(ask);
    ASSERT_TRUE(reply) << row.request;
    const auto& lines = reply->get_log_reply().lines();
    ASSERT_EQ(lines.size(), static_cast<int>(row.texts.size())) << row.request;
    for (int i = 0; i < lines.size(); ++i) {
      EXPECT_THAT(lines[i], testing::EndsWith(StrCat(" /job:log/task:0 ", row.texts[i])));
    }
  }
}

// Its process may have lines of a task, or an application's own.
TEST_F(NodeRoleTest, AClientShowsNothingOfTheLog) {
  NodeRole::Options options;
  options.incarnation = 7;
  options.tasks = {{"", "h:1"}};
  NodeRole client(options, &sent_, nullptr, nullptr, 0);
  for (const char* body : {"get_log { lines: 100 }", "trace {}", "get_status {}"}) {
    const cluster::Message request = Request(body);
    client.OnMessage(0, request, now_);
    ASSERT_TRUE(ReplyTo(request)) << body;
    EXPECT_EQ(CodeOf(*ReplyTo(request)), StatusCode::kUnimplemented) << body;
  }
}

}  // namespace
}  // namespace troupe
