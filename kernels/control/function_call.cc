// PartitionedCall, StatefulPartitionedCall, RemoteCall, SymbolicGradient, calls by name; If, Case.
#include <utility>
#include <vector>

#include "devices/device_name.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"
#include "kernels/common/registration.h"
#include "kernels/control/truth.h"
#include "kernels/function_runner.h"

namespace troupe {

// --- finding functions -------------------------------------------------------------------------

FunctionReference::FunctionReference(const NameAttrList& function, std::vector<ElementType> args,
                                     std::vector<ElementType> results)
    : name_(std::make_unique<NameAttrList>(function)),
      args_(std::move(args)),
      results_(std::move(results)) {}

FunctionReference::FunctionReference(FunctionReference&& other) noexcept
    : name_(std::move(other.name_)),
      args_(std::move(other.args_)),
      results_(std::move(other.results_)),
      function_(other.function_),
      runner_(other.runner_.load(std::memory_order_relaxed)) {}

FunctionReference::~FunctionReference() = default;

namespace {

template <typename TypeAt>
bool Fit(const std::vector<ElementType>& wanted, int n, TypeAt type_at) {
  if (static_cast<int>(wanted.size()) != n) return false;
  for (int i = 0; i < n; ++i) {
    if (wanted[i] != ElementType::kInvalid && RemoveRef(wanted[i]) != type_at(i)) return false;
  }
  return true;
}

template <typename TypeAt>
std::string TypeNames(int n, TypeAt type_at) {
  std::string names = "[";
  for (int i = 0; i < n; ++i) {
    if (i > 0) names += ", ";
    names += type_at(i) == ElementType::kInvalid ? "any" : ElementTypeName(type_at(i));
  }
  return names + "]";
}

}  // namespace

CallableFunction* FunctionReference::Find(const StepContext& step, absl::Status* status) {
  if (step.functions == nullptr) {
    *status = absl::FailedPreconditionError(
        StrCat("function '", name_->name(), "' cannot be called here: there is no library"));
    return nullptr;
  }
  absl::StatusOr<CallableFunction*> found = step.functions->Find(*name_);
  if (!found.ok()) {
    *status = found.status();
    return nullptr;
  }
  CallableFunction* const f = *found;
  auto check = [&](const char* what, const std::vector<ElementType>& wanted, int n, auto type_at) {
    if (!status->ok() || Fit(wanted, n, type_at)) return;
    *status = InvalidArgument(
        "function '", name_->name(), "' has the ", what, " ", TypeNames(n, type_at),
        ", but the node's are ",
        TypeNames(static_cast<int>(wanted.size()), [&](int i) { return RemoveRef(wanted[i]); }));
  };
  check("arguments", args_, f->num_args(), [f](int i) { return f->arg_type(i); });
  check("results", results_, f->num_results(), [f](int i) { return f->result_type(i); });
  if (!status->ok()) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  if (runner_.load(std::memory_order_relaxed) == nullptr) {
    function_ = f;
    runner_.store(step.functions, std::memory_order_release);
  }
  return f;
}

namespace {

using Types = std::vector<ElementType>;

// --- calls -------------------------------------------------------------------------------------

/// Calls one function with all inputs but the first few.
class Call : public AsyncKernel, public FunctionCaller {
 public:
  Call(const NameAttrList& function, int first_input, KernelConstruction& c)
      : first_input_(first_input), function_(function, Inputs(c, first_input), Outputs(c)) {}

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::Status status;
    CallableFunction* f = function_.Get(ctx.step(), &status);
    if (f == nullptr) return done(status);
    f->Call(ctx, first_input_, done);
  }

  std::vector<CallableFunction*> Called() const override { return FoundOf({&function_}); }

 protected:
  /// Calls as if on another device.
  void CallOn(const std::string& device, KernelContext& ctx, KernelDone done) {
    absl::Status status;
    CallableFunction* f = function_.Get(ctx.step(), &status);
    if (f == nullptr) return done(status);
    absl::StatusOr<StepContext> there = ctx.step().functions->OnDevice(ctx.step(), device);
    if (!there.ok()) return done(there.status());
    f->Call(ctx, *there, first_input_, ResultsIn::kHost, done);
  }

 public:
  static Types Inputs(const KernelConstruction& c, int first) {
    Types types;
    for (int i = first; i < c.num_inputs(); ++i) types.push_back(c.input_type(i));
    return types;
  }
  static Types Outputs(const KernelConstruction& c) {
    Types types;
    for (int i = 0; i < c.num_outputs(); ++i) types.push_back(c.output_type(i));
    return types;
  }

 private:
  const int first_input_;
  FunctionReference function_;
};

/// RemoteCall on a device of this process. Where there are several, those whose target is known
/// when the step is compiled have been replaced by their bodies.
class RemoteCall : public Call {
 public:
  RemoteCall(const NameAttrList& function, KernelConstruction& c) : Call(function, 1, c) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    const Tensor& target = ctx.input(0);
    if (target.rank() != 0) {
      return done(
          InvalidArgument("the target must be a scalar, got shape ", target.shape().ToString()));
    }
    CallOn(target.unchecked_scalar<std::string>(), ctx, done);
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> MakeCall(KernelConstruction& c) {
  const NameAttrList* f = nullptr;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("f", &f));
  return std::unique_ptr<Kernel>(std::make_unique<Call>(*f, 0, c));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRemoteCall(KernelConstruction& c) {
  const NameAttrList* f = nullptr;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("f", &f));
  return std::unique_ptr<Kernel>(std::make_unique<RemoteCall>(*f, c));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSymbolicGradient(KernelConstruction& c) {
  const NameAttrList* f = nullptr;
  TROUPE_RETURN_IF_ERROR(c.GetAttr("f", &f));
  NameAttrList gradient;
  gradient.set_name("SymbolicGradient");
  *(*gradient.mutable_attr())["f"].mutable_func() = *f;
  return std::unique_ptr<Kernel>(std::make_unique<Call>(gradient, 0, c));
}

// --- branches ----------------------------------------------------------------------------------

/// Input 0 says which of the functions gets the others.
class Branch : public AsyncKernel, public FunctionCaller {
 public:
  explicit Branch(KernelConstruction& c) : args_(Call::Inputs(c, 1)), results_(Call::Outputs(c)) {}

  void Add(const NameAttrList& function) { functions_.emplace_back(function, args_, results_); }
  std::vector<CallableFunction*> Called() const override {
    std::vector<const FunctionReference*> all;
    for (const FunctionReference& function : functions_) all.push_back(&function);
    return FoundOf(all);
  }

 protected:
  void CallBranch(size_t i, KernelContext& ctx, KernelDone done) {
    absl::Status status;
    CallableFunction* f = functions_[i].Get(ctx.step(), &status);
    if (f == nullptr) return done(status);
    f->Call(ctx, 1, done);
  }
  size_t num_branches() const { return functions_.size(); }

 private:
  const Types args_, results_;
  std::vector<FunctionReference> functions_;
};

class If : public Branch {
 public:
  If(KernelConstruction& c, absl::Status* status) : Branch(c) {
    for (const char* name : {"then_branch", "else_branch"}) {
      const NameAttrList* function = nullptr;
      *status = c.GetAttr(name, &function);
      if (!status->ok()) return;
      Add(*function);
    }
  }
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    const Tensor& cond = ctx.input(0);
    bool taken;
    if (cond.type() == ElementType::kBool && cond.rank() == 0) {
      taken = cond.unchecked_scalar<bool>();
    } else {
      absl::StatusOr<bool> truth = TruthOf(cond);
      if (!truth.ok()) return done(truth.status());
      taken = *truth;
    }
    CallBranch(taken ? 0 : 1, ctx, done);
  }
};

class Case : public Branch {
 public:
  Case(KernelConstruction& c, absl::Status* status) : Branch(c) {
    const AttrValue* branches = c.attrs().Find("branches");
    if (branches == nullptr || branches->list().func_size() == 0) {
      *status = InvalidArgument("the attribute branches lists no functions");
      return;
    }
    for (const NameAttrList& function : branches->list().func()) Add(function);
  }
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    const Tensor& index = ctx.input(0);
    if (index.rank() != 0) {
      return done(InvalidArgument("the branch index must be a scalar, got shape ",
                                  index.shape().ToString()));
    }
    const int32_t i = index.unchecked_scalar<int32_t>();
    const bool inside = i >= 0 && static_cast<size_t>(i) < num_branches();
    CallBranch(inside ? static_cast<size_t>(i) : num_branches() - 1, ctx, done);
  }
};

// A body runs on its caller's device: what crosses the call stays where it is. Not if another
// device may be called.
KernelSpec InPlace(const char* op) { return Cheap(op).Device("DEFAULT"); }

REGISTER_KERNELS(InPlace("PartitionedCall"), MakeCall, "StatefulPartitionedCall");
REGISTER_KERNEL(InPlace("RemoteCall").HostMemory("*"), MakeRemoteCall);
REGISTER_KERNEL(InPlace("SymbolicGradient"), MakeSymbolicGradient);
REGISTER_KERNELS(InPlace("If").HostMemory("cond"), MakeKernel<If>, "StatelessIf");
REGISTER_KERNELS(InPlace("Case").HostMemory("branch_index"), MakeKernel<Case>, "StatelessCase");

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeFunctionCall(KernelConstruction& c) {
  NameAttrList function;
  function.set_name(c.op());
  *function.mutable_attr() = c.attrs().def().attr();
  return std::unique_ptr<Kernel>(std::make_unique<Call>(function, 0, c));
}

}  // namespace troupe
