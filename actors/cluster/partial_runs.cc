#include "actors/cluster/partial_runs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "actors/cluster/master_steps.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

// Errors of partial runs that nobody has asked about are kept for so many.
constexpr size_t kFailuresKept = 256;

absl::Status Unknown(const std::string& handle) {
  return InvalidArgument("there is no partial run ", handle, ": it was never set up, or is over");
}

}  // namespace

bool MasterStep::Late(ClusterTime now) const {
  auto over = [now](ClusterTime time) { return time != 0 && now >= time; };
  if (over(deadline)) return true;
  return partial != nullptr &&
         std::any_of(partial->pieces.begin(), partial->pieces.end(),
                     [&](const PartialRun::Piece& piece) { return over(piece.deadline); });
}

void PartialRuns::Setup(Responder from, cluster::PartialRunSetupRequest request) {
  MasterSession* session = master_->FindSession(from, request.session());
  if (session == nullptr) return;
  auto run = std::make_shared<PartialRun>();
  cluster::Signature& names = *request.mutable_signature();
  for (int i = 0; i < names.feeds_size(); ++i) run->feeds[names.feeds(i)] = i;
  run->fed.resize(static_cast<size_t>(names.feeds_size()));
  for (int i = 0; i < names.fetches_size(); ++i) {
    if (!run->fetches.emplace(names.fetches(i), i).second) {
      return master_->calls->Reply(
          from, InvalidArgument("a partial run fetches ", names.fetches(i), " twice"));
    }
  }
  names.set_partial(true);
  run->handle = master_->NewName("partial_run_");
  const std::shared_ptr<MasterSignature> signature =
      signatures_->FindOrBuild(request.session(), session, names);
  const uint64_t id = steps_->Add(from, request.session(), signature);
  session->partial_runs[run->handle] = id;
  MasterStep& step = *steps_->Find(id);
  step.partial = std::move(run);
  if (request.timeout_us() > 0) step.deadline = master_->now + request.timeout_us();
  steps_->Begin(id);
}

void PartialRuns::OnBegun(MasterStep* step) {
  cluster::Message reply;
  reply.mutable_partial_run_setup_reply()->set_partial_run(step->partial->handle);
  master_->calls->Reply(step->client, absl::OkStatus(), std::move(reply));
  step->client = Responder();
}

void PartialRuns::AddPiece(Responder from, cluster::PartialRunRequest request) {
  MasterSession* session = master_->FindSession(from, request.session());
  if (session == nullptr) return;
  auto found = session->partial_runs.find(request.partial_run());
  if (found == session->partial_runs.end()) {
    absl::Status status = Unknown(request.partial_run());
    if (auto failed = session->failed_partials.find(request.partial_run());
        failed != session->failed_partials.end()) {
      status = failed->second;
      session->failed_partials.erase(failed);
    }
    master_->calls->Reply(from, status);
    return;
  }
  const uint64_t id = found->second;
  MasterStep& step = *steps_->Find(id);
  PartialRun::Piece& piece = step.partial->pieces.emplace_back();
  piece.client = from;
  if (request.timeout_us() > 0) piece.deadline = master_->now + request.timeout_us();
  piece.request = std::move(request);
  if (!step.partial->at_work && step.running && step.status.ok()) NextPiece(id);
}

bool PartialRuns::TakeNames(PartialRun* run, PartialRun::Piece* piece, std::vector<int>* fetches) {
  const cluster::PartialRunRequest& request = piece->request;
  absl::Status status;
  std::set<std::string> given, wanted;
  for (const cluster::NamedTensor& feed : request.feeds()) {
    if (run->feeds.count(feed.name()) == 0 || !given.insert(feed.name()).second) {
      status.Update(InvalidArgument("partial run ", run->handle, " was not set up to be fed ",
                                    feed.name(), ", or it has been fed already"));
    }
  }
  for (const std::string& name : request.fetches()) {
    if (run->fetches.count(name) == 0 || !wanted.insert(name).second) {
      status.Update(InvalidArgument("partial run ", run->handle, " was not set up to fetch ", name,
                                    ", or it has been fetched already"));
    }
  }
  if (!status.ok()) {
    master_->calls->Reply(piece->client, status);
    return false;
  }
  for (const std::string& name : given) run->fed[static_cast<size_t>(run->feeds[name])] = true;
  for (const std::string& name : request.fetches()) fetches->push_back(run->fetches[name]);
  return true;
}

void PartialRuns::NextPiece(uint64_t step_id) {
  MasterStep& step = *steps_->Find(step_id);
  PartialRun* run = step.partial.get();
  while (!run->pieces.empty()) {
    PartialRun::Piece& piece = run->pieces.front();
    std::vector<int> fetches;
    if (!TakeNames(run, &piece, &fetches)) {
      run->pieces.pop_front();
      continue;
    }
    // What cannot be had yet is refused, but what was fed is fed.
    const auto& needs = step.signature->built->needs;
    for (size_t i = 0; i < fetches.size() && piece.refusal.ok(); ++i) {
      for (int feed : needs[static_cast<size_t>(fetches[i])]) {
        if (run->fed[static_cast<size_t>(feed)]) continue;
        piece.refusal = InvalidArgument(
            "partial run ", run->handle, ": ", piece.request.fetches(static_cast<int>(i)),
            " depends on feeds that have not been given yet: ", step.signature->names.feeds(feed));
        break;
      }
    }
    if (!piece.refusal.ok()) fetches.clear();
    run->at_work = true;
    const absl::Status sent = CatchExceptions([&] {
      SendPiece(step_id, &step, fetches);
      return absl::OkStatus();
    });
    if (!sent.ok()) steps_->Fail(step_id, sent);
    return;
  }
}

void PartialRuns::SendPiece(uint64_t step_id, MasterStep* step, const std::vector<int>& fetches) {
  PartialRun* run = step->partial.get();
  PartialRun::Piece& piece = run->pieces.front();
  piece.values.resize(fetches.size());
  const BuiltStep& built = *step->signature->built;
  struct Order {
    PeerId task;
    cluster::Message request;
    std::vector<int> places;
  };
  std::vector<Order> orders;
  for (size_t part = 0; part < built.parts.size(); ++part) {
    const PeerId task = step->signature->tasks[part];
    // One that has done its part has used what it was fed.
    if (step->calls.count(task) == 0) continue;
    Order order{task, {}, {}};
    cluster::FeedGraphRequest* request = order.request.mutable_feed_graph();
    request->set_step(step_id);
    const std::vector<int>& part_feeds = built.parts[part].feeds;
    for (size_t k = 0; k < part_feeds.size(); ++k) {
      for (const cluster::NamedTensor& given : piece.request.feeds()) {
        if (run->feeds[given.name()] != part_feeds[k]) continue;
        cluster::NumberedTensor* feed = request->add_feeds();
        feed->set_index(static_cast<uint32_t>(k));
        *feed->mutable_tensor() = given.tensor();
      }
    }
    const std::vector<int>& part_fetches = built.parts[part].fetches;
    for (size_t k = 0; k < part_fetches.size(); ++k) {
      auto place = std::find(fetches.begin(), fetches.end(), part_fetches[k]);
      if (place == fetches.end()) continue;
      request->add_fetches(static_cast<int32_t>(k));
      order.places.push_back(static_cast<int>(place - fetches.begin()));
    }
    if (request->feeds_size() + request->fetches_size() > 0) orders.push_back(std::move(order));
  }
  for (const cluster::NamedTensor& feed : piece.request.feeds()) run->feeds.erase(feed.name());
  if (!fetches.empty()) {
    for (const std::string& name : piece.request.fetches()) run->fetches.erase(name);
  }
  piece.request.clear_feeds();
  piece.calls = static_cast<int>(orders.size());
  for (Order& order : orders) {
    master_->calls->Call(order.task, step->signature->registrations.at(order.task).incarnation,
                         std::move(order.request), master_->now, 0,
                         [this, step_id, places = std::move(order.places)](
                             const absl::Status& status, cluster::Message reply) {
                           OnPieceDone(step_id, status, std::move(reply), places);
                         });
  }
  if (orders.empty()) FinishPiece(step_id);
}

void PartialRuns::OnPieceDone(uint64_t step_id, const absl::Status& status, cluster::Message reply,
                              const std::vector<int>& places) {
  MasterStep* step = steps_->Find(step_id);
  // It has failed, or memory was short when this was to be told, and it is told again.
  if (step == nullptr) return;
  if (step->partial->pieces.empty()) return steps_->Fail(step_id, status);
  PartialRun::Piece& piece = step->partial->pieces.front();
  --piece.calls;
  auto* fetches = reply.mutable_feed_graph_reply()->mutable_fetches();
  absl::Status result = status;
  if (result.ok() && fetches->size() != static_cast<int>(places.size())) {
    result = absl::InternalError(
        StrCat("a task sent ", fetches->size(), " tensors, ", places.size(), " were fetched"));
  }
  if (!result.ok()) return steps_->Fail(step_id, result, reply.status().derived());
  for (size_t i = 0; i < places.size(); ++i) {
    piece.values[static_cast<size_t>(places[i])] = std::move((*fetches)[static_cast<int>(i)]);
  }
  FinishPiece(step_id);
}

void PartialRuns::FinishPiece(uint64_t step_id) {
  MasterStep& step = *steps_->Find(step_id);
  PartialRun* run = step.partial.get();
  if (!step.status.ok()) {
    if (step.calls.empty()) steps_->Finish(step_id);
    return;
  }
  if (!run->at_work || run->pieces.front().calls > 0) return;
  if (run->feeds.empty() && run->fetches.empty() && run->pieces.front().refusal.ok()) {
    // The last piece hears whether all went well.
    if (step.calls.empty()) steps_->Finish(step_id);
    return;
  }
  PartialRun::Piece piece = std::move(run->pieces.front());
  run->pieces.pop_front();
  run->at_work = false;
  Answer(&piece, piece.refusal);
  NextPiece(step_id);
}

void PartialRuns::Answer(PartialRun::Piece* piece, const absl::Status& status) {
  cluster::Message reply;
  absl::Status result = status;
  result.Update(CatchExceptions([&] {
    cluster::PartialRunReply* ran = reply.mutable_partial_run_reply();
    for (TensorProto& value : piece->values) *ran->add_fetches() = std::move(value);
    return absl::OkStatus();
  }));
  master_->calls->Reply(piece->client, result, std::move(reply));
}

void PartialRuns::OnEnd(MasterStep* step) {
  PartialRun* run = step->partial.get();
  bool told = step->client.id != 0;
  if (told) master_->calls->Reply(step->client, step->status);
  for (PartialRun::Piece& piece : run->pieces) {
    const bool done = run->at_work && &piece == &run->pieces.front();
    Answer(&piece, step->status.ok() && !done ? Unknown(run->handle) : step->status);
    told = true;
  }
  auto session = master_->sessions.find(step->session);
  if (session == master_->sessions.end()) return;
  session->second->partial_runs.erase(run->handle);
  auto& failed = session->second->failed_partials;
  if (!told && !step->status.ok() && failed.size() < kFailuresKept) {
    failed[run->handle] = step->status;
  }
}

}  // namespace troupe
