#include "api/training/monitored_training_session.h"

#include <utility>

#include "api/internal/training_state_listener.h"
#include "api/summary.h"
#include "api/training/checkpoint_saver_hook.h"
#include "api/training/session_manager.h"
#include "api/training/summary_hooks.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/path.h"
#include "graph/meta_graph.h"

namespace troupe {
namespace {

absl::Status CheckScaffold(const std::shared_ptr<Graph>& graph,
                           const std::shared_ptr<Scaffold>& scaffold) {
  if (graph != nullptr && scaffold != nullptr && scaffold->finalized()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a session creator needs a graph, and a scaffold that is finalized: give it to "
      "MonitoredSessionOptions::scaffold, too");
}

SessionManager ManagerOf(const std::shared_ptr<Graph>& graph, const Scaffold& scaffold) {
  return SessionManager(graph, {.ready_op = scaffold.ready_op(),
                                .ready_for_local_init_op = scaffold.ready_for_local_init_op(),
                                .local_init_op = scaffold.local_init_op(),
                                .local_init_feeds = scaffold.options().local_init_feeds});
}

bool IsOff(const HookInterval& interval) {
  return interval.steps == 0 && interval.time == absl::ZeroDuration();
}

/// Logs steps a second, and writes them as TensorFlow does.
std::shared_ptr<SessionRunHook> CounterOf(int64_t steps,
                                          const std::shared_ptr<SummaryWriter>& writer) {
  return std::make_shared<StepCounterHook>(
      HookInterval{.steps = steps}, [writer](int64_t step, double rate) {
        const absl::Status status = writer->AddScalar("global_step/sec", rate, step);
        if (!status.ok()) {
          WriteLog(LogLevel::kError, "", {"summaries lost"}, std::string(status.message()));
        }
      });
}

/// Writes the graph for TensorBoard, as TensorFlow does with the first checkpoint.
class GraphHook final : public SessionRunHook {
 public:
  GraphHook(std::shared_ptr<Scaffold> scaffold, std::shared_ptr<SummaryWriter> writer)
      : scaffold_(std::move(scaffold)), writer_(std::move(writer)) {}
  absl::Status AfterCreateSession(Session& session, Coordinator&) override {
    TROUPE_RETURN_IF_ERROR(writer_->AddGraph(*session.graph()));
    MetaGraphDef meta;
    TROUPE_RETURN_IF_ERROR(
        ExportMetaGraph(*session.graph(), {.saver_def = scaffold_->saver()->ToProto()}, &meta));
    return writer_->AddMetaGraph(meta);
  }

 private:
  const std::shared_ptr<Scaffold> scaffold_;
  const std::shared_ptr<SummaryWriter> writer_;
};

constexpr char kBaseName[] = "model.ckpt";

/// Saves, with what TensorFlow's format has no room for beside, and says so in the event file.
std::shared_ptr<SessionRunHook> CheckpointsOf(const MonitoredTrainingOptions& options,
                                              const std::shared_ptr<Scaffold>& scaffold,
                                              const std::shared_ptr<SummaryWriter>& writer) {
  CheckpointSaverOptions saving{.interval = options.save_checkpoints};
  saving.find_saver = [scaffold] { return scaffold->saver(); };
  saving.asynchronous = options.asynchronous_checkpoints;
  saving.basename = kBaseName;
  saving.listeners = {
      std::make_shared<TrainingStateListener>(JoinPath(options.checkpoint_dir, kBaseName), writer)};
  return std::make_shared<CheckpointSaverHook>(options.checkpoint_dir, std::move(saving));
}

/// What TensorFlow's function adds before the hooks that it is given.
absl::StatusOr<Hooks> ChiefHooks(const MonitoredTrainingOptions& options,
                                 const std::shared_ptr<Scaffold>& scaffold) {
  Hooks hooks = options.chief_only_hooks;
  const std::string& folder =
      options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir;
  std::shared_ptr<SummaryWriter> writer;
  if (!folder.empty()) {
    TROUPE_ASSIGN_OR_RETURN(writer, SummaryWriter::ForDirectory(folder));
    hooks.push_back(std::make_shared<GraphHook>(scaffold, writer));
    if (options.log_step_count_steps > 0) {
      hooks.push_back(CounterOf(options.log_step_count_steps, writer));
    }
    if (!IsOff(options.save_summaries)) {
      hooks.push_back(std::make_shared<SummarySaverHook>(SummarySaverHook::Options{
          .interval = options.save_summaries, .writer = writer, .summaries = [scaffold] {
            const Output merged = scaffold->summary_op();
            return merged.valid() ? std::vector<Output>{merged} : std::vector<Output>();
          }}));
    }
  }
  if (!options.checkpoint_dir.empty() && !IsOff(options.save_checkpoints)) {
    hooks.push_back(CheckpointsOf(options, scaffold, writer));
  }
  return hooks;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> ChiefSessionCreator::operator()() const {
  TROUPE_RETURN_IF_ERROR(CheckScaffold(graph, scaffold));
  const ScaffoldOptions& all = scaffold->options();
  InitOptions init{.init_op = all.init_op, .init_feeds = all.init_feeds};
  if (all.init_fn != nullptr) {
    init.init_fn = [&](Session& made) { return all.init_fn(*scaffold, made); };
  }
  return ManagerOf(graph, *scaffold)
      .PrepareSession(session,
                      {.saver = scaffold->saver(),
                       .checkpoint_dir = checkpoint_dir,
                       .checkpoint_filename = checkpoint_filename,
                       .max_wait = max_wait},
                      init);
}

absl::StatusOr<std::unique_ptr<Session>> WorkerSessionCreator::operator()() const {
  TROUPE_RETURN_IF_ERROR(CheckScaffold(graph, scaffold));
  return ManagerOf(graph, *scaffold).WaitForSession(session, max_wait);
}

absl::StatusOr<std::unique_ptr<MonitoredSession>> MonitoredTrainingSession(
    std::shared_ptr<Graph> graph, MonitoredTrainingOptions options) {
  const std::shared_ptr<Scaffold> scaffold =
      options.scaffold != nullptr ? options.scaffold
                                  : std::make_shared<Scaffold>(ScaffoldOptions{
                                        .asynchronous_saver = options.asynchronous_checkpoints});
  const MonitoredSessionOptions monitored{.recovery_timeout = options.recovery_timeout,
                                          .stop_grace_period = options.stop_grace_period,
                                          .scaffold = scaffold};
  if (!options.is_chief) {
    return MonitoredSession::Create(graph,
                                    WorkerSessionCreator{.graph = graph,
                                                         .scaffold = scaffold,
                                                         .session = options.session,
                                                         .max_wait = options.max_wait},
                                    std::move(options.hooks), monitored);
  }
  TROUPE_ASSIGN_OR_RETURN(Hooks hooks, ChiefHooks(options, scaffold));
  hooks.insert(hooks.end(), options.hooks.begin(), options.hooks.end());
  return MonitoredSession::Create(graph,
                                  ChiefSessionCreator{.graph = graph,
                                                      .scaffold = scaffold,
                                                      .session = options.session,
                                                      .checkpoint_dir = options.checkpoint_dir,
                                                      .max_wait = options.max_wait},
                                  std::move(hooks), monitored);
}

absl::StatusOr<std::unique_ptr<MonitoredSession>> SingularMonitoredSession(
    std::shared_ptr<Graph> graph, SingularMonitoredOptions options) {
  const std::shared_ptr<Scaffold> scaffold =
      options.scaffold != nullptr ? options.scaffold : std::make_shared<Scaffold>();
  return MonitoredSession::Create(
      graph,
      ChiefSessionCreator{.graph = graph,
                          .scaffold = scaffold,
                          .session = options.session,
                          .checkpoint_dir = options.checkpoint_dir,
                          .checkpoint_filename = options.checkpoint_filename},
      std::move(options.hooks),
      {.recover = false, .stop_grace_period = options.stop_grace_period, .scaffold = scaffold});
}

}  // namespace troupe
