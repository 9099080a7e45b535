/// Actors of other processes, and what is under way to an actor. Not public.
#ifndef TROUPE_API_INTERNAL_ACTOR_PROXY_H_
#define TROUPE_API_INTERNAL_ACTOR_PROXY_H_

#include <algorithm>
#include <atomic>
#include <caf/default_attachable.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "api/internal/actor_host.h"
#include "api/internal/actor_protocol.h"
#include "devices/exceptions.h"

namespace troupe {

/// An actor of another process.
class ActorHost::Proxy final : public caf::actor_proxy {
 public:
  /// `counted`: there it counts, unless null.
  Proxy(caf::actor_config& config, ActorHost* host, uint64_t node, Count counted)
      : caf::actor_proxy(config), host_(host), node_(node), counted_(std::move(counted)) {
    if (counted_ != nullptr) ++*counted_;
  }
  ~Proxy() override {
    if (counted_ != nullptr) --*counted_;
  }

  const char* name() const override { return "troupe.proxy"; }
  uint64_t process() const { return node_; }
  bool dead() const { return dead_.load(std::memory_order_acquire); }

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    if (what == nullptr) return;
    if (dead()) return bounce(what);
    if (EndsLink(what->content())) return;
    host_->Forward(this, *what);
  }
  bool add_backlink(caf::abstract_actor* who) override {
    if (!caf::actor_proxy::add_backlink(who)) return false;
    host_->TellLink(actor_protocol::kLink, *this, caf::strong_actor_ptr(who->ctrl()));
    return true;
  }
  bool remove_backlink(caf::abstract_actor* who) override {
    if (!caf::actor_proxy::remove_backlink(who)) return false;
    host_->TellLink(actor_protocol::kUnlink, *this, caf::strong_actor_ptr(who->ctrl()));
    return true;
  }
  void kill_proxy(caf::execution_unit* unit, caf::error reason) override {
    dead_.store(true, std::memory_order_release);
    cleanup(std::move(reason), unit);
  }

  /// The remote actor has linked itself to an actor of this process. Unlike `add_link`, this sends
  /// it nothing if that one has ended: its process is told so in any case.
  void LinkTo(caf::abstract_actor* local) {
    auto link = caf::default_attachable::make_link(address(), local->address());
    bool ended = false;
    joined_exclusive_critical_section(this, local, [&] {
      if (local->getf(is_terminated_flag)) return;
      ended = getf(is_terminated_flag);
      if (!ended && local->add_backlink(this)) attach_impl(link);
    });
    if (!ended) return;
    local->enqueue(nullptr, caf::make_message_id(),
                   caf::make_message(caf::exit_msg{address(), fail_state()}), nullptr);
  }

  /// False if too much is under way.
  bool Take(int64_t bytes) {
    const int64_t messages = messages_.fetch_add(1) + 1, all = bytes_.fetch_add(bytes) + bytes;
    // A single one may be larger. The other process may say nothing of a quarter that it has
    // handled.
    if (messages <= kMostMessages && (all <= kMostBytes || all - bytes < kMostBytes / 4))
      return true;
    GiveBack(1, bytes);
    return false;
  }
  void GiveBack(int64_t messages, int64_t bytes) {
    messages_ -= messages;
    bytes_ -= bytes;
  }

  /// A request of the remote actor is under way to one of this process until the answer `id`.
  void Asked(caf::message_id id, std::shared_ptr<Held> held) {
    std::lock_guard<std::mutex> lock(asked_mutex_);
    asked_[id.integer_value()] = std::move(held);
  }
  /// Before that answer is sent: whoever has it may send as much again.
  void Answered(caf::message_id id);
  /// The request that takes `held` is over, answered or not.
  void Over(caf::message_id id, const std::shared_ptr<Held>& held) noexcept {
    std::lock_guard<std::mutex> lock(asked_mutex_);
    const auto it = asked_.find(id.integer_value());
    if (it != asked_.end() && it->second == held) asked_.erase(it);
  }

 private:
  /// An actor of this process that is linked with this one has ended. The other process is told of
  /// its end (`TellDown`), which no back-pressure refuses.
  bool EndsLink(const caf::type_erased_tuple& content) {
    if (content.type_token() != caf::make_type_token<caf::exit_msg>()) return false;
    const auto source =
        caf::actor_cast<caf::strong_actor_ptr>(content.get_as<caf::exit_msg>(0).source);
    if (source == nullptr || !source->get()->getf(is_terminated_flag)) return false;
    return detach(caf::default_attachable::observe_token{source->get()->address(),
                                                         caf::default_attachable::link}) > 0;
  }

  ActorHost* const host_;
  const uint64_t node_;
  const Count counted_;
  std::atomic<bool> dead_{false};
  std::atomic<int64_t> messages_{0}, bytes_{0};  ///< Under way.
  std::mutex asked_mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Held>> asked_;  ///< By the answer's id.
};

/// What an actor of this process has handled, for the process that sent it. The sender counts what
/// it has not been told to be handled; so that it is not refused for that alone, it is told when
/// this is a quarter of what it may still send.
struct ActorHost::Window {
  ActorHost* host;
  uint64_t node;
  caf::actor_id actor;
  std::atomic<int64_t> messages{0}, bytes{0};            ///< Handled, not told yet.
  std::atomic<int64_t> held_messages{0}, held_bytes{0};  ///< Not handled.
  std::atomic<bool> over{false};  ///< The process is lost, or the actor has ended.

  void Came(int64_t size) noexcept {
    ++held_messages;
    held_bytes += size;
    TellIfDue();
  }
  void Handled(int64_t size) noexcept {
    --held_messages;
    held_bytes -= size;
    ++messages;
    bytes += size;
    TellIfDue();
  }

  void TellIfDue() noexcept {
    if (!IsDue(messages, held_messages, kMostMessages) && !IsDue(bytes, held_bytes, kMostBytes)) {
      return;
    }
    if (over.load(std::memory_order_acquire)) return;
    const int64_t told_messages = messages.exchange(0), told_bytes = bytes.exchange(0);
    const absl::Status told = CatchExceptions([&] {
      host->SendTo(node, Frame(told_messages, told_bytes));
      return absl::OkStatus();
    });
    if (told.ok()) return;
    messages += told_messages;
    bytes += told_bytes;
    host->owes_credits_ = true;
  }

 private:
  std::string Frame(int64_t handled_messages, int64_t handled_bytes) const {
    std::string body = actor_protocol::ForLife(actor_protocol::kCredit, node);
    WireWriter writer(&body);
    writer.Number<uint64_t>(actor);
    writer.Number(handled_messages);
    writer.Number(handled_bytes);
    return body;
  }
  static bool IsDue(int64_t handled, int64_t held, int64_t most) {
    return handled >= std::max<int64_t>(1, (most - held) / 4);
  }
};

/// What a message that has come takes of what may be under way. Thread-safe.
class ActorHost::Held {
 public:
  Held(std::shared_ptr<Window> window, int64_t bytes) : window_(std::move(window)), bytes_(bytes) {
    window_->Came(bytes_);
  }
  ~Held() { Handled(); }

  void Handled() noexcept {
    if (!handled_.exchange(true)) window_->Handled(bytes_);
  }

 private:
  const std::shared_ptr<Window> window_;
  const int64_t bytes_;
  std::atomic<bool> handled_{false};
};

inline void ActorHost::Proxy::Answered(caf::message_id id) {
  std::shared_ptr<Held> held;
  {
    std::lock_guard<std::mutex> lock(asked_mutex_);
    const auto it = asked_.find(id.integer_value());
    if (it == asked_.end()) return;
    held = std::move(it->second);
    asked_.erase(it);
  }
  held->Handled();
}

/// A message that has come; it counts as handled when it is answered or destroyed.
class ActorHost::CountedElement final : public caf::mailbox_element {
 public:
  /// `asks`: the remote actor whose request this is, or null.
  CountedElement(caf::strong_actor_ptr from, caf::message_id id, caf::message content,
                 std::shared_ptr<Held> held, caf::strong_actor_ptr asks)
      : caf::mailbox_element(std::move(from), id, {}),
        content_(std::move(content)),
        held_(std::move(held)),
        asks_(std::move(asks)),
        answer_(id.response_id()) {
    if (asks_ != nullptr) asking().Asked(answer_, held_);
  }
  ~CountedElement() override {
    if (asks_ != nullptr) asking().Over(answer_, held_);
    held_->Handled();
  }

  caf::type_erased_tuple& content() override { return content_; }
  const caf::type_erased_tuple& content() const override { return content_; }
  caf::message move_content_to_message() override { return std::move(content_); }
  caf::message copy_content_to_message() const override { return content_; }

 private:
  Proxy& asking() const { return static_cast<Proxy&>(*asks_->get()); }

  caf::message content_;
  const std::shared_ptr<Held> held_;
  const caf::strong_actor_ptr asks_;  ///< An answer moves the sender out of this.
  const caf::message_id answer_;
};

}  // namespace troupe

#endif  // TROUPE_API_INTERNAL_ACTOR_PROXY_H_
