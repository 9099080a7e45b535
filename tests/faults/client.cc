#include "tests/faults/client.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <thread>

#include "api/actors.h"
#include "api/troupe.h"
#include "tests/faults/process.h"

namespace troupe::faults {

namespace {

using std::chrono::milliseconds;

// 64 MiB of floats.
constexpr int32_t kLarge = 16 << 20;

void Say(const std::string& line) { std::cout << line << std::endl; }

/// What the main client runs.
struct Work {
  explicit Work(const ClientOptions& client) : options(client) {
    Scope s = Scope::NewRoot();
    Scope ps = s.WithDevice(Device("ps")), worker = s.WithDevice(Device("worker"));
    Output w = ops::VariableV2(ps, PartialShape({}), ElementType::kFloat);
    init = ops::Assign(ps, w, Tensor::Scalar(21.0f)).node;
    short_step = ops::Add(worker, w, w);

    Output count =
        ops::VarHandleOp(ps, ElementType::kFloat, PartialShape({}), {.shared_name = "count"});
    init_count = ops::AssignVariableOp(ps, count, 0.0f);
    progress = ops::ReadVariableOp(ps, count, ElementType::kFloat);
    loop = Loop(s, count, false);
    transfer = Loop(s, count, true);

    fed = ops::Placeholder(ps, ElementType::kFloat, {.shape = PartialShape({kLarge})});
    fetched = ops::Neg(ps, fed);

    Scope at = s.WithDevice(Device(options.queue_job));
    Output queue = ops::FIFOQueueV2(at, {ElementType::kFloat}, {.shapes = {PartialShape({})}});
    Output value = ops::Const(at, Tensor::Scalar(1.0f));
    enqueue = ops::QueueEnqueueV2(at, queue, {value});
    Output waited = ops::QueueDequeueV2(at, queue, {ElementType::kFloat})[0];
    if (options.asks) {
      short_step = Echo(worker, short_step, PartialShape({}));
      enqueue = ops::TellActor(at, {value}, "later");
      waited = ops::AskActor(at, {value}, "later", {ElementType::kFloat})[0];
    }
    waiting = ops::Neg(s.WithDevice(Device(options.queue_job == "ps" ? "worker" : "ps")), waited);
    status = s.status();
    graph = s.graph();
  }

  static Output Echo(const Scope& s, const Output& value, const PartialShape& shape) {
    return ops::AskActor(s, {value}, "echo", {ElementType::kFloat}, {.shapes = {shape}})[0];
  }

  /// Without end: each iteration goes to the parameter server, which counts it, and back; with
  /// `large`, it brings 64 MiB; if the client asks, by way of an actor.
  Output Loop(const Scope& s, const Output& count, bool large) {
    return WhileLoop(
        s, {Input(0.0f)},
        [&](const Scope& s, absl::Span<const Output> v) {
          return ops::Less(s.WithDevice(Device("worker")), v[0], 1e30f);
        },
        [&](const Scope& s, absl::Span<const Output> v) {
          Scope ps = s.WithDevice(Device("ps")), worker = s.WithDevice(Device("worker"));
          Output zero = ops::Mul(ps, v[0], 0.0f);
          Node* add = ops::AssignAddVariableOp(ps, count, ops::Add(ps, zero, 1.0f));
          Scope after = ps.WithControlDependencies({add});
          Output from_ps = ops::Identity(after, zero);
          if (options.asks && !large) from_ps = Echo(ps, from_ps, PartialShape({}));
          if (large) {
            Output tensor =
                ops::Fill(after, ops::Const(ps, Tensor::Vector<int32_t>({kLarge})), zero);
            if (options.asks) tensor = Echo(ps, tensor, PartialShape({kLarge}));
            from_ps = ops::Max(worker, tensor, ops::Const(worker, Tensor::Scalar<int32_t>(0)));
          }
          return std::vector<Output>{ops::Add(worker, from_ps, 1.0f)};
        })[0];
  }

  std::string Device(const std::string& job) const { return options.Device(job); }

  const ClientOptions& options;
  absl::Status status;
  std::shared_ptr<Graph> graph;
  Node *init, *init_count, *enqueue;
  Output short_step, progress, loop, transfer, waiting, fed, fetched;
};

class Client {
 public:
  explicit Client(const ClientOptions& options) : options_(options), work_(options) {}

  int Run() {
    if (!work_.status.ok()) return Fail("graph", work_.status);
    if (options_.moment == "bystander") return Bystander();
    if (options_.moment == "actor") return Actor();
    std::future<absl::Status> under_way;
    if (options_.moment != "creation") {
      if (absl::Status status = Connect(); !status.ok()) return Fail("session", status);
    }
    if (options_.moment == "step" || options_.moment == "close") under_way = Begin(work_.loop);
    if (options_.moment == "waiting") under_way = Begin(work_.waiting);
    if (options_.moment == "transfer") under_way = Begin(work_.transfer);
    if (options_.moment == "waiting") {
      // Nothing tells from outside that a step waits at a queue.
      std::this_thread::sleep_for(milliseconds(150));
    } else if (under_way.valid()) {
      if (absl::Status status = SeeProgress(); !status.ok()) return Fail("progress", status);
    }
    Say("in");
    if (Told() != "go") return 1;
    Outcome(&under_way);
    while (true) {
      const std::string told = Told();
      if (told == "recover") {
        Recover();
      } else if (told == "quit") {
        break;
      } else if (told != "stop") {
        return 1;
      }
    }
    session_.reset();
    if (under_way.valid()) under_way.wait();
    return 0;
  }

 private:
  int Fail(const char* what, const absl::Status& status) {
    Say(std::string("failed ") + what + ": " + status.ToString());
    return 1;
  }

  std::string Told() { return in_.Next(Seconds(120)).value_or("quit"); }

  absl::StatusOr<std::unique_ptr<Session>> NewSession(const std::shared_ptr<Graph>& graph) {
    SessionOptions options;
    options.allow_soft_placement = options_.accelerators;  // Queues are on the CPU.
    Connection(&options);
    return Session::Create(graph, options);
  }

  template <typename Options>
  void Connection(Options* options) const {
    options->target = options_.target;
    options->heartbeat_timeout = absl::Seconds(options_.timeout);
    if (options_.certificates.empty()) return;
    options->tls_certificate = options_.certificates + "/client.pem";
    options->tls_key = options_.certificates + "/client.key";
    options->tls_authority = options_.certificates + "/ca.pem";
  }

  absl::Status Connect() {
    auto session = NewSession(work_.graph);
    if (!session.ok()) return session.status();
    session_ = *std::move(session);
    absl::Status status = session_->RunTargets({{work_.init, work_.init_count}});
    if (status.ok()) status = session_->Run({work_.short_step}).status();
    return status;
  }

  std::future<absl::Status> Begin(const Output& what) {
    return std::async(std::launch::async, [this, what] { return session_->Run({what}).status(); });
  }

  /// Waits until the loop under way has counted on.
  absl::Status SeeProgress() {
    float first = -1;
    for (const double deadline = Now() + 60; Now() < deadline;) {
      auto value = session_->Run({work_.progress});
      if (!value.ok()) return value.status();
      const float count = (*value)[0].unchecked_data<float>()[0];
      if (first >= 0 && count > first) return absl::OkStatus();
      first = first < 0 ? count : first;
    }
    return absl::DeadlineExceededError("the loop does not go on");
  }

  void Result(const absl::Status& status, double began) {
    std::string message(status.message());
    std::replace(message.begin(), message.end(), '\n', ' ');
    Say("result " + absl::StatusCodeToString(status.code()) + " " + std::to_string(began) + " " +
        std::to_string(Now()) + " " + message);
  }

  void Outcome(std::future<absl::Status>* under_way) {
    // At rest, the fault is to be an old one when the client wakes up.
    if (options_.moment == "rest") std::this_thread::sleep_for(milliseconds(200));
    double began = Now();
    if (options_.moment == "rest") {
      Result(session_->Run({work_.short_step}).status(), began);
    } else if (options_.moment == "creation") {
      Result(Connect(), began);
    } else if (options_.moment == "close") {
      const absl::Status status = session_->Close();
      under_way->wait();
      Result(status, began);
    } else {
      bool feed = false;
      while (true) {
        if (under_way->wait_for(milliseconds(0)) == std::future_status::ready) {
          Result(under_way->get(), began);
          return;
        }
        const auto told = in_.Next(Seconds(0.01));
        feed = told == "feed";
        if (feed || told == "stop") break;
        if (in_.closed()) return;
      }
      began = Now();
      if (options_.moment == "waiting") {
        absl::Status status = session_->RunTargets({work_.enqueue});
        if (status.ok()) status = under_way->get();
        Result(status, began);
      } else {
        absl::Status status = SeeProgress();
        if (status.ok() && feed) status = FeedAndFetch();
        Result(status, began);
      }
    }
  }

  /// 64 MiB to the parameter server, and back.
  absl::Status FeedAndFetch() {
    const std::vector<float> ones(kLarge, 1.0f);
    auto values = session_->Run({{work_.fed, Tensor::Vector<float>(ones)}}, {work_.fetched});
    if (!values.ok()) return values.status();
    const Tensor& back = (*values)[0];
    const bool right = back.num_elements() == kLarge &&
                       std::count(back.unchecked_data<float>(),
                                  back.unchecked_data<float>() + kLarge, -1.0f) == kLarge;
    return right ? absl::OkStatus() : absl::DataLossError("what came back is not what was sent");
  }

  void Recover() {
    const double began = Now();
    bool is_new = session_ == nullptr || options_.moment == "close";
    if (is_new) session_.reset();
    absl::Status status;
    while (Now() < began + 30) {
      if (session_ == nullptr) {
        status = Connect();
        if (!status.ok()) session_.reset();
      } else {
        status = session_->Run({work_.short_step}).status();
        if (absl::IsFailedPrecondition(status)) {  // The variable was lost with its process.
          status = session_->RunTargets({{work_.init, work_.init_count}});
        }
        const bool over = absl::IsAborted(status) || absl::IsCancelled(status) ||
                          (!status.ok() && Now() > began + 10);
        if (over) {
          session_.reset();
          is_new = true;
        }
      }
      if (status.ok()) {
        Say(std::string("recovered ") + (is_new ? "new " : "same ") + std::to_string(Now()));
        return;
      }
      // Not to keep the cores busy with calls that fail at once.
      std::this_thread::sleep_for(milliseconds(20));
    }
    Fail("recovery", status);
  }

  int Actor() {
    NodeOptions options;
    options.address = options_.address;
    Connection(&options);
    auto node = ClusterNode::Join(options);
    if (!node.ok()) return Fail("node", node.status());
    using Tensors = std::vector<Tensor>;
    const auto echo = (*node)->system().spawn([] {
      return caf::behavior{[](ask_atom, const Tensors& in) { return in; },
                           [](tell_atom, const Tensors&) {}};
    });
    const auto later = (*node)->system().spawn([](caf::event_based_actor* self) {
      auto waiting = std::make_shared<std::vector<caf::response_promise>>();
      return caf::behavior{[=](ask_atom, const Tensors&) {
                             waiting->push_back(self->make_response_promise());
                             return waiting->back();
                           },
                           [=](tell_atom, const Tensors& in) {
                             for (auto& promise : *waiting) promise.deliver(in);
                             waiting->clear();
                           }};
    });
    std::vector<PublishedActor> published;
    for (const auto& [name, actor] : {std::pair{"echo", echo}, std::pair{"later", later}}) {
      // The name is still that of an earlier life until all tasks have heard of its end.
      absl::StatusOr<PublishedActor> made = absl::UnknownError("not tried");
      for (const double deadline = Now() + 30; !made.ok() && Now() < deadline;) {
        if (made = (*node)->Publish(name, actor); made.ok()) break;
        // Nothing tells when it is free, and to try at once would keep a core busy.
        std::this_thread::sleep_for(milliseconds(20));
      }
      if (!made.ok()) return Fail(name, made.status());
      published.push_back(*std::move(made));
    }
    Say("in");
    while (Told() != "quit") {
    }
    return 0;
  }

  int Bystander() {
    Scope s = Scope::NewRoot();
    Scope one = s.WithDevice(options_.Device(options_.jobs[0]));
    Output v =
        ops::VariableV2(one, PartialShape({}), ElementType::kFloat, {.shared_name = "bystander"});
    Output init = ops::Assign(one, v, Tensor::Scalar(2.0f));
    Output step = ops::Add(s.WithDevice(options_.Device(options_.jobs[1])), v, v);
    Scope ps = s.WithDevice(options_.Device("ps"));
    Output count = ops::ReadVariableOp(
        ps, ops::VarHandleOp(ps, ElementType::kFloat, PartialShape({}), {.shared_name = "count"}),
        ElementType::kFloat);
    const bool counts = options_.jobs[0] == "ps";
    auto session = NewSession(s.graph());
    if (!session.ok()) return Fail("bystander", session.status());
    absl::Status first = (*session)->Run({init}).status();
    int64_t steps = 0;
    double longest = 0, last_change = Now();
    float seen = -1;
    while (true) {
      if (auto told = in_.Next(Seconds(0.02))) {
        if (*told != "stop") break;
        std::string error = first.ok() ? "-" : first.ToString();
        std::replace(error.begin(), error.end(), '\n', ' ');
        Say("bystander " + std::to_string(steps) + " " + std::to_string(longest) + " " +
            std::to_string(last_change) + " " + error);
      }
      if (in_.closed()) break;
      const double began = Now();
      first.Update((*session)->Run({step}).status());
      if (steps > 0) longest = std::max(longest, Now() - began);  // The first one is compiled.
      if (++steps == 2) Say("in");
      if (!counts) continue;
      if (auto value = (*session)->Run({count}); value.ok()) {
        const float now = (*value)[0].unchecked_data<float>()[0];
        if (now != seen) last_change = Now();
        seen = now;
      }
    }
    return 0;
  }

  const ClientOptions options_;
  const Work work_;
  LineReader in_{STDIN_FILENO};
  std::unique_ptr<Session> session_;
};

}  // namespace

int RunClient(const ClientOptions& options) { return Client(options).Run(); }

}  // namespace troupe::faults
