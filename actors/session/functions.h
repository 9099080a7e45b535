/// The functions of a session's graph, compiled when they are first called.
#ifndef TROUPE_ACTORS_SESSION_FUNCTIONS_H_
#define TROUPE_ACTORS_SESSION_FUNCTIONS_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "actors/session/compile.h"
#include "graph/function_body.h"
#include "kernels/function_runner.h"

namespace troupe {

/// A compiled body with the executors of its calls, which are reused. A call is played by the
/// thread that makes it, inside the call's kernel; it takes no lock and allocates nothing but what
/// the body's kernels do. A body runs on its caller's device, unless its nodes ask for devices, or
/// have no kernels there, and there are several: then it is placed and cut as a step is. Arguments
/// and results stay in the device's memory if all of the body runs there. Calls that
/// are nested too deep for the stack are put off until the thread has come back to its outermost
/// call. Thread-safe.
class CompiledFunction final : public CallableFunction {
 public:
  /// How many calls may be around a call.
  static constexpr int kMaxDepth = 10000;

  /// What `Compile` says, with the function's name.
  static absl::StatusOr<std::unique_ptr<CompiledFunction>> Create(FunctionBody body,
                                                                  const CompileOptions& options,
                                                                  Runtime* runtime);
  ~CompiledFunction() override;

  int num_args() const override { return static_cast<int>(arg_types_.size()); }
  int num_results() const override { return static_cast<int>(result_types_.size()); }
  ElementType arg_type(int i) const override { return arg_types_[i]; }
  ElementType result_type(int i) const override { return result_types_[i]; }
  void Call(const StepContext& step, absl::Span<Tensor> args, Tensor* results, ResultsIn where,
            KernelDone done) override;
  void Call(KernelContext& ctx, const StepContext& step, int first_input, ResultsIn where,
            KernelDone done) override;
  StatefulKernels* stateful() { return &stateful_; }
  /// Those of the body: one for each part of it, on the host and on the devices that have called.
  std::vector<const Plan*> Plans() const;

 private:
  /// One call under way, or resting.
  struct Frame;
  /// Where a result comes from: a fetch of the plan, or an argument.
  struct Source {
    bool is_arg = false;
    int index = 0;
  };

  CompiledFunction(const CompileOptions& options, Runtime* runtime);
  /// The one that is compiled for the step's device.
  absl::StatusOr<CompiledFunction*> For(const StepContext& step, ResultsIn where);
  /// The device whose memory arguments and results may be in; nullptr: they are on the host.
  Device* device() const {
    return options_.args_in_place ? options_.device->device.get() : nullptr;
  }
  /// nullptr if the call is nested too deep; `done` has been told.
  Frame* Acquire(const StepContext& step, KernelDone done);
  /// Takes the arguments and begins; if taking throws, there was no call.
  void Start(Frame* frame, absl::FunctionRef<Tensor(int)> take);
  void Release(Frame* frame) noexcept;

  const CompileOptions options_;
  Runtime* const runtime_;
  FunctionBody body_;
  StatefulKernels stateful_;
  std::vector<LocalPartition> partitions_;
  int num_fetches_ = 0;
  /// The plans have arguments and results on the host, the callers have them on the device.
  bool crosses_ = false;
  std::vector<ElementType> arg_types_, result_types_;
  std::vector<Source> sources_;  ///< Per result.

  std::atomic<Frame*> hot_{nullptr};  ///< The frame used last, so that most calls take no lock.
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> free_;
  /// For devices with a memory of their own; made when they first call.
  std::map<std::pair<const Device*, ResultsIn>, std::unique_ptr<CompiledFunction>> on_devices_;
};

/// All functions that the steps of a session call. Stateful kernels in their bodies keep their
/// state per function and attributes, as long as the session lives. Thread-safe.
class SessionFunctions final : public FunctionRunner {
 public:
  SessionFunctions(std::shared_ptr<Graph> graph, Runtime* runtime, CompileOptions options);
  ~SessionFunctions() override;

  absl::StatusOr<CallableFunction*> Find(const NameAttrList& function) override;
  absl::StatusOr<StepContext> OnDevice(const StepContext& step, const std::string& device) override;
  /// Adds functions to the graph's library, while others may be called.
  absl::Status AddLibrary(const FunctionDefLibrary& library);
  /// Of kernels in bodies, but for those on devices with a memory of their own.
  void SaveStates(KernelStates* states, bool of_others = true);
  void RestoreStates(const KernelStates& states);

 private:
  absl::StatusOr<FunctionBody> Instantiate(const NameAttrList& function);
  /// Looks again at the graph's library if it has grown; false if it has not.
  bool Refresh();

  const std::shared_ptr<Graph> graph_;
  Runtime* const runtime_;
  const CompileOptions options_;
  std::mutex mutex_;
  std::unique_ptr<FunctionDefLibrary> definitions_;
  std::unique_ptr<FunctionLibrary> library_;
  std::map<std::string, std::unique_ptr<CompiledFunction>> compiled_;
  KernelStates restored_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_SESSION_FUNCTIONS_H_
