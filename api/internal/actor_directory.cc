// What the hosts of actors ask one another: who is found and published where.
#include <algorithm>
#include <condition_variable>
#include <utility>

#include "actors/runtime.h"
#include "api/internal/actor_host.h"
#include "api/internal/actor_protocol.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "net/cluster_spec.h"

namespace troupe {

using namespace actor_protocol;  // NOLINT: its own

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

absl::StatusOr<std::string> ActorHost::AskAndWait(const std::vector<PeerId>& to, uint8_t kind,
                                                  const std::string& fields,
                                                  Clock::time_point deadline, bool any) {
  struct Answers {
    std::mutex mutex;
    std::condition_variable changed;
    size_t left;
    bool decided = false;  ///< What the others say does not count.
    absl::StatusOr<std::string> answer = absl::UnavailableError("no task can be asked");
  };
  auto answers = std::make_shared<Answers>();
  answers->left = to.size();
  for (PeerId id : to) {
    Ask(id, kind, fields, deadline, [answers, any](absl::StatusOr<std::string> answer) {
      std::lock_guard<std::mutex> lock(answers->mutex);
      --answers->left;
      answers->changed.notify_all();
      if (answers->decided) return;
      answers->decided = any ? answer.ok() : !answer.ok() && !IsAbsent(answer.status());
      // That somebody is not there says less than any other answer.
      if (answers->decided || IsAbsent(answers->answer.status()) || (answer.ok() && !any)) {
        answers->answer = std::move(answer);
      }
    });
  }
  std::unique_lock<std::mutex> lock(answers->mutex);
  const auto over = [&] { return answers->left == 0 || answers->decided; };
  if (!answers->changed.wait_until(lock, deadline + std::chrono::seconds(1), over)) {
    return absl::DeadlineExceededError("no answer in time");
  }
  return answers->answer;
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
  const auto key = std::make_pair(kind, name);
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

absl::StatusOr<caf::strong_actor_ptr> ActorHost::Find(const std::string& task, ActorKind kind,
                                                      const std::string& name,
                                                      absl::Duration timeout) {
  const Clock::time_point deadline = DeadlineIn(timeout);
  std::vector<PeerId> whom;
  if (task.empty()) {
    if (kind != ActorKind::kPublished) return InvalidArgument("of which task?");
    absl::StatusOr<caf::strong_actor_ptr> here = FindHere(kind, name);
    if (here.ok()) return here;
    whom = Tasks();
    if (whom.empty()) return here;
  } else {
    TROUPE_ASSIGN_OR_RETURN(const DeviceName parsed, DeviceName::Parse(task));
    if (!parsed.job || !parsed.task) return InvalidArgument("\"", task, "\" is no task");
    const std::string full = TaskId{*parsed.job, *parsed.task}.ToString();
    if (full == options_.name) return FindHere(kind, name);
    TROUPE_ASSIGN_OR_RETURN(const Links::Task found, options_.links->FindTask(full));
    whom.push_back(found.id);
  }
  std::string fields;
  WireWriter writer(&fields);
  writer.Number(kind);
  writer.String(name);
  TROUPE_ASSIGN_OR_RETURN(const std::string answer,
                          AskAndWait(whom, kFind, fields, deadline, /*any=*/true));
  WireReader reader(answer);
  uint64_t node = 0, actor = 0;
  if (!reader.Number(&node) || !reader.Number(&actor)) return Malformed();
  if (caf::strong_actor_ptr handle = HandleOf(node, actor)) return handle;
  return absl::UnavailableError(StrCat("actor ", name, " has ended"));
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
      PublishActor(name, caf::actor_cast<caf::actor>(handle), PublishOptions());
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

absl::StatusOr<PublishedActor> ActorHost::Publish(const std::string& name, const caf::actor& actor,
                                                  const PublishOptions& options,
                                                  absl::Duration timeout) {
  const Clock::time_point deadline = DeadlineIn(timeout);
  if (name.size() > kMostNameBytes) return InvalidArgument("the name is too long");
  if (actor != nullptr && actor.node() != system().node()) {
    return InvalidArgument("the actor to publish as \"", name, "\" is not one of this node");
  }
  TROUPE_ASSIGN_OR_RETURN(PublishedActor local, PublishActor(name, actor, options));
  system().registry().put(actor.id(), actor);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Publication& publication = publications_[name];
    if (publication.incarnation != 0) {
      return absl::AlreadyExistsError(StrCat("an actor is published as \"", name, "\" already"));
    }
    publication = {options_.incarnation, actor.id(), options.quick,
                   std::make_unique<PublishedActor>(std::move(local))};
    if (options.quick) quick_.insert(actor.id());
  }
  std::string fields;
  WireWriter writer(&fields);
  writer.String(name);
  writer.Number<uint64_t>(actor.id());
  // Of two that publish a name at the same time, the first one at the first task that lives gets
  // it.
  std::vector<PeerId> tasks = Tasks();
  absl::Status status = options_.runtime != nullptr
                            ? absl::OkStatus()
                            : absl::UnavailableError("no task of the cluster can be reached");
  while (!tasks.empty()) {
    const absl::Status first =
        AskAndWait({tasks.front()}, kPublish, fields, deadline, /*any=*/true).status();
    tasks.erase(tasks.begin());
    if (IsAbsent(first)) continue;
    status = first;
    break;
  }
  if (status.ok() && !tasks.empty()) {
    const absl::Status rest = AskAndWait(tasks, kPublish, fields, deadline, /*any=*/false).status();
    if (!IsAbsent(rest)) status = rest;
  }
  if (!status.ok()) {
    Unpublish(name);
    return status;
  }
  return PublishedActor([weak = weak_from_this(), name] {
    if (const auto host = weak.lock()) KeepGoing([&] { host->Unpublish(name); });
  });
}

void ActorHost::Unpublish(const std::string& name) {
  std::unique_ptr<PublishedActor> local;
  std::vector<PeerId> tasks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = publications_.find(name);
    if (it == publications_.end() || it->second.incarnation != options_.incarnation) return;
    local = std::move(it->second.local);
    if (it->second.quick) quick_.erase(it->second.actor);
    publications_.erase(it);
    for (const auto& [node, process] : processes_) {
      if (process.id < kFirstClient && process.peer != nullptr) tasks.push_back(process.id);
    }
  }
  std::string body = Fields(kUnpublish);
  WireWriter(&body).String(name);
  for (PeerId id : tasks) options_.links->SendFrame(id, body, {});
}

}  // namespace troupe
