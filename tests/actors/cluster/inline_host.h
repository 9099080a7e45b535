/// What engines need of a node, without one.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_INLINE_HOST_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_INLINE_HOST_H_

#include <string>

#include "actors/cluster/engine.h"

namespace troupe {

/// Does everything at once, and sends nothing.
class InlineHost : public EngineHost {
 public:
  bool has_threads() const override { return false; }
  void Post(std::function<void()> job) override { job(); }
  void Defer(std::function<void()> job) override { job(); }
  void Enter(absl::FunctionRef<void()> event) override { event(); }
  void Together(absl::FunctionRef<void()> job) override { job(); }
  void SendTensor(const std::string&, uint64_t, uint64_t, uint64_t, bool, Tensor) override {}
};

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_INLINE_HOST_H_
