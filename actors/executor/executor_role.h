/// The executor: the role that runs one step of one plan.
#ifndef TROUPE_ACTORS_EXECUTOR_EXECUTOR_ROLE_H_
#define TROUPE_ACTORS_EXECUTOR_EXECUTOR_ROLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "actors/executor/plan.h"
#include "actors/executor/rendezvous.h"
#include "actors/mailbox.h"
#include "devices/cpu/compute_pool.h"
#include "devices/cpu/thread_parker.h"
#include "kernels/kernel.h"

namespace troupe {

/// When and where a node ran.
struct NodeTrace {
  int32_t node;
  int32_t thread;  ///< 0: the player of the executor; 1: somebody else (pool, or a waiting kernel's
                   ///< reply); `kDeviceStream`: the device's compute stream.
  static constexpr int32_t kDeviceStream = 2;
  uint64_t start_ns;  ///< Of the plan's clock.
  uint64_t end_ns;
};
/// What a step records at most, as a loop may go on for ever.
inline constexpr size_t kMostTraced = 1 << 18;

/// Told when a step that nobody waits for is over.
class StepCompletion {
 public:
  virtual ~StepCompletion() = default;
  /// On the thread that played last; the executor may be used again, or destroyed, from here.
  virtual void Over() noexcept = 0;
  /// Has a thread that waits for the step run `task`, which plays it; false: none waits.
  virtual bool PlayByCaller(PoolTask* /*task*/) noexcept { return false; }
};

/// State and logic of one step. A node is ready when all its inputs have come; ready nodes run on
/// the thread that plays the role, or on the compute pool when they are worth it and others are
/// ready; completions of what runs elsewhere are messages. Every message counts: the step is over
/// when nothing is ready and nothing is outstanding. The first error cancels the rest and is the
/// step's result; an exception, be it a kernel's or the executor's own for want of memory, is such
/// an error.
///
/// One executor runs one step at a time and is reused: between steps all slots are empty. `Run` is
/// called by one thread; messages come from any.
class ExecutorRole {
 public:
  explicit ExecutorRole(std::shared_ptr<const Plan> plan);
  ~ExecutorRole();
  ExecutorRole(const ExecutorRole&) = delete;
  ExecutorRole& operator=(const ExecutorRole&) = delete;

  const Plan& plan() const { return *plan_; }

  /// Runs a whole step: the calling thread plays, and waits as `caller`. `step.cancellation` must
  /// be set; feeds and fetches in the plan's order. With `trace` the times of nodes are recorded,
  /// of the first `kMostTraced` that run.
  absl::Status Run(const StepContext& step, absl::Span<const Tensor> feeds,
                   absl::Span<Tensor> fetches, std::vector<NodeTrace>* trace = nullptr,
                   ThreadParker* caller = ThreadParker::OfThisThread());

  /// Where the values of the plan's edges to other partitions meet; set before each step of a plan
  /// that has some.
  void set_rendezvous(Rendezvous* rendezvous) { rendezvous_ = rendezvous; }

  /// Begins a whole step and never waits: `completion` is told when it is over, possibly before
  /// this returns; then `Finish` gives its result. The feeds are moved from.
  void RunAsync(const StepContext& step, absl::Span<Tensor> feeds, StepCompletion* completion,
                std::vector<NodeTrace>* trace = nullptr);
  /// The result of a step that is over.
  absl::Status Finish(absl::Span<Tensor> fetches);

 private:
  struct Iteration;
  struct FrameInstance;
  struct Flow;
  struct OnDevice;
  struct AsyncOnDevice;

  /// A node that is not run by the loop itself, or not at once; what happens to it is a message to
  /// this executor.
  struct PendingKernel : Message, PoolTask, ReceiveDone {
    PendingKernel();
    ~PendingKernel() override;
    void Run() noexcept override;  ///< The kernel, on a thread of the pool.
    /// Calls an asynchronous kernel; one that throws is done.
    void BeginAsync(Kernel* kernel) noexcept;
    void Received(absl::Status received, Tensor tensor, bool is_dead,
                  Player player) noexcept override;

    ExecutorRole* executor = nullptr;
    int32_t node = 0;
    Iteration* iteration = nullptr;  ///< In plans with control flow.
    /// What the message says.
    enum class News : uint8_t {
      kDone,    ///< The node has finished.
      kResume,  ///< The value of a variable came: go on with the node from `next_snapshot` on.
      kMark,    ///< The device has come so far: see OnDevice.
    };
    News news = News::kDone;
    int32_t next_snapshot = 0;
    /// Which is first: ComputeAsync returning, or the kernel's `done`?
    enum class Phase : uint8_t { kCalling, kReturned, kDone };
    std::atomic<Phase> phase{Phase::kCalling};
    KernelContext ctx;
    absl::Status status;
    std::unique_ptr<KernelRest> rest;
    std::unique_ptr<AsyncOnDevice> on_device;
    Tensor value;  ///< Received.
    bool dead = false;
    uint64_t start_ns = 0, end_ns = 0;
    PendingKernel* next_free = nullptr;
  };

  /// Plays on a thread of the pool, for a step that nobody waits for.
  struct PlayTask : PoolTask {
    void Run() noexcept override { executor->PlayOn(); }
    ExecutorRole* executor = nullptr;
  };

  void Begin(const StepContext& step, std::vector<NodeTrace>* trace);
  void Trace(const NodeTrace& run) {
    if (trace_ != nullptr && trace_->size() < kMostTraced) trace_->push_back(run);
  }
  void SetFeed(int feed, Tensor value);
  /// The value of a fetch if it has been computed; each once.
  bool TryFetch(int fetch, Tensor* value);
  /// Does a part of the step; an exception out of it is the failure of the node that runs.
  template <typename F>
  void Try(F&& part) noexcept;

  /// Plays, as the holder of the token, until nothing is ready or outstanding (true) or until only
  /// others can go on (false); in both cases the token is released. `caller`: this thread waits
  /// anyway, so it helps the pool and spins a little before it lets go.
  bool Play(bool caller) noexcept;
  /// Plays, waits while others play, returns when nothing is ready or outstanding.
  void PlayAndWait();
  /// Plays with messages in hand and tells whoever wants to know when the step is over.
  void PlayOn() noexcept;
  /// Has the message handled: by whoever plays, by this thread if it may, or by another.
  void Send(PendingKernel* message, Player player) noexcept;
  /// Has whoever waits for the step, or the pool, go on as the holder of the token; false: there is
  /// neither.
  bool HandOn() noexcept;
  /// Handles the messages in `handed_over_`.
  void HandleMessages();

  template <bool kTimed>
  void RunReady();
  template <bool kTimed>
  void RunNode(int32_t node, int32_t next_snapshot);
  /// Takes the node's snapshots from number `next` on; false if a variable is busy (the node goes
  /// on when it has answered) or has no value (the step has failed).
  bool TakeSnapshots(int32_t node, int32_t next, Slot* slots, Iteration* iteration);
  /// Runs a synchronous kernel, or has the pool do it; true if it has finished (flow.h).
  template <bool kTimed>
  bool RunKernel(int32_t node, const PlanNode& plan_node, Slot* slots, Iteration* iteration);
  void StartAsync(int32_t node, const PlanNode& plan_node, Slot* slots, Iteration* iteration);
  void Offload(int32_t node, const PlanNode& plan_node, Slot* slots, Iteration* iteration);
  template <typename May>
  uint64_t LastUses(const PlanNode& node, const Slot* slots, May may);
  KernelContext MakeContext(const PlanNode& node, Slot* slots);

  // Plans with kernels that enqueue work on a device (on_device.cc).
  void BeginOnDevice(const StepContext& step);
  KernelContext ContextOnDevice(const StepContext& step, const PlanNode& plan_node, Slot* slots);
  KernelContext AsyncContextOnDevice(PendingKernel* pending_kernel, const PlanNode& plan_node,
                                     Slot* slots);
  /// Has the kernel enqueue its work; false if the node has failed, or completes later.
  bool RunOnDevice(int32_t node, const PlanNode& plan_node, Slot* slots, Iteration* iteration);
  /// Calls an asynchronous kernel that enqueues.
  void BeginAsyncOnDevice(PendingKernel* pending_kernel, const PlanNode& plan_node);
  /// Rates the kernels that the device has finished with, in runs that measure.
  void RateFinished() noexcept;
  /// An asynchronous kernel with arguments in the device's memory is done: looks at its outputs.
  void EnqueuedBy(PendingKernel* pending_kernel);
  /// Internal if an output is not in the memory that the plan expects.
  absl::Status CheckOutputs(int32_t node, Slot* slots) const;
  /// Has the stream send a mark, unless all are under way.
  void SendMark() noexcept;
  void HandleMark(PendingKernel* mark);
  /// True if the device had not finished with the step: a message will come.
  bool WaitForDevice() noexcept;
  /// Fails the step if a kernel that was enqueued has failed.
  bool FailedLate() noexcept;

  /// Books a node's end: lets go of its inputs, counts its consumers down.
  void Complete(const PlanNode& node);
  void Finish(PendingKernel* pending_kernel);
  /// `node`: -1 if it is none's fault.
  void Fail(int32_t node, const absl::Status& status) noexcept;
  void FailStep(const absl::Status& status) noexcept;
  /// Adds to the status the largest values that the step and its device's variables hold. Nothing
  /// runs any more.
  void TellWhatIsHeld() noexcept;
  void CleanUp() noexcept;
  absl::Status Result();

  // Plans with control flow (flow.cc): every node belongs to an iteration of a frame.
  template <bool kTimed>
  void RunReadyFlow();
  template <bool kTimed>
  void RunNodeFlow(int32_t node, Iteration* iteration, bool dead, int32_t next_snapshot);
  void BeginFlow();
  /// Runs a node that the executor itself plays; false if it has failed.
  bool PlayFlowOp(int32_t node, Iteration* iteration, bool dead);
  void Receive(int32_t node, Iteration* iteration);
  void SetReceived(int32_t node, Iteration* iteration, Tensor value);
  void CompleteFlow(int32_t node, Iteration* iteration, bool dead);
  void Enter(int32_t node, Iteration* iteration, bool dead);
  void Exit(int32_t node, Iteration* iteration, bool dead);
  void NextIteration(int32_t node, Iteration* iteration, bool dead);
  /// Tells the consumers of a node in `to` that it has finished.
  void Deliver(int32_t node, Iteration* to, bool dead);
  void ReleaseInputs(int32_t node, Iteration* iteration);
  Iteration* AddIteration(FrameInstance* frame);
  Iteration* NewIteration(FrameInstance* frame);
  /// One node, or frame, less to wait for in an iteration.
  void LeaveIteration(Iteration* iteration);
  /// Empties the block of an iteration that is over.
  void EndIteration(Iteration* iteration);
  void EndFrame(FrameInstance* frame);
  void FreeFrame(FrameInstance* frame);
  void CleanUpFlow() noexcept;
  /// Why a fetch has no value.
  absl::Status MissingFetch(int fetch) const;

  PendingKernel* NewPendingKernel(int32_t node, Iteration* iteration);
  void Recycle(PendingKernel* pending_kernel);
  static void AsyncDone(void* self, void* node, absl::Status status, Player player,
                        std::unique_ptr<KernelRest> rest) noexcept;

  /// A node elsewhere that is asynchronous has finished, on whatever thread.
  void AsyncOver(PendingKernel* pending_kernel, Player player) noexcept;

  const std::shared_ptr<const Plan> plan_;
  // The plan's arrays, as the loop wants them.
  const PlanNode* const nodes_;
  const int32_t* const input_slots_;
  const int32_t* const consumers_;
  const int32_t* const slot_uses_;
  Mailbox mailbox_;
  StepContext step_;
  Rendezvous* rendezvous_ = nullptr;
  std::vector<int32_t> pending_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<Flow> flow_;           ///< nullptr: the plan has no control flow.
  std::unique_ptr<OnDevice> on_device_;  ///< nullptr: the plan is the host's alone.
  std::unique_ptr<int32_t[]> ready_;     ///< A stack: the newest is taken first.
  int32_t num_ready_ = 0;
  int32_t outstanding_ = 0;  ///< Messages that are sure to come.
  int32_t running_ = -1;     ///< The node whose turn it is; -1: none's.
  bool failed_ = false;
  bool out_of_memory_ = false;  ///< Why it has failed.
  bool timed_ = false;
  bool can_offload_ = false;
  absl::Status status_;
  std::vector<NodeTrace>* trace_ = nullptr;
  /// Messages taken and not yet handled; they come along with a token that is handed over.
  Message* handed_over_ = nullptr;
  PlayTask play_task_;
  PendingKernel* free_ = nullptr;
  std::vector<std::unique_ptr<PendingKernel>> all_pending_kernels_;
  ThreadParker* caller_ = nullptr;        ///< Who waits in PlayAndWait.
  StepCompletion* completion_ = nullptr;  ///< Who is told, if nobody waits.
  TimeSource* const clock_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_EXECUTOR_EXECUTOR_ROLE_H_
