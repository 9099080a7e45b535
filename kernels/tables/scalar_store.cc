// Tables whose values are scalars: they lie in the hash map, beside their keys.
#include <string>
#include <type_traits>
#include <utility>

#include "devices/status_macros.h"
#include "kernels/tables/key_map.h"
#include "kernels/tables/table_store.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// V stands for all types of its size.
template <typename K, typename V>
class ScalarStore final : public TableStore {
 public:
  ScalarStore(ElementType key_type, ElementType value_type)
      : key_type_(key_type), value_type_(value_type) {}

  int64_t size() const override { return map_.size(); }

  absl::Status Find(KernelContext& ctx, const Tensor& keys, const Tensor& defaults,
                    bool defaults_per_key, Tensor* values) const override {
    const V* default_values = Values(defaults);
    V* out = static_cast<V*>(values->mutable_raw_data());
    FindEach(ctx, map_, Keys(keys), keys.num_elements(), [=](int64_t i, const V* value) {
      out[i] = value != nullptr ? *value : default_values[defaults_per_key ? i : 0];
    });
    return absl::OkStatus();
  }

  absl::Status Insert(const Tensor& keys, const Tensor& values) override {
    InsertInto(&map_, keys, values);
    return absl::OkStatus();
  }

  absl::Status InsertNew(const Tensor& keys, const Tensor& values, int64_t* wrong) override {
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const auto [value, is_new] = map_.TryEmplace(Keys(keys)[i], Values(values)[i]);
      if (!is_new && !Same(*value, Values(values)[i])) {
        *wrong = i;
        return absl::FailedPreconditionError(
            absl::StrCat("key ", Keys(keys)[i], " has two different values"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Remove(const Tensor& keys) override {
    for (int64_t i = 0; i < keys.num_elements(); ++i) map_.Erase(Keys(keys)[i]);
    return absl::OkStatus();
  }

  absl::Status Import(const Tensor& keys, const Tensor& values) override {
    KeyMap<K, V> map;
    map.Reserve(keys.num_elements());
    InsertInto(&map, keys, values);
    std::swap(map_, map);
    return absl::OkStatus();
  }

  absl::StatusOr<std::pair<Tensor, Tensor>> Export() const override {
    TROUPE_ASSIGN_OR_RETURN(Tensor keys, Tensor::Allocate(key_type_, Shape({size()})));
    TROUPE_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(value_type_, Shape({size()})));
    K* next_key = keys.mutable_data<K>();
    V* next_value = static_cast<V*>(values.mutable_raw_data());
    map_.ForEach([&](const K& key, const V& value) {
      *next_key++ = key;
      *next_value++ = value;
    });
    return std::pair(std::move(keys), std::move(values));
  }

  void Reserve(int64_t keys) override { map_.Reserve(keys); }

  bool SameAs(const TableStore& other) const override {
    const auto& others = static_cast<const ScalarStore&>(other).map_;
    bool same = others.size() == map_.size();
    map_.ForEach([&](const K& key, const V& value) {
      const V* const there = same ? others.Find(key) : nullptr;
      same = there != nullptr && Same(*there, value);
    });
    return same;
  }

 private:
  static const K* Keys(const Tensor& keys) { return keys.unchecked_data<K>(); }
  static const V* Values(const Tensor& values) { return static_cast<const V*>(values.raw_data()); }
  /// Bit by bit. Variants cannot be compared.
  static bool Same(const V& a, const V& b) {
    if constexpr (std::is_same_v<V, Variant>) {
      return false;
    } else {
      return a == b;
    }
  }
  static void InsertInto(KeyMap<K, V>* map, const Tensor& keys, const Tensor& values) {
    for (int64_t i = 0; i < keys.num_elements(); ++i) {
      const auto [value, is_new] = map->TryEmplace(Keys(keys)[i], Values(values)[i]);
      if (!is_new) *value = Values(values)[i];
    }
  }

  const ElementType key_type_, value_type_;
  KeyMap<K, V> map_;
};

}  // namespace

std::unique_ptr<TableStore> MakeScalarStore(ElementType key_type, ElementType value_type) {
  return SwitchKeyType(key_type, [&]<typename K>() -> std::unique_ptr<TableStore> {
    const auto make = [&]<typename V>() -> std::unique_ptr<TableStore> {
      return std::make_unique<ScalarStore<K, V>>(key_type, value_type);
    };
    switch (value_type) {
      case ElementType::kString:
        return make.template operator()<std::string>();
      case ElementType::kVariant:
        return make.template operator()<Variant>();
      default:
        break;
    }
    switch (ElementSize(value_type)) {
      case 1:
        return make.template operator()<uint8_t>();
      case 4:
        return make.template operator()<uint32_t>();
      default:
        return make.template operator()<uint64_t>();
    }
  });
}

}  // namespace troupe
