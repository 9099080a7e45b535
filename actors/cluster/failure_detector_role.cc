#include "actors/cluster/failure_detector_role.h"

#include <algorithm>

namespace troupe {

namespace {
constexpr size_t kLivesRemembered = 64;
}

void FailureDetectorRole::Add(PeerId peer, ClusterTime now) {
  Peer& added = peers_[peer];
  added.heard = now;
  added.next_ping = now;
}

std::vector<FailureDetectorRole::Event> FailureDetectorRole::Heard(PeerId peer,
                                                                   uint64_t incarnation,
                                                                   ClusterTime now) {
  std::vector<Event> events;
  auto it = peers_.find(peer);
  if (it == peers_.end() || IsEarlierLife(peer, incarnation)) return events;
  Peer& known = it->second;
  const bool new_life = known.incarnation != incarnation;
  const bool was_up = known.health == Health::kAlive || known.health == Health::kSuspected;
  if (new_life && known.incarnation != 0) {
    if (was_up) events.push_back({peer, Change::kLost, known.incarnation});
    std::erase(known.earlier, incarnation);
    known.earlier.push_back(known.incarnation);
    if (known.earlier.size() > kLivesRemembered) known.earlier.erase(known.earlier.begin());
  }
  known.incarnation = incarnation;
  known.heard = now;
  known.health = Health::kAlive;
  if (new_life || !was_up) events.push_back({peer, Change::kUp, incarnation});
  return events;
}

std::vector<FailureDetectorRole::Event> FailureDetectorRole::LinkDown(PeerId peer,
                                                                      ClusterTime now) {
  std::vector<Event> events;
  auto it = peers_.find(peer);
  if (it == peers_.end()) return events;
  Peer& known = it->second;
  if (known.health == Health::kAlive || known.health == Health::kSuspected) {
    known.health = Health::kLost;
    events.push_back({peer, Change::kLost, known.incarnation});
  }
  known.next_ping = std::min(known.next_ping, now + options_.interval / 4);
  return events;
}

std::vector<FailureDetectorRole::Event> FailureDetectorRole::Tick(ClusterTime now) {
  std::vector<Event> events;
  // Whoever stood still heard nothing, and can blame nobody for it.
  const ClusterTime gap = now - last_tick_;
  if (last_tick_ != 0 && gap > 2 * options_.interval) {
    for (auto& [id, peer] : peers_) peer.heard += gap;
  }
  last_tick_ = now;
  for (auto& [id, peer] : peers_) {
    const ClusterTime silent = now - peer.heard;
    const bool up = peer.health == Health::kAlive || peer.health == Health::kSuspected;
    if (up && silent >= options_.timeout) {
      peer.health = Health::kLost;
      events.push_back({id, Change::kLost, peer.incarnation});
    } else if (peer.health == Health::kAlive && silent >= options_.interval * 5 / 2) {
      peer.health = Health::kSuspected;
      events.push_back({id, Change::kSuspected, peer.incarnation});
    }
    if (now >= peer.next_ping) {
      // One that has not come yet is asked more often, so that a cluster is up soon.
      peer.next_ping = now + (up ? options_.interval : options_.interval / 4);
      events.push_back({id, Change::kPing, peer.incarnation});
    }
  }
  return events;
}

FailureDetectorRole::Health FailureDetectorRole::health(PeerId peer) const {
  auto it = peers_.find(peer);
  return it == peers_.end() ? Health::kUnknown : it->second.health;
}

uint64_t FailureDetectorRole::incarnation(PeerId peer) const {
  auto it = peers_.find(peer);
  return it == peers_.end() ? 0 : it->second.incarnation;
}

bool FailureDetectorRole::IsEarlierLife(PeerId peer, uint64_t incarnation) const {
  auto it = peers_.find(peer);
  if (it == peers_.end()) return false;
  // While the life that is thought to be the present one is not heard, that may have been a
  // mistake: a message that was overtaken looks like a new life.
  if (it->second.health == Health::kLost) return false;
  const auto& earlier = it->second.earlier;
  return std::find(earlier.begin(), earlier.end(), incarnation) != earlier.end();
}

}  // namespace troupe
