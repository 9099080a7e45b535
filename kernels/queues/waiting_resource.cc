#include "kernels/queues/waiting_resource.h"

#include <iterator>
#include <new>

#include "devices/device.h"
#include "devices/exceptions.h"
#include "kernels/state/variable_kernel.h"
#include "kernels/variable.h"

namespace troupe {

void WaitingResource::Submit(int number, std::unique_ptr<Call> call) {
  Line served;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Call* const waiting = call.get();
    const uint64_t id = waiting->id = next_id_++;
    Line& line = lines_[number];
    line.push_back(std::move(call));  // From here on the call ends with a reply, come what may.
    if (abandoned()) {
      FailAll(&line, Destroyed());
    } else {
      ServeAll();
    }
    // Calls before it wait, or it would have been served: it can only be the last of its line.
    if (!line.empty() && line.back()->id == id && waiting->ctx->cancellation() != nullptr) {
      CancellationToken* token = waiting->ctx->cancellation();
      RefPtr<WaitingResource> self = RefPtr<WaitingResource>::Share(this);
      // The token calls back without its own lock, hence may be asked with ours held.
      absl::Status status;
      try {
        waiting->registered =
            token->Register([self, id] { self->Cancelled(id); }, &waiting->callback);
        if (!waiting->registered) status = token->status();
      } catch (...) {
        status = StatusOfException();
      }
      if (!waiting->registered) {
        GiveUp(waiting);
        waiting->status = std::move(status);
        served_.splice(served_.end(), line, std::prev(line.end()));
        ServeAll();
      }
    }
    served.swap(served_);
  }
  Reply(&served);
}

absl::Status WaitingResource::Destroyed() const noexcept {
  return CatchExceptions(
      [&] { return absl::CancelledError(StrCat(DebugString(), " has been destroyed")); });
}

void WaitingResource::ServeAll() noexcept {
  while (true) {
    serving_ = nullptr;
    try {
      return Serve();
    } catch (...) {
      if (serving_ == nullptr || serving_->empty()) return;
      const absl::Status status = StatusOfException();
      GiveUp(serving_->front().get());
      Complete(serving_, status);
    }
  }
}

void WaitingResource::GiveUp(Call* call) noexcept {
  try {
    Withdraw(call);
  } catch (const std::bad_alloc&) {  // What it has taken is gone: there is no room to put it.
  }
}

void WaitingResource::Cancelled(uint64_t id) noexcept {
  Change([&] {
    for (Line& line : lines_) {
      for (auto it = line.begin(); it != line.end(); ++it) {
        if ((*it)->id != id) continue;
        GiveUp(it->get());
        (*it)->registered = false;
        (*it)->status = (*it)->ctx->cancellation()->status();
        served_.splice(served_.end(), line, it);
        return;
      }
    }
  });
}

void WaitingResource::Unregister(Call* call) noexcept {
  // If the cancellation is running just now, it will not find the call any more.
  if (call->registered) call->ctx->cancellation()->Deregister(call->callback);
  call->registered = false;
}

void WaitingResource::Complete(Line* line, absl::Status status) noexcept {
  line->front()->status = std::move(status);
  Unregister(line->front().get());
  served_.splice(served_.end(), *line, line->begin());
}

void WaitingResource::FailAll(Line* line, const absl::Status& status) noexcept {
  while (!line->empty()) {
    GiveUp(line->front().get());
    Complete(line, status);
  }
}

void WaitingResource::Abandon() noexcept {
  Line served;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    abandoned_.store(true, std::memory_order_release);
    for (Line& line : lines_) FailAll(&line, Destroyed());
    served.swap(served_);
  }
  Reply(&served);
}

void WaitingResource::Reply(Line* served) noexcept {
  while (!served->empty()) {
    std::unique_ptr<Call> call = std::move(served->front());
    served->pop_front();
    absl::Status status = std::move(call->status);
    const KernelDone done = call->done;
    call->resource = RefPtr<WaitingResource>::Share(this);
    // Most calls are other steps' than the one that this thread plays or cancels.
    done(std::move(status), Player::kHandsOn, std::move(call));
  }
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

absl::StatusOr<RefPtr<WaitingResource>> Kept(RefPtr<Resource> resource, const char* what) {
  if (auto* keeper = dynamic_cast<ResourceKeeper*>(resource.get())) return keeper->resource();
  return InvalidArgument("the resource is ", resource->DebugString(), ", not a ", what);
}

absl::StatusOr<RefPtr<WaitingResource>> LookUp(KernelContext& ctx, std::string_view container,
                                               std::string_view name, const char* what) {
  if (ctx.resources() == nullptr) return NoResources();
  absl::StatusOr<RefPtr<Resource>> found = ctx.resources()->FindOrCreate(container, name, nullptr);
  if (found.ok()) return Kept(*std::move(found), what);
  if (found.status().code() != absl::StatusCode::kNotFound) return found.status();
  return absl::NotFoundError(StrCat("the ", what, " '", name, "' of container '", container,
                                    "' does not exist: it was destroyed"));
}

}  // namespace

absl::StatusOr<RefPtr<WaitingResource>> FindWaitingResource(KernelContext& ctx, const char* what) {
  if (const Variable* variable = ctx.input_ref(0)) {
    const std::string_view name = variable->name();
    const size_t end = name.find(kSeparator);
    if (variable->type() != ElementType::kString || end == std::string_view::npos) {
      return InvalidArgument("the reference to variable '", name, "' is no handle of a ", what);
    }
    return LookUp(ctx, name.substr(0, end), name.substr(end + 1), what);
  }
  const Tensor& tensor = ctx.input(0);
  if (tensor.type() != ElementType::kResource || tensor.num_elements() != 1) {
    return InvalidArgument("the handle of a ", what, " must be one resource handle, got shape ",
                           tensor.shape().ToString());
  }
  const ResourceHandle& handle = *tensor.unchecked_data<ResourceHandle>();
  if (auto* resource = dynamic_cast<WaitingResource*>(handle.resource.get())) {
    if (!resource->abandoned()) return RefPtr<WaitingResource>::Share(resource);
  } else if (handle.resource) {
    return InvalidArgument("the handle refers to ", handle.resource->DebugString(), ", not to a ",
                           what);
  }
  return LookUp(ctx, handle.container, handle.name, what);
}

// --- making --------------------------------------------------------------------------------------

ResourceMaker::ResourceMaker(KernelConstruction& construction, std::string type_name,
                             absl::Status* status)
    : by_name_(IsRefType(construction.output_type(0))),
      container_(construction.Attr<std::string>("container")),
      name_(construction.Attr<std::string>("shared_name")),
      type_name_(std::move(type_name)) {
  *status = CheckContainer(container_);
  if (status->ok() && !name_.empty() && name_[0] == '_') {
    *status = InvalidArgument("shared_name must not start with '_': '", name_, "'");
  }
  if (name_.empty()) name_ = construction.node_name();
}

absl::Status ResourceMaker::Compute(KernelContext& ctx) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (ctx.resources() == nullptr) return NoResources();
  if (!resource_ || resource_->abandoned() || resources_ != ctx.resources()) {
    TROUPE_RETURN_IF_ERROR(Find(ctx));
  }
  if (by_name_) return PutName(ctx);
  ctx.output(0) = handle_;
  return absl::OkStatus();
}

absl::Status ResourceMaker::Find(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(
      RefPtr<Resource> found,
      ctx.resources()->FindOrCreate(container_, name_, [&]() -> absl::StatusOr<RefPtr<Resource>> {
        return RefPtr<Resource>(MakeRef<ResourceKeeper>(Make(name_)));
      }));
  TROUPE_ASSIGN_OR_RETURN(RefPtr<WaitingResource> resource, Kept(found, type_name_.c_str()));
  TROUPE_RETURN_IF_ERROR(Check(*resource));
  ResourceHandle handle;
  if (ctx.step().device != nullptr) handle.device = ctx.step().device->name();
  handle.container = container_;
  handle.name = name_;
  handle.type_name = type_name_;
  handle.resource = resource;
  handle_ = Tensor::Scalar(std::move(handle));
  resource_ = std::move(resource);
  reference_.reset();
  resources_ = ctx.resources();
  return absl::OkStatus();
}

absl::Status ResourceMaker::PutName(KernelContext& ctx) {
  auto* known = static_cast<Variable*>(reference_.get());
  if (known == nullptr || known->destroyed()) {
    TROUPE_ASSIGN_OR_RETURN(RefPtr<Variable> made,
                            ctx.resources()->FindOrCreateVariable(
                                kNames, StrCat(container_, std::string(1, kSeparator), name_),
                                ElementType::kString, Shape({2})));
    if (Variable::Lease lease = made->TryLend()) {
      lease.set_value(Tensor::Vector<std::string>({container_, name_}));
    }
    reference_ = std::move(made);
    known = static_cast<Variable*>(reference_.get());
  }
  ctx.set_output_ref(0, known);
  return absl::OkStatus();
}

}  // namespace troupe
