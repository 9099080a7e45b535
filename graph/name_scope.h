/// Names of nodes and tensors put under a scope, and taken out of one: in messages whose strings
/// are all names.
#ifndef TROUPE_GRAPH_NAME_SCOPE_H_
#define TROUPE_GRAPH_NAME_SCOPE_H_

#include <google/protobuf/message.h>

#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace troupe {

class SignatureDef;

/// "scope/a", "^scope/a", "loc:@scope/a" for "a", "^a", "loc:@a". As it is if `scope` is empty.
std::string InScope(std::string_view scope, std::string_view name);
/// True for "scope/a", "^scope/a:1" and "loc:@scope/a"; for all names if `scope` is empty.
bool IsInScope(std::string_view scope, std::string_view name);
/// The reverse of `InScope`. A name that is not in the scope stays as it is.
std::string OutOfScope(std::string_view scope, std::string_view name);

/// Puts `rename(name)` in place of every string of a message, also in those that it holds.
void RenameAll(google::protobuf::Message* message,
               absl::FunctionRef<std::string(const std::string&)> rename);

/// Puts `rename(name)` in place of the names of tensors.
void RenameTensors(SignatureDef* signature,
                   absl::FunctionRef<std::string(const std::string&)> rename);

/// An empty message of which the collection `key` holds serialized ones, all strings of which are
/// names; null if the collection holds anything else. Those of variables are VariableDefs.
std::unique_ptr<google::protobuf::Message> NewCollectionMessage(std::string_view key);
/// True if a graph's collection holds variables: names of their nodes in a graph, VariableDefs in a
/// MetaGraph.
bool IsVariableCollection(std::string_view key);

}  // namespace troupe

#endif  // TROUPE_GRAPH_NAME_SCOPE_H_
