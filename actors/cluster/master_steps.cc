#include "actors/cluster/master_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {
// A task may not have heard that they failed.
constexpr size_t kMostFailedSteps = 10000;
constexpr ClusterTime kFailedStepLifetime = 120 * kSecond;
}  // namespace

MasterStep* MasterSteps::Find(uint64_t id) {
  auto it = steps_.find(id);
  return it == steps_.end() ? nullptr : &it->second;
}

void MasterSteps::Run(Responder from, cluster::RunStepRequest request) {
  MasterSession* session = master_->FindSession(from, request.session());
  if (session == nullptr) return;
  const std::shared_ptr<MasterSignature> signature =
      request.has_callable()
          ? signatures_->FindCallable(request.session(), session, request.callable())
          : signatures_->FindOrBuild(request.session(), session, request.signature());
  if (signature == nullptr) {
    return master_->calls->Reply(
        from, absl::NotFoundError(StrCat("there is no callable ", request.callable())));
  }
  if (request.feeds_size() != signature->names.feeds_size()) {
    return master_->calls->Reply(from, InvalidArgument("expected ", signature->names.feeds_size(),
                                                       " fed tensors, got ", request.feeds_size()));
  }
  const uint64_t id = Add(from, request.session(), signature);
  MasterStep& step = steps_.at(id);
  if (request.timeout_us() > 0) step.deadline = master_->now + request.timeout_us();
  step.trace = request.trace();
  const absl::Status begun = CatchExceptions([&] {
    for (TensorProto& feed : *request.mutable_feeds()) step.feeds.push_back(std::move(feed));
    Begin(id);
    return absl::OkStatus();
  });
  if (!begun.ok()) Fail(id, begun);
}

uint64_t MasterSteps::Add(Responder from, const std::string& session,
                          const std::shared_ptr<MasterSignature>& signature) {
  const uint64_t id = (master_->options.seed << 32) | (next_step_++ & 0xffffffffu);
  MasterStep step;
  step.client = from;
  step.session = session;
  step.signature = signature;
  steps_.insert_or_assign(id, std::move(step));
  ++signature->num_steps;
  signature->last_used = master_->now;
  return id;
}

void MasterSteps::Begin(uint64_t id) {
  MasterSignature* signature = steps_.at(id).signature.get();
  if (signature->building) {
    signature->waiting.push_back(id);
  } else {
    Advance(id);
  }
}

void MasterSteps::Wake(const std::vector<uint64_t>& steps, const absl::Status& status) {
  for (uint64_t id : steps) KeepGoing([&] { status.ok() ? Advance(id) : Fail(id, status); });
}

void MasterSteps::Advance(uint64_t id) {
  const absl::Status status = CatchExceptions([&] { return TryAdvance(id); });
  if (status.ok()) return;
  // Those that could not be asked.
  if (MasterStep* step = Find(id))
    std::erase_if(step->calls, [](auto& c) { return c.second == 0; });
  Fail(id, status);
}

absl::Status MasterSteps::TryAdvance(uint64_t id) {
  MasterStep* step = Find(id);
  if (step == nullptr || step->running || !step->status.ok()) return absl::OkStatus();
  auto session = master_->sessions.find(step->session);
  if (session == master_->sessions.end()) return SessionClosedError();
  TROUPE_ASSIGN_OR_RETURN(
      const bool ready,
      signatures_->Register(step->session, session->second.get(), step->signature));
  if (ready) {
    SendRuns(id, step);
  } else {
    step->signature->waiting.push_back(id);
  }
  return absl::OkStatus();
}

void MasterSteps::SendRuns(uint64_t step_id, MasterStep* step) {
  step->running = true;
  std::shared_ptr<MasterSignature> signature = step->signature;
  const BuiltStep& built = *signature->built;
  step->fetches.resize(built.num_fetches);
  for (size_t i = 0; i < built.parts.size(); ++i) {
    const PeerId task = signature->tasks[i];
    const MasterSignature::Registration& registration = signature->registrations.at(task);
    cluster::Message request;
    cluster::RunGraphRequest* run = request.mutable_run_graph();
    run->set_session(step->session);
    run->set_handle(registration.handle);
    run->set_step(step_id);
    run->set_trace(step->trace);
    for (int feed : built.parts[i].feeds) {
      if (step->partial != nullptr) break;  // They come later.
      // The last one to need it gets it.
      bool wanted = false;
      for (size_t j = i + 1; j < built.parts.size() && !wanted; ++j) {
        const std::vector<int>& feeds = built.parts[j].feeds;
        wanted = std::find(feeds.begin(), feeds.end(), feed) != feeds.end();
      }
      *run->add_feeds() = wanted ? step->feeds[feed] : std::move(step->feeds[feed]);
    }
    if (built.parts.size() > 1) {
      for (const BuiltStep::Part& part : built.parts) run->add_tasks(part.task);
    }
    uint64_t& call = step->calls[task];
    call = master_->calls->Call(
        task, registration.incarnation, std::move(request), master_->now, 0,
        [this, step_id, task, i](const absl::Status& status, cluster::Message reply) {
          OnRunDone(step_id, task, i, status, std::move(reply));
        });
  }
  step->feeds.clear();
  if (step->partial != nullptr) {
    partial_runs_.OnBegun(step);
  } else if (step->calls.empty()) {
    Finish(step_id);
  }
}

void MasterSteps::OnRunDone(uint64_t step_id, PeerId task, size_t part, const absl::Status& status,
                            cluster::Message reply) {
  auto it = steps_.find(step_id);
  if (it == steps_.end()) return;
  MasterStep& step = it->second;
  // The task counts as done once its results are here, and nothing can throw any more.
  cluster::RunGraphReply nothing;
  cluster::RunGraphReply& ran =
      reply.has_run_graph_reply() ? *reply.mutable_run_graph_reply() : nothing;
  if (ran.costs_size() > 0) KeepGoing([&] { master_->engine->Learn(step.session, ran); });
  if (step.partial != nullptr && status.ok()) {
    step.calls.erase(task);
    return partial_runs_.FinishPiece(step_id);
  }
  const std::vector<int>& fetches = step.signature->built->parts[part].fetches;
  absl::Status result = status;
  if (result.ok() && ran.fetches_size() != static_cast<int>(fetches.size())) {
    result = absl::InternalError(StrCat(master_->tasks.Describe(task), " sent ", ran.fetches_size(),
                                        " tensors, ", fetches.size(), " were fetched"));
  }
  if (!result.ok()) {
    if (reply.status().forgotten()) result = signatures_->Forgotten(step.session, task);
    step.calls.erase(task);
    return Fail(step_id, result, reply.status().derived());
  }
  step.metadata += ran.metadata();
  for (size_t i = 0; i < fetches.size(); ++i) {
    step.fetches[fetches[i]] = std::move(*ran.mutable_fetches(static_cast<int>(i)));
  }
  step.calls.erase(task);
  if (step.calls.empty()) Finish(step_id);
}

void MasterSteps::Fail(uint64_t step_id, const absl::Status& status, bool derived) {
  auto it = steps_.find(step_id);
  if (it == steps_.end()) return;
  MasterStep& step = it->second;
  const bool first = step.status.ok();
  if (first || (step.derived && !derived)) {
    step.status = status;
    step.derived = derived;
  }
  if (first) {
    step.give_up = master_->now + master_->options.grace;
    KeepGoing([&] {
      WriteLog(absl::IsCancelled(status) ? LogLevel::kDebug : LogLevel::kInfo, master_->own_name(),
               {"step", step.session}, "step ", step_id, " of session ", step.session,
               " is aborted: ", status.ToString());
    });
    for (const auto& one : step.calls) KeepGoing([&] { CleanUp(one.first, step_id, status); });
  }
  if (step.calls.empty()) Finish(step_id);
}

void MasterSteps::CleanUp(PeerId task, uint64_t step, const absl::Status& why) {
  cluster::Message cleanup;
  cleanup.mutable_cleanup_graph()->set_step(step);
  cleanup.mutable_cleanup_graph()->set_reason(
      StrCat("the step failed elsewhere: ", std::string(why.message())));
  master_->calls->Call(task, master_->tasks.life(task), std::move(cleanup), master_->now,
                       master_->options.grace, [](const absl::Status&, const cluster::Message&) {});
}

std::vector<uint64_t> MasterSteps::FailedWith(PeerId task) const {
  std::vector<uint64_t> ids;
  for (const FailedStep& step : failed_steps_) {
    if (std::find(step.tasks.begin(), step.tasks.end(), task) != step.tasks.end()) {
      ids.push_back(step.id);
    }
  }
  return ids;
}

void MasterSteps::Finish(uint64_t step_id) {
  auto it = steps_.find(step_id);
  MasterStep step = std::move(it->second);
  steps_.erase(it);
  --step.signature->num_steps;
  step.signature->last_used = master_->now;
  for (const auto& [task, call] : step.calls) master_->calls->Forget(call);
  // Whatever there is no memory for, whoever waits is answered.
  if (!step.status.ok()) {
    KeepGoing([&] {
      failed_steps_.push_back({step_id, master_->now, step.signature->tasks});
      if (failed_steps_.size() > kMostFailedSteps) failed_steps_.pop_front();
    });
  }
  if (step.partial != nullptr) return partial_runs_.OnEnd(&step);
  cluster::Message reply;
  step.status.Update(CatchExceptions([&] {
    cluster::RunStepReply* ran = reply.mutable_run_step_reply();
    for (TensorProto& fetch : step.fetches) *ran->add_fetches() = std::move(fetch);
    ran->set_metadata(std::move(step.metadata));
    return absl::OkStatus();
  }));
  master_->calls->Reply(step.client, step.status, std::move(reply));
}

void MasterSteps::FailIf(absl::FunctionRef<bool(const MasterStep&)> fails,
                         const absl::Status& status) {
  for (auto it = steps_.begin(); it != steps_.end();) {
    const uint64_t id = it->first;
    if (fails(it->second)) KeepGoing([&] { Fail(id, status); });
    it = steps_.upper_bound(id);
  }
}

void MasterSteps::OnTaskLost(PeerId task, const absl::Status& status) {
  // Steps that wait for a registration on another task need not wait any longer.
  FailIf([task](const MasterStep& step) { return step.signature->Uses(task); }, status);
}

void MasterSteps::Tick() {
  const ClusterTime now = master_->now;
  while (!failed_steps_.empty() && now - failed_steps_.front().when > kFailedStepLifetime) {
    failed_steps_.pop_front();
  }
  const auto given_up = [now](const MasterStep& step) {
    return !step.status.ok() && now >= step.give_up;
  };
  for (uint64_t id : KeysIf(steps_, given_up)) Finish(id);
  FailIf([now](const MasterStep& step) { return step.status.ok() && step.Late(now); },
         absl::DeadlineExceededError("the run did not finish within its timeout"));
}

}  // namespace troupe
