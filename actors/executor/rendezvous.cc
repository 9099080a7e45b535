#include "actors/executor/rendezvous.h"

#include <utility>

#include "devices/status_macros.h"

namespace troupe {

uint64_t RendezvousKey(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a: the same on every machine.
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

void Rendezvous::Receive(const RendezvousEdge& edge, uint64_t tag, ReceiveDone* done) {
  Tensor value;
  bool dead = false;
  absl::Status status;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    status = aborted_;
    if (status.ok()) {
      auto [it, first] = entries_.try_emplace(Place{edge.key, tag});
      if (first) {
        it->second.waiting = done;
        return;
      }
      if (!it->second.has_value) {
        status = absl::InternalError(StrCat("two wait for the value of edge ", edge.name));
      } else {
        value = std::move(it->second.value);
        dead = it->second.dead;
        entries_.erase(it);
      }
    }
  }
  done->Received(std::move(status), std::move(value), dead, Player::kPlays);
}

void Rendezvous::Deliver(uint64_t key, uint64_t tag, Tensor value, bool dead, Player player) {
  ReceiveDone* done = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!aborted_.ok()) return;
    auto [it, first] = entries_.try_emplace(Place{key, tag});
    if (first) {
      it->second.has_value = true;
      it->second.value = std::move(value);
      it->second.dead = dead;
      return;
    }
    if (it->second.has_value) return;  // Sent twice: the first one counts.
    done = it->second.waiting;
    entries_.erase(it);
  }
  done->Received(absl::OkStatus(), std::move(value), dead, player);
}

void Rendezvous::Abort(const absl::Status& status) noexcept {
  std::unordered_map<Place, Entry, HashPlace> dropped;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_.ok()) aborted_ = status;
    dropped.swap(entries_);
  }
  for (auto& [place, entry] : dropped) {
    if (entry.waiting == nullptr) continue;
    entry.waiting->Received(status, Tensor(), false, Player::kHandsOn);
  }
}

void Rendezvous::SendRemote(const RendezvousEdge& edge, uint64_t, Tensor, bool) {
  Abort(absl::InternalError(
      StrCat("edge ", edge.name, " leads to another process, ", edge.recv_device)));
}

}  // namespace troupe
