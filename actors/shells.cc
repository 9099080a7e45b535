#include "actors/shells.h"

#include <utility>

#include "devices/exceptions.h"

namespace troupe {

namespace {

RunReply RunStep(SessionRole* role, const RunRequest& request) {
  RunReply reply;
  auto executable = role->Prepare(request.feeds, request.fetches, request.targets);
  if (!executable.ok()) {
    reply.status = executable.status();
    return reply;
  }
  std::vector<Tensor> feeds;
  for (const auto& feed : request.feeds) feeds.push_back(feed.second);
  reply.values.resize(request.fetches.size());
  reply.status = role->Run(executable->get(), feeds, absl::MakeSpan(reply.values), {}, nullptr);
  if (!reply.status.ok()) reply.values.clear();
  return reply;
}

/// Answers one request and ends.
SessionActor::behavior_type StepWorker(SessionActor::pointer self, SessionRole* role) {
  return {[self, role](const RunRequest& request) {
    RunReply reply = RunStep(role, request);
    self->quit();
    return reply;
  }};
}

SessionActor::behavior_type SessionBehavior(SessionActor::pointer self, SessionRole* role) {
  return {[self, role](RunRequest& request) {
    return self->delegate(self->spawn(StepWorker, role), std::move(request));
  }};
}

/// Visits a variable and answers with its value once `visit` has been made.
template <typename Visit>
void VisitVariable(Variable* variable, caf::typed_response_promise<VariableReply> promise,
                   Visit visit) {
  variable->Lend([promise, visit](Variable::Lease lease) mutable {
    VariableReply reply;
    reply.status = CatchExceptions([&] {
      absl::Status status = visit(lease);
      if (status.ok()) reply.value = lease.value();
      return status;
    });
    lease.Release();
    KeepGoing([&] { promise.deliver(std::move(reply)); });
  });
}

DeviceActor::behavior_type DeviceBehavior(DeviceActor::pointer self, DeviceRole* device) {
  return {
      [self, device](const ReadVariableRequest& request) -> caf::result<VariableReply> {
        auto promise = self->make_response_promise<VariableReply>();
        auto resource = device->containers.FindOrCreate(request.container, request.name, nullptr);
        auto* variable = resource.ok() ? dynamic_cast<Variable*>(resource->get()) : nullptr;
        if (variable == nullptr) {
          promise.deliver(VariableReply{
              resource.ok() ? absl::InvalidArgumentError(request.name + " is not a variable")
                            : resource.status(),
              Tensor()});
          return promise;
        }
        VisitVariable(variable, promise, [name = request.name](const Variable::Lease& lease) {
          return lease.value().valid() ? absl::OkStatus()
                                       : absl::FailedPreconditionError("variable " + name +
                                                                       " has not been initialized");
        });
        return promise;
      },
      [self, device](const AssignVariableRequest& request) -> caf::result<VariableReply> {
        auto promise = self->make_response_promise<VariableReply>();
        auto variable = device->containers.FindOrCreateVariable(
            request.container, request.name, request.value.type(), request.value.shape());
        if (!variable.ok()) {
          promise.deliver(VariableReply{variable.status(), Tensor()});
          return promise;
        }
        VisitVariable(variable->get(), promise, [value = request.value](Variable::Lease& lease) {
          lease.set_value(value);
          return absl::OkStatus();
        });
        return promise;
      },
      [device](const ListResourcesRequest&) { return device->containers.List(); },
      [device](const ResetContainerRequest& request) {
        device->containers.Reset(request.container);
        return device->containers.List();
      },
  };
}

}  // namespace

SessionActor SpawnSession(caf::actor_system& system, SessionRole* role) {
  return system.spawn(SessionBehavior, role);
}

DeviceActor SpawnDevice(caf::actor_system& system, DeviceRole* device) {
  return system.spawn(DeviceBehavior, device);
}

}  // namespace troupe
