// TemporaryVariable, DestroyTemporaryVariable: variables that live within a step.
#include <cctype>
#include <map>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "devices/device.h"
#include "kernels/argument_spaces.h"
#include "kernels/common/strided_copy.h"
#include "kernels/kernel_registry.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {
namespace {

/// The temporary variables of a step. Those that are destroyed are used again for the next ones of
/// their name: a loop that makes one in every iteration does not grow, and a reference that a graph
/// uses too late refers to a variable still. Thread-safe.
class TemporaryVariables : public Resource {
 public:
  /// A variable that nobody uses, without a value.
  absl::StatusOr<RefPtr<Variable>> Take(ResourceProvider* resources, const std::string& name,
                                        ElementType type, const PartialShape& shape) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<RefPtr<Variable>>& idle = idle_[name];
    for (size_t i = 0; i < idle.size(); ++i) {
      if (idle[i]->type() != type || !(idle[i]->shape() == shape)) continue;
      RefPtr<Variable> variable = std::move(idle[i]);
      idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(i));
      names_[variable.get()] = name;
      return variable;
    }
    TROUPE_ASSIGN_OR_RETURN(
        RefPtr<Variable> variable,
        resources->FindOrCreateVariable(kContainer, StrCat(name, "/", next_++), type, shape));
    names_[variable.get()] = name;
    return variable;
  }

  /// NotFound if the variable is not in use under this name.
  absl::Status GiveBack(Variable* variable, const std::string& name) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = names_.find(variable);
    if (found == names_.end() || found->second != name) {
      return absl::NotFoundError(StrCat("'", variable->name(), "' is no temporary variable called ",
                                        "'", name, "', or has been destroyed already"));
    }
    names_.erase(found);
    idle_[name].push_back(RefPtr<Variable>::Share(variable));
    return absl::OkStatus();
  }

  std::string DebugString() const override { return "TemporaryVariables"; }

  static absl::StatusOr<RefPtr<TemporaryVariables>> OfStep(KernelContext& ctx) {
    ResourceProvider* resources = ctx.step().step_resources;
    if (resources == nullptr) {
      return absl::FailedPreconditionError("temporary variables need a step to live in");
    }
    TROUPE_ASSIGN_OR_RETURN(
        RefPtr<Resource> resource,
        resources->FindOrCreate(kContainer, "temporary_variables",
                                []() -> absl::StatusOr<RefPtr<Resource>> {
                                  return RefPtr<Resource>(MakeRef<TemporaryVariables>());
                                }));
    auto* variables = dynamic_cast<TemporaryVariables*>(resource.get());
    if (variables == nullptr) {
      return absl::InternalError("the step's temporary variables are something else");
    }
    return RefPtr<TemporaryVariables>::Share(variables);
  }

 private:
  static constexpr char kContainer[] = "_temporary_variables";

  std::mutex mutex_;
  int64_t next_ = 0;
  std::map<const Variable*, std::string> names_;  ///< Those in use.
  std::map<std::string, std::vector<RefPtr<Variable>>> idle_;
};

class TemporaryVariable : public Kernel {
 public:
  TemporaryVariable(KernelConstruction& construction, absl::Status* status)
      : type_(RemoveRef(construction.output_type(0))),
        name_(construction.Attr<std::string>("var_name")) {
    PartialShape shape;
    *status = construction.GetAttr("shape", &shape);
    if (status->ok()) {
      absl::StatusOr<Shape> full = shape.ToShape();
      *status = full.status();
      if (full.ok()) shape_ = *std::move(full);
    }
    if (name_.empty()) name_ = construction.node_name();
  }
  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(RefPtr<TemporaryVariables> variables, TemporaryVariables::OfStep(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor value, Zeros(ctx));
    TROUPE_ASSIGN_OR_RETURN(RefPtr<Variable> variable,
                            variables->Take(ctx.step().step_resources, name_, type_, shape_));
    if (Variable::Lease lease = variable->TryLend()) {
      lease.set_value(std::move(value));
    } else {
      // Only somebody who uses a destroyed variable can hold it.
      variable->Lend([value](Variable::Lease lease) mutable { lease.set_value(std::move(value)); });
    }
    ctx.set_output_ref(0, variable.get());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Tensor> Zeros(KernelContext& ctx) const {
    Device* const device = ctx.step().device;
    const bool there =
        device != nullptr && device->memory_space() == MemorySpace::kDevice && LivesOnDevice(type_);
    TROUPE_ASSIGN_OR_RETURN(
        Tensor value, there
                          ? Tensor::Allocate(type_, shape_, device->allocator(MemorySpace::kPinned))
                          : ctx.AllocateTemp(type_, shape_));
    ZeroElements(ctx, type_, value.mutable_raw_data(), value.num_elements());
    return there ? Upload(device, value) : value;
  }

  ElementType type_;
  std::string name_;
  Shape shape_;
};

class DestroyTemporaryVariable : public VariableKernel {
 public:
  DestroyTemporaryVariable(KernelConstruction& construction, absl::Status*)
      : VariableKernel(construction, 1), name_(construction.Attr<std::string>("var_name")) {}

 protected:
  absl::Status Apply(KernelContext& ctx, Leases& leases) override {
    Variable* variable = leases[0].variable();
    TROUPE_ASSIGN_OR_RETURN(RefPtr<TemporaryVariables> variables, TemporaryVariables::OfStep(ctx));
    Tensor value = leases[0].value();
    TROUPE_RETURN_IF_ERROR(variables->GiveBack(variable, name_));
    leases[0].set_value(Tensor());
    if (!value.valid()) {
      return absl::FailedPreconditionError(
          StrCat("the temporary variable '", name_, "' has no value"));
    }
    ctx.set_output(0, std::move(value));
    return absl::OkStatus();
  }

 private:
  std::string name_;
};

REGISTER_KERNEL(KernelSpec("TemporaryVariable").Device("DEFAULT").Types("dtype", AllTypes()),
                MakeKernel<TemporaryVariable>);
REGISTER_KERNEL(KernelSpec("DestroyTemporaryVariable").Device("DEFAULT").Types("T", AllTypes()),
                MakeKernel<DestroyTemporaryVariable>);

}  // namespace
}  // namespace troupe
