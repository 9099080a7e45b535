// Dense tables: open addressing in two tensors, which are what is exported. Two keys are set apart:
// one marks buckets that are empty, one those from which a key was removed.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "devices/status_macros.h"
#include "kernels/common/strided_copy.h"
#include "kernels/tables/dense_hash.h"
#include "kernels/tables/key_map.h"
#include "kernels/tables/lookup_table.h"
#include "kernels/tables/table_store.h"

namespace troupe {
namespace {

constexpr int64_t kMinBuckets = 4;

template <typename K>
class DenseStore final : public TableStore {
 public:
  explicit DenseStore(const TableOptions& options)
      : options_(options),
        key_size_(options.key_shape.num_elements()),
        row_(options.value_shape.num_elements()),
        row_bytes_(static_cast<size_t>(row_) * ElementSize(options.value_type)),
        plain_(IsPlain(options.value_type)) {}

  /// Empties it.
  absl::Status Allocate(int64_t buckets) {
    TROUPE_RETURN_IF_ERROR(CheckMemory(buckets));
    TROUPE_ASSIGN_OR_RETURN(const Shape keys, Shape::Create({buckets, key_size_}));
    TROUPE_ASSIGN_OR_RETURN(const Shape values, Shape::Create({buckets, row_}));
    TROUPE_ASSIGN_OR_RETURN(Tensor key_buckets, Tensor::Allocate(options_.key_type, keys));
    TROUPE_ASSIGN_OR_RETURN(Tensor value_buckets, Tensor::Allocate(options_.value_type, values));
    K* key = key_buckets.mutable_data<K>();
    for (int64_t i = 0; i < buckets; ++i) key = std::copy_n(Empty(), key_size_, key);
    if (plain_ && value_buckets.bytes() > 0) {
      std::memset(value_buckets.mutable_raw_data(), 0, value_buckets.bytes());
    }
    keys_ = std::move(key_buckets);
    values_ = std::move(value_buckets);
    used_ = removed_ = 0;
    return absl::OkStatus();
  }

  int64_t size() const override { return used_; }

  absl::Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& defaults,
                    bool defaults_per_key, Tensor* values) const override {
    const K* key = keys.unchecked_data<K>();
    const int64_t count = keys.num_elements() / std::max<int64_t>(1, key_size_);
    TROUPE_RETURN_IF_ERROR(CheckKeys(key, count));
    constexpr int64_t kAhead = 16;
    const auto prefetch = [&](int64_t i) {
      const auto at = static_cast<int64_t>(DenseHash(key + i * key_size_, key_size_)) & mask();
      __builtin_prefetch(Key(at));
      __builtin_prefetch(Value(values_, at));
    };
    ctx.ParallelFor(count, KernelContext::GrainFor(50.0), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < std::min(begin + kAhead, end); ++i) prefetch(i);
      for (int64_t i = begin; i < end; ++i) {
        if (i + kAhead < end) prefetch(i + kAhead);
        const int64_t at = Look(key + i * key_size_);
        CopyRow(ElementAt(options_.value_type, values->mutable_raw_data(), i * row_),
                at >= 0 ? Value(values_, at) : Value(defaults, defaults_per_key ? i : 0));
      }
    });
    return absl::OkStatus();
  }

  absl::Status Insert(const Tensor& keys, const Tensor& values) override {
    const K* key = keys.unchecked_data<K>();
    const int64_t count = keys.num_elements() / std::max<int64_t>(1, key_size_);
    TROUPE_RETURN_IF_ERROR(CheckKeys(key, count));
    TROUPE_RETURN_IF_ERROR(MakeRoom(count));
    TROUPE_RETURN_IF_ERROR(MakeOwn());
    for (int64_t i = 0; i < count; ++i) Put(key + i * key_size_, Value(values, i));
    return absl::OkStatus();
  }

  absl::Status InsertNew(const Tensor&, const Tensor&, int64_t*) override {
    return absl::UnimplementedError("a dense table cannot be initialized");
  }

  absl::Status Remove(const Tensor& keys) override {
    if (!removes()) {
      return absl::UnimplementedError("a dense table without deleted_key cannot remove keys");
    }
    const K* key = keys.unchecked_data<K>();
    const int64_t count = keys.num_elements() / std::max<int64_t>(1, key_size_);
    TROUPE_RETURN_IF_ERROR(CheckKeys(key, count));
    TROUPE_RETURN_IF_ERROR(MakeOwn());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = Look(key + i * key_size_);
      if (at < 0) continue;
      std::copy_n(Deleted(), key_size_, MutableKey(at));
      --used_;
      ++removed_;
    }
    return absl::OkStatus();
  }

  /// The buckets of another dense table. Where a key lies in them is not taken on trust.
  absl::Status Import(const Tensor& keys, const Tensor& values) override {
    DenseStore imported(options_);
    const int64_t buckets = keys.dim(0);
    imported.keys_ = keys;
    imported.values_ = values;
    bool found = buckets >= kMinBuckets && (buckets & (buckets - 1)) == 0;
    for (int64_t at = 0; at < buckets; ++at) {
      const K* key = imported.Key(at);
      imported.used_ += !Same(key, Empty()) && !IsDeleted(key);
      imported.removed_ += IsDeleted(key);
    }
    found = found && imported.used_ + imported.removed_ < buckets;
    for (int64_t at = 0; found && at < buckets; ++at) {
      const K* key = imported.Key(at);
      if (!Same(key, Empty()) && !IsDeleted(key)) found = imported.Look(key) == at;
    }
    if (!found) {
      TROUPE_RETURN_IF_ERROR(imported.Rebuild(kMinBuckets, imported.used_));
    }
    keys_ = std::move(imported.keys_);
    values_ = std::move(imported.values_);
    used_ = imported.used_;
    removed_ = imported.removed_;
    return absl::OkStatus();
  }

  absl::StatusOr<std::pair<Tensor, Tensor>> Export() const override {
    return std::pair(keys_, values_);
  }

  void Reserve(int64_t) override {}
  /// Only tables that are initialised are compared.
  bool SameAs(const TableStore&) const override { return false; }

 private:
  /// Buckets are filled at once: what the machine does not have must not be asked for.
  absl::Status CheckMemory(int64_t buckets) const {
    const double bytes =
        static_cast<double>(buckets) *
        (static_cast<double>(key_size_) * sizeof(K) + static_cast<double>(row_bytes_));
    const double memory =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
    if (bytes <= memory / 2) return absl::OkStatus();
    return absl::ResourceExhaustedError(StrCat(buckets, " buckets of a dense table take ", bytes,
                                               " bytes, more than half of the machine's ", memory));
  }
  int64_t buckets() const { return keys_.dim(0); }
  int64_t mask() const { return buckets() - 1; }
  const K* Empty() const { return options_.empty_key.unchecked_data<K>(); }
  /// There is such a key.
  bool removes() const { return options_.deleted_key.valid(); }
  const K* Deleted() const { return options_.deleted_key.unchecked_data<K>(); }
  bool IsDeleted(const K* key) const { return removes() && Same(key, Deleted()); }
  const K* Key(int64_t at) const { return keys_.unchecked_data<K>() + at * key_size_; }
  K* MutableKey(int64_t at) { return keys_.mutable_data<K>() + at * key_size_; }
  const void* Value(const Tensor& values, int64_t at) const {
    return ElementAt(options_.value_type, values.raw_data(), at * row_);
  }
  bool Same(const K* a, const K* b) const { return std::equal(a, a + key_size_, b); }
  void CopyRow(void* to, const void* from) const {
    if (!plain_) return CopyElements(options_.value_type, to, from, row_);
    switch (row_bytes_) {
      case 4:
        std::memcpy(to, from, 4);
        return;
      case 8:
        std::memcpy(to, from, 8);
        return;
      default:
        std::memcpy(to, from, row_bytes_);
    }
  }

  absl::Status CheckKeys(const K* keys, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const bool empty = Same(keys + i * key_size_, Empty());
      if (!empty && !IsDeleted(keys + i * key_size_)) continue;
      return InvalidArgument("key ", i, " is the ", empty ? "empty_key" : "deleted_key",
                             ", which cannot be a key of the table");
    }
    return absl::OkStatus();
  }

  /// The bucket of a key; -1: there is none. `*free`: where it would go.
  int64_t Look(const K* key, int64_t* free = nullptr) const {
    int64_t first_removed = -1;
    int64_t at = static_cast<int64_t>(DenseHash(key, key_size_)) & mask();
    for (int64_t probes = 1; probes <= buckets(); ++probes) {
      if (Same(Key(at), key)) return at;
      if (Same(Key(at), Empty())) {
        if (free != nullptr) *free = first_removed >= 0 ? first_removed : at;
        return -1;
      }
      if (first_removed < 0 && IsDeleted(Key(at))) first_removed = at;
      at = (at + probes) & mask();
    }
    if (free != nullptr) *free = first_removed;
    return -1;
  }

  /// There is an empty bucket.
  void Put(const K* key, const void* value) {
    int64_t free = -1;
    int64_t at = Look(key, &free);
    if (at < 0) {
      at = free;
      removed_ -= IsDeleted(Key(at));
      std::copy_n(key, key_size_, MutableKey(at));
      ++used_;
    }
    CopyRow(ElementAt(options_.value_type, values_.mutable_raw_data(), at * row_), value);
  }

  /// Whoever has got the buckets by an export, or given them, keeps them as they are.
  absl::Status MakeOwn() {
    if (!keys_.unique()) {
      TROUPE_ASSIGN_OR_RETURN(keys_, keys_.Clone());
    }
    if (!values_.unique()) {
      TROUPE_ASSIGN_OR_RETURN(values_, values_.Clone());
    }
    return absl::OkStatus();
  }

  /// Room for so many more keys, should they all be new.
  absl::Status MakeRoom(int64_t more) {
    if (static_cast<double>(used_ + more) > Limit(buckets())) {
      return Rebuild(2 * buckets(), used_ + more);
    }
    // Buckets of removed keys count as well, or nobody would find the end.
    const int64_t crowd = used_ + removed_ + more;
    const bool crowded = 8 * crowd > 7 * buckets() && removed_ >= buckets() / 16;
    return crowded || crowd >= buckets() ? Rebuild(buckets(), used_ + more) : absl::OkStatus();
  }
  double Limit(int64_t buckets) const {
    return static_cast<double>(buckets) * static_cast<double>(options_.max_load);
  }

  /// Puts all keys into at least so many new buckets, which hold so many keys.
  absl::Status Rebuild(int64_t buckets, int64_t keys) {
    while (static_cast<double>(keys) > Limit(buckets)) {
      if (buckets > INT64_MAX / 4) return absl::ResourceExhaustedError("too many keys");
      buckets *= 2;
    }
    DenseStore rebuilt(options_);
    TROUPE_RETURN_IF_ERROR(rebuilt.Allocate(buckets));
    for (int64_t at = 0; at < this->buckets(); ++at) {
      if (Same(Key(at), Empty()) || IsDeleted(Key(at))) continue;
      rebuilt.Put(Key(at), Value(values_, at));
    }
    keys_ = std::move(rebuilt.keys_);
    values_ = std::move(rebuilt.values_);
    used_ = rebuilt.used_;
    removed_ = 0;
    return absl::OkStatus();
  }

  const TableOptions options_;
  const int64_t key_size_, row_;  ///< Elements of a key and of a value.
  const size_t row_bytes_;
  const bool plain_;
  Tensor keys_, values_;            ///< A row for each bucket.
  int64_t used_ = 0, removed_ = 0;  ///< Buckets.
};

absl::Status CheckDense(const TableOptions& options) {
  const auto is_row = [](const Shape& shape) { return shape.rank() <= 1; };
  if (!is_row(options.key_shape)) {
    return InvalidArgument("empty_key must be a scalar or a vector, got shape ",
                           options.key_shape.ToString());
  }
  if (options.deleted_key.valid() && options.deleted_key.shape() != options.key_shape) {
    return InvalidArgument("empty_key and deleted_key must have the same shape, got ",
                           options.key_shape.ToString(), " and ",
                           options.deleted_key.shape().ToString());
  }
  if (options.key_shape.num_elements() == 0) {
    return InvalidArgument("empty_key must have elements, got shape ",
                           options.key_shape.ToString());
  }
  if (!is_row(options.value_shape)) {
    return InvalidArgument("value_shape must be that of a scalar or a vector, got ",
                           options.value_shape.ToString());
  }
  const int64_t buckets = options.initial_buckets;
  if (buckets < kMinBuckets || (buckets & (buckets - 1)) != 0) {
    return InvalidArgument("initial_num_buckets must be at least ", kMinBuckets,
                           " and a power of 2, got ", buckets);
  }
  if (!(options.max_load > 0 && options.max_load < 1)) {
    return InvalidArgument("max_load_factor must be between 0 and 1, got ", options.max_load);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<TableStore>> MakeDenseStore(const TableOptions& options) {
  TROUPE_RETURN_IF_ERROR(CheckDense(options));
  using Made = absl::StatusOr<std::unique_ptr<TableStore>>;
  return SwitchKeyType(options.key_type, [&]<typename K>() -> Made {
    if (options.deleted_key.valid() &&
        std::ranges::equal(options.empty_key.unchecked_values<K>(),
                           options.deleted_key.unchecked_values<K>())) {
      return InvalidArgument("empty_key and deleted_key must differ");
    }
    auto store = std::make_unique<DenseStore<K>>(options);
    TROUPE_RETURN_IF_ERROR(store->Allocate(options.initial_buckets));
    return store;
  });
}

}  // namespace troupe
