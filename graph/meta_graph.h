/// MetaGraphs: graphs with what is needed to go on with them. TensorFlow's format, both ways:
///
///     MetaGraphDef def;
///     absl::Status status = ExportMetaGraph(*graph, {}, &def);  // or WriteMetaGraph to a file
///     absl::StatusOr<ImportedMetaGraph> imported = ImportMetaGraph(def, {}, other_graph.get());
///
/// Collections go along. Those of variables, queue runners, savers and control flow contexts are
/// messages there, whose names are put under the scope; in a `Graph`, the first are names of the
/// variables' nodes, the others serialized messages.
#ifndef TROUPE_GRAPH_META_GRAPH_H_
#define TROUPE_GRAPH_META_GRAPH_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "graph/graph.h"
#include "graph/protos/meta_graph.pb.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// What is exported, and how. A value.
struct ExportMetaGraphOptions {
  /// Only what is under this name scope; the scope is taken off all names. Inputs from elsewhere
  /// are called `$unbound_inputs_NAME` and listed in the collection "unbound_inputs": who imports
  /// maps them.
  std::string export_scope;
  bool clear_devices = false;
  /// Leaves out attributes that have their default values, so that older readers, which lack new
  /// ones, read the graph.
  bool strip_default_attrs = false;
  /// Of savers, only `saver_def` is kept: others' nodes are left out, those in the scope of a node
  /// that saves or restores, and the collection "savers" holds no others.
  bool clear_extraneous_savers = false;
  /// What the graph is for: {"serve"}.
  std::vector<std::string> tags;
  /// How the graph saves and restores.
  std::optional<SaverDef> saver_def;
  /// How it is called, by name; tensors have their names in `graph`. The scope is taken off those,
  /// too.
  std::map<std::string, SignatureDef> signatures;
  /// The collections that go along; all if absent.
  std::optional<std::vector<std::string>> collections;
};

/// Writes a graph down. FailedPrecondition: a collection names what is not in the graph, or holds
/// what is not of its kind; the message names the collection and the value.
absl::Status ExportMetaGraph(const Graph& graph, const ExportMetaGraphOptions& options,
                             MetaGraphDef* def);
/// The same into a file, which is replaced as a whole; as text if its name ends in `txt`. The
/// file's errors too.
absl::Status WriteMetaGraph(const Graph& graph, const ExportMetaGraphOptions& options,
                            const std::string& file);

/// How a MetaGraph is added to a graph. A value.
struct ImportMetaGraphOptions {
  /// Put before every name, with '/'. If the graph has that scope already, a number is added.
  std::string import_scope;
  bool clear_devices = false;
  /// "node:port" of the MetaGraph, `$unbound_inputs_NAME` among them, to a tensor of the graph.
  std::map<std::string, Output> input_map;
  /// Whether a collection comes along; empty: all do.
  std::function<bool(std::string_view key)> restore_collection;
};

/// What an import gave, beside nodes and collections. A value.
struct ImportedMetaGraph {
  std::string scope;                  ///< Where the nodes are: "" or "scope".
  std::optional<SaverDef> saver_def;  ///< Its names are the graph's.
  /// Their names are the graph's.
  std::map<std::string, SignatureDef> signatures;
};

/// Adds nodes and collections to `graph`, all or nothing. Codes: those of `ImportGraphDef`;
/// InvalidArgument: inputs that are unbound and not mapped, collections and savers that name what
/// is not there, or that are damaged.
absl::StatusOr<ImportedMetaGraph> ImportMetaGraph(const MetaGraphDef& def,
                                                  const ImportMetaGraphOptions& options,
                                                  Graph* graph);

/// Parses bytes in binary or text form (told by the content). InvalidArgument: it is none, or has
/// no graph.
absl::Status ParseMetaGraph(std::string_view bytes, MetaGraphDef* def);
/// The same from a file. NotFound; errors name the file.
absl::Status ReadMetaGraph(const std::string& file, MetaGraphDef* def);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_META_GRAPH_H_
