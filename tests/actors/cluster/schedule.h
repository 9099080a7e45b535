/// Virtual time: what happens when, and every choice, from one seed.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_SCHEDULE_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "actors/cluster/calls.h"

namespace troupe {

/// The events of a simulated cluster, in the order of their times, on one thread. The same seed
/// gives the same events. Also collects what was found to be wrong.
class Schedule {
 public:
  using Event = absl::AnyInvocable<void()>;

  explicit Schedule(uint64_t seed) : random_(seed) {}

  ClusterTime now() const { return now_; }
  void At(ClusterTime when, Event event) {
    events_.push_back({std::max(when, now_), next_number_++, std::move(event)});
    std::push_heap(events_.begin(), events_.end(), Later());
  }
  void After(ClusterTime delay, Event event) { At(now_ + delay, std::move(event)); }
  void RunUntil(ClusterTime until) {
    while (!events_.empty() && events_.front().when <= until) {
      std::pop_heap(events_.begin(), events_.end(), Later());
      Entry entry = std::move(events_.back());
      events_.pop_back();
      now_ = entry.when;
      ++num_events_;
      Mark(entry.number);
      entry.event();
    }
    now_ = until;
  }
  /// What is still to come is dropped, for whoever it refers to is about to go.
  void Clear() { events_.clear(); }

  bool Chance(double probability) {
    return probability > 0 && static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }
  /// Both included.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

  /// With TROUPE_TRACE set, everything that happens is written to the standard error stream.
  bool tracing() const { return tracing_; }
  void Trace(const std::string& what) const {
    if (tracing_) std::fprintf(stderr, "%lld %s\n", static_cast<long long>(now_), what.c_str());
  }
  /// Something that must never happen has happened.
  void Violation(const std::string& what) {
    violations_.push_back("at " + std::to_string(now_) + " us: " + what);
  }
  const std::vector<std::string>& violations() const { return violations_; }
  uint64_t num_events() const { return num_events_; }
  /// Makes `what` part of the fingerprint, which two runs share only if they did the same.
  void Mark(uint64_t what) { print_ = (print_ ^ (what * 31 + now_)) * 1099511628211u; }
  uint64_t fingerprint() const { return print_; }

 private:
  struct Entry {
    ClusterTime when;
    uint64_t number;
    Event event;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.when != b.when ? a.when > b.when : a.number > b.number;
    }
  };

  std::mt19937_64 random_;
  ClusterTime now_ = kSecond;
  uint64_t next_number_ = 1, num_events_ = 0;
  uint64_t print_ = 14695981039346656037u;
  std::vector<Entry> events_;  // A heap.
  std::vector<std::string> violations_;
  const bool tracing_ = std::getenv("TROUPE_TRACE") != nullptr;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_SCHEDULE_H_
