/// What the parts of `ActorHost` share: how nodes are known to CAF, and what frames there are. Not
/// public.
#ifndef TROUPE_API_INTERNAL_ACTOR_PROTOCOL_H_
#define TROUPE_API_INTERNAL_ACTOR_PROTOCOL_H_

#include <algorithm>
#include <caf/all.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "devices/status_macros.h"
#include "net/wire.h"

namespace caf::net {

/// What gives an actor system its name among the others of a cluster. CAF lets a class of this name
/// do so, and has none itself.
class middleman : public actor_system::module {
 public:
  static constexpr char kSetting[] = "troupe-incarnation";

  explicit middleman(actor_system& system) : system_(system) {}
  static actor_system::module* make(actor_system& system, detail::type_list<>) {
    return new middleman(system);
  }
  static node_id IdOf(uint64_t incarnation) {
    node_id::default_data::host_id_type host{};
    std::memcpy(host.data(), &incarnation, sizeof(incarnation));
    std::memcpy(host.data() + sizeof(incarnation), kMark, sizeof(kMark));
    return make_node_id(1, host);
  }
  /// 0: no id of this kind.
  static uint64_t IncarnationOf(const node_id& id) {
    if (!id || id->implementation_id() != node_id::default_data::class_id) return 0;
    uint64_t incarnation = 0;
    const auto host = static_cast<const node_id::default_data&>(*id).host_id();
    std::memcpy(&incarnation, host.data(), sizeof(incarnation));
    return id == IdOf(incarnation) ? incarnation : 0;
  }

  void start() override {}
  void stop() override {}
  void init(actor_system_config& config) override {
    node_id id = IdOf(static_cast<uint64_t>(get_or(config, kSetting, int64_t{0})));
    system_.node_.swap(id);
  }
  id_t id() const override { return module::network_manager; }
  void* subtype_ptr() override { return this; }

 private:
  static constexpr char kMark[8] = "troupe";
  actor_system& system_;
};

}  // namespace caf::net

namespace troupe::actor_protocol {

/// How a node is known to CAF.
using Identity = caf::net::middleman;

/// Kinds of frames: their first byte. Those about actors then say to which life of the process they
/// go (`ForLife`), as actors of several lives have the same ids.
enum Kind : uint8_t {
  kSend = 1,       // To an actor: receiver, message id, sender's node and actor, bytes, content.
  kWatch = 2,      // An actor whose end is to be told.
  kDown = 3,       // An actor has ended: actor, error.
  kCredit = 4,     // An actor has handled messages: actor, number, bytes.
  kPing = 5,       // We are here.
  kUnpublish = 6,  // A name.
  kMembers = 8,    // Tasks have joined or left.
  kLink = 9,       // An actor is linked with one of the sender's: receiver, the other one.
  kUnlink = 10,    // It no longer is: receiver, the other one.
  kAnswer = 7,     // To a question: its number, code, text of the error or what was asked for.
  // Questions: a number, then
  kFind = 16,     // kind, name: a handle.
  kPublish = 17,  // name, actor.
  kWhere = 18,    // a node: its name and address.
};
inline constexpr size_t kMostNameBytes = 4096;
inline constexpr int64_t kMostPublished = 1000;
inline constexpr std::chrono::seconds kPingInterval{1};
// For processes that are looked for.
inline constexpr std::chrono::seconds kLookFor{5};

inline std::string Fields(uint8_t kind) { return std::string(1, static_cast<char>(kind)); }
inline bool IsForLife(uint8_t kind) {
  return (kind >= kSend && kind <= kCredit) || kind == kLink || kind == kUnlink;
}
inline std::string ForLife(uint8_t kind, uint64_t node) {
  std::string body = Fields(kind);
  WireWriter(&body).Number(node);
  return body;
}

/// Who was asked is not there, or does not answer.
inline bool IsAbsent(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

inline absl::Status Malformed() { return InvalidArgument("a frame that nobody can read"); }

}  // namespace troupe::actor_protocol

#endif  // TROUPE_API_INTERNAL_ACTOR_PROTOCOL_H_
