#include "kernels/queues/waiting_resource.h"

#include <new>

#include "devices/allocator.h"
#include "devices/device.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/state/variable_kernel.h"

namespace troupe {

absl::Status WaitingResource::Call::Check(bool*) const { return absl::OkStatus(); }

absl::StatusOr<Tuple> WaitingResource::Call::Result(int num_outputs) noexcept {
  if (!status.ok()) return status;
  return CatchExceptions([&]() -> absl::StatusOr<Tuple> {
    std::vector<Slot> slots(num_outputs);
    const StepContext step{.allocator = HostAllocator()};
    KernelContext ctx(&step, nullptr, nullptr, 0, slots.data(), num_outputs, 0);
    TROUPE_RETURN_IF_ERROR(Conclude(ctx));
    Tuple outputs;
    for (Slot& slot : slots) outputs.push_back(std::move(slot.tensor));
    return outputs;
  });
}

void WaitingResource::Submit(std::unique_ptr<Call> call) noexcept {
  bool trivial = false;
  call->status = CatchExceptions([&] { return call->Check(&trivial); });
  Call* const sent = call.release();
  if (trivial || !sent->status.ok()) return sent->Over(std::unique_ptr<Call>(sent));
  sent->resource_->Send(sent);
}

WaitingResource::Line WaitingResource::Handle(Message* messages) noexcept {
  while (messages != nullptr) {
    Message* message = std::exchange(messages, messages->next);
    HandleOne(message);
  }
  return std::exchange(replies_, Line());
}

void WaitingResource::HandleOne(Message* message) noexcept {
  Call* call = nullptr;
  if (message == &look_again_) {
    // From here on the message may be sent again.
    looks_again_.exchange(false, std::memory_order_acq_rel);
    if (cancelled_.exchange(false, std::memory_order_acq_rel)) {
      for (Line& line : lines_) DropCancelled(&line);
    }
  } else {
    call = static_cast<Call*>(message);
    call->Arrive();
    if (call->line_ == Call::kNoLine) {
      if (abandoned()) {
        End(call, Destroyed());
      } else {
        ServeOne(call);
      }
      call = nullptr;
    } else if (orders_[call->line_] == Order::kAny && !abandoned()) {
      // Where it changes nothing, those who wait need not be asked again.
      const bool over = ServeOne(call);
      if (!over) {
        lines_[call->line_].Push(call);
        if (call->cancellation != nullptr) RegisterCancellation(call);
        return Served();
      }
      call = nullptr;
    } else {
      lines_[call->line_].Push(call);
    }
  }
  if (abandoned()) {
    const absl::Status destroyed = Destroyed();
    for (Line& line : lines_) FailAll(&line, destroyed);
  }
  ServeAll();
  if (call != nullptr && !call->over_ && call->cancellation != nullptr) RegisterCancellation(call);
}

absl::Status WaitingResource::Destroyed() const noexcept {
  return CatchExceptions(
      [&] { return absl::CancelledError(StrCat(DebugString(), " has been destroyed")); });
}

void WaitingResource::ServeAll() noexcept {
  for (bool progress = true; progress;) {
    progress = false;
    for (int i = 0; i < 2; ++i) {
      progress |= orders_[i] == Order::kAny ? ServeAnyOf(&lines_[i]) : ServeInOrder(&lines_[i]);
    }
  }
  Served();
}

bool WaitingResource::ServeInOrder(Line* line) noexcept {
  bool progress = false;
  while (Call* call = line->front()) {
    const auto served = CatchExceptions([&] { return call->Serve(); });
    if (served.ok() && *served == Call::Progress::kNone) break;
    progress = true;
    if (served.ok() && *served == Call::Progress::kSome) break;
    End(line->Pop(), served.status());
  }
  return progress;
}

bool WaitingResource::ServeAnyOf(Line* line) noexcept {
  bool progress = false;
  Line kept;
  while (Call* call = line->Pop()) {
    if (ServeOne(call)) {
      progress = true;
    } else {
      kept.Push(call);
    }
  }
  *line = kept;
  return progress;
}

bool WaitingResource::ServeOne(Call* call) noexcept {
  const auto served = CatchExceptions([&] { return call->Serve(); });
  if (served.ok() && *served != Call::Progress::kOver) return false;
  End(call, served.status());
  return true;
}

void WaitingResource::RegisterCancellation(Call* call) noexcept {
  try {
    call->registered_ = call->cancellation->Register(
        [self = RefPtr<WaitingResource>::Share(this)] {
          self->cancelled_.store(true, std::memory_order_release);
          self->LookAgain();
        },
        &call->callback_);
  } catch (...) {
    call->status = StatusOfException();
  }
  if (!call->registered_) {
    DropCancelled(&lines_[call->line_]);
    ServeAll();
  }
}

void WaitingResource::DropCancelled(Line* line) noexcept {
  Line kept;
  while (Call* call = line->Pop()) {
    absl::Status status = call->status;
    if (status.ok() && call->cancellation != nullptr) status = call->cancellation->status();
    if (status.ok()) {
      kept.Push(call);
    } else {
      End(call, std::move(status));
    }
  }
  *line = kept;
}

void WaitingResource::End(Call* call, absl::Status status) noexcept {
  if (!status.ok()) {
    try {
      call->Withdraw();
    } catch (const std::bad_alloc&) {  // What it has taken is gone: there is no room to put it.
    }
  }
  call->status = std::move(status);
  call->over_ = true;
  // A cancellation that runs just now finds the call no more.
  if (call->registered_) call->cancellation->Deregister(call->callback_);
  replies_.Push(call);
}

void WaitingResource::FailAll(Line* line, const absl::Status& status) noexcept {
  while (Call* call = line->Pop()) End(call, status);
}

namespace {

/// Runs a function at a resource.
class AtOnceCall final : public WaitingResource::Call {
 public:
  AtOnceCall(WaitingResource* resource, std::function<absl::Status()> visit,
             std::function<void(absl::Status)> done)
      : Call(resource, kNoLine), visit_(std::move(visit)), done_(std::move(done)) {
    KeepResource();
  }

 private:
  absl::StatusOr<Progress> Serve() override {
    TROUPE_RETURN_IF_ERROR(visit_());
    return Progress::kOver;
  }
  void Over(std::unique_ptr<Call>) noexcept override { done_(std::move(status)); }

  const std::function<absl::Status()> visit_;
  const std::function<void(absl::Status)> done_;
};

}  // namespace

void WaitingResource::AtOnce(std::function<absl::Status()> visit,
                             std::function<void(absl::Status)> done) {
  Submit(std::make_unique<AtOnceCall>(this, std::move(visit), std::move(done)));
}

void WaitingResource::LookAgain() noexcept {
  if (!looks_again_.exchange(true, std::memory_order_acq_rel)) Send(&look_again_);
}

void WaitingResource::Abandon() noexcept {
  abandoned_.store(true, std::memory_order_release);
  LookAgain();
}

void WaitingResource::Reply(Line replies) noexcept {
  while (Call* call = replies.Pop()) call->Over(std::unique_ptr<Call>(call));
}

// --- finding -------------------------------------------------------------------------------------

namespace {

/// Container of the string variables that references refer to.
constexpr char kNames[] = "_resource_names";
/// Between the name of the container and that of the resource, in the name of such a variable.
constexpr char kSeparator = ';';

absl::Status NoResources() {
  return absl::FailedPreconditionError("there are no containers that could hold a resource");
}

}  // namespace

absl::StatusOr<RefPtr<Resource>> FindResource(ResourceProvider* resources,
                                              std::string_view container, std::string_view name,
                                              const char* what) {
  if (resources == nullptr) return NoResources();
  absl::StatusOr<RefPtr<Resource>> found = resources->FindOrCreate(container, name, nullptr);
  if (found.status().code() != absl::StatusCode::kNotFound) return found;
  return absl::NotFoundError(StrCat("the ", what, " '", name, "' of container '", container,
                                    "' does not exist: it was destroyed"));
}

absl::StatusOr<RefPtr<Resource>> FindResource(KernelContext& ctx, int input, const char* what) {
  if (const Variable* variable = ctx.input_ref(input)) {
    const std::string_view name = variable->name();
    const size_t end = name.find(kSeparator);
    if (variable->type() != ElementType::kString || end == std::string_view::npos) {
      return InvalidArgument("the reference to variable '", name, "' is no handle of a ", what);
    }
    return FindResource(ctx.resources(), name.substr(0, end), name.substr(end + 1), what);
  }
  const Tensor& tensor = ctx.input(input);
  if (tensor.type() != ElementType::kResource || tensor.num_elements() != 1) {
    return InvalidArgument("the handle of a ", what, " must be one resource handle, got shape ",
                           tensor.shape().ToString());
  }
  const ResourceHandle& handle = *tensor.unchecked_data<ResourceHandle>();
  if (handle.resource) {
    const auto* waiting = dynamic_cast<WaitingResource*>(handle.resource.get());
    if (waiting == nullptr || !waiting->abandoned()) return handle.resource;
  }
  return FindResource(ctx.resources(), handle.container, handle.name, what);
}

// --- making --------------------------------------------------------------------------------------

NamedResource::NamedResource(KernelConstruction& construction, std::string type_name,
                             Unnamed unnamed, absl::Status* status)
    : container_(construction.Attr<std::string>("container")),
      name_(construction.Attr<std::string>("shared_name")),
      type_name_(std::move(type_name)) {
  *status = CheckContainer(container_);
  if (status->ok() && !name_.empty() && name_[0] == '_') {
    *status = InvalidArgument("shared_name must not start with '_': '", name_, "'");
  }
  if (!name_.empty()) return;
  name_ = construction.node_name();
  if (unnamed == Unnamed::kLikeTheNode) return;
  private_ = true;
  static std::atomic<uint64_t> next{0};
  name_ = StrCat("_", next.fetch_add(1, std::memory_order_relaxed), "_", name_);
}

NamedResource::~NamedResource() {
  // NotFound: the container has been emptied.
  if (private_ && resource_ && !resource_->abandoned()) {
    resources_->Destroy(container_, name_).IgnoreError();
  }
}

absl::StatusOr<WaitingResource*> NamedResource::Find(KernelContext& ctx, Make make, Check check,
                                                     bool* again) {
  if (ctx.resources() == nullptr) return NoResources();
  *again = !resource_ || resource_->abandoned() || resources_ != ctx.resources();
  if (!*again) return resource_.get();
  TROUPE_ASSIGN_OR_RETURN(
      RefPtr<Resource> found,
      ctx.resources()->FindOrCreate(container_, name_, [&] { return make(name_); }));
  auto* resource = dynamic_cast<WaitingResource*>(found.get());
  if (resource == nullptr) {
    return InvalidArgument("the resource is ", found->DebugString(), ", not a ", type_name_);
  }
  TROUPE_RETURN_IF_ERROR(check(*resource));
  resource_ = RefPtr<WaitingResource>::Share(resource);
  resources_ = ctx.resources();
  return resource;
}

ResourceMaker::ResourceMaker(KernelConstruction& construction, std::string type_name,
                             absl::Status* status, Unnamed unnamed)
    : by_name_(IsRefType(construction.output_type(0))),
      resource_(construction, std::move(type_name), unnamed, status) {}

absl::Status ResourceMaker::Compute(KernelContext& ctx) {
  std::lock_guard<std::mutex> lock(mutex_);
  bool again = false;
  TROUPE_ASSIGN_OR_RETURN(WaitingResource * resource,
                          resource_.Find(
                              ctx, [&](const std::string& name) { return Make(ctx, name); },
                              [&](const WaitingResource& found) { return Check(found); }, &again));
  if (again || !handle_.valid()) {
    ResourceHandle handle;
    if (ctx.step().device != nullptr) handle.device = ctx.step().device->name();
    handle.container = resource_.container();
    handle.name = resource_.name();
    handle.type_name = resource_.type_name();
    handle.resource = RefPtr<Resource>::Share(resource);
    handle_ = Tensor::Scalar(std::move(handle));
    reference_.reset();
  }
  if (by_name_) return PutReference(ctx, resource_.container(), resource_.name(), &reference_);
  ctx.output(0) = handle_;
  return absl::OkStatus();
}

absl::Status PutReference(KernelContext& ctx, const std::string& container, const std::string& name,
                          RefPtr<Resource>* variable) {
  if (ctx.resources() == nullptr) return NoResources();
  auto* known = static_cast<Variable*>(variable->get());
  if (known == nullptr || known->destroyed()) {
    TROUPE_ASSIGN_OR_RETURN(RefPtr<Variable> made,
                            ctx.resources()->FindOrCreateVariable(
                                kNames, StrCat(container, std::string(1, kSeparator), name),
                                ElementType::kString, Shape({2})));
    if (Variable::Lease lease = made->TryLend()) {
      lease.set_value(Tensor::Vector<std::string>({container, name}));
    }
    *variable = std::move(made);
    known = static_cast<Variable*>(variable->get());
  }
  ctx.set_output_ref(0, known);
  return absl::OkStatus();
}

}  // namespace troupe
