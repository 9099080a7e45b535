#include "tests/api/simulation/simulated_actors.h"

#include <algorithm>
#include <caf/scheduler/test_coordinator.hpp>
#include <chrono>
#include <set>

#include "api/actors.h"
#include "api/internal/actor_host.h"
#include "api/internal/actor_protocol.h"
#include "devices/status_macros.h"
#include "kernels/actors/tensor_actor.h"

namespace troupe {

namespace {

using Tensors = std::vector<Tensor>;
using actor_protocol::Identity;
constexpr ClusterTime kTroubleEvery = kSecond / 20;
constexpr ClusterTime kLongest = 8 * kSecond;
/// How long one waits for a queue.
constexpr ClusterTime kPatience = 2 * kSecond;
/// Tensors of more bytes than 4 KiB travel beside their message.
constexpr int64_t kMostFiller = 1200;
/// The task whose queue all use.
constexpr int kQueueTask = 1;

/// Actors run when the process says so.
struct Config : caf::actor_system_config {
  Config() { set("scheduler.policy", caf::atom("testing")); }
};

/// Who makes one call, or many, and hands on what comes back. Played by whoever sends to it.
class Caller final : public caf::monitorable_actor {
 public:
  using OnAnswer = std::function<void(uint64_t id, caf::type_erased_tuple& content)>;
  Caller(caf::actor_config& config, OnAnswer on_answer)
      : caf::monitorable_actor(config), on_answer_(std::move(on_answer)) {}
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    // What is no answer says that a tell was refused.
    if (getf(is_terminated_flag) || !what->mid.is_response()) return;
    on_answer_(what->mid.request_id().integer_value(), what->content());
  }
  void End() { cleanup(caf::make_error(caf::exit_reason::user_shutdown), nullptr); }

 private:
  const OnAnswer on_answer_;
};

Tensor Pair(int64_t first, int64_t second) { return Tensor::Vector<int64_t>({first, second}); }

}  // namespace

/// One life of a process.
class ActorProcess final : public SimulatedApplication, public ActorTimer {
 public:
  ActorProcess(SimulatedActors* all, SimulatedNode* node, std::string published)
      : all_(all), node_(node), name_(std::move(published)) {
    const SimulatedNode::Options& options = node->options();
    ActorHost::Options host;
    host.name = node->links_name();
    host.incarnation = life();
    host.links = node->links();
    host.runtime = node->runtime();
    if (options.client) {
      host.members_changed = [node](PeerId task) {
        node->Enter([&] { node->role()->AskMembers(task, node->now()); });
      };
    }
    host.now = [node] {
      return std::chrono::steady_clock::time_point(std::chrono::microseconds(node->now()));
    };
    host_ = std::make_shared<ActorHost>(std::move(host));
    scheduler_ =
        dynamic_cast<caf::scheduler::test_coordinator*>(&(*host_->System(&config_))->scheduler());
    const TensorActors::Scope scope(&names_);
    asker_ = MakeCaller([this](uint64_t id, caf::type_erased_tuple& content) {
      OnAnswer(static_cast<int64_t>(id), content);
    });
    asker_number_ = all_->Begin(asker_);
    const int64_t number = ledger().Begin(life());
    function_ = std::make_unique<PublishedActor>(*FunctionActor("f", [this, number](Tensors in) {
      ledger().Handled(in.at(0).unchecked_values<int64_t>()[1], number);
      return absl::StatusOr<Tensors>(Answer(in, number));
    }));
    Later(Between(0, kSecond / 2), [this] { Spawn(); });
    Act();
  }

  ~ActorProcess() override {
    over_ = true;
    ledger().EndLife(life());
    std::erase(all_->processes_, this);
    const TensorActors::Scope scope(&names_);
    published_.reset();
    function_.reset();
    promises_.clear();
    timers_.clear();
    handles_.clear();
    watchers_.clear();
    // What they have asked may keep them.
    for (const auto& [id, caller] : callers_) End(caller);
    callers_.clear();
    End(asker_);
    server_ = caf::actor();
    asker_ = nullptr;
    host_->Disconnect();
    host_.reset();
  }

  FrameSink* frame_sink() override { return host_.get(); }

  void Play(absl::FunctionRef<void()> event) override {
    const TensorActors::Scope scope(&names_);
    event();
    // Actors run one message at a time, a little later.
    if (!node_->alive() || !scheduler_->has_job() || std::exchange(running_, true)) return;
    Later(Between(1, 100), [this] {
      running_ = false;
      scheduler_->try_run_once();
    });
  }

  void CheckNothingLeft() override {
    const auto check = [this](bool good, const char* what) {
      if (!good) all_->schedule()->Violation(StrCat(node_->name(), " still has ", what));
    };
    check(host_->idle(), "questions or frames of actors");
    check(!scheduler_->has_job(), "actors that are to run");
    check(promises_.empty(), "asks that wait");
    check(reads_.empty(), "reads of variables that wait");
    check(callers_.empty(), "calls of queues that wait");
    check(timers_.empty(), "deadlines of graphs' asks");
  }

  void Heal() { since_peace_ = 0; }
  /// What does not work since.
  std::string Missing() {
    if (published_ == nullptr) return StrCat(name_, " is not published");
    if (since_peace_ < 3) return StrCat(node_->name(), " has had ", since_peace_, " answers");
    if (node_->options().client) return "";
    for (const std::string& name : all_->Names()) {
      if (!names_.Find(name).ok()) return StrCat(node_->name(), " does not know ", name);
    }
    return "";
  }

  uint64_t Add(absl::Duration after, std::function<void()> over) override {
    const uint64_t id = next_timer_++;
    timers_[id] = std::move(over);
    Later(absl::ToInt64Microseconds(after), [this, id] {
      if (auto timer = timers_.extract(id)) timer.mapped()();
    });
    return id;
  }
  void Remove(uint64_t id) override { timers_.erase(id); }

 private:
  ActorLedger& ledger() { return *all_->ledger(); }
  uint64_t life() const { return node_->options().role.incarnation; }
  int64_t Between(int64_t low, int64_t high) { return all_->schedule()->Between(low, high); }
  bool Chance(double probability) { return all_->schedule()->Chance(probability); }
  void Later(ClusterTime wait, Schedule::Event event) {
    node_->Later(node_->now() + wait, std::move(event));
  }
  caf::actor_system& system() { return host_->system(); }
  std::string Task(int number) const { return StrCat("/job:worker/task:", number); }

  caf::strong_actor_ptr MakeCaller(Caller::OnAnswer on_answer) {
    caf::actor_config config;
    return caf::make_actor<Caller, caf::strong_actor_ptr>(system().next_actor_id(), system().node(),
                                                          &system(), config, std::move(on_answer));
  }

  static void End(const caf::strong_actor_ptr& caller) {
    static_cast<Caller*>(caller->get())->End();
  }

  caf::error AnyReason() {
    switch (Between(0, 2)) {
      case 0:
        return caf::error();
      case 1:
        return caf::make_error(caf::exit_reason::user_shutdown);
      default:
        return caf::make_error(caf::sec::runtime_error, StrCat("at ", node_->now()));
    }
  }

  // ---- The actor that is published ----

  void Spawn() {
    server_ = system().spawn([this](caf::event_based_actor* self) -> caf::behavior {
      self->set_exit_handler([this, self](const caf::exit_msg& exit) {
        if (!over_) ledger().Heard(Number(self), all_->NumberOf(exit.source), exit.reason);
      });
      return {[this, self](ask_atom, const Tensors& in) -> caf::result<Tensors> {
                if (over_) return caf::make_error(caf::exit_reason::kill);
                return OnAsk(self, in);
              },
              [this, self](tell_atom, const Tensors& in) {
                if (!over_) ledger().Told(in.at(0).unchecked_values<int64_t>()[1], Number(self));
              },
              // A handle, to be asked from here.
              [this](const caf::actor& other) {
                if (!over_ && other != nullptr && other.node() != system().node()) {
                  Ask(caf::actor_cast<caf::strong_actor_ptr>(other), "");
                }
              },
              [this, self](caf::tick_atom) {
                if (over_) return;
                promises_.clear();
                const caf::error reason = AnyReason();
                ledger().End(Number(self), reason);
                self->quit(reason);
                Later(Between(1, kSecond), [this] { Replace(); });
              }};
    });
    all_->Begin(caf::actor_cast<caf::strong_actor_ptr>(server_));
    Publish();
  }
  int64_t Number(caf::event_based_actor* self) { return all_->NumberOf(life(), self->id()); }

  static Tensors Answer(const Tensors& in, int64_t by) {
    return {Pair(by, in.at(0).unchecked_values<int64_t>()[1])};
  }
  caf::result<Tensors> OnAsk(caf::event_based_actor* self, const Tensors& in) {
    const int64_t number = Number(self);
    ledger().Handled(in.at(0).unchecked_values<int64_t>()[1], number);
    if (Chance(0.1)) return ToCafError(absl::OutOfRangeError("not this time"));
    if (Chance(0.7)) return Answer(in, number);
    auto promise = self->make_response_promise<Tensors>();
    const uint64_t id = next_promise_++;
    promises_.emplace(id, promise);
    Later(Between(1, kSecond / 2), [this, id, answer = Answer(in, number)] {
      if (auto waiting = promises_.extract(id)) waiting.mapped().deliver(answer);
    });
    return promise;
  }

  void Publish() {
    publishing_ = true;
    host_->PublishAsync(name_, server_, {.quick = Chance(0.3)}, absl::Seconds(5),
                        [this](absl::StatusOr<PublishedActor> published) {
                          if (over_) return;
                          publishing_ = false;
                          all_->schedule()->Trace(StrCat(node_->name(), " publishes ", name_, ": ",
                                                         published.status().ToString()));
                          if (published.ok()) {
                            published_ = std::make_unique<PublishedActor>(*std::move(published));
                          } else {
                            Later(Between(kSecond / 5, kSecond), [this] { Publish(); });
                          }
                        });
  }
  /// The actor has ended; another one takes its name.
  void Replace() {
    if (publishing_ || published_ == nullptr) return Later(kSecond / 10, [this] { Replace(); });
    published_.reset();
    Spawn();
  }

  // ---- What the process does ----

  void Act() {
    Later(Between(1, all_->options().think), [this] {
      if (all_->busy()) ActOnce();
      Act();
    });
  }
  void ActOnce() {
    const std::vector<std::string> names = all_->Names();
    const std::string& name = names[Between(0, static_cast<int64_t>(names.size()) - 1)];
    if (name == name_) return;
    const int64_t what = Between(0, 999);
    if (what < 70) return Read(static_cast<int>(Between(0, all_->simulator()->num_tasks() - 1)));
    if (what < 130) return UseQueue(Chance(0.5));
    if (what < 160) return EndWatcher(/*unwatch=*/what % 2 == 0);
    // In peace all that has ended comes back.
    if (what < 165 && published_ != nullptr && !publishing_) {
      return caf::anon_send(server_, caf::tick_atom_v);
    }
    const caf::strong_actor_ptr handle = handles_[name];
    if (handle == nullptr || what < 200) return Find(name);
    if (what < 700) return Ask(handle, name);
    if (what < 820) {
      for (int64_t i = Between(1, 3); i > 0; --i) Tell(handle);
    } else if (what < 880) {
      const caf::strong_actor_ptr other = handles_[names[static_cast<size_t>(what) % names.size()]];
      if (other != nullptr) caf::anon_send(caf::actor_cast<caf::actor>(handle), AsActor(other));
    } else {
      Watch(handle, /*link=*/what < 960);
    }
  }
  static caf::actor AsActor(const caf::strong_actor_ptr& handle) {
    return caf::actor_cast<caf::actor>(handle);
  }

  void Find(const std::string& name) {
    host_->FindAsync("", ActorKind::kPublished, name, absl::Seconds(5),
                     [this, name](const absl::StatusOr<caf::strong_actor_ptr>& found) {
                       if (over_) return;
                       if (found.ok()) handles_[name] = *found;
                     });
  }

  /// `expected`: the number of who is asked or told.
  Tensors Content(int64_t expected, int64_t number) {
    Tensors content = {Pair(expected, number)};
    if (Chance(0.3)) {
      content.push_back(
          Tensor::Uninitialized(ElementType::kInt64, Shape({Between(1, kMostFiller)})));
      for (int64_t& value : content.back().mutable_values<int64_t>()) value = number;
    }
    return content;
  }
  void Ask(const caf::strong_actor_ptr& handle, const std::string& name) {
    const int64_t whom = all_->NumberOf(Identity::IncarnationOf(handle->nid), handle->aid);
    const int64_t number = ledger().Ask(life(), whom);
    asked_[number] = name;
    handle->enqueue(
        caf::make_mailbox_element(asker_, RequestId(number), {}, ask_atom_v, Content(whom, number)),
        nullptr);
  }
  static caf::message_id RequestId(int64_t number) {
    return caf::message_id(static_cast<uint64_t>(number)).with_normal_priority();
  }
  void Tell(const caf::strong_actor_ptr& handle) {
    const int64_t whom = all_->NumberOf(Identity::IncarnationOf(handle->nid), handle->aid);
    const int64_t number = ledger().Tell(asker_number_, whom);
    handle->enqueue(caf::make_mailbox_element(asker_, caf::make_message_id(), {}, tell_atom_v,
                                              Content(whom, number)),
                    nullptr);
  }
  void OnAnswer(int64_t number, caf::type_erased_tuple& content) {
    if (over_) return;
    if (const auto read = reads_.extract(number)) {
      if (content.match_elements<Tensor>() &&
          content.get_as<Tensor>(0).unchecked_values<int64_t>()[0] !=
              static_cast<int64_t>(read.mapped())) {
        all_->schedule()->Violation("a variable of another life was read");
      }
      return;
    }
    const auto asked = asked_.extract(number);
    if (content.match_elements<Tensors>()) {
      const auto answer = content.get_as<Tensors>(0).at(0).unchecked_values<int64_t>();
      ledger().Answered(number, answer[1], answer[0]);
      ++since_peace_;
    } else if (content.match_elements<caf::error>()) {
      const absl::Status why = ToStatus(content.get_as<caf::error>(0));
      ledger().Failed(number, why);
      if (absl::IsUnavailable(why) && asked) handles_.erase(asked.mapped());
    } else {
      all_->schedule()->Violation(StrCat("ask ", number, " got ", content.stringify()));
    }
  }

  /// A variable's actor says in which life its task is.
  void Read(int task) {
    host_->FindAsync(
        Task(task), ActorKind::kVariable, StrCat("v", task), absl::Seconds(5),
        [this](const absl::StatusOr<caf::strong_actor_ptr>& found) {
          if (over_ || !found.ok()) return;
          const int64_t number = next_read_++;
          reads_[number] = Identity::IncarnationOf((*found)->nid);
          (*found)->enqueue(
              caf::make_mailbox_element(asker_, RequestId(number), {}, caf::get_atom_v), nullptr);
        });
  }

  void UseQueue(bool put) {
    host_->FindAsync(Task(kQueueTask), ActorKind::kQueue, StrCat("q", kQueueTask), absl::Seconds(5),
                     [this, put](const absl::StatusOr<caf::strong_actor_ptr>& found) {
                       if (!over_ && found.ok()) put ? Put(*found) : Take(*found);
                     });
  }
  /// Somebody who waits for the queue, for some time.
  template <typename Answered, typename GivenUp, typename... Message>
  void CallQueue(const caf::strong_actor_ptr& queue, const Answered& answered,
                 const GivenUp& given_up, Message... message) {
    const uint64_t id = next_caller_++;
    const caf::strong_actor_ptr caller =
        MakeCaller([this, id, answered](uint64_t, caf::type_erased_tuple& content) {
          if (over_ || callers_.count(id) == 0) return;
          answered(content);
          Later(0, [this, id] { EndCaller(id); });
        });
    callers_[id] = caller;
    queue->enqueue(caf::make_mailbox_element(caller, RequestId(1), {}, std::move(message)...),
                   nullptr);
    Later(Between(1, kPatience), [this, id, given_up] {
      if (callers_.count(id) == 0) return;
      EndCaller(id);
      given_up();
    });
  }
  void EndCaller(uint64_t id) {
    if (const auto caller = callers_.extract(id)) End(caller.mapped());
  }
  void Put(const caf::strong_actor_ptr& queue) {
    QueueLedger* const queues = all_->simulator()->queue_ledger();
    const int64_t number = queues->BeginPut(kQueueTask);
    const auto answered = [queues, number](caf::type_erased_tuple& content) {
      if (content.empty()) queues->EndPut(number);
    };
    CallQueue(
        queue, answered, [] {}, caf::put_atom_v, Tensors{Pair(0, number)});
  }
  void Take(const caf::strong_actor_ptr& queue) {
    QueueLedger* const queues = all_->simulator()->queue_ledger();
    const int64_t take = queues->BeginTake(kQueueTask, 1);
    auto open = std::make_shared<bool>(true);
    const auto failed = [queues, take, open] {
      if (std::exchange(*open, false)) queues->TakeFailed(take);
    };
    const auto answered = [queues, take, open, failed](caf::type_erased_tuple& content) {
      if (!content.match_elements<Tensors>()) return failed();
      if (!std::exchange(*open, false)) return;
      queues->EndTake(take, {content.get_as<Tensors>(0).at(0).unchecked_values<int64_t>()[1]});
    };
    CallQueue(queue, answered, failed, caf::get_atom_v);
  }

  // ---- Monitors and links ----

  void Watch(const caf::strong_actor_ptr& handle, bool link) {
    auto watch = std::make_shared<int64_t>(0);
    const caf::actor whom = AsActor(handle);
    const caf::actor watcher =
        system().spawn([this, whom, link, watch](caf::event_based_actor* self) -> caf::behavior {
          const auto fired = [this, watch](const caf::error& reason) {
            if (!over_) ledger().Fired(*watch, reason);
          };
          if (link) {
            self->set_exit_handler([fired](const caf::exit_msg& exit) { fired(exit.reason); });
            self->link_to(whom);
          } else {
            self->set_down_handler([fired](const caf::down_msg& down) { fired(down.reason); });
            self->monitor(whom);
          }
          return {[this, self, whom, link, watch](caf::unlink_atom) {
                    if (over_) return;
                    ledger().Unwatch(*watch);
                    link ? self->unlink_from(whom) : self->demonitor(whom);
                  },
                  [this, self](caf::tick_atom) {
                    if (over_) return;
                    const caf::error reason = AnyReason();
                    ledger().End(Number(self), reason);
                    self->quit(reason);
                  }};
        });
    const int64_t number = all_->Begin(caf::actor_cast<caf::strong_actor_ptr>(watcher));
    const int64_t of = all_->NumberOf(Identity::IncarnationOf(handle->nid), handle->aid);
    *watch = ledger().Watch(number, of, link);
    watchers_.push_back(watcher);
  }
  void EndWatcher(bool unwatch) {
    if (watchers_.empty()) return;
    const size_t which =
        static_cast<size_t>(Between(0, static_cast<int64_t>(watchers_.size()) - 1));
    const caf::actor watcher = watchers_[which];
    if (unwatch) return caf::anon_send(watcher, caf::unlink_atom_v);
    watchers_.erase(watchers_.begin() + static_cast<std::ptrdiff_t>(which));
    caf::anon_send(watcher, caf::tick_atom_v);
  }

  SimulatedActors* const all_;
  SimulatedNode* const node_;
  const std::string name_;
  bool over_ = false, running_ = false, publishing_ = false;
  int since_peace_ = 0;
  Config config_;             ///< Outlives the system.
  TensorActors names_{this};  ///< Outlives all that is published.
  std::map<uint64_t, std::function<void()>> timers_;
  uint64_t next_timer_ = 1, next_promise_ = 1, next_caller_ = 1;
  int64_t next_read_ = int64_t{1} << 40;  ///< Above the numbers of asks.
  std::shared_ptr<ActorHost> host_;
  caf::scheduler::test_coordinator* scheduler_ = nullptr;
  caf::actor server_;
  std::unique_ptr<PublishedActor> published_, function_;
  caf::strong_actor_ptr asker_;
  int64_t asker_number_ = 0;
  std::map<std::string, caf::strong_actor_ptr> handles_;  ///< By name.
  std::map<int64_t, std::string> asked_;                  ///< Asks, and the names they went to.
  std::map<int64_t, uint64_t> reads_;                     ///< Of variables of these lives.
  std::map<uint64_t, caf::typed_response_promise<Tensors>> promises_;
  std::map<uint64_t, caf::strong_actor_ptr> callers_;
  std::vector<caf::actor> watchers_;
};

SimulatedActors::~SimulatedActors() = default;

void SimulatedActors::Init(ClusterSimulator* simulator) {
  simulator_ = simulator;
  ledger_.emplace(simulator->schedule(), options_.losses);
}

std::unique_ptr<SimulatedApplication> SimulatedActors::Boot(SimulatedNode* node) {
  const std::string name =
      node->options().client ? StrCat("m", starting_.value()) : StrCat("e", node->options().number);
  auto process = std::make_unique<ActorProcess>(this, node, name);
  processes_.push_back(process.get());
  return process;
}

std::vector<std::string> SimulatedActors::Names() const {
  std::vector<std::string> names;
  for (int i = 0; i < simulator_->num_tasks(); ++i) names.push_back(StrCat("e", i));
  for (int i = 0; i < options_.members; ++i) names.push_back(StrCat("m", i));
  return names;
}

std::vector<std::string> SimulatedActors::Work() {
  return {"ask 0 1 e2", "ask 1 1 e0", "ask 2 2 e2",  "ask 2 0 m0", "ask 0 2 m1",
          "ask 1 0 f",  "ask 2 1 f",  "tell 0 1 m0", "tell 1 2 e0"};
}

int64_t SimulatedActors::NumberOf(uint64_t node, caf::actor_id actor) const {
  const auto it = numbers_.find({node, actor});
  return it == numbers_.end() ? 0 : it->second;
}
int64_t SimulatedActors::NumberOf(const caf::actor_addr& address) const {
  return NumberOf(Identity::IncarnationOf(address.node()), address.id());
}
int64_t SimulatedActors::Begin(const caf::strong_actor_ptr& actor) {
  const uint64_t node = Identity::IncarnationOf(actor->nid);
  return numbers_[{node, actor->aid}] = ledger_->Begin(node);
}

void SimulatedActors::Start() {
  members_.assign(static_cast<size_t>(options_.members), -1);
  for (size_t i = 0; i < members_.size(); ++i) StartMember(i);
  Trouble();
}

void SimulatedActors::StartMember(size_t member) {
  if (members_[member] >= 0 && simulator_->client(members_[member])->alive()) return;
  starting_ = member;
  members_[member] = simulator_->AddMember();
}

void SimulatedActors::Trouble() {
  schedule()->After(kTroubleEvery, [this] {
    const double step = static_cast<double>(kTroubleEvery) / kSecond;
    const SimulatedFaults& faults = simulator_->faults();
    const auto member = static_cast<size_t>(schedule()->Between(0, options_.members - 1));
    const int task = static_cast<int>(schedule()->Between(0, simulator_->num_tasks() - 1));
    const auto a_while = [this] { return schedule()->Between(1000, kLongest); };
    SimulatedNode* const node = simulator_->client(members_[member]);
    if (node->alive()) {
      if (schedule()->Chance(faults.kills_per_second * step)) {
        simulator_->KillClient(members_[member]);
        schedule()->After(a_while(), [this, member] { StartMember(member); });
      } else if (schedule()->Chance(faults.stops_per_second * step)) {
        node->Pause(simulator_->now() + a_while());
      } else if (schedule()->Chance(faults.cuts_per_second * step)) {
        simulator_->Cut(task, node->options().process, a_while());
      } else if (schedule()->Chance(faults.breaks_per_second * step)) {
        node->transport()->Break(task);
        if (simulator_->task(task)->alive()) {
          simulator_->task(task)->transport()->Break(node->options().process);
        }
      }
    }
    Trouble();
  });
}

void SimulatedActors::Heal() {
  healed_ = true;
  for (size_t i = 0; i < members_.size(); ++i) {
    StartMember(i);
    simulator_->client(members_[i])->Pause(0);
  }
  for (ActorProcess* process : processes_) process->Heal();
}

std::string SimulatedActors::Missing() {
  for (ActorProcess* process : processes_) {
    if (std::string missing = process->Missing(); !missing.empty()) return missing;
  }
  return "";
}

void SimulatedActors::Stop() { busy_ = false; }

void SimulatedActors::CheckNothingLeft() {
  ledger_->CheckAllSaid();
  for (int member : members_) simulator_->client(member)->application()->CheckNothingLeft();
}

void SimulatedActors::EndAsk(int64_t number,
                             const absl::StatusOr<absl::Span<const int64_t>>& answer) {
  if (!answer.ok()) return ledger_->Failed(number, answer.status());
  ledger_->Answered(number, (*answer)[1], (*answer)[0]);
}

}  // namespace troupe
