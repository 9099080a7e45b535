#include "api/internal/default_timeout.h"

#include <utility>

#include "devices/status_macros.h"

namespace troupe {
namespace {

RunOptions Completed(RunOptions options, absl::Duration timeout) {
  if (options.timeout == absl::InfiniteDuration()) options.timeout = timeout;
  return options;
}

class TimedCall final : public PreparedCall {
 public:
  TimedCall(std::shared_ptr<PreparedCall> call, absl::Duration timeout)
      : call_(std::move(call)), timeout_(timeout) {}

  absl::Status Run(absl::Span<const Tensor> feeds, absl::Span<Tensor> fetches,
                   const RunOptions& options, RunMetadata* metadata) override {
    return call_->Run(feeds, fetches, Completed(options, timeout_), metadata);
  }
  int num_nodes() const override { return call_->num_nodes(); }

 private:
  const std::shared_ptr<PreparedCall> call_;
  const absl::Duration timeout_;
};

class TimedSession final : public SessionInterface {
 public:
  TimedSession(std::shared_ptr<SessionInterface> session, absl::Duration timeout)
      : session_(std::move(session)), timeout_(timeout) {}

  absl::StatusOr<std::vector<Tensor>> Run(const NamedTensors& feeds,
                                          const std::vector<std::string>& fetches,
                                          const std::vector<std::string>& targets,
                                          const RunOptions& options,
                                          RunMetadata* metadata) override {
    return session_->Run(feeds, fetches, targets, Completed(options, timeout_), metadata);
  }
  absl::StatusOr<std::vector<Tensor>> Run(const StepSignature& signature,
                                          absl::Span<const Tensor> feeds, const RunOptions& options,
                                          RunMetadata* metadata) override {
    return session_->Run(signature, feeds, Completed(options, timeout_), metadata);
  }
  void RunAsync(const RunOptions& options, absl::StatusOr<StepSignature> signature,
                std::vector<Tensor> feeds, RunDone done, RunMetadata* metadata) override {
    session_->RunAsync(Completed(options, timeout_), std::move(signature), std::move(feeds),
                       std::move(done), metadata);
  }
  absl::StatusOr<std::shared_ptr<PreparedCall>> Prepare(const StepSignature& signature) override {
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<PreparedCall> call, session_->Prepare(signature));
    return std::make_shared<TimedCall>(std::move(call), timeout_);
  }
  absl::StatusOr<std::string> PartialRunSetup(const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& targets,
                                              const RunOptions& options) override {
    return session_->PartialRunSetup(feeds, fetches, targets, Completed(options, timeout_));
  }
  absl::Status PartialRun(const std::string& handle, const NamedTensors& feeds,
                          const std::vector<std::string>& fetches, std::vector<Tensor>* values,
                          const RunOptions& options) override {
    return session_->PartialRun(handle, feeds, fetches, values, Completed(options, timeout_));
  }
  absl::Status Extend() override { return session_->Extend(); }
  absl::StatusOr<std::vector<DeviceAttributes>> ListDevices() override {
    return session_->ListDevices();
  }
  absl::Status Reset(const std::vector<std::string>& containers) override {
    return session_->Reset(containers);
  }
  void PlaceAgain() override { session_->PlaceAgain(); }
  absl::StatusOr<KernelStates> SaveKernelStates() override { return session_->SaveKernelStates(); }
  absl::Status RestoreKernelStates(const KernelStates& states) override {
    return session_->RestoreKernelStates(states);
  }
  absl::StatusOr<std::vector<KeptResource>> SaveResources(
      const std::vector<ResourcePlace>& wanted) override {
    return session_->SaveResources(wanted);
  }
  absl::StatusOr<std::vector<ResourcePlace>> FindResources(
      const std::vector<ResourcePlace>& wanted) override {
    return session_->FindResources(wanted);
  }
  absl::Status RestoreResource(KeptResource resource) override {
    return session_->RestoreResource(std::move(resource));
  }
  absl::Status Close() override { return session_->Close(); }

 private:
  const std::shared_ptr<SessionInterface> session_;
  const absl::Duration timeout_;
};

}  // namespace

std::shared_ptr<SessionInterface> WithDefaultTimeout(std::shared_ptr<SessionInterface> session,
                                                     absl::Duration timeout) {
  if (timeout == absl::InfiniteDuration()) return session;
  return std::make_shared<TimedSession>(std::move(session), timeout);
}

}  // namespace troupe
