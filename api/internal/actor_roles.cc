// Roles of a task, and sessions, as actors: whoever sends to one handles the message.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime.h"
#include "api/internal/role_actor.h"
#include "api/session.h"
#include "devices/device.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/argument_spaces.h"
#include "kernels/data/element_memory.h"

namespace troupe {

namespace {

class TaskRoleActor final : public RoleActor {
 public:
  TaskRoleActor(caf::actor_config& config, TaskStatus status)
      : RoleActor(config), status_(std::move(status)) {}
  const char* name() const override { return "troupe.task"; }

 private:
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (!content.match_elements<status_atom>()) return NotHandled(content);
    reply.Send(status_);
    return absl::OkStatus();
  }
  const TaskStatus status_;
};

class DeviceRoleActor final : public RoleActor {
 public:
  DeviceRoleActor(caf::actor_config& config, std::shared_ptr<DeviceRole> device)
      : RoleActor(config), device_(std::move(device)) {}
  const char* name() const override { return "troupe.device"; }

 private:
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (!content.match_elements<status_atom>()) return NotHandled(content);
    const Device& device = *device_->device;
    DeviceStatus status{device.name(), device.type(), device_->containers.List()};
    const AllocatorStats stats = device.allocator(device.memory_space())->stats();
    status.bytes_in_use = stats.bytes_in_use;
    status.peak_bytes_in_use = stats.peak_bytes_in_use;
    status.bytes_limit = stats.bytes_limit;
    reply.Send(std::move(status));
    return absl::OkStatus();
  }
  const std::shared_ptr<DeviceRole> device_;
};

class VariableRoleActor final : public RoleActor {
 public:
  VariableRoleActor(caf::actor_config& config, std::shared_ptr<Runtime> runtime, Device* device,
                    RefPtr<Variable> variable)
      : RoleActor(config),
        runtime_(std::move(runtime)),
        device_(device),
        variable_(std::move(variable)) {}
  const char* name() const override { return "troupe.variable"; }

 private:
  bool over() const override { return variable_->destroyed(); }
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (content.match_elements<caf::get_atom>()) {
      variable_->Lend([to = reply, runtime = runtime_, device = device_](Variable::Lease lease) {
        const Tensor value = lease.value();
        const std::string name = value.valid() ? "" : lease.variable()->name();
        lease.Release();
        KeepGoing([&] {
          if (!value.valid()) {
            return to.SendStatus(absl::FailedPreconditionError(
                StrCat("variable ", name, " has not been initialised")));
          }
          if (device->memory_space() != MemorySpace::kDevice) return to.Send(value);
          to.SendLater(
              [&] { DownloadValue(device, value, DeviceAnswer<Tensor>::Make(runtime, to)); });
        });
      });
      return absl::OkStatus();
    }
    if (!content.match_elements<caf::put_atom, Tensor>()) return NotHandled(content);
    const Tensor& value = content.get_as<Tensor>(1);
    if (!value.valid() || value.type() != variable_->type() ||
        !variable_->shape().IsCompatibleWith(value.shape())) {
      return InvalidArgument("variable ", variable_->name(), " is a ", variable_->DebugString(),
                             ", and cannot be ",
                             value.valid() ? ElementTypeName(value.type()) : "nothing", " ",
                             value.valid() ? value.shape().ToString() : "");
    }
    Tensor there = value;
    if (LivesOnDevice(value.type())) {
      TROUPE_ASSIGN_OR_RETURN(there, Upload(device_, value));
    }
    variable_->Lend([reply, there](Variable::Lease lease) {
      lease.set_value(there);
      lease.Release();
      KeepGoing([&] { reply.Send(); });
    });
    return absl::OkStatus();
  }
  const std::shared_ptr<Runtime> runtime_;
  Device* const device_;  ///< Of the runtime, where the variable is.
  const RefPtr<Variable> variable_;
};

class SessionRoleActor final : public RoleActor {
 public:
  SessionRoleActor(caf::actor_config& config, std::shared_ptr<Session> session)
      : RoleActor(config), session_(std::move(session)) {}
  const char* name() const override { return "troupe.session"; }

 private:
  using Names = std::vector<std::string>;
  absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) override {
    if (!content.match_elements<run_atom, NamedTensors, Names, Names>()) {
      return NotHandled(content);
    }
    session_->RunAsync(content.get_as<NamedTensors>(1), content.get_as<Names>(2),
                       content.get_as<Names>(3),
                       [reply](const absl::StatusOr<std::vector<Tensor>>& fetched) {
                         KeepGoing([&] {
                           fetched.ok() ? reply.Send(*fetched) : reply.SendStatus(fetched.status());
                         });
                       });
    return absl::OkStatus();
  }
  const std::shared_ptr<Session> session_;
};

absl::StatusOr<caf::strong_actor_ptr> MakeDeviceActor(caf::actor_system& system,
                                                      const std::shared_ptr<Runtime>& runtime,
                                                      const std::string& name) {
  std::string names;
  for (const auto& device : runtime->devices()) {
    const std::string& full = device->device->name();
    if (full == name || full.ends_with(StrCat("/device:", name))) {
      return MakeRole<DeviceRoleActor>(system, std::shared_ptr<DeviceRole>(runtime, device.get()));
    }
    names += StrCat(" ", full);
  }
  return absl::NotFoundError(StrCat("there is no device ", name, " among", names));
}

absl::StatusOr<std::pair<DeviceRole*, RefPtr<Variable>>> FindVariable(DeviceRole& device,
                                                                      const std::string& container,
                                                                      const std::string& name) {
  TROUPE_ASSIGN_OR_RETURN(const RefPtr<Resource> found,
                          device.containers.FindOrCreate(container, name, nullptr));
  auto* variable = dynamic_cast<Variable*>(found.get());
  if (variable != nullptr) return std::make_pair(&device, RefPtr<Variable>::Share(variable));
  return InvalidArgument(name, " is no variable but ", found->DebugString());
}

}  // namespace

absl::StatusOr<caf::strong_actor_ptr> MakeRoleActor(caf::actor_system& system,
                                                    const std::shared_ptr<Runtime>& runtime,
                                                    const TaskStatus& task, ActorKind kind,
                                                    const std::string& name) {
  switch (kind) {
    case ActorKind::kTask:
      return MakeRole<TaskRoleActor>(system, task);
    case ActorKind::kDevice:
      return MakeDeviceActor(system, runtime, name);
    case ActorKind::kVariable: {
      TROUPE_ASSIGN_OR_RETURN(auto found, FindOnAnyDevice(*runtime, name, FindVariable));
      return MakeRole<VariableRoleActor>(system, runtime, found.first->device.get(),
                                         std::move(found.second));
    }
    default:
      return MakeWaitingRole(system, runtime, kind, name);
  }
}

void EndIfOver(const caf::strong_actor_ptr& role) {
  static_cast<RoleActor*>(role->get())->EndIfOver();
}

SessionActor MakeSessionActor(caf::actor_system& system, std::shared_ptr<Session> session) {
  return caf::actor_cast<SessionActor>(MakeRole<SessionRoleActor>(system, std::move(session)));
}

}  // namespace troupe
