#include "actors/session/partial_step.h"

#include <algorithm>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/passes/partition_def.h"
#include "graph/passes/step_graph.h"

namespace troupe {

namespace {

void Give(PartialFetches::Answers answers) {
  for (auto& answer : answers) answer();
}

}  // namespace

/// Where fetched values come out.
class PartialStep::Exit final : public Rendezvous {
 public:
  explicit Exit(PartialStep* step) : step_(step) {}

 protected:
  void SendRemote(const RendezvousEdge& edge, uint64_t, Tensor value, bool dead) override {
    Give(step_->fetches_.Made(step_->fetch_edges_.at(edge.key), std::move(value), dead));
  }

 private:
  PartialStep* const step_;  ///< Lives while its executors run.
};

PartialStep::PartialStep(std::string handle, const Graph* graph, const StepSignature& signature,
                         std::shared_ptr<Runtime> runtime)
    : handle_(std::move(handle)),
      graph_(graph),
      runtime_(std::move(runtime)),
      fetched_(signature.fetches.size()),
      fetches_(static_cast<int>(signature.fetches.size())),
      rendezvous_(std::make_shared<Exit>(this)) {
  for (const Output& feed : signature.feeds) {
    feed_names_.push_back(feed.name());
    feeds_.push_back({RemoveRef(feed.type()), feed.shape(), {}, false});
  }
  for (const Output& fetch : signature.fetches) fetch_names_.push_back(fetch.name());
}

absl::StatusOr<std::shared_ptr<PartialStep>> PartialStep::Create(
    std::string handle, const Graph* graph, const StepSignature& signature,
    const CompileOptions& options, std::shared_ptr<Runtime> runtime, StatefulKernels* stateful) {
  std::shared_ptr<PartialStep> step(
      new PartialStep(std::move(handle), graph, signature, std::move(runtime)));
  for (auto it = step->fetch_names_.begin(); it != step->fetch_names_.end(); ++it) {
    if (std::find(step->fetch_names_.begin(), it, *it) != it) {
      return InvalidArgument("a partial run fetches ", *it, " twice");
    }
  }
  TROUPE_RETURN_IF_ERROR(step->Compile(signature, options, stateful));
  return step;
}

absl::Status PartialStep::Compile(const StepSignature& signature, const CompileOptions& options,
                                  StatefulKernels* stateful) {
  TROUPE_ASSIGN_OR_RETURN(
      const CutSignature cut,
      CutForDevices(*graph_, signature, options, *runtime_, stateful,
                    [this](const Subgraph& whole) { needs_ = FeedsOfFetches(whole); }));
  std::vector<LocalPartition> partitions;
  for (const DevicePartition& part : cut.parts.partitions) {
    // The form in which clusters send it has edges in place of feeds and fetches.
    TROUPE_ASSIGN_OR_RETURN(
        const cluster::Partition def,
        PartitionToDef(cut.lowered != nullptr ? *cut.lowered : *graph_, part, /*partial=*/true));
    TROUPE_ASSIGN_OR_RETURN(const ReceivedPartition received, PartitionFromDef(def));
    LocalPartition& local = partitions.emplace_back();
    local.device = runtime_->FindDevice(part.device);
    if (local.device == nullptr) {
      return absl::InternalError(StrCat("a partition was placed on ", part.device));
    }
    TROUPE_ASSIGN_OR_RETURN(local.plan,
                            BuildPlan(received.subgraph, local.device, stateful, runtime_.get(),
                                      /*fuse=*/false));
    for (size_t i = 0; i < part.feeds.size(); ++i) {
      feeds_[static_cast<size_t>(part.feeds[i])].edges.push_back(
          RendezvousKey(received.feed_edges[i]));
    }
    for (size_t i = 0; i < part.fetches.size(); ++i) {
      fetch_edges_[RendezvousKey(received.fetch_edges[i])] = part.fetches[i];
    }
  }
  step_ = std::make_unique<PartitionedStep>(std::move(partitions), 0);
  return absl::OkStatus();
}

void PartialStep::SetDeadline(ScopedDeadline* deadline, const char* what, absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return;
  deadline->Set(runtime_->timer(), timeout,
                [this, late = absl::DeadlineExceededError(
                           StrCat(what, " ", handle_, " did not finish within ",
                                  absl::FormatDuration(timeout)))] { Cancel(late); });
}

void PartialStep::Start(StepContext context, absl::Duration timeout,
                        std::shared_ptr<void> session) {
  context.cancellation = &cancellation_;
  context.step_resources = &resources_;
  SetDeadline(&deadline_, "partial run", timeout);
  std::function<void(absl::Status)> done =
      [self = shared_from_this(), session = std::move(session)](const absl::Status& status) {
        self->Ran(status);
      };
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    running_ = true;
  }
  const absl::Status begun = CatchExceptions([&] {
    step_->RunAsync(context, {}, {}, std::move(done), nullptr, rendezvous_);
    return absl::OkStatus();
  });
  if (!begun.ok()) Ran(begun);
}

void PartialStep::Ran(const absl::Status& status) noexcept {
  KeepGoing([&] { Give(fetches_.Ran(status)); });
  resources_.ResetAll();
  std::lock_guard<std::mutex> lock(mutex_);
  running_ = false;
  status_.Update(status);
  changed_.notify_all();
}

absl::Status PartialStep::Find(absl::Span<const std::pair<std::string, Tensor>> feeds,
                               absl::Span<const std::string> fetches, std::vector<int>* fed,
                               std::vector<int>* wanted) const {
  auto index_of = [this](const std::string& name, const std::vector<std::string>& names) {
    const absl::StatusOr<Output> output = graph_->FindOutput(name);
    const auto it =
        output.ok() ? std::find(names.begin(), names.end(), output->name()) : names.end();
    return static_cast<int>(it == names.end() ? -1 : it - names.begin());
  };
  auto has = [](const std::vector<int>& indices, int index) {
    return std::find(indices.begin(), indices.end(), index) != indices.end();
  };
  for (const auto& [name, value] : feeds) {
    const int i = index_of(name, feed_names_);
    if (i < 0 || feeds_[static_cast<size_t>(i)].given || has(*fed, i)) {
      return InvalidArgument("partial run ", handle_, " was not set up to be fed ", name,
                             ", or it has been fed already");
    }
    const Feed& feed = feeds_[static_cast<size_t>(i)];
    TROUPE_RETURN_IF_ERROR(CheckFedValue(name, feed.type, feed.shape, value));
    fed->push_back(i);
  }
  for (const std::string& name : fetches) {
    const int i = index_of(name, fetch_names_);
    if (i < 0 || fetched_[static_cast<size_t>(i)] || has(*wanted, i)) {
      return InvalidArgument("partial run ", handle_, " was not set up to fetch ", name,
                             ", or it has been fetched already");
    }
    wanted->push_back(i);
  }
  return absl::OkStatus();
}

absl::Status PartialStep::Run(absl::Span<const std::pair<std::string, Tensor>> feeds,
                              absl::Span<const std::string> fetches, std::vector<Tensor>* values,
                              absl::Duration timeout, bool* over) {
  std::lock_guard<std::mutex> piece(piece_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    *over = !running_ && !status_.ok();
    if (*over) return status_;
  }
  std::vector<int> fed, wanted;
  TROUPE_RETURN_IF_ERROR(Find(feeds, fetches, &fed, &wanted));
  ScopedDeadline deadline;
  std::vector<Tensor> fetched;
  bool refused = false;
  absl::Status status = CatchExceptions([&]() -> absl::Status {
    SetDeadline(&deadline, "a piece of partial run", timeout);
    for (size_t i = 0; i < fed.size(); ++i) {
      Feed& feed = feeds_[static_cast<size_t>(fed[i])];
      feed.given = true;
      for (uint64_t edge : feed.edges) {
        rendezvous_->Deliver(edge, 0, feeds[i].second, false, Player::kPlays);
      }
    }
    // What cannot be had yet is refused, but what was fed is fed.
    for (size_t i = 0; i < wanted.size(); ++i) {
      for (int feed : needs_[static_cast<size_t>(wanted[i])]) {
        if (feeds_[static_cast<size_t>(feed)].given) continue;
        refused = true;
        return InvalidArgument("partial run ", handle_, ": ", fetches[i],
                               " depends on feeds that have not been given yet: ",
                               feed_names_[static_cast<size_t>(feed)]);
      }
    }
    return Fetch(wanted, &fetched);
  });
  if (refused) return status;
  if (!status.ok()) Cancel(status);
  for (int fetch : wanted) fetched_[static_cast<size_t>(fetch)] = true;
  const bool last =
      std::find(fetched_.begin(), fetched_.end(), false) == fetched_.end() &&
      std::all_of(feeds_.begin(), feeds_.end(), [](const Feed& feed) { return feed.given; });
  *over = last || !status.ok();
  std::unique_lock<std::mutex> lock(mutex_);
  if (*over) changed_.wait(lock, [this] { return !running_; });
  status.Update(status_);
  if (status.ok() && values != nullptr) *values = std::move(fetched);
  return status;
}

absl::Status PartialStep::Fetch(const std::vector<int>& fetches, std::vector<Tensor>* values) {
  if (fetches.empty()) return absl::OkStatus();
  struct Answer {
    bool given = false;
    absl::Status status;
    std::vector<Tensor> values;
  };
  auto answer = std::make_shared<Answer>();
  Give(fetches_.Want(fetches, [this, answer](absl::Status status, std::vector<Tensor> made) {
    std::lock_guard<std::mutex> lock(mutex_);
    *answer = {true, std::move(status), std::move(made)};
    changed_.notify_all();
  }));
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return answer->given || !running_; });
  if (!answer->given) return absl::ResourceExhaustedError("no memory for the fetched values");
  *values = std::move(answer->values);
  return answer->status;
}

void PartialStep::Cancel(const absl::Status& reason) noexcept {
  const std::shared_ptr<PartialStep> self = weak_from_this().lock();  // The step may end here.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!running_) status_.Update(reason);
  }
  cancellation_.Cancel(reason);
  KeepGoing([&] { Give(fetches_.Abandon(reason)); });
}

bool PartialStep::WaitOver(absl::Duration patience) {
  return WaitWithin(runtime_->timer(), patience, &mutex_, &changed_, [this] { return !running_; });
}

}  // namespace troupe
