#include "tests/kernels/simulated/borrowed_kernels.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "devices/cpu/cpu_device.h"
#include "devices/cpu/flush_denormals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"
#include "graph/shape_inference.h"
#include "kernels/argument_spaces.h"
#include "kernels/cancellation.h"
#include "kernels/kernel_registry.h"
#include "kernels/late_errors.h"
#include "kernels/state/variable_kernel.h"
#include "tests/devices/simulated/simulated_device.h"
#include "tests/kernels/state/fake_variable.h"

namespace troupe::testing {
namespace {

/// Sizes, axes, indices: what a GPU's kernel would read on the host.
bool IsWantedOnHost(const OpDef::ArgDef& arg) {
  static const auto* attrs = new std::set<std::string>{
      "Tidx", "Tshape", "Tperm", "Tpaddings",    "Tmultiples", "Tdim",   "Tdims",
      "Tlen", "Index",  "Taxis", "Tblock_shape", "Tcrops",     "Tshift", "shape_type"};
  const auto type = static_cast<ElementType>(arg.type());
  return type == ElementType::kInt32 || type == ElementType::kInt64 ||
         attrs->contains(arg.type_attr());
}

std::vector<std::string> HostArguments(const OpDef& op) {
  std::vector<std::string> names;
  for (const OpDef::ArgDef& arg : op.input_arg()) {
    if (IsWantedOnHost(arg)) names.push_back(arg.name());
  }
  return names;
}

/// Shape functions that, as TensorFlow's, promise one element too few.
bool PromisesTooLittle(const std::string& op) {
  return op == "FractionalAvgPool" || op == "FractionalMaxPool";
}

/// What the CPU's kernels see.
StepContext* CpuStep() {
  static StepContext* const step = [] {
    auto* made = new StepContext;
    made->device = MakeCpuDevice({"localhost", 0, 0, "CPU", 0}, nullptr).release();
    made->allocator = HostAllocator();
    made->stream = made->device->stream();
    made->cancellation = new CancellationToken;
    return made;
  }();
  return step;
}

/// The call of a kernel of the CPU: inputs where this process can read them, outputs afterwards.
class CpuCall {
 public:
  CpuCall(Kernel* kernel, std::vector<Tensor> inputs, int num_outputs)
      : kernel_(kernel), num_outputs_(num_outputs) {
    for (Tensor& input : inputs) {
      input_slots_.push_back(static_cast<int32_t>(slots_.size()));
      slots_.emplace_back().tensor = std::move(input);
    }
    slots_.resize(slots_.size() + num_outputs);
  }
  absl::Status Run() {
    KernelContext ctx(CpuStep(), slots_.data(), input_slots_.data(),
                      static_cast<int>(input_slots_.size()), slots_.data() + input_slots_.size(),
                      num_outputs_, /*forwardable=*/0);
    const ScopedFlushDenormals flush;
    return CatchExceptions([&] { return kernel_->Compute(ctx); });
  }
  Tensor& output(int i) { return slots_[input_slots_.size() + i].tensor; }

 private:
  Kernel* const kernel_;
  const int num_outputs_;
  std::vector<int32_t> input_slots_;
  std::vector<Slot> slots_;
};

/// The elements of a tensor in device memory, for work on the device. Keeps nothing alive.
Tensor Inside(const Tensor& tensor) {
  void* const data = Reach(tensor.raw_data());
  return Tensor(tensor.type(), tensor.shape(), Buffer::Wrap(data, tensor.bytes(), nullptr, nullptr),
                data);
}

class BorrowedKernel final : public Kernel {
 public:
  BorrowedKernel(std::unique_ptr<Kernel> kernel, const KernelConstruction& construction,
                 const OpRegistration& op, ArgumentSpaces spaces)
      : kernel_(std::move(kernel)),
        def_(construction.attrs().def()),
        op_(op),
        spaces_(std::move(spaces)) {
    for (int i = 0; i < construction.num_outputs(); ++i) {
      types_.push_back(construction.output_type(i));
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    std::vector<Tensor> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      const Tensor& input = ctx.input(i);
      if (input.space() != MemorySpace::kDevice) {
        TROUPE_ASSIGN_OR_RETURN(inputs.emplace_back(), input.Clone());
      } else {
        inputs.push_back(Inside(input));
      }
    }
    const std::optional<std::vector<Shape>> shapes = OutputShapes(ctx);
    if (!shapes.has_value()) {
      while (!ctx.step().stream->Done()) std::this_thread::yield();
      if (ctx.step().late_errors->any()) return absl::CancelledError("there are no values");
      return ComputeNow(ctx, std::move(inputs));
    }
    std::vector<Tensor> outputs;
    std::vector<bool> taken(ctx.num_inputs());
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(const Tensor* output, Allocate(ctx, i, (*shapes)[i], &taken));
      outputs.push_back(Inside(*output));
    }
    static_cast<SimulatedStream*>(ctx.step().stream)
        ->Enqueue([kernel = kernel_.get(), inputs = std::move(inputs), outputs = std::move(outputs),
                   report = ctx.step().late_errors->reporter()]() mutable {
          CpuCall call(kernel, std::move(inputs), static_cast<int>(outputs.size()));
          absl::Status status = call.Run();
          // One may share an input's memory, which another was promised.
          std::vector<Tensor> values;
          for (size_t i = 0; i < outputs.size() && status.ok(); ++i) {
            const absl::StatusOr<Tensor> value = call.output(static_cast<int>(i)).Clone();
            status = value.status();
            if (status.ok()) values.push_back(*value);
          }
          for (size_t i = 0; i < outputs.size() && status.ok(); ++i) {
            status = Put(values[i], &outputs[i]);
          }
          if (!status.ok()) report(status);
        });
    return absl::OkStatus();
  }

 private:
  /// nullopt: they depend on values that only the device has.
  std::optional<std::vector<Shape>> OutputShapes(KernelContext& ctx) const {
    if (PromisesTooLittle(def_.op())) return std::nullopt;
    std::vector<PartialShape> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i) inputs.emplace_back(ctx.input(i).shape());
    const auto on_host = [&ctx](int i) {
      return ctx.input(i).space() == MemorySpace::kDevice ? Tensor() : ctx.input(i);
    };
    InferenceContext inference(&def_, op_.def.get(), std::move(inputs),
                               std::vector<HandleShapes>(ctx.num_inputs()), ctx.num_outputs(),
                               {on_host, [&](int i) -> absl::StatusOr<PartialShape> {
                                  const Tensor value = on_host(i);
                                  if (!value.valid()) return PartialShape();
                                  return InferenceContext::TensorAsShape(value, true);
                                }});
    // What the function refuses is the kernel's to say.
    if (op_.shape_fn == nullptr || !op_.shape_fn(&inference).ok()) return std::nullopt;
    std::vector<Shape> shapes;
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const bool there = spaces_.output(i) == MemorySpace::kDevice;
      absl::StatusOr<Shape> shape = inference.output(i).ToShape();
      if (!there || !shape.ok()) return std::nullopt;
      shapes.push_back(*std::move(shape));
    }
    return shapes;
  }

  /// Output `i`: new, or in place of an input that nobody needs any more.
  absl::StatusOr<const Tensor*> Allocate(KernelContext& ctx, int i, const Shape& shape,
                                         std::vector<bool>* taken) {
    const size_t bytes = ElementSize(types_[i]) * static_cast<size_t>(shape.num_elements());
    for (int k = 0; k < ctx.num_inputs(); ++k) {
      const bool there = spaces_.input(k) == MemorySpace::kDevice;
      if (!there || (*taken)[k] || ctx.input(k).bytes() != bytes || !ctx.CanForward(k)) continue;
      (*taken)[k] = true;
      return ctx.ForwardOrAllocate(k, i, types_[i], shape);
    }
    return ctx.AllocateOutput(i, types_[i], shape);
  }

  /// On the device: into the memory that was promised for it.
  static absl::Status Put(const Tensor& value, Tensor* promised) {
    if (!value.valid() || value.type() != promised->type() || value.shape() != promised->shape()) {
      return absl::InternalError(StrCat("the shape function says ", promised->shape().ToString(),
                                        ", the kernel gives ", value.shape().ToString()));
    }
    std::memcpy(promised->mutable_raw_data(), value.raw_data(), value.bytes());
    return absl::OkStatus();
  }

  /// With inputs whose elements are there.
  absl::Status ComputeNow(KernelContext& ctx, std::vector<Tensor> inputs) {
    CpuCall call(kernel_.get(), std::move(inputs), ctx.num_outputs());
    TROUPE_RETURN_IF_ERROR(call.Run());
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      Tensor value = std::move(call.output(i));
      if (spaces_.output(i) == MemorySpace::kDevice) {
        // An input's elements, shared, would change with the input's memory.
        TROUPE_ASSIGN_OR_RETURN(value, value.Clone());
        TROUPE_ASSIGN_OR_RETURN(value, Upload(ctx.step().device, value));
      }
      ctx.set_output(i, std::move(value));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<Kernel> kernel_;
  const NodeDef def_;
  const OpRegistration& op_;
  const ArgumentSpaces spaces_;
  std::vector<ElementType> types_;
};

/// Updates of variables, and reads of parts of them.
bool TakesVariables(std::string_view op) {
  for (const std::string_view prefix :
       {"Assign", "CountUpTo", "Scatter", "Apply", "SparseApply", "ResourceCountUpTo",
        "ResourceScatter", "ResourceGather", "ResourceApply", "ResourceSparseApply"}) {
    if (op.starts_with(prefix)) return op != "ScatterNd" && op != "ScatterNdNonAliasingAdd";
  }
  return false;
}

int CountVariables(const KernelConstruction& construction) {
  int count = 0;
  while (count < construction.num_inputs() &&
         (IsRefType(construction.input_type(count)) ||
          construction.input_type(count) == ElementType::kResource)) {
    ++count;
  }
  return count;
}

/// Has the variables while the call is made: what is enqueued then comes before what the next one
/// enqueues.
class BorrowedVariableKernel final : public VariableKernel {
 public:
  BorrowedVariableKernel(std::unique_ptr<Kernel> kernel, KernelConstruction& construction)
      : VariableKernel(construction, CountVariables(construction)),
        kernel_(std::move(kernel)),
        num_variables_(CountVariables(construction)),
        reads_(construction.op().starts_with("ResourceGather")) {
    for (int i = 0; i < construction.num_outputs(); ++i) {
      has_outputs_ |= !IsRefType(construction.output_type(i));
    }
  }

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    auto call = std::make_shared<Call>();
    bool complete = true;
    for (int i = 0; i < num_variables_; ++i) {
      const Tensor& value = leases[i].value();
      complete &= value.valid();
      if (value.valid() && !reads_) TROUPE_RETURN_IF_ERROR(Own(ctx, leases[i]));
      const Variable* variable = leases[i].variable();
      call->variables.push_back(
          MakeRef<FakeVariable>(variable->name(), variable->type(), variable->shape()));
      if (value.valid()) {
        call->values.push_back(Inside(leases[i].value()));
        call->variables.back()->TryLend().set_value(call->values.back());
      }
    }
    for (int i = num_variables_; i < ctx.num_inputs(); ++i) {
      const Tensor& input = ctx.input(i);
      const bool there = input.space() == MemorySpace::kDevice;
      TROUPE_ASSIGN_OR_RETURN(call->inputs.emplace_back(),
                              there ? absl::StatusOr<Tensor>(Inside(input)) : input.Clone());
    }
    call->kernel = static_cast<AsyncKernel*>(kernel_.get());
    call->by_reference = by_reference();
    if (has_outputs_ || !complete) {
      while (!ctx.step().stream->Done()) std::this_thread::yield();
      if (ctx.step().late_errors->any()) return absl::CancelledError("there are no values");
      call->num_outputs = ctx.num_outputs();
      TROUPE_RETURN_IF_ERROR(call->Run());
      for (int i = 0; has_outputs_ && i < ctx.num_outputs(); ++i) {
        TROUPE_ASSIGN_OR_RETURN(Tensor value, call->output(i).Clone());
        TROUPE_ASSIGN_OR_RETURN(value, Upload(ctx.step().device, value));
        ctx.set_output(i, std::move(value));
      }
      return absl::OkStatus();
    }
    call->num_outputs = ctx.num_outputs();
    static_cast<SimulatedStream*>(ctx.step().stream)
        ->Enqueue([call, report = ctx.step().late_errors->reporter()] {
          if (absl::Status status = call->Run(); !status.ok()) report(status);
        });
    return absl::OkStatus();
  }

 private:
  struct Call {
    AsyncKernel* kernel = nullptr;
    bool by_reference = false;
    int num_outputs = 0;
    std::vector<RefPtr<FakeVariable>> variables;
    std::vector<Tensor> values, inputs;
    std::vector<Slot> slots;

    Tensor& output(int i) { return slots[variables.size() + inputs.size() + i].tensor; }
    absl::Status Run() {
      slots.resize(variables.size() + inputs.size() + num_outputs);
      std::vector<int32_t> input_slots(variables.size() + inputs.size());
      std::iota(input_slots.begin(), input_slots.end(), 0);
      // Values are updated in place while nobody else has them: nobody owns them.
      const std::vector<Tensor> before = std::move(values);
      for (size_t i = 0; i < variables.size(); ++i) {
        if (by_reference) {
          slots[i].ref = variables[i].get();
        } else {
          ResourceHandle handle;
          handle.name = variables[i]->name();
          handle.resource = variables[i];
          slots[i].tensor = Tensor::Scalar(std::move(handle));
        }
      }
      for (size_t i = 0; i < inputs.size(); ++i) slots[variables.size() + i].tensor = inputs[i];
      KernelContext ctx(CpuStep(), slots.data(), input_slots.data(),
                        static_cast<int>(input_slots.size()), slots.data() + input_slots.size(),
                        num_outputs, /*forwardable=*/0);
      absl::Status result = absl::InternalError("the kernel has not called back");
      const ScopedFlushDenormals flush;
      kernel->ComputeAsync(
          ctx, {[](void* self, void*, absl::Status status, Player, std::unique_ptr<KernelRest>) {
                  *static_cast<absl::Status*>(self) = std::move(status);
                },
                &result, nullptr});
      for (size_t i = 0; i < before.size() && result.ok(); ++i) {
        const Tensor after = variables[i]->value();
        if (after.raw_data() != before[i].raw_data()) {
          std::memcpy(const_cast<void*>(before[i].raw_data()), after.raw_data(), after.bytes());
        }
      }
      return result;
    }
  };

  /// The variable's value becomes its own, on the device.
  static absl::Status Own(KernelContext& ctx, Variable::Lease& lease) {
    const Tensor& value = lease.value();
    if (value.unique()) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(value.type(), value.shape()));
    TROUPE_RETURN_IF_ERROR(ctx.step().device->Copy(value, copy, ctx.step().stream));
    lease.set_value(std::move(copy));
    return absl::OkStatus();
  }

  const std::unique_ptr<Kernel> kernel_;
  const int num_variables_;
  const bool reads_;
  bool has_outputs_ = false;
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeOnHost(KernelConstruction& construction) {
  return KernelRegistry::Global()->Create(construction, "CPU");
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeBorrowed(KernelConstruction& construction) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, MakeOnHost(construction));
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* op,
                          OpRegistry::Global()->LookUp(construction.op()));
  KernelSpec spec(construction.op());
  spec.Device("SIM").host_arguments = HostArguments(*op->def);
  TROUPE_ASSIGN_OR_RETURN(ArgumentSpaces spaces,
                          FindArgumentSpaces(*op->def, construction.attrs(), spec));
  if (!spaces.AnyOnDevice()) return kernel;
  if (TakesVariables(construction.op())) {
    return std::make_unique<BorrowedVariableKernel>(std::move(kernel), construction);
  }
  if (kernel->async() != nullptr) {
    return absl::UnimplementedError(StrCat(construction.op(), " is asynchronous"));
  }
  return std::make_unique<BorrowedKernel>(std::move(kernel), construction, *op, std::move(spaces));
}

bool CanBorrow(const OpDef& op) {
  const auto cannot = [&op](const OpDef::ArgDef& arg) {
    const auto type = static_cast<ElementType>(arg.type());
    // Variants keep tensors that they are given (lists). What is stateful and has no handle is
    // random, or checks something.
    return arg.is_ref() || type == ElementType::kVariant ||
           (op.is_stateful() && type == ElementType::kResource);
  };
  const auto needs_more = [](const OpDef::AttrDef& attr) {
    return attr.type() == "func" || attr.type() == "list(func)" || attr.name() == "container" ||
           attr.name() == "actor";
  };
  if (TakesVariables(op.name())) return true;
  return !(op.is_stateful() && op.input_arg().empty()) &&
         std::none_of(op.attr().begin(), op.attr().end(), needs_more) &&
         std::none_of(op.input_arg().begin(), op.input_arg().end(), cannot) &&
         std::none_of(op.output_arg().begin(), op.output_arg().end(), cannot);
}

/// Takes the types of `other` out of `spec`.
void LeaveOut(const KernelSpec& other, KernelSpec* spec) {
  for (const auto& [attr, types] : other.constraints) {
    for (auto& [own_attr, own_types] : spec->constraints) {
      if (own_attr != attr) continue;
      for (const ElementType type : types) std::erase(own_types, type);
    }
  }
}

bool RegisterAll() {
  KernelRegistry& kernels = *KernelRegistry::Global();
  for (const std::string& name : OpRegistry::Global()->Names()) {
    const absl::StatusOr<const OpRegistration*> op = OpRegistry::Global()->LookUp(name);
    if (!op.ok() || !CanBorrow(*(*op)->def)) continue;
    const OpDef& def = *(*op)->def;
    for (const KernelRegistration* cpu : kernels.ForOp(name)) {
      if (cpu->spec.device_type != "CPU") continue;
      KernelSpec spec = cpu->spec;
      spec.Device("SIM").host_arguments = HostArguments(def);
      if (TakesVariables(name)) {  // Only of what lives on devices.
        for (auto& [attr, types] : spec.constraints) {
          std::erase_if(types, [](ElementType type) { return !IsPlain(type); });
        }
      }
      // What the host does anyway.
      for (const KernelRegistration* any : kernels.ForOp(name)) {
        if (any->spec.device_type == kAnyDeviceType) LeaveOut(any->spec, &spec);
      }
      // Variants keep tensors that they are given.
      bool has_types = true;
      for (auto& [attr, types] : spec.constraints) {
        std::erase(types, ElementType::kVariant);
        has_types = has_types && !types.empty();
      }
      if (!has_types) continue;
      kernels.Register(std::move(spec), MakeBorrowed);
    }
  }
  return true;
}

}  // namespace

void BorrowKernels() { [[maybe_unused]] static const bool registered = RegisterAll(); }

}  // namespace troupe::testing
