/// Lookup tables: keys with values, shared by steps.
#ifndef TROUPE_KERNELS_TABLES_LOOKUP_TABLE_H_
#define TROUPE_KERNELS_TABLES_LOOKUP_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/queues/waiting_resource.h"
#include "kernels/tables/table_store.h"

namespace troupe {

class LookupTable;

/// What a table is like; fixed for its life.
struct TableOptions {
  using Machine = LookupTable;
  enum class Kind : uint8_t {
    kImmutable,  ///< Initialised once, then read only.
    kMutable,    ///< Values are scalars.
    kOfTensors,  ///< Values are vectors.
    kDense,      ///< Open addressing; keys and values are scalars or vectors.
  };
  Kind kind = Kind::kMutable;
  ElementType key_type = ElementType::kInvalid;    ///< int32, int64, string.
  ElementType value_type = ElementType::kInvalid;  ///< Any.
  Shape key_shape, value_shape;                    ///< Of one key and one value.
  Tensor empty_key;                                ///< Of a dense one: marks buckets, is no key.
  Tensor deleted_key;                              ///< The same; invalid: keys cannot be removed.
  int64_t initial_buckets = 0;                     ///< The same; a power of 2, at least 4.
  float max_load = 0;                              ///< The same: grows beyond it; between 0 and 1.
};

/// A table behind a mailbox. Reading calls are served together, changing ones alone, in the order
/// in which they came; the work itself is done by the player of a call's step, so that readers read
/// in parallel. A table of kind `kImmutable` is read without any call once it has been initialised.
/// Thread-safe.
class LookupTable : public WaitingResource {
 public:
  static constexpr char kKind[] = "lookup table";

  class TableCall : public Call {
   public:
    enum class What : uint8_t { kFind, kExport, kInsert, kRemove, kImport };

    explicit TableCall(LookupTable* table) : Call(table, 0) {}
    ~TableCall() override { GiveBack(); }

    What what = What::kFind;
    /// Inputs of a kernel, which live as long as the call, or `owned`.
    const Tensor* keys = nullptr;
    const Tensor* values = nullptr;  ///< For `kFind` the default value.
    Tuple owned;

   protected:
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    bool reads() const { return what == What::kFind || what == What::kExport; }
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;
    absl::Status Work(KernelContext& ctx);
    void GiveBack();

    bool holds_ = false;  ///< The store is lent to this call.
  };

  /// For `Containers`: what may fail when a table is made.
  static absl::StatusOr<std::unique_ptr<TableStore>> MakeState(const TableOptions& options);
  LookupTable(std::string name, TableOptions options, std::unique_ptr<TableStore> store);
  ~LookupTable() override;

  const TableOptions& options() const { return options_; }
  bool immutable() const { return options_.kind == TableOptions::Kind::kImmutable; }
  std::string DebugString() const override;
  int64_t Size() const;

  // `token`, which may be nullptr and outlives the call, ends its wait.

  /// The values of the keys; where there is none, the default.
  void Find(Tensor keys, Tensor defaults, CancellationToken* token, Done done) {
    Ask(TableCall::What::kFind, {std::move(keys), std::move(defaults)}, 1, token, std::move(done));
  }
  void Insert(Tensor keys, Tensor values, CancellationToken* token, Done done) {
    Ask(TableCall::What::kInsert, {std::move(keys), std::move(values)}, 0, token, std::move(done));
  }
  void Remove(Tensor keys, CancellationToken* token, Done done) {
    Ask(TableCall::What::kRemove, {std::move(keys)}, 0, token, std::move(done));
  }
  /// Replaces what the table holds; an immutable one is initialised.
  void Import(Tensor keys, Tensor values, CancellationToken* token, Done done) {
    Ask(TableCall::What::kImport, {std::move(keys), std::move(values)}, 0, token, std::move(done));
  }
  /// All keys and values.
  void Export(CancellationToken* token, Done done) {
    Ask(TableCall::What::kExport, {}, 2, token, std::move(done));
  }

  // Of immutable tables, without any call:

  /// FailedPrecondition if it has not been initialised.
  absl::Status FindNow(KernelContext& ctx, const Tensor& keys, const Tensor& defaults) const;
  /// InvalidArgument if the keys and values, vectors of the table's types, do not fit, or are none;
  /// FailedPrecondition if one key has two values, or the table has been initialised with others.
  absl::Status Initialize(const Tensor& keys, const Tensor& values);
  /// The same with what a store holds, which was made for the table's options.
  absl::Status Initialize(std::unique_ptr<TableStore> store);

  /// InvalidArgument if the types are not the table's. kInvalid: not asked for.
  absl::Status CheckTypes(ElementType keys, ElementType values) const;

 private:
  void Ask(TableCall::What what, Tuple tensors, int outputs, CancellationToken* token, Done done);
  absl::Status CheckFind(const Tensor& keys, const Tensor& defaults) const;
  absl::Status CheckEntries(const Tensor& keys, const Tensor& values, bool import) const;
  absl::Status CheckKeyShape(const Shape& keys) const;
  absl::StatusOr<Shape> ValuesShape(const Shape& keys) const;
  absl::Status FindIn(const TableStore& store, KernelContext& ctx, const Tensor& keys,
                      const Tensor& defaults) const;
  /// False: the one who gives the store back will have the calls looked at again.
  bool Lend(bool to_reader);
  void GiveBack(bool reader);

  const TableOptions options_;
  std::unique_ptr<TableStore>
      store_;  ///< Of whoever it is lent to. Of an immutable one, see below.
  /// The immutable store, once there is one; then it stays.
  std::atomic<const TableStore*> initialized_{nullptr};
  std::atomic<int64_t> size_{0};  ///< Of `store_`, for those it is not lent to.
  /// Readers that `store_` is lent to, or `kChanging`; and `kAwaited` if a call waits for it.
  std::atomic<int64_t> lent_{0};
  static constexpr int64_t kAwaited = int64_t{1} << 62, kChanging = int64_t{1} << 61;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_TABLES_LOOKUP_TABLE_H_
