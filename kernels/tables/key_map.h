/// Hash maps that are asked for many keys at a time: what a look-up in a large map costs is the
/// wait for memory, so the memory that some keys need is on its way while others are compared.
#ifndef TROUPE_KERNELS_TABLES_KEY_MAP_H_
#define TROUPE_KERNELS_TABLES_KEY_MAP_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "kernels/kernel.h"
#include "kernels/tables/large_allocator.h"

namespace troupe {

/// From integers. Keys lie beside their values, in one cache line where these are small; linear
/// probing, at most half full. Thread-compatible.
template <typename K, typename V>
class IntegerMap {
 public:
  int64_t size() const { return size_ + (has_unused_ ? 1 : 0); }

  void Reserve(int64_t keys) {
    size_t capacity = 8;
    while (capacity < 2 * static_cast<size_t>(keys)) capacity *= 2;
    if (capacity > slots_.size()) Rehash(capacity);
  }

  /// nullptr: it is not there.
  V* Find(K key) {
    if (key == kUnused) return has_unused_ ? &unused_ : nullptr;
    if (slots_.empty()) return nullptr;
    Slot& slot = slots_[Look(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  const V* Find(K key) const { return const_cast<IntegerMap*>(this)->Find(key); }

  /// The key's value, and whether it is a new one, `value`.
  std::pair<V*, bool> TryEmplace(K key, const V& value) {
    if (key == kUnused) {
      const bool is_new = !std::exchange(has_unused_, true);
      if (is_new) unused_ = value;
      return {&unused_, is_new};
    }
    if (2 * (static_cast<size_t>(size_) + 1) > slots_.size()) Reserve(size_ + 1);
    Slot& slot = slots_[Look(key)];
    if (slot.key == key) return {&slot.value, false};
    slot.value = value;
    slot.key = key;
    ++size_;
    return {&slot.value, true};
  }

  bool Erase(K key) {
    if (key == kUnused) return std::exchange(has_unused_, false);
    if (slots_.empty()) return false;
    size_t hole = Look(key);
    if (slots_[hole].key != key) return false;
    // Those behind it that belong before it move up.
    for (size_t at = Next(hole); slots_[at].key != kUnused; at = Next(at)) {
      if (((at - Home(slots_[at].key)) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = std::move(slots_[at]);
      hole = at;
    }
    slots_[hole] = {kUnused, V()};
    --size_;
    return true;
  }

  /// Calls f(key, value) for all.
  template <typename F>
  void ForEach(const F& f) const {
    if (has_unused_) f(kUnused, unused_);
    for (const Slot& slot : slots_) {
      if (slot.key != kUnused) f(slot.key, slot.value);
    }
  }

  /// Calls found(i, pointer to the value of keys[i] or nullptr) for each i of [begin, end).
  template <typename Found>
  void FindEach(const K* keys, int64_t begin, int64_t end, const Found& found) const {
    constexpr int64_t kAhead = 16;
    const bool empty = slots_.empty();
    const auto prefetch = [&](int64_t i) {
      if (!empty) __builtin_prefetch(&slots_[Home(keys[i])]);
    };
    for (int64_t i = begin; i < std::min(begin + kAhead, end); ++i) prefetch(i);
    for (int64_t i = begin; i < end; ++i) {
      if (i + kAhead < end) prefetch(i + kAhead);
      found(i, Find(keys[i]));
    }
  }

 private:
  struct Slot {
    K key;
    V value;
  };
  using Slots = std::vector<Slot, LargeAllocator<Slot>>;
  /// Marks slots; the key itself lies apart.
  static constexpr K kUnused = std::numeric_limits<K>::min();

  size_t mask() const { return slots_.size() - 1; }
  size_t Home(K key) const { return absl::Hash<K>()(key) & mask(); }
  size_t Next(size_t at) const { return (at + 1) & mask(); }
  /// The slot that the key has, or would get.
  size_t Look(K key) const {
    size_t at = Home(key);
    while (slots_[at].key != key && slots_[at].key != kUnused) at = Next(at);
    return at;
  }

  void Rehash(size_t capacity) {
    Slots old(capacity, Slot{kUnused, V()});
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key != kUnused) slots_[Look(slot.key)] = std::move(slot);
    }
  }

  Slots slots_;       ///< A power of 2, or none.
  int64_t size_ = 0;  ///< Without `kUnused`.
  bool has_unused_ = false;
  V unused_ = V();
};

/// From strings. Slots have half of the key's hash and the number of the entry that has key and
/// value: other keys are seldom compared. Thread-compatible.
template <typename V>
class StringMap {
 public:
  using K = std::string;

  int64_t size() const { return static_cast<int64_t>(entries_.size()); }

  void Reserve(int64_t keys) {
    if (keys > kMaxEntries) throw std::bad_alloc();
    entries_.reserve(static_cast<size_t>(keys));
    size_t capacity = 8;
    while (capacity < 2 * static_cast<size_t>(keys)) capacity *= 2;
    if (capacity > slots_.size()) Rehash(capacity);
  }

  const V* Find(const K& key) const {
    if (slots_.empty()) return nullptr;
    const uint64_t slot = slots_[Look(key, HashOf(key))];
    return slot == 0 ? nullptr : &EntryOf(slot).value;
  }
  V* Find(const K& key) { return const_cast<V*>(std::as_const(*this).Find(key)); }

  std::pair<V*, bool> TryEmplace(const K& key, const V& value) {
    if (2 * (entries_.size() + 1) > slots_.size()) {
      if (size() >= kMaxEntries) throw std::bad_alloc();
      Rehash(std::max<size_t>(8, 2 * slots_.size()));
    }
    const uint64_t hash = HashOf(key);
    uint64_t& slot = slots_[Look(key, hash)];
    if (slot != 0) return {&entries_[IndexOf(slot)].value, false};
    entries_.push_back({key, value});
    slot = SlotOf(hash, entries_.size() - 1);
    return {&entries_.back().value, true};
  }

  bool Erase(const K& key) {
    if (slots_.empty()) return false;
    size_t hole = Look(key, HashOf(key));
    if (slots_[hole] == 0) return false;
    const size_t entry = IndexOf(slots_[hole]), last = entries_.size() - 1;
    for (size_t at = Next(hole); slots_[at] != 0; at = Next(at)) {
      const size_t home = HashOf(EntryOf(slots_[at]).key) & mask();
      if (((at - home) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = 0;
    if (entry != last) {
      // The last entry takes the place of the one that goes.
      const uint64_t hash = HashOf(entries_[last].key);
      slots_[Look(entries_[last].key, hash)] = SlotOf(hash, entry);
      entries_[entry] = std::move(entries_[last]);
    }
    entries_.pop_back();
    return true;
  }

  template <typename F>
  void ForEach(const F& f) const {
    for (const Entry& entry : entries_) f(entry.key, entry.value);
  }

  template <typename Found>
  void FindEach(const K* keys, int64_t begin, int64_t end, const Found& found) const {
    if (slots_.empty()) {
      for (int64_t i = begin; i < end; ++i) found(i, static_cast<const V*>(nullptr));
      return;
    }
    constexpr int64_t kBlock = 32;
    uint64_t hashes[kBlock];
    size_t places[kBlock];
    for (int64_t first = begin; first < end; first += kBlock) {
      const int64_t count = std::min(kBlock, end - first);
      for (int64_t i = 0; i < count; ++i) {
        hashes[i] = HashOf(keys[first + i]);
        __builtin_prefetch(&slots_[hashes[i] & mask()]);
      }
      for (int64_t i = 0; i < count; ++i) {
        size_t at = hashes[i] & mask();
        while (slots_[at] != 0 && !SameTag(slots_[at], hashes[i])) at = Next(at);
        if (slots_[at] != 0) __builtin_prefetch(&EntryOf(slots_[at]));
        places[i] = at;
      }
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t slot = slots_[LookFrom(places[i], keys[first + i], hashes[i])];
        found(first + i, slot == 0 ? nullptr : &EntryOf(slot).value);
      }
    }
  }

 private:
  static constexpr int64_t kMaxEntries = int64_t{1} << 30;
  static constexpr size_t kSmall = sizeof(K) + sizeof(V) <= 64 ? 64 : alignof(K);
  /// In one cache line, if it fits.
  struct alignas(kSmall) Entry {
    K key;
    V value;
  };

  using Slots = std::vector<uint64_t, LargeAllocator<uint64_t>>;

  static uint64_t HashOf(const K& key) { return absl::Hash<K>()(key); }
  /// Upper half: that of the hash; lower half: the entry's number plus 1. 0: unused.
  static uint64_t SlotOf(uint64_t hash, size_t entry) {
    return (hash & ~uint64_t{UINT32_MAX}) | (entry + 1);
  }
  static bool SameTag(uint64_t slot, uint64_t hash) { return ((slot ^ hash) >> 32) == 0; }
  static size_t IndexOf(uint64_t slot) { return (slot & UINT32_MAX) - 1; }
  const Entry& EntryOf(uint64_t slot) const { return entries_[IndexOf(slot)]; }
  size_t mask() const { return slots_.size() - 1; }
  size_t Next(size_t at) const { return (at + 1) & mask(); }

  /// The slot that the key has, or would get.
  size_t Look(const K& key, uint64_t hash) const { return LookFrom(hash & mask(), key, hash); }
  size_t LookFrom(size_t at, const K& key, uint64_t hash) const {
    while (slots_[at] != 0 && !(SameTag(slots_[at], hash) && EntryOf(slots_[at]).key == key)) {
      at = Next(at);
    }
    return at;
  }

  void Rehash(size_t capacity) {
    Slots slots(capacity, 0);
    slots_.swap(slots);
    for (size_t i = 0; i < entries_.size(); ++i) {
      const uint64_t hash = HashOf(entries_[i].key);
      size_t at = hash & mask();
      while (slots_[at] != 0) at = Next(at);
      slots_[at] = SlotOf(hash, i);
    }
  }

  Slots slots_;  ///< A power of 2, or none; at most half of them are used.
  std::vector<Entry, LargeAllocator<Entry>> entries_;
};

template <typename K, typename V>
using KeyMap = std::conditional_t<std::is_same_v<K, std::string>, StringMap<V>, IntegerMap<K, V>>;

/// `FindEach` of `count` keys, on several threads if there are many.
template <typename K, typename Map, typename Found>
void FindEach(KernelContext& ctx, const Map& map, const K* keys, int64_t count,
              const Found& found) {
  ctx.ParallelFor(count, KernelContext::GrainFor(20.0),
                  [&](int64_t begin, int64_t end) { map.FindEach(keys, begin, end, found); });
}

/// Calls f.operator()<K>() with the C++ type of keys.
template <typename F>
auto SwitchKeyType(ElementType type, const F& f) {
  switch (type) {
    case ElementType::kInt32:
      return f.template operator()<int32_t>();
    case ElementType::kInt64:
      return f.template operator()<int64_t>();
    default:
      return f.template operator()<std::string>();
  }
}

}  // namespace troupe

#endif  // TROUPE_KERNELS_TABLES_KEY_MAP_H_
