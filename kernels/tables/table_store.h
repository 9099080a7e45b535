/// What a lookup table holds: keys and their values, without any synchronisation.
#ifndef TROUPE_KERNELS_TABLES_TABLE_STORE_H_
#define TROUPE_KERNELS_TABLES_TABLE_STORE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

struct TableOptions;

/// Keys with one value each. The tensors that it is given have the types of the table and shapes
/// that fit, which `LookupTable` sees to. Thread-compatible: any number of threads may read.
class TableStore {
 public:
  virtual ~TableStore() = default;

  virtual int64_t size() const = 0;

  /// Writes the value of each key into `values`, or the default where there is none: that is one
  /// value, or as many as there are keys (`defaults_per_key`). On several threads if there are many
  /// keys.
  virtual absl::Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& defaults,
                            bool defaults_per_key, Tensor* values) const = 0;
  /// Of a key that comes several times the last value counts.
  virtual absl::Status Insert(const Tensor& keys, const Tensor& values) = 0;
  /// The same, but a key that is there already, with another value, is FailedPrecondition, and what
  /// was inserted before it stays; `*wrong` is its index.
  virtual absl::Status InsertNew(const Tensor& keys, const Tensor& values, int64_t* wrong) = 0;
  /// Keys that are not there do no harm.
  virtual absl::Status Remove(const Tensor& keys) = 0;
  /// Replaces all that is held.
  virtual absl::Status Import(const Tensor& keys, const Tensor& values) = 0;
  /// Keys and values, in any order.
  virtual absl::StatusOr<std::pair<Tensor, Tensor>> Export() const = 0;
  /// Makes room for so many keys.
  virtual void Reserve(int64_t keys) = 0;
  /// The same keys with the same values; `other` is a store of the same kind and types.
  virtual bool SameAs(const TableStore& other) const = 0;
};

/// A store for what the options say. InvalidArgument if they cannot be met, ResourceExhausted if
/// there is no memory.
absl::StatusOr<std::unique_ptr<TableStore>> MakeTableStore(const TableOptions& options);

// The kinds, for `MakeTableStore`.
std::unique_ptr<TableStore> MakeScalarStore(ElementType key_type, ElementType value_type);
std::unique_ptr<TableStore> MakeRowStore(ElementType key_type, ElementType value_type, int64_t row);
absl::StatusOr<std::unique_ptr<TableStore>> MakeDenseStore(const TableOptions& options);

}  // namespace troupe

#endif  // TROUPE_KERNELS_TABLES_TABLE_STORE_H_
