#include "kernels/state/variable_kernel.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "devices/device.h"
#include "devices/exceptions.h"
#include "kernels/cancellation.h"

namespace troupe {
namespace {

/// A call with inputs of so many bytes, which takes some 500 us, is not made by whoever gives the
/// variable back, but by the player of its own step: the other may be a reader of the transport.
/// Handing on costs some 10 us, in which the variable is idle.
constexpr size_t kMinBytesHandedOn = size_t{4} << 20;

absl::StatusOr<const ResourceHandle*> HandleOf(KernelContext& ctx, int i) {
  const Tensor& tensor = ctx.input(i);
  if (tensor.type() != ElementType::kResource || tensor.num_elements() != 1) {
    return InvalidArgument("input ", i, " must be one resource handle, got ", tensor.ToString());
  }
  return tensor.unchecked_data<ResourceHandle>();
}

absl::StatusOr<RefPtr<Variable>> AsVariable(RefPtr<Resource> resource,
                                            const ResourceHandle& handle) {
  auto* variable = dynamic_cast<Variable*>(resource.get());
  if (variable == nullptr) {
    return InvalidArgument("the resource '", handle.name, "' is no variable but ",
                           resource->DebugString());
  }
  return RefPtr<Variable>::Share(variable);
}

/// The variable that the handle carries, unless it is gone; null if it carries none.
Variable* Carried(const ResourceHandle& handle) {
  if (!handle.resource) return nullptr;
  auto* variable = dynamic_cast<Variable*>(handle.resource.get());
  return variable != nullptr && !variable->destroyed() ? variable : nullptr;
}

}  // namespace

absl::StatusOr<RefPtr<Variable>> FindVariable(KernelContext& ctx, int i) {
  TROUPE_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleOf(ctx, i));
  if (Variable* variable = Carried(*handle)) return RefPtr<Variable>::Share(variable);
  absl::StatusOr<RefPtr<Resource>> found =
      ctx.resources()->FindOrCreate(handle->container, handle->name, nullptr);
  if (!found.ok()) {
    if (found.status().code() != absl::StatusCode::kNotFound) return found.status();
    return absl::NotFoundError(absl::StrCat(
        "the variable '", handle->name, "' of container '",
        handle->container.empty() ? "localhost" : handle->container,
        "' does not exist: it was never assigned (run its initializer first) or was destroyed"));
  }
  return AsVariable(*std::move(found), *handle);
}

absl::StatusOr<RefPtr<Variable>> FindOrMakeVariable(KernelContext& ctx, int i, ElementType type) {
  TROUPE_ASSIGN_OR_RETURN(const ResourceHandle* handle, HandleOf(ctx, i));
  Variable* variable = Carried(*handle);
  if (variable == nullptr) {
    PartialShape shape;
    if (!handle->types_and_shapes.empty()) shape = handle->types_and_shapes[0].second;
    return ctx.resources()->FindOrCreateVariable(handle->container, handle->name, type, shape);
  }
  if (variable->type() != type) {
    return InvalidArgument("the variable '", variable->name(), "' is of type ",
                           ElementTypeName(variable->type()), ", the value is of type ",
                           ElementTypeName(type));
  }
  return RefPtr<Variable>::Share(variable);
}

/// The state of a call that has to wait for a variable. Shared by the visits and the cancellation
/// callback: whichever comes first decides how the call ends.
class LeaseWait : public std::enable_shared_from_this<LeaseWait> {
 public:
  LeaseWait(VariableKernel* kernel, KernelContext* ctx, KernelDone done,
            VariableKernel::Variables variables, Leases leases)
      : kernel_(kernel),
        ctx_(ctx),
        done_(done),
        variables_(std::move(variables)),
        leases_(std::move(leases)),
        rest_(std::make_unique<Rest>()) {
    leases_.held_.reserve(variables_.size());
  }

  void Start() {
    if (CancellationToken* token = ctx_->cancellation()) {
      auto self = shared_from_this();
      token_ = token;
      if (!token->Register([self] { self->Cancel(); }, &callback_)) {
        leases_.held_.clear();
        return done_(token->status());
      }
    }
    AskNext();
  }

 private:
  enum class Phase : uint8_t { kWaiting, kComplete, kCancelled };

  /// What the player of the step does: computes if the call is complete, gives the leases back, and
  /// serves those who wait for them.
  struct Rest final : KernelRest {
    absl::Status Finish() override { return kernel->Finish(*ctx, leases); }
    VariableKernel* kernel = nullptr;
    KernelContext* ctx = nullptr;
    Leases leases;
  };

  void AskNext() {
    Variable* variable;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (phase_ != Phase::kWaiting) return;
      variable = variables_[leases_.held_.size()].get();
    }
    auto self = shared_from_this();
    try {
      variable->Lend([self](Variable::Lease lease) { self->Got(std::move(lease)); });
    } catch (...) {
      End(StatusOfException());
    }
  }

  void Got(Variable::Lease lease) noexcept {
    bool complete;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      // Of a cancelled call the lease goes back when it leaves this function.
      if (phase_ != Phase::kWaiting) return;
      leases_.held_.push_back(std::move(lease));  // There is room for all.
      complete = leases_.held_.size() == variables_.size();
      if (complete) phase_ = Phase::kComplete;
    }
    if (!complete) return AskNext();
    if (token_ != nullptr) token_->Deregister(callback_);
    if (InputBytes() < kMinBytesHandedOn) {
      return done_(CatchExceptions([&] { return kernel_->Finish(*ctx_, leases_); }));
    }
    rest_->kernel = kernel_;
    rest_->ctx = ctx_;
    std::swap(rest_->leases, leases_);
    done_(absl::OkStatus(), Player::kHandsOn, std::move(rest_));
  }

  /// What the kernel goes through, but for the variables.
  size_t InputBytes() const {
    size_t bytes = 0;
    for (int i = 0; i < ctx_->num_inputs(); ++i) {
      if (ctx_->input_ref(i) == nullptr) bytes += ctx_->input(i).bytes();
    }
    return bytes;
  }

  void Cancel() noexcept { End(ctx_->cancellation()->status()); }

  /// The call ends without all variables.
  void End(absl::Status status) noexcept {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (phase_ != Phase::kWaiting) return;
      phase_ = Phase::kCancelled;
      std::swap(rest_->leases, leases_);
    }
    if (token_ != nullptr) token_->Deregister(callback_);
    done_(std::move(status), Player::kHandsOn, std::move(rest_));
  }

  VariableKernel* kernel_;
  KernelContext* ctx_;
  KernelDone done_;
  VariableKernel::Variables variables_;  ///< Distinct, by address.
  std::mutex mutex_;
  Leases leases_;
  std::unique_ptr<Rest> rest_;
  Phase phase_ = Phase::kWaiting;
  CancellationToken* token_ = nullptr;
  uint64_t callback_ = 0;
};

VariableKernel::VariableKernel(KernelConstruction& construction, int num_variables)
    : num_variables_(num_variables),
      by_reference_(IsRefType(construction.input_type(0))),
      reference_output_(construction.num_outputs() > 0 && IsRefType(construction.output_type(0))) {}

absl::StatusOr<RefPtr<Variable>> VariableKernel::Resolve(KernelContext& ctx, int i) {
  return FindVariable(ctx, i);
}

absl::Status VariableKernel::OnMissing(KernelContext&, const absl::Status& not_found) {
  return not_found;
}

absl::Status VariableKernel::Collect(KernelContext& ctx, Variables* variables, Leases* leases) {
  for (int i = 0; i < num_variables_; ++i) {
    if (by_reference_) {
      Variable* variable = ctx.input_ref(i);
      if (variable == nullptr) {
        return absl::FailedPreconditionError(
            absl::StrCat("input ", i, " is not a reference to a variable"));
      }
      variables->push_back(RefPtr<Variable>::Share(variable));
    } else {
      TROUPE_ASSIGN_OR_RETURN(RefPtr<Variable> variable, Resolve(ctx, i));
      variables->push_back(std::move(variable));
    }
  }
  if (num_variables_ == 1) {
    leases->slots_.push_back(0);
    return absl::OkStatus();
  }
  const Variables by_input = *variables;
  auto less = [](const RefPtr<Variable>& a, const RefPtr<Variable>& b) {
    return std::less<Variable*>()(a.get(), b.get());
  };
  std::sort(variables->begin(), variables->end(), less);
  variables->erase(std::unique(variables->begin(), variables->end()), variables->end());
  for (const RefPtr<Variable>& variable : by_input) {
    leases->slots_.push_back(static_cast<uint8_t>(
        std::lower_bound(variables->begin(), variables->end(), variable, less) -
        variables->begin()));
  }
  return absl::OkStatus();
}

/// FailedPrecondition for a variable that lives where a kernel of the host cannot reach it: its
/// device has kernels for all that took it in the graph that made it, but not for this node.
template <typename Held>
absl::Status CheckSpaces(const KernelContext& ctx, const Held& leases) {
  const Device* const device = ctx.step().device;
  if (device == nullptr || device->memory_space() != MemorySpace::kHost) return absl::OkStatus();
  for (const Variable::Lease& lease : leases) {
    if (lease.value().space() == MemorySpace::kDevice) {
      return absl::FailedPreconditionError(
          absl::StrCat("variable '", lease.variable()->name(), "' lives in the memory of another ",
                       "device, and this node runs on ", device->name()));
    }
  }
  return absl::OkStatus();
}

absl::Status VariableKernel::Finish(KernelContext& ctx, Leases& leases) {
  absl::Status status = CheckSpaces(ctx, leases.held_);
  if (status.ok()) status = Apply(ctx, leases);
  if (status.ok() && reference_output_) ctx.set_output_ref(0, ctx.input_ref(0));
  leases.held_.clear();
  return status;
}

void VariableKernel::ComputeAsync(KernelContext& ctx, KernelDone done) {
  Leases leases;
  Variables variables;
  absl::Status status = Collect(ctx, &variables, &leases);
  if (!status.ok()) {
    if (status.code() == absl::StatusCode::kNotFound) status = OnMissing(ctx, status);
    return done(std::move(status));
  }
  for (const RefPtr<Variable>& variable : variables) {
    Variable::Lease lease = variable->TryLend();
    if (!lease) {
      return std::make_shared<LeaseWait>(this, &ctx, done, std::move(variables), std::move(leases))
          ->Start();
    }
    leases.held_.push_back(std::move(lease));
  }
  done(Finish(ctx, leases));
}

absl::Status CheckContainer(const std::string& name) {
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' ||
        (i > 0 && (c == '_' || c == '-' || c == '/'))) {
      continue;
    }
    return InvalidArgument("container contains invalid characters: '", name, "'");
  }
  return absl::OkStatus();
}

}  // namespace troupe
