// Tables whose values are vectors: the hash map says which row of an array is a key's.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/common/strided_copy.h"
#include "kernels/tables/key_map.h"
#include "kernels/tables/table_store.h"

namespace troupe {
namespace {

template <typename K>
class RowStore final : public TableStore {
 public:
  RowStore(ElementType key_type, ElementType value_type, int64_t row)
      : key_type_(key_type), value_type_(value_type), row_(row) {}

  int64_t size() const override { return map_.size(); }

  absl::Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& defaults,
                    bool defaults_per_key, Tensor* values) const override {
    FindEach(ctx, map_, keys.unchecked_data<K>(), keys.num_elements(),
             [&](int64_t i, const int64_t* at) {
               const void* from =
                   at != nullptr ? RowOf(rows_, *at) : RowOf(defaults, defaults_per_key ? i : 0);
               CopyElements(value_type_,
                            ElementAt(value_type_, values->mutable_raw_data(), i * row_), from,
                            row_);
             });
    return absl::OkStatus();
  }

  absl::Status Insert(const Tensor& keys, const Tensor& values) override {
    const int64_t count = keys.num_elements();
    TROUPE_RETURN_IF_ERROR(MakeRoom(count));
    for (int64_t i = 0; i < count; ++i) {
      const auto [at, is_new] = map_.TryEmplace(keys.unchecked_data<K>()[i], -1);
      if (is_new) {
        if (free_.empty()) {
          *at = used_++;
        } else {
          *at = free_.back();
          free_.pop_back();
        }
      }
      CopyElements(value_type_, ElementAt(value_type_, rows_.mutable_raw_data(), *at * row_),
                   RowOf(values, i), row_);
    }
    return absl::OkStatus();
  }

  absl::Status InsertNew(const Tensor&, const Tensor&, int64_t*) override {
    return absl::UnimplementedError("a table of vectors cannot be initialized");
  }

  absl::Status Remove(const Tensor& keys) override {
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const int64_t* const at = map_.Find(keys.unchecked_data<K>()[i]);
      if (at == nullptr) continue;
      free_.push_back(*at);
      map_.Erase(keys.unchecked_data<K>()[i]);
    }
    return absl::OkStatus();
  }

  absl::Status Import(const Tensor& keys, const Tensor& values) override {
    RowStore imported(key_type_, value_type_, row_);
    imported.map_.Reserve(keys.num_elements());
    TROUPE_RETURN_IF_ERROR(imported.Insert(keys, values));
    std::swap(map_, imported.map_);
    free_.swap(imported.free_);
    std::swap(rows_, imported.rows_);
    std::swap(used_, imported.used_);
    return absl::OkStatus();
  }

  absl::StatusOr<std::pair<Tensor, Tensor>> Export() const override {
    TROUPE_ASSIGN_OR_RETURN(Tensor keys, Tensor::Allocate(key_type_, Shape({size()})));
    TROUPE_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(value_type_, Shape({size(), row_})));
    int64_t i = 0;
    map_.ForEach([&](const K& key, int64_t at) {
      keys.mutable_data<K>()[i] = key;
      CopyElements(value_type_, ElementAt(value_type_, values.mutable_raw_data(), i * row_),
                   RowOf(rows_, at), row_);
      ++i;
    });
    return std::pair(std::move(keys), std::move(values));
  }

  void Reserve(int64_t keys) override { map_.Reserve(keys); }
  /// Only tables that are initialised are compared.
  bool SameAs(const TableStore&) const override { return false; }

 private:
  const void* RowOf(const Tensor& rows, int64_t i) const {
    return ElementAt(value_type_, rows.raw_data(), i * row_);
  }

  /// Room for so many more rows: it doubles, so that few keys at a time are no burden.
  absl::Status MakeRoom(int64_t more) {
    const int64_t capacity = rows_.valid() ? rows_.dim(0) : 0;
    const int64_t needed = used_ + std::max<int64_t>(0, more - static_cast<int64_t>(free_.size()));
    if (needed <= capacity) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(std::vector<int64_t>{
                                                   std::max(needed, 2 * capacity), row_}));
    TROUPE_ASSIGN_OR_RETURN(Tensor rows, Tensor::Allocate(value_type_, shape));
    CopyElements(value_type_, rows.mutable_raw_data(), rows_.raw_data(), used_ * row_);
    rows_ = std::move(rows);
    return absl::OkStatus();
  }

  const ElementType key_type_, value_type_;
  const int64_t row_;  ///< Elements of a value.
  KeyMap<K, int64_t> map_;
  Tensor rows_;                ///< The values; invalid as long as there are none.
  int64_t used_ = 0;           ///< Rows that are or were some key's.
  std::vector<int64_t> free_;  ///< Those that are nobody's any more.
};

}  // namespace

std::unique_ptr<TableStore> MakeRowStore(ElementType key_type, ElementType value_type,
                                         int64_t row) {
  return SwitchKeyType(key_type, [&]<typename K>() -> std::unique_ptr<TableStore> {
    return std::make_unique<RowStore<K>>(key_type, value_type, row);
  });
}

}  // namespace troupe
