/// Actors of an application that graphs ask and tell: the ops AskActor and TellActor. The only
/// header of Troupe's that shows CAF; link target `troupe::actors`.
///
///     troupe::PublishedActor published = *troupe::PublishActor("cache", system.spawn(Cache));
///     Output y = ops::AskActor(s, {key}, "cache", {ElementType::kFloat})[0];
#ifndef TROUPE_API_ACTORS_H_
#define TROUPE_API_ACTORS_H_

#include <caf/all.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/tensor.h"

CAF_BEGIN_TYPE_ID_BLOCK(troupe, first_custom_type_id + 64)
CAF_ADD_TYPE_ID(troupe, (std::vector<troupe::Tensor>))
CAF_ADD_ATOM(troupe, troupe, ask_atom, "trp_ask")
CAF_ADD_ATOM(troupe, troupe, tell_atom, "trp_tell")
CAF_END_TYPE_ID_BLOCK(troupe)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(std::vector<troupe::Tensor>)

TROUPE_EXPORT_BEGIN
namespace troupe {

struct PublishOptions {
  /// The actor's handlers never wait: the thread that asks may run them, without waking another (1
  /// us instead of some 50).
  bool quick = false;
};

/// Ends the publication of an actor with its life. Requests that are under way go on. A move-only
/// value.
class PublishedActor {
 public:
  PublishedActor(PublishedActor&&) noexcept;
  PublishedActor& operator=(PublishedActor&&) noexcept;
  ~PublishedActor();

 private:
  friend absl::StatusOr<PublishedActor> PublishActor(const std::string&, const caf::actor&,
                                                     const PublishOptions&);
  friend absl::StatusOr<PublishedActor> FunctionActor(
      const std::string&, std::function<absl::StatusOr<std::vector<Tensor>>(std::vector<Tensor>)>);
  explicit PublishedActor(std::string name);
  std::string name_;  ///< Empty: of none.
};

/// Makes `actor` known to the graphs of this process. It receives `(ask_atom, std::vector<Tensor>)`
/// and answers `std::vector<Tensor>` or a `caf::error`, and `(tell_atom, std::vector<Tensor>)`.
/// Tensors are shared, not copied, and must not be changed. The result keeps the actor alive, and
/// so must go before its system does. AlreadyExists, InvalidArgument. Thread-safe.
absl::StatusOr<PublishedActor> PublishActor(const std::string& name, const caf::actor& actor,
                                            const PublishOptions& options = {});

/// Publishes a function that answers tensors with tensors. It is called by the threads that run
/// kernels, from several at once, and must not wait. What it throws is the node's error.
absl::StatusOr<PublishedActor> FunctionActor(
    const std::string& name,
    std::function<absl::StatusOr<std::vector<Tensor>>(std::vector<Tensor>)> function);

/// An actor's answer that makes `status`, which is not OK, the node's: code and message.
caf::error ToCafError(const absl::Status& status);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_ACTORS_H_
