// What the hosts of actors ask one another: who is found and published where.
#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "actors/runtime.h"
#include "api/internal/actor_host.h"
#include "api/internal/actor_protocol.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "net/cluster_spec.h"

namespace troupe {

using namespace actor_protocol;  // NOLINT: its own

namespace {

/// What `begin(done)` gives to `done` in the end. Who is asked answers in time, unless no tick says
/// that it is over.
template <typename Value, typename Begin>
absl::StatusOr<Value> Wait(std::chrono::steady_clock::time_point deadline, const Begin& begin) {
  auto result = std::make_shared<std::promise<absl::StatusOr<Value>>>();
  std::future<absl::StatusOr<Value>> future = result->get_future();
  begin([result](absl::StatusOr<Value> value) { result->set_value(std::move(value)); });
  if (future.wait_until(deadline + std::chrono::seconds(1)) == std::future_status::ready) {
    return future.get();
  }
  return absl::DeadlineExceededError("no answer in time");
}

}  // namespace

ActorHost::Clock::time_point ActorHost::DeadlineIn(absl::Duration timeout) const {
  return options_.now() + absl::ToChronoMilliseconds(std::min(timeout, absl::Hours(24)));
}

// ---- Questions ----

void ActorHost::Ask(PeerId to, uint8_t kind, std::string_view fields, Clock::time_point deadline,
                    Done done) {
  std::string body = Fields(kind);
  uint64_t number = 0;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (over_) {
      lock.unlock();
      return done(absl::CancelledError("the node has left"));
    }
    number = next_call_++;
    calls_[number] = {to, deadline, std::move(done)};
  }
  WireWriter writer(&body);
  writer.Number(number);
  writer.Raw(fields);
  options_.links->SendFrame(to, std::move(body), {});
}

void ActorHost::AskAll(const std::vector<PeerId>& to, uint8_t kind, const std::string& fields,
                       Clock::time_point deadline, bool any, Done done) {
  if (to.empty()) return done(absl::UnavailableError("no task can be asked"));
  struct Answers {
    std::mutex mutex;
    size_t left = 0;
    Done done;  ///< Until it is called: what the others say then does not count.
    absl::StatusOr<std::string> answer = absl::UnavailableError("no task can be asked");
  };
  auto answers = std::make_shared<Answers>();
  answers->left = to.size();
  answers->done = std::move(done);
  for (PeerId id : to) {
    Ask(id, kind, fields, deadline, [answers, any](absl::StatusOr<std::string> answer) {
      Done told;
      {
        std::lock_guard<std::mutex> lock(answers->mutex);
        --answers->left;
        if (answers->done == nullptr) return;
        const bool decided = any ? answer.ok() : !answer.ok() && !IsAbsent(answer.status());
        // That somebody is not there says less than any other answer.
        if (decided || IsAbsent(answers->answer.status()) || (answer.ok() && !any)) {
          answers->answer = std::move(answer);
        }
        if (decided || answers->left == 0) told = std::exchange(answers->done, nullptr);
      }
      if (told != nullptr) told(std::move(answers->answer));
    });
  }
}

void ActorHost::FailCalls(PeerId to, const absl::Status& why) {
  std::vector<Done> failed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = calls_.begin(); it != calls_.end();) {
      if (it->second.to != to) {
        ++it;
        continue;
      }
      failed.push_back(std::move(it->second.done));
      it = calls_.erase(it);
    }
  }
  for (Done& done : failed) done(why);
}

absl::StatusOr<std::string> ActorHost::OnQuestion(uint8_t kind, uint64_t from, WireReader* reader) {
  std::string name, answer;
  WireWriter writer(&answer);
  uint64_t number = 0;
  switch (kind) {
    case kFind: {
      uint8_t what = 0;
      if (!reader->Number(&what) || !reader->String(&name, kMostNameBytes)) return Malformed();
      TROUPE_ASSIGN_OR_RETURN(const caf::strong_actor_ptr found,
                              FindHere(static_cast<ActorKind>(what), name));
      const uint64_t node = Identity::IncarnationOf(found->nid);
      if (node == options_.incarnation) system().registry().put(found->aid, found);
      writer.Number(node);
      writer.Number<uint64_t>(found->aid);
      return answer;
    }
    case kPublish:
      if (!reader->String(&name, kMostNameBytes) || !reader->Number(&number)) return Malformed();
      return OnPublish(from, name, number);
    case kWhere: {
      if (!reader->Number(&number)) return Malformed();
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = processes_.find(number);
      if (it == processes_.end() || it->second.peer == nullptr) {
        return absl::NotFoundError(StrCat(options_.name, " does not know that process"));
      }
      const PeerInfo& info = it->second.peer->info();
      if (info.serves_at.empty()) {
        return absl::NotFoundError(StrCat(info.task, " cannot be connected to"));
      }
      writer.String(info.task);
      writer.String(info.serves_at);
      return answer;
    }
    default:
      return absl::UnimplementedError(StrCat(options_.name, " is not asked such things"));
  }
}

// ---- Finding and publishing ----

std::vector<PeerId> ActorHost::Tasks() const {
  std::vector<PeerId> tasks;
  for (const auto& [name, id] : options_.links->Tasks()) {
    if (name != options_.name && id < kFirstClient) tasks.push_back(id);
  }
  return tasks;
}

absl::StatusOr<caf::strong_actor_ptr> ActorHost::FindHere(ActorKind kind, const std::string& name) {
  if (kind == ActorKind::kPublished) {
    uint64_t node = 0;
    caf::actor_id actor = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto it = publications_.find(name);
      if (it != publications_.end()) {
        node = it->second.incarnation;
        actor = it->second.actor;
      }
    }
    if (caf::strong_actor_ptr handle = HandleOf(node, actor)) return handle;
    return absl::NotFoundError(StrCat("no actor is published as \"", name, "\""));
  }
  if (options_.runtime == nullptr) {
    return absl::NotFoundError(StrCat(options_.name, " is no task"));
  }
  // There is one task, by whatever name it is asked for.
  const auto key = std::make_pair(kind, kind == ActorKind::kTask ? std::string() : name);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (const auto it = roles_.find(key); it != roles_.end()) return it->second;
  }
  TaskStatus task{options_.name, options_.incarnation, {}};
  for (const auto& device : options_.runtime->devices()) {
    task.devices.push_back(device->device->name());
  }
  TROUPE_ASSIGN_OR_RETURN(caf::strong_actor_ptr made,
                          MakeRoleActor(system(), options_.runtime, task, kind, name));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!roles_.emplace(key, made).second) return roles_[key];
  }
  made->get()->attach_functor([this, key] {
    std::lock_guard<std::mutex> lock(mutex_);
    roles_.erase(key);
  });
  return made;
}

void ActorHost::FindAsync(const std::string& task, ActorKind kind, const std::string& name,
                          absl::Duration timeout, Found done) {
  const auto whom = [&]() -> absl::StatusOr<std::vector<PeerId>> {
    if (task.empty()) {
      if (kind != ActorKind::kPublished) return InvalidArgument("of which task?");
      return Tasks();
    }
    TROUPE_ASSIGN_OR_RETURN(const DeviceName parsed, DeviceName::Parse(task));
    if (!parsed.job || !parsed.task) return InvalidArgument("\"", task, "\" is no task");
    const std::string full = TaskId{*parsed.job, *parsed.task}.ToString();
    if (full == options_.name) return std::vector<PeerId>();
    TROUPE_ASSIGN_OR_RETURN(const Links::Task found, options_.links->FindTask(full));
    return std::vector<PeerId>{found.id};
  }();
  if (!whom.ok()) return done(whom.status());
  // What is published is known here, as a rule.
  if (task.empty() || whom->empty()) {
    absl::StatusOr<caf::strong_actor_ptr> here = FindHere(kind, name);
    if (here.ok() || whom->empty()) return done(std::move(here));
  }
  std::string fields;
  WireWriter writer(&fields);
  writer.Number(kind);
  writer.String(name);
  AskAll(*whom, kFind, fields, DeadlineIn(timeout), /*any=*/true,
         [this, name, done = std::move(done)](const absl::StatusOr<std::string>& answer) {
           if (!answer.ok()) return done(answer.status());
           WireReader reader(*answer);
           uint64_t node = 0, actor = 0;
           if (!reader.Number(&node) || !reader.Number(&actor)) return done(Malformed());
           if (caf::strong_actor_ptr handle = HandleOf(node, actor)) return done(std::move(handle));
           done(absl::UnavailableError(StrCat("actor ", name, " has ended")));
         });
}

absl::StatusOr<caf::strong_actor_ptr> ActorHost::Find(const std::string& task, ActorKind kind,
                                                      const std::string& name,
                                                      absl::Duration timeout) {
  return Wait<caf::strong_actor_ptr>(DeadlineIn(timeout), [&](Found done) {
    FindAsync(task, kind, name, timeout, std::move(done));
  });
}

absl::StatusOr<std::string> ActorHost::OnPublish(uint64_t from, const std::string& name,
                                                 caf::actor_id actor) {
  const absl::Status taken =
      absl::AlreadyExistsError(StrCat("an actor is published as \"", name, "\" already"));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = publications_.find(name);
    if (it != publications_.end()) {
      if (it->second.incarnation == from && it->second.actor == actor) return "";
      return taken;
    }
    const auto of_it = [from](const auto& known) { return known.second.incarnation == from; };
    if (std::count_if(publications_.begin(), publications_.end(), of_it) >= kMostPublished) {
      return absl::ResourceExhaustedError(
          StrCat("a process publishes ", kMostPublished, " actors at most"));
    }
  }
  const caf::strong_actor_ptr handle = HandleOf(from, actor);
  if (handle == nullptr) return InvalidArgument("there is no actor to publish as \"", name, "\"");
  Publication publication{from, actor};
  absl::StatusOr<PublishedActor> local =
      PublishActorOf(Describe(from), name, caf::actor_cast<caf::actor>(handle));
  if (local.ok()) {
    publication.local = std::make_unique<PublishedActor>(*std::move(local));
  } else if (!absl::IsAlreadyExists(local.status()) || !IsPublishedAs(name, handle)) {
    return local.status();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  return publications_.emplace(name, std::move(publication)).second
             ? absl::StatusOr<std::string>("")
             : taken;
}

std::string ActorHost::Describe(uint64_t node) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = processes_.find(node);
  if (it == processes_.end() || it->second.peer == nullptr) return "";
  const PeerInfo& info = it->second.peer->info();
  return StrCat(info.task, " at ", info.serves_at.empty() ? info.address : info.serves_at);
}

absl::StatusOr<PublishedActor> ActorHost::Import(const std::string& name, absl::Duration timeout) {
  constexpr absl::Duration kPause = absl::Milliseconds(2);
  const Clock::time_point deadline = DeadlineIn(timeout);
  TROUPE_ASSIGN_OR_RETURN(const caf::strong_actor_ptr found,
                          Find("", ActorKind::kPublished, name, timeout));
  const uint64_t node = Identity::IncarnationOf(found->nid);
  if (node == options_.incarnation) {
    return absl::AlreadyExistsError(
        StrCat("actor \"", name, "\" is published by this process itself"));
  }
  std::string process = Describe(node);
  for (; process.empty(); process = Describe(node)) {  // It is being connected to.
    if (options_.now() >= deadline) {
      return absl::DeadlineExceededError(
          StrCat("the process of actor \"", name, "\" was not reached in time"));
    }
    absl::SleepFor(kPause);
  }
  return PublishActorOf(process, name, caf::actor_cast<caf::actor>(found));
}

struct ActorHost::Publishing {
  std::string name, fields;
  Clock::time_point deadline;
  Published done;
};

void ActorHost::PublishAsync(const std::string& name, const caf::actor& actor,
                             const PublishOptions& options, absl::Duration timeout,
                             Published done) {
  const absl::Status here = [&]() -> absl::Status {
    if (name.size() > kMostNameBytes) return InvalidArgument("the name is too long");
    if (actor != nullptr && actor.node() != system().node()) {
      return InvalidArgument("the actor to publish as \"", name, "\" is not one of this node");
    }
    TROUPE_ASSIGN_OR_RETURN(PublishedActor local, PublishActor(name, actor, options));
    system().registry().put(actor.id(), actor);
    std::lock_guard<std::mutex> lock(mutex_);
    Publication& publication = publications_[name];
    if (publication.incarnation != 0) {
      return absl::AlreadyExistsError(StrCat("an actor is published as \"", name, "\" already"));
    }
    publication = {options_.incarnation, actor.id(), options.quick,
                   std::make_unique<PublishedActor>(std::move(local))};
    if (options.quick) quick_.insert(actor.id());
    return absl::OkStatus();
  }();
  if (!here.ok()) return done(here);
  auto publishing =
      std::make_shared<Publishing>(Publishing{name, {}, DeadlineIn(timeout), std::move(done)});
  WireWriter writer(&publishing->fields);
  writer.String(name);
  writer.Number<uint64_t>(actor.id());
  PublishAt(Tasks(), publishing);
}

void ActorHost::PublishAt(std::vector<PeerId> tasks,
                          const std::shared_ptr<Publishing>& publishing) {
  const auto finish = [this, publishing](const absl::Status& status) {
    const std::string& name = publishing->name;
    if (!status.ok()) {
      Unpublish(name);
      return publishing->done(status);
    }
    {
      // Those that did not answer, or had not lost an earlier life of this process yet, are told
      // again.
      const std::vector<PeerId> tasks = Tasks();
      std::lock_guard<std::mutex> lock(mutex_);
      for (PeerId id : tasks) announce_.emplace(id, name);
    }
    publishing->done(PublishedActor([weak = weak_from_this(), name] {
      if (const auto host = weak.lock()) KeepGoing([&] { host->Unpublish(name); });
    }));
  };
  if (tasks.empty()) {
    return finish(options_.runtime != nullptr
                      ? absl::OkStatus()
                      : absl::UnavailableError("no task of the cluster can be reached"));
  }
  // Of two that publish a name at the same time, the first one at the first task that lives gets
  // it.
  const PeerId first = tasks.front();
  tasks.erase(tasks.begin());
  Ask(first, kPublish, publishing->fields, publishing->deadline,
      [this, tasks, publishing, finish](const absl::StatusOr<std::string>& answer) {
        if (IsAbsent(answer.status())) return PublishAt(tasks, publishing);
        if (!answer.ok() || tasks.empty()) return finish(answer.status());
        AskAll(tasks, kPublish, publishing->fields, publishing->deadline, /*any=*/false,
               [finish](const absl::StatusOr<std::string>& rest) {
                 finish(IsAbsent(rest.status()) ? absl::OkStatus() : rest.status());
               });
      });
}

absl::StatusOr<PublishedActor> ActorHost::Publish(const std::string& name, const caf::actor& actor,
                                                  const PublishOptions& options,
                                                  absl::Duration timeout) {
  return Wait<PublishedActor>(DeadlineIn(timeout), [&](Published done) {
    PublishAsync(name, actor, options, timeout, std::move(done));
  });
}

void ActorHost::Announce(PeerId id, const std::string& name, caf::actor_id actor) {
  std::string fields;
  WireWriter writer(&fields);
  writer.String(name);
  writer.Number<uint64_t>(actor);
  Ask(id, kPublish, fields, options_.now() + kLookFor,
      [this, id, name](const absl::StatusOr<std::string>& answer) {
        if (answer.ok()) return;
        std::lock_guard<std::mutex> lock(mutex_);
        if (!over_) announce_.emplace(id, name);
      });
}

void ActorHost::AnnounceAgain() {
  std::vector<std::pair<std::pair<PeerId, std::string>, caf::actor_id>> again;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::set<PeerId> connected;
    for (const auto& [node, process] : processes_) {
      if (process.peer != nullptr) connected.insert(process.id);
    }
    for (const auto& where : std::exchange(announce_, {})) {
      // The others are told when there is a connection.
      const auto it = publications_.find(where.second);
      if (connected.count(where.first) != 0 && it != publications_.end() &&
          it->second.incarnation == options_.incarnation) {
        again.emplace_back(where, it->second.actor);
      }
    }
  }
  for (const auto& [where, actor] : again) Announce(where.first, where.second, actor);
}

void ActorHost::Unpublish(const std::string& name) {
  std::unique_ptr<PublishedActor> local;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = publications_.find(name);
    if (it == publications_.end() || it->second.incarnation != options_.incarnation) return;
    local = std::move(it->second.local);
    if (it->second.quick) quick_.erase(it->second.actor);
    publications_.erase(it);
  }
  std::string body = Fields(kUnpublish);
  WireWriter(&body).String(name);
  // Also to those to which there is no connection: the publication may wait for one.
  for (PeerId id : Tasks()) options_.links->SendFrame(id, body, {});
}

}  // namespace troupe
