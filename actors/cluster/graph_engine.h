/// Holds the graphs of a master's sessions; places, cuts and packs their signatures.
#ifndef TROUPE_ACTORS_CLUSTER_GRAPH_ENGINE_H_
#define TROUPE_ACTORS_CLUSTER_GRAPH_ENGINE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/cluster/engine.h"
#include "graph/graph.h"

namespace troupe {

/// The master's engine. Work is done by threads of the actor system. Thread-safe. Must outlive its
/// host's jobs.
class GraphEngine final : public MasterEngine {
 public:
  explicit GraphEngine(EngineHost* host) : host_(host) {}
  ~GraphEngine() override;

  void CreateGraph(const std::string& session, cluster::CreateSessionRequest request,
                   Done done) override;
  void ExtendGraph(const std::string& session, cluster::ExtendSessionRequest request,
                   Done done) override;
  void DeleteGraph(const std::string& session) override;
  void Build(const std::string& session, cluster::Signature signature,
             std::vector<cluster::DeviceInfo> devices, BuildDone done) override;
  void Learn(const std::string& session, const cluster::RunGraphReply& reply) override;

  size_t num_sessions();

 private:
  struct SessionGraph;

  std::shared_ptr<SessionGraph> Find(const std::string& session);
  void Extend(std::shared_ptr<SessionGraph> session, std::string graph, Done done);
  static absl::StatusOr<BuiltStep> Cut(SessionGraph* session, const cluster::Signature& names,
                                       const std::vector<cluster::DeviceInfo>& devices);

  EngineHost* const host_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SessionGraph>> sessions_;
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_CLUSTER_GRAPH_ENGINE_H_
