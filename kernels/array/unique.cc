// Unique, UniqueWithCounts and their second versions: the distinct elements, or slices along an
// axis, in the order of their first appearance.
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

/// Bits that are the same for equal numbers. False for a number that equals nothing.
template <typename T>
bool Key(const T& value, uint64_t* key) {
  if constexpr (std::is_integral_v<T>) {
    *key = static_cast<uint64_t>(value);
  } else {
    const double wide = static_cast<double>(value);
    if (std::isnan(wide)) return false;
    *key = std::bit_cast<uint64_t>(wide == 0 ? 0.0 : wide);
  }
  return true;
}

/// Counts the distinct ones of what is given one after the other.
template <typename Map>
class Numbering {
 public:
  /// The number of what has the key; `*is_new` if it had not been seen.
  template <typename K>
  int64_t Of(K&& key, bool* is_new) {
    const auto [found, inserted] = map_.try_emplace(std::forward<K>(key), count_);
    *is_new = inserted;
    if (inserted) ++count_;
    return found->second;
  }
  /// A number for something that equals nothing.
  int64_t Fresh() { return count_++; }

 private:
  Map map_;
  int64_t count_ = 0;
};

template <typename T>
void NumberElements(const T* in, int64_t n, int64_t* number, std::vector<int64_t>* first) {
  if constexpr (std::is_same_v<T, std::string>) {
    Numbering<absl::flat_hash_map<absl::string_view, int64_t>> numbering;
    for (int64_t i = 0; i < n; ++i) {
      bool is_new;
      number[i] = numbering.Of(absl::string_view(in[i].data(), in[i].size()), &is_new);
      if (is_new) first->push_back(i);
    }
  } else {
    Numbering<absl::flat_hash_map<uint64_t, int64_t>> numbering;
    for (int64_t i = 0; i < n; ++i) {
      uint64_t key;
      bool is_new = true;
      number[i] = Key(in[i], &key) ? numbering.Of(key, &is_new) : numbering.Fresh();
      if (is_new) first->push_back(i);
    }
  }
}

/// Slices of `inner` adjacent elements, `outer` of them, `n` slices apart.
template <typename T>
void NumberSlices(const T* in, int64_t outer, int64_t n, int64_t inner, int64_t* number,
                  std::vector<int64_t>* first) {
  Numbering<absl::flat_hash_map<std::string, int64_t>> numbering;
  std::string bytes;
  for (int64_t i = 0; i < n; ++i) {
    bytes.clear();
    bool equal = true;
    for (int64_t o = 0; o < outer && equal; ++o) {
      const T* from = in + (o * n + i) * inner;
      for (int64_t k = 0; k < inner && equal; ++k) {
        uint64_t key = 0;
        if constexpr (std::is_same_v<T, std::string>) {
          key = from[k].size();
        } else {
          equal = Key(from[k], &key);
        }
        bytes.append(reinterpret_cast<const char*>(&key), sizeof(key));
        if constexpr (std::is_same_v<T, std::string>) bytes += from[k];
      }
    }
    bool is_new = true;
    number[i] = equal ? numbering.Of(bytes, &is_new) : numbering.Fresh();
    if (is_new) first->push_back(i);
  }
}

absl::Status Unique(KernelContext& ctx, ElementType index_type) {
  const Tensor& x = ctx.input(0);
  int axis = 0;
  bool whole = true;
  if (ctx.num_inputs() > 1) {
    TROUPE_ASSIGN_OR_RETURN(const DimVector axes, ReadIntegerVector(ctx.input(1), "axis"));
    if (axes.size() > 1) {
      return InvalidArgument("axis must be a vector of one element or none, got ", axes.size());
    }
    whole = axes.empty();
    if (!whole) {
      TROUPE_ASSIGN_OR_RETURN(axis, ResolveAxis(axes[0], x.rank(), "axis"));
    }
  }
  if (whole && x.rank() != 1) {
    return InvalidArgument("x must be a vector, got shape ", x.shape().ToString());
  }
  const int64_t n = x.dim(axis);
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= x.dim(d);
  for (int d = axis + 1; d < x.rank(); ++d) inner *= x.dim(d);

  std::vector<int64_t> number(n), first;
  TROUPE_RETURN_IF_ERROR((SwitchReal<bool, std::string>(x.type(), [&]<typename T>() {
    if (outer == 1 && inner == 1) {
      NumberElements(x.unchecked_data<T>(), n, number.data(), &first);
    } else {
      NumberSlices(x.unchecked_data<T>(), outer, n, inner, number.data(), &first);
    }
    return absl::OkStatus();
  })));

  Shape shape = x.shape();
  const int64_t distinct = static_cast<int64_t>(first.size());
  shape.set_dim(axis, distinct);
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, x.type(), shape));
  if (y->num_elements() > 0) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < distinct; ++i) {
        CopyElements(x.type(),
                     ElementAt(x.type(), y->mutable_raw_data(), (o * distinct + i) * inner),
                     ElementAt(x.type(), x.raw_data(), (o * n + first[i]) * inner), inner);
      }
    }
  }
  TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, 1, index_type, number));
  if (ctx.num_outputs() < 3) return absl::OkStatus();
  std::vector<int64_t> counts(distinct, 0);
  for (const int64_t i : number) ++counts[i];
  return PutIntegers(ctx, 2, index_type, counts);
}

KernelSpec Spec(const char* op) {
  std::vector<ElementType> types = RealNumberTypes();
  types.insert(types.end(), {ElementType::kBool, ElementType::kString});
  return KernelSpec(op).Types("T", std::move(types)).Types("out_idx", IndexTypes());
}

REGISTER_KERNELS(Spec("Unique"), (MakeAttrKernel<Unique, "out_idx">), "UniqueV2",
                 "UniqueWithCounts", "UniqueWithCountsV2");

}  // namespace
}  // namespace troupe
