#include "api/cli/cli.h"
#include "api/saved_model.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe::cli {

std::vector<std::string> TagsOf(const Options& options) {
  return options.tags.empty() ? std::vector<std::string>{saved_model::kServe} : options.tags;
}

void CheckModelOptions(const Options& options, bool is_model) {
  if (is_model) return;
  if (!options.signature.empty()) throw UsageError{"--signature goes with a SavedModel's folder"};
  if (!options.tags.empty()) throw UsageError{"--tag goes with a SavedModel's folder"};
}

absl::Status ReadGraphOf(const Options& options, GraphDef* def, MetaGraphDef* meta_graph) {
  const bool is_model = IsSavedModel(options.graph);
  CheckModelOptions(options, is_model);
  if (!is_model) return ReadGraphDef(options.graph, def);
  TROUPE_ASSIGN_OR_RETURN(SavedModel model, ReadSavedModel(options.graph));
  TROUPE_ASSIGN_OR_RETURN(*meta_graph, TakeMetaGraph(std::move(model), TagsOf(options)));
  def->Swap(meta_graph->mutable_graph_def());
  meta_graph->clear_graph_def();
  return absl::OkStatus();
}

}  // namespace troupe::cli
