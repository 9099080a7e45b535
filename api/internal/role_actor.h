/// What roles of a task have in common as actors. Not public.
#ifndef TROUPE_API_INTERNAL_ROLE_ACTOR_H_
#define TROUPE_API_INTERNAL_ROLE_ACTOR_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime.h"
#include "api/internal/actor_host.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {

/// An actor whose messages are handled by their senders' threads, any number at once: what keeps
/// the order of its state is the role itself. Handlers do not wait.
class RoleActor : public caf::monitorable_actor {
 public:
  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit* unit) override {
    if (what == nullptr) return;
    EndIfOver();
    if (getf(is_terminated_flag)) return bounce(what);
    // Roles end with what they are of, not with whoever is linked to them.
    if (what->content().match_elements<caf::exit_msg>()) {
      return unlink_from(what->content().get_as<caf::exit_msg>(0).source);
    }
    if (handle_system_message(*what, unit, /*trap_exit=*/true)) return;
    Reply reply{ctrl(), what->sender, what->mid, nullptr};
    const absl::Status status = CatchExceptions([&] {
      reply.message = std::move(what);
      return Handle(reply.message->content(), reply);
    });
    if (!status.ok()) reply.Send(ToCafError(status));
  }

  /// Ends the actor if what it is of is gone.
  void EndIfOver() {
    if (over()) cleanup(caf::make_error(caf::exit_reason::normal), nullptr);
  }

 protected:
  virtual bool over() const { return false; }
  /// Answers one message, from any thread.
  struct Reply {
    caf::strong_actor_ptr self, to;
    caf::message_id id;
    /// Kept until it has been answered, so that whoever sent it counts it as under way.
    std::shared_ptr<caf::mailbox_element> message;

    template <typename... T>
    void Send(T&&... content) const {
      if (to == nullptr || !id.is_request()) return;
      to->enqueue(caf::make_mailbox_element(self, id.response_id(), {},
                                            caf::make_message(std::forward<T>(content)...)),
                  nullptr);
    }
    void SendStatus(const absl::Status& status) const {
      status.ok() ? Send() : Send(ToCafError(status));
    }
    /// Calls `begin`, which has the answer sent later; what it throws is the answer.
    template <typename F>
    void SendLater(F&& begin) const {
      const absl::Status begun = CatchExceptions([&] {
        begin();
        return absl::OkStatus();
      });
      if (!begun.ok()) SendStatus(begun);
    }
  };

  /// Answers with a value that comes from a device's memory. The pool does it, not the device's
  /// thread that says that the value is here: what it gives back last may be the runtime, which
  /// ends the device.
  template <typename Value>
  class DeviceAnswer final : public PoolTask {
   public:
    /// What the value, or an error, is to be given to, once.
    static std::function<void(absl::StatusOr<Value>)> Make(std::shared_ptr<Runtime> runtime,
                                                           Reply reply) {
      // std::function copies what it holds.
      auto held = std::make_shared<std::unique_ptr<DeviceAnswer>>(new DeviceAnswer);
      (*held)->runtime_ = std::move(runtime);
      (*held)->reply_ = std::move(reply);
      return [held](absl::StatusOr<Value> value) {
        DeviceAnswer* const answer = held->release();
        answer->value_ = std::move(value);
        try {
          answer->runtime_->pool()->SubmitLong(answer);
        } catch (...) {  // No thread could be made: this one does it.
          answer->Run();
        }
      };
    }

    void Run() noexcept override {
      const std::unique_ptr<DeviceAnswer> self(this);
      KeepGoing(
          [this] { value_.ok() ? reply_.Send(*value_) : reply_.SendStatus(value_.status()); });
    }

   private:
    DeviceAnswer() = default;

    std::shared_ptr<Runtime> runtime_;
    Reply reply_;
    absl::StatusOr<Value> value_;
  };

  explicit RoleActor(caf::actor_config& config) : caf::monitorable_actor(config) {}
  /// What it returns, unless it is OK, is the answer.
  virtual absl::Status Handle(caf::type_erased_tuple& content, const Reply& reply) = 0;

  static absl::Status NotHandled(const caf::type_erased_tuple& content) {
    return absl::UnimplementedError(StrCat("the actor does not handle ", content.stringify()));
  }
};

template <typename Role, typename... Args>
caf::strong_actor_ptr MakeRole(caf::actor_system& system, Args&&... args) {
  caf::actor_config config;
  return caf::make_actor<Role, caf::strong_actor_ptr>(system.next_actor_id(), system.node(),
                                                      &system, config, std::forward<Args>(args)...);
}

/// What `find(device, container, name)` finds on the first device that has it; the name is that of
/// the default container, or of the one before its first slash.
template <typename Find>
auto FindOnAnyDevice(const Runtime& runtime, const std::string& name, Find find)
    -> decltype(find(*runtime.devices()[0], "", name)) {
  std::vector<std::pair<std::string, std::string>> places = {{"", name}};
  if (const size_t slash = name.find('/'); slash != std::string::npos) {
    places.push_back({name.substr(0, slash), name.substr(slash + 1)});
  }
  for (const auto& device : runtime.devices()) {
    for (const auto& [container, resource] : places) {
      auto found = find(*device, container, resource);
      if (!absl::IsNotFound(found.status())) return found;
    }
  }
  return absl::NotFoundError(StrCat("there is no resource ", name));
}

/// An actor of a resource of a task at which calls wait. NotFound; InvalidArgument for other kinds.
absl::StatusOr<caf::strong_actor_ptr> MakeWaitingRole(caf::actor_system& system,
                                                      const std::shared_ptr<Runtime>& runtime,
                                                      ActorKind kind, const std::string& name);

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_ROLE_ACTOR_H_
