/// What the functions of input pipelines share: nodes of queues, and checks.
#ifndef TROUPE_API_INPUT_QUEUES_H_
#define TROUPE_API_INPUT_QUEUES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/input.h"
#include "api/internal/flow_context.h"
#include "api/scope.h"
#include "devices/status_macros.h"

namespace troupe::input {

/// What a node is given, as a constant that is called after the node.
Output Given(const Scope& scope, std::string_view name, const Input& input);
/// What a queue is called after TensorFlow's custom: the last part of its name, and what is done.
std::string NameAt(const Output& queue, std::string_view suffix);

Node* Enqueue(const Scope& scope, const Output& queue, absl::Span<const Output> tensors, bool many);
Output QueueSize(const Scope& scope, const Output& queue);
/// A batch of `n` elements whose node has the name of the scope.
OutputList TakeBatch(const Scope& own, const Output& queue, const Input& n, bool up_to);
/// Does `work` if `keep` says so.
Node* If(const Scope& scope, const Output& keep, const std::function<Node*(const Scope&)>& work);

/// Shows which part of `all` the int32 scalar `elements` is.
void SummarizeFullness(const Scope& scope, std::string_view name, const Output& elements,
                       int64_t all);
std::string FullnessName(int64_t capacity);

/// A queue belongs to no branch and waits for nobody, wherever it is made.
Scope ForQueue(const Scope& scope, std::string_view name);
/// The seeds of a queue that others may know under `shared_name`: TensorFlow's rule, so that all of
/// them ask for the same.
OpSeed QueueSeed(const Scope& scope, std::optional<int64_t> seed, const std::string& shared_name);

template <typename... Text>
void Refuse(const Scope& own, const Text&... text) {
  own.UpdateStatus(InvalidArgument(NameOf(own), ": ", text...));
}
/// The tensors, unless one is missing.
std::vector<Output> TensorsOf(const Scope& own, const InputList& list);
std::vector<ElementType> TypesOf(absl::Span<const Output> tensors);
/// `shape` without its first dimension, if it has one.
absl::StatusOr<PartialShape> RowShape(const PartialShape& shape);
/// What a queue can hold of each component of the lists: what is known of all of them, or `given`.
absl::StatusOr<std::vector<PartialShape>> ElementShapes(
    const std::vector<std::vector<Output>>& lists, const std::vector<PartialShape>& given,
    bool enqueue_many, bool padded);

}  // namespace troupe::input

#endif  // TROUPE_API_INPUT_QUEUES_H_
