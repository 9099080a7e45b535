/// Steps that meet: critical sections, barriers, staging areas. What they wait for holds no thread,
/// and a step that is cancelled, or whose time is over, waits no longer.
#ifndef TROUPE_API_SYNCHRONIZATION_H_
#define TROUPE_API_SYNCHRONIZATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A mutex around parts of steps (TensorFlow's `tf.CriticalSection`): while one of them runs, the
/// others wait for their turn.
///
///     CriticalSection section(s);
///     std::vector<Output> sum = section.Execute(s, [&](const Scope& locked) {
///       return std::vector<Output>{counter.Read(locked)};  // Nodes of `locked` hold the mutex.
///     });
///
/// Sections do not nest: one that is entered again inside waits for itself, until the step's
/// deadline. Refers to nodes of a graph; copies refer to the same mutex.
class CriticalSection {
 public:
  struct Options {
    std::string name = "critical_section";
    std::string shared_name;  ///< "": the node's name, by which sessions share it.
  };

  CriticalSection() = default;
  explicit CriticalSection(const Scope& scope) : CriticalSection(scope, Options()) {}
  CriticalSection(const Scope& scope, Options options);

  /// The outputs of `body`, once the mutex has been given back: after all that it gives has been
  /// computed. What it adds it must add to the scope that it gets.
  std::vector<Output> Execute(
      const Scope& scope,
      const std::function<std::vector<Output>(const Scope& locked)>& body) const;
  /// The same for nodes without outputs; the node that gives the mutex back.
  Node* ExecuteNodes(const Scope& scope,
                     const std::function<std::vector<Node*>(const Scope& locked)>& body) const;
  Output handle() const { return handle_; }

 private:
  Output handle_;
};

/// Collects tuples whose components are computed by different steps: the components of a tuple have
/// a key, and the tuple can be taken once it has them all (TensorFlow's `tf.Barrier`).
class Barrier {
 public:
  struct Options {
    std::string name = "barrier";
    std::string shared_name;  ///< "": the node's name.
  };
  struct Batch {
    Output indices;     ///< [n] int64: when the keys came, in relation to others.
    Output keys;        ///< [n] strings.
    OutputList values;  ///< [n, component...]
  };

  Barrier() = default;
  /// Components of these types and shapes, which must be known.
  Barrier(const Scope& scope, const std::vector<ElementType>& types,
          const std::vector<Shape>& shapes, Options options);
  Barrier(const Scope& scope, const std::vector<ElementType>& types,
          const std::vector<Shape>& shapes)
      : Barrier(scope, types, shapes, Options()) {}

  /// A vector of keys, and a row of `values` for each. InvalidArgument if a key has a value there
  /// already; Cancelled if the barrier is closed to it.
  Node* InsertMany(const Scope& scope, int64_t component_index, const Input& keys,
                   const Input& values) const;
  /// `n` complete tuples; of a closed barrier also fewer, but one at least, if `allow_small_batch`,
  /// else OutOfRange.
  Batch TakeMany(const Scope& scope, const Input& n, bool allow_small_batch = false) const;
  /// Takes no new keys; with `cancel_pending_enqueues` no values either.
  Node* Close(const Scope& scope, bool cancel_pending_enqueues = false) const;
  /// Complete and incomplete tuples, int32.
  Output ReadySize(const Scope& scope) const;
  Output IncompleteSize(const Scope& scope) const;
  Output handle() const { return handle_; }

 private:
  std::vector<ElementType> types_;
  Output handle_;
};

/// What limits a staging area. A value.
struct StagingLimits {
  int64_t capacity = 0;      ///< Tuples; 0: any number.
  int64_t memory_limit = 0;  ///< Bytes of their tensors; 0: any number.
  std::string shared_name;   ///< "": a name that is unique in the graph.
};

/// Tuples that one step leaves for another one, first in, first out (TensorFlow's `StagingArea`):
/// mostly to bring the next batch to where it is needed while the last one is worked on.
class StagingArea {
 public:
  StagingArea() = default;
  StagingArea(const Scope& scope, std::vector<ElementType> types, StagingLimits limits = {});

  /// Waits while the area is full.
  Node* Put(const Scope& scope, const InputList& values) const;
  /// The first tuple; waits while there is none.
  OutputList Get(const Scope& scope) const;
  /// The tuple that has `index` before it; it stays.
  OutputList Peek(const Scope& scope, const Input& index) const;
  Output Size(const Scope& scope) const;
  Node* Clear(const Scope& scope) const;

 private:
  std::vector<ElementType> types_;
  StagingLimits limits_;
};

/// The same with tuples under keys, put in and taken out whole or by parts.
class MapStagingArea {
 public:
  struct KeyAndValues {
    Output key;
    OutputList values;
  };

  MapStagingArea() = default;
  /// `ordered`: `GetAny` gives the smallest key first.
  MapStagingArea(const Scope& scope, std::vector<ElementType> types, bool ordered = false,
                 StagingLimits limits = {});

  // `indices` of components, increasing; none: all of them.

  /// Waits while the area is full. InvalidArgument if the key is there.
  Node* Put(const Scope& scope, const Input& key, const InputList& values,
            const std::vector<int32_t>& indices = {}) const;
  /// Waits until the key's tuple is complete. What has been taken of it is gone.
  OutputList Get(const Scope& scope, const Input& key,
                 const std::vector<int32_t>& indices = {}) const;
  KeyAndValues GetAny(const Scope& scope, const std::vector<int32_t>& indices = {}) const;
  OutputList Peek(const Scope& scope, const Input& key,
                  const std::vector<int32_t>& indices = {}) const;
  Output Size(const Scope& scope) const;
  Output IncompleteSize(const Scope& scope) const;
  Node* Clear(const Scope& scope) const;

 private:
  /// Those that are asked for, as a constant, and their types.
  std::vector<ElementType> TypesOf(const Scope& scope, std::vector<int32_t>* indices) const;

  std::vector<ElementType> types_;
  bool ordered_ = false;
  StagingLimits limits_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_SYNCHRONIZATION_H_
