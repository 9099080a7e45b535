#include "tests/faults/training.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/faults/process.h"

namespace troupe::faults {

namespace {

constexpr int kSize = 100'000, kStepsBefore = 60, kSaveSteps = 20;

void Say(const std::string& line) { std::cout << line << std::endl; }

/// Each session is to begin at the last checkpoint.
class LastCheckpoint final : public SessionRunHook {
 public:
  LastCheckpoint(ModelVariable step, std::string folder)
      : step_(std::move(step)), folder_(std::move(folder)) {}
  absl::Status AfterCreateSession(Session& session, Coordinator&) override {
    TROUPE_ASSIGN_OR_RETURN(const auto values, session.Run({step_.value()}));
    at_ = values[0].unchecked_scalar<int64_t>();
    const auto latest = LatestCheckpoint(folder_);
    const std::string expected = StrCat(folder_, "/model.ckpt-", at_);
    if (latest.ok() ? *latest == expected : at_ == 0) return absl::OkStatus();
    return absl::InternalError(StrCat("step ", at_, " is not that of the last checkpoint"));
  }
  int64_t at() const { return at_; }

 private:
  const ModelVariable step_;
  const std::string folder_;
  int64_t at_ = 0;
};

class Training {
 public:
  explicit Training(const ClientOptions& options) : options_(options) {
    Scope ps = s_.WithDevice(options.Device("ps")),
          worker = s_.WithDevice(options.Device("worker"));
    step_ = GlobalStep(s_.WithDevice("/job:ps/task:0/device:CPU:0"));
    const ModelVariable w(ps, {kSize}, ConstantInitializer(1), "w");
    loss_ = ops::Mean(worker, ops::Square(worker, ops::Sub(worker, w.value(), 3.0f)), {0});
    train_ = MomentumOptimizer(10.0f, 0.5f).Minimize(s_, loss_, step_);
    after_ = step_.Read(s_.WithControlDependencies({Output(train_)}));
    hook_ = std::make_shared<LastCheckpoint>(step_, options.checkpoints);
  }

  int Run() {
    if (!s_.ok()) return Fail(s_.status());
    const bool goes_on = LatestCheckpoint(options_.checkpoints).ok();
    MonitoredTrainingOptions options{.checkpoint_dir = options_.checkpoints,
                                     .hooks = {hook_},
                                     .save_checkpoints = {.steps = kSaveSteps},
                                     .save_summaries = {}};
    options.session.target = options_.target;
    options.session.heartbeat_timeout = absl::Seconds(options_.timeout);
    options.session.allow_soft_placement = options_.accelerators;
    auto session = MonitoredTrainingSession(s_.graph(), options);
    if (!session.ok()) return Fail(session.status());
    for (int steps = 0;; ++steps) {
      if (absl::Status status = Step(session->get()); !status.ok()) return Fail(status);
      if (steps == (goes_on ? 0 : kStepsBefore)) {
        sessions_ = (*session)->num_sessions();  // The loss may be over when it is told "go".
        Say("in");
      }
      if (again_ == 0 && sessions_ > 0 && (*session)->num_sessions() > sessions_) again_ = Now();
      if (asked_ && again_ > 0) {
        Say(StrCat("result OK 0 ", std::to_string(again_), " goes on from step ", hook_->at(),
                   ", was at ", farthest_));
        asked_ = false;
      }
      const std::string told = in_.Next(Seconds(0.0005)).value_or("");
      if (told == "go") {
        asked_ = true;
      } else if (told == "recover") {
        Say("recovered new " + std::to_string(Now()));
      } else if (told == "quit" || in_.closed()) {
        break;
      }
    }
    const absl::Status closed = (*session)->Close();
    return closed.ok() ? 0 : Fail(closed);
  }

 private:
  int Fail(const absl::Status& status) {
    std::string message(status.message());
    std::replace(message.begin(), message.end(), '\n', ' ');
    Say("result " + absl::StatusCodeToString(status.code()) + " 0 " + std::to_string(Now()) + " " +
        message);
    return 1;
  }

  absl::Status Step(MonitoredSession* session) {
    TROUPE_ASSIGN_OR_RETURN(const auto values, session->Run({}, {after_, loss_}, {train_}));
    const int64_t step = values[0].unchecked_scalar<int64_t>();
    const float loss = values[1].unchecked_scalar<float>();
    const auto [it, is_new] = losses_.emplace(step, loss);
    farthest_ = losses_.rbegin()->first;
    if (it->second == loss) return absl::OkStatus();
    return absl::InternalError(StrCat("the loss of step ", step, " is ", loss, ", it was ",
                                      it->second, " when it was made before"));
  }

  const ClientOptions options_;
  const Scope s_ = Scope::NewRoot();
  ModelVariable step_;
  Output loss_, after_;
  Node* train_ = nullptr;
  std::shared_ptr<LastCheckpoint> hook_;
  LineReader in_{STDIN_FILENO};
  std::map<int64_t, float> losses_;
  int64_t farthest_ = 0;
  bool asked_ = false;  ///< For the time of the first step after the loss.
  double again_ = 0;    ///< That time.
  int sessions_ = 0;    ///< Before the loss.
};

}  // namespace

int RunTraining(const ClientOptions& options) { return Training(options).Run(); }

}  // namespace troupe::faults
