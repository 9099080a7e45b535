#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "api/cli/cli.h"
#include "api/freeze.h"
#include "api/saved_model.h"
#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe::cli {
namespace {

/// The tensors that are kept: what is asked for, else the outputs of the signature, or of all if
/// there is none by default.
absl::StatusOr<std::vector<std::string>> Outputs(const Options& options,
                                                 const SavedModelBundle& model) {
  std::string wanted = options.signature;
  if (!wanted.empty()) {
    TROUPE_RETURN_IF_ERROR(model.Signature(wanted).status());
  } else if (model.Signature(saved_model::kDefaultSignature).ok()) {
    wanted = saved_model::kDefaultSignature;
  }
  std::map<std::string, std::string> names;
  std::vector<std::string> outputs;
  for (const auto& [name, signature] : model.meta_graph.signature_def()) {
    if (!wanted.empty() ? name != wanted : saved_model::IsInternal(name)) continue;
    for (const SignatureTensor& output : SignatureTensors(signature.outputs())) {
      names[output.name] = output.tensor;
      outputs.push_back(output.tensor);
    }
  }
  if (!options.fetch_texts.empty()) {
    outputs.clear();
    for (const std::string& name : options.fetch_texts) {
      const auto found = names.find(name);
      outputs.push_back(found == names.end() ? name : found->second);
    }
  }
  if (outputs.empty()) throw UsageError{"the model has no signatures: give a --fetch"};
  std::sort(outputs.begin(), outputs.end());
  outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
  return outputs;
}

}  // namespace

absl::StatusOr<int> FreezeCommand(const Options& options) {
  TROUPE_RETURN_IF_ERROR(TryFile("", options.out_file));
  LoadSavedModelOptions load;
  load.session.allow_soft_placement = true;
  TROUPE_ASSIGN_OR_RETURN(const SavedModelBundle model,
                          LoadSavedModel(options.graph, TagsOf(options), load));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> outputs, Outputs(options, model));
  TROUPE_ASSIGN_OR_RETURN(const GraphDef frozen, FreezeGraph(*model.session, outputs));
  TROUPE_RETURN_IF_ERROR(WriteGraphDef(frozen, options.out_file));
  std::cout << options.out_file << ": " << frozen.node_size() << " nodes, outputs";
  for (const std::string& output : outputs) std::cout << " " << output;
  std::cout << "\n";
  for (const NodeDef& node : frozen.node()) {
    if (node.op().find("HashTable") == std::string::npos) continue;
    std::cout << "table without its contents: " << node.name() << "\n";
  }
  return 0;
}

}  // namespace troupe::cli
