/// What ops on queues, stacks and accumulators share. Each comes in two forms: the older takes a
/// reference to a string as the handle, the newer a resource.
#ifndef TROUPE_GRAPH_OPS_HANDLE_OPS_H_
#define TROUPE_GRAPH_OPS_HANDLE_OPS_H_

#include <string>
#include <utility>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {

inline const char* HandleSpec(bool resource) {
  return resource ? "handle: resource" : "handle: Ref(string)";
}

/// An op whose signature is the handle and then `rest`. Ops on resources are stateful.
inline OpDefBuilder OnHandle(std::string name, bool resource, const char* rest) {
  OpDefBuilder op(std::move(name));
  op.Signature(StrCat(HandleSpec(resource), rest));
  if (resource) op.SetIsStateful();
  return op;
}

/// Output 0 is a handle: by its static shape a vector of 2, as TensorFlow has it.
inline absl::Status HandlePairShape(InferenceContext* c) {
  c->set_output(0, InferenceContext::VectorOf(2));
  return absl::OkStatus();
}

}  // namespace troupe

#endif  // TROUPE_GRAPH_OPS_HANDLE_OPS_H_
