/// Kernels: implementations of ops for a device and element types.
///
///     class NegKernel : public Kernel {
///       absl::Status Compute(KernelContext& ctx) override {
///         TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate(0, 0));
///         ...
///       }
///     };
#ifndef TROUPE_KERNELS_KERNEL_H_
#define TROUPE_KERNELS_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "devices/status_macros.h"
#include "devices/tensor.h"
#include "graph/attr_reader.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class CancellationToken;
class ComputePool;
class Device;
class FunctionRunner;
class LateErrors;
class OpDef;
class ResourceProvider;
class Stream;
class Variable;

/// Where a node's output waits for its consumers. The executor's; kernels use KernelContext.
struct Slot {
  Tensor tensor;
  /// The variable behind a reference output (the container keeps it alive during the step).
  Variable* ref = nullptr;
  /// Consumers that have not finished with the value.
  int32_t uses = 0;
  /// `uses` of a constant of the plan at the start of a step: more than its consumers count down.
  static constexpr int32_t kConstant = INT32_MAX;
  bool dead = false;
};

/// What is the same for all kernels of a step on a device.
struct StepContext {
  int64_t step_id = 0;
  Device* device = nullptr;
  /// Of outputs and scratch memory: the host's, or the device's for kernels that run on its stream.
  Allocator* allocator = nullptr;
  ComputePool* pool = nullptr;  ///< nullptr: kernels run on the calling thread alone.
  Stream* stream = nullptr;
  CancellationToken* cancellation = nullptr;
  ResourceProvider* resources = nullptr;
  /// What lives as long as the step (stacks, tensor arrays with string handles, temporary
  /// variables): emptied at its end. Shared by the functions that the step calls.
  ResourceProvider* step_resources = nullptr;
  /// The functions that kernels may call; nullptr: there are none.
  FunctionRunner* functions = nullptr;
  int32_t call_depth = 0;  ///< How many function calls are around this one.
  /// Where kernels that only enqueue say what goes wrong afterwards; nullptr for others.
  LateErrors* late_errors = nullptr;
};

/// A kernel's view of one execution of its node. Inputs are read-only unless forwarded. Used by one
/// thread at a time.
class KernelContext {
 public:
  KernelContext(const StepContext* step, Slot* slots, const int32_t* input_slots, int num_inputs,
                Slot* outputs, int num_outputs, uint64_t forwardable)
      : step_(step),
        slots_(slots),
        input_slots_(input_slots),
        outputs_(outputs),
        forwardable_(forwardable),
        num_inputs_(num_inputs),
        num_outputs_(num_outputs) {}

  int num_inputs() const { return num_inputs_; }
  int num_outputs() const { return num_outputs_; }
  const Tensor& input(int i) const { return slots_[input_slots_[i]].tensor; }
  /// True if input i is a constant: the same buffer in every step, so that the kernel may keep what
  /// it computes from it. Not every constant is recognized.
  bool InputIsConstant(int i) const {
    return slots_[input_slots_[i]].uses > Slot::kConstant - (1 << 29);
  }
  /// The variable behind a reference input.
  Variable* input_ref(int i) const { return slots_[input_slots_[i]].ref; }
  /// For Merge and the like: an input that is not there, or dead.
  bool input_dead(int i) const { return slots_[input_slots_[i]].dead; }

  /// Output i, still to be filled: set it, or allocate it with one of the functions below.
  Tensor& output(int i) { return outputs_[i].tensor; }
  void set_output(int i, Tensor tensor) { outputs_[i].tensor = std::move(tensor); }
  /// A reference output; the variable must live in a container.
  void set_output_ref(int i, Variable* variable) { outputs_[i].ref = variable; }
  void set_output_dead(int i) { outputs_[i].dead = true; }

  /// Makes output i a new tensor with uninitialised elements, in the memory in which the kernel
  /// works.
  absl::StatusOr<Tensor*> AllocateOutput(int i, ElementType type, const Shape& shape);
  /// The same on the host: for an output that a kernel of another memory is registered to leave
  /// there (`KernelSpec::HostMemory`).
  absl::StatusOr<Tensor*> AllocateHostOutput(int i, ElementType type, const Shape& shape);
  /// Makes output i a scalar.
  template <typename T>
  absl::Status SetScalar(int i, T value) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, AllocateOutput(i, kElementType<T>, Shape()));
    *output->mutable_data<T>() = value;
    return absl::OkStatus();
  }
  /// True if input i's buffer may be overwritten: this kernel is its last user and nothing else
  /// holds it.
  bool CanForward(int i) const {
    return i < 64 && ((forwardable_ >> i) & 1) != 0 && input(i).unique();
  }
  /// Output `out` takes over input `in` (same buffer, same type; shape as given) if that is allowed
  /// and the element sizes and counts agree, else is allocated. Elements are then written in place:
  /// element k of the output may be written once element k of the input has been read.
  absl::StatusOr<Tensor*> ForwardOrAllocate(int in, int out, ElementType type, const Shape& shape);
  /// The same with the input's own type and shape.
  absl::StatusOr<Tensor*> ForwardOrAllocate(int in, int out) {
    return ForwardOrAllocate(in, out, input(in).type(), input(in).shape());
  }
  /// Output `out` takes over the first of two inputs that allows it (binary element-wise ops).
  absl::StatusOr<Tensor*> ForwardEitherOrAllocate(int in_a, int in_b, int out, ElementType type,
                                                  const Shape& shape);
  /// Moves or copies (sharing) input `in` to output `out` with its shape; no bytes are copied.
  void PassThrough(int in, int out) {
    if (in < 64 && ((forwardable_ >> in) & 1) != 0) {
      outputs_[out].tensor = std::move(slots_[input_slots_[in]].tensor);
    } else {
      outputs_[out].tensor = slots_[input_slots_[in]].tensor;
    }
  }
  /// Input `in`, moved out if this kernel is its last user, else shared.
  Tensor TakeInput(int in) {
    if (in < 64 && ((forwardable_ >> in) & 1) != 0) {
      return std::move(slots_[input_slots_[in]].tensor);
    }
    return input(in);
  }
  /// Scratch memory for the time of the call.
  absl::StatusOr<Tensor> AllocateTemp(ElementType type, const Shape& shape) {
    return Tensor::Allocate(type, shape, step_->allocator);
  }

  /// Runs body(begin, end) over [0, total) in pieces of `grain`, on several threads if there are
  /// any. The pieces depend on total and grain only (same bits on any number of threads).
  void ParallelFor(int64_t total, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);
  /// A grain for `ParallelFor` that makes pieces of about 20 microseconds when one item takes
  /// `nanoseconds`.
  static int64_t GrainFor(double nanoseconds);

  const StepContext& step() const { return *step_; }
  ResourceProvider* resources() const { return step_->resources; }
  CancellationToken* cancellation() const { return step_->cancellation; }

 private:
  const StepContext* step_;
  Slot* slots_;
  const int32_t* input_slots_;
  Slot* outputs_;
  uint64_t forwardable_;
  int num_inputs_;
  int num_outputs_;
};

/// An implementation of an op: constructed once per node and plan, called for every execution of
/// it, from several threads at once when steps overlap. State that changes needs its own
/// synchronisation.
///
/// On a device with a memory of its own, a kernel with arguments in that memory enqueues its work
/// on `step().stream` and returns. Of such arguments it knows types, shapes and addresses; their
/// elements are there, and their buffers stay, for what is enqueued. Arguments in host memory are
/// to be read before it returns. What it allocates may be freed as soon as it has returned: the
/// stream's order protects it (`Allocator`). What it finds out later it tells `late_errors`.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Reads inputs, fills every output, returns. Errors get the node's name and op added by the
  /// caller; so do exceptions, which become errors (ResourceExhausted for std::bad_alloc, otherwise
  /// Internal).
  virtual absl::Status Compute(KernelContext& ctx) = 0;
  virtual class AsyncKernel* async() { return nullptr; }
};

/// Whether the thread that brings something to a step may play it, that is to say run its kernels.
enum class Player : uint8_t {
  /// It may not: others rely on it (a timer, whoever cancels or closes), or it plays a step of its
  /// own. Whoever waits for the step plays, or the pool.
  kHandsOn,
  /// A reader of the transport: if the step is quick.
  kQuick,
  /// It waits for the step, works on it already, or belongs to the pool.
  kPlays,
};

/// What an asynchronous kernel leaves to the player of its step. Destroyed by it, in any case.
class KernelRest {
 public:
  virtual ~KernelRest() = default;
  /// Called if the kernel has gone well so far; the result is the kernel's.
  virtual absl::Status Finish() { return absl::OkStatus(); }
};

/// Tells the executor that an asynchronous kernel has finished, but for `rest`. Copyable; called
/// exactly once, on any thread.
struct KernelDone {
  void (*fn)(void* self, void* node, absl::Status status, Player player,
             std::unique_ptr<KernelRest> rest);
  void* self;
  void* node;
  void operator()(absl::Status status, Player player = Player::kHandsOn,
                  std::unique_ptr<KernelRest> rest = nullptr) const {
    fn(self, node, std::move(status), player, std::move(rest));
  }
};

/// A kernel that may have to wait for somebody: it must not block a thread.
class AsyncKernel : public Kernel {
 public:
  /// Begins; `done` is called once the outputs are filled or the wait has failed, possibly before
  /// this returns. `ctx` lives until then. Waits must end when ctx.cancellation() is cancelled. If
  /// this throws, `done` must not be called any more; what calls `done` later must not throw.
  virtual void ComputeAsync(KernelContext& ctx, KernelDone done) = 0;
  absl::Status Compute(KernelContext&) final {
    return absl::InternalError("an asynchronous kernel was called synchronously");
  }
  AsyncKernel* async() final { return this; }
  /// False: what it waits for (a variable that is in use, a copy) comes whether or not other nodes
  /// run.
  virtual bool WaitsForNodes() const { return true; }
};

/// What a kernel can learn of its node when it is made. Errors from here are reported when the
/// graph is compiled for a run.
class KernelConstruction {
 public:
  KernelConstruction(const NodeDef* def, const OpDef* op_def, Device* device,
                     absl::Span<const ElementType> input_types,
                     absl::Span<const ElementType> output_types)
      : attrs_(def),
        op_def_(op_def),
        device_(device),
        input_types_(input_types),
        output_types_(output_types) {}

  const AttrReader& attrs() const { return attrs_; }
  template <typename T>
  absl::Status GetAttr(std::string_view name, T* value) const {
    return attrs_.Get(name, value);
  }
  /// For attributes that the op definition guarantees: `T` default constructed if absent.
  template <typename T>
  T Attr(std::string_view name) const {
    return attrs_.GetOr<T>(name, T{});
  }
  const std::string& node_name() const;
  const std::string& op() const;
  Device* device() const { return device_; }
  int num_inputs() const { return static_cast<int>(input_types_.size()); }
  int num_outputs() const { return static_cast<int>(output_types_.size()); }
  ElementType input_type(int i) const { return input_types_[i]; }
  ElementType output_type(int i) const { return output_types_[i]; }

 private:
  AttrReader attrs_;
  const OpDef* op_def_;
  Device* device_;
  absl::Span<const ElementType> input_types_;
  absl::Span<const ElementType> output_types_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_KERNELS_KERNEL_H_
