// DenseToDense-, DenseToSparse-, SparseToSparseSetOperation, SetSize.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// The sets of a tensor as pairs of the number of a set and a value, in order and each once:
/// operations on sets are operations on these.
template <typename T>
using Elements = std::vector<
    std::pair<int64_t, std::conditional_t<std::is_same_v<T, std::string>, std::string_view, T>>>;

/// The shape of a tensor without its last dimension, which is that of the sets.
absl::StatusOr<Shape> SetsOf(const Shape& shape) {
  if (shape.rank() < 2) {
    return InvalidArgument("sets must have a rank of 2 at least, got the shape ", shape.ToString());
  }
  return Shape::Create(shape.dims().subspan(0, shape.rank() - 1));
}

/// One operand of a set operation, dense or sparse.
class Sets {
 public:
  static absl::StatusOr<Sets> Dense(const Tensor& values) {
    TROUPE_ASSIGN_OR_RETURN(Shape sets, SetsOf(values.shape()));
    const int64_t size = values.dim(values.rank() - 1);
    std::vector<int64_t> numbers;
    numbers.reserve(values.num_elements());
    for (int64_t i = 0; i < values.num_elements(); i += size) {
      numbers.insert(numbers.end(), size, i / size);
    }
    return Sets(std::move(sets), values, std::move(numbers));
  }

  static absl::StatusOr<Sets> Sparse(KernelContext& ctx, int first, std::string_view what,
                                     bool validate) {
    TROUPE_ASSIGN_OR_RETURN(const SparseTensor tensor, ReadSparse(ctx, first, what));
    TROUPE_ASSIGN_OR_RETURN(Shape sets, SetsOf(tensor.shape));
    TROUPE_RETURN_IF_ERROR(validate ? tensor.CheckOrder(what) : tensor.CheckBounds(what));
    std::vector<int64_t> numbers(tensor.size());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      for (int d = 0; d < sets.rank(); ++d) {
        numbers[i] = numbers[i] * sets.dim(d) + tensor.indices[i][d];
      }
    }
    return Sets(std::move(sets), tensor.values, std::move(numbers));
  }

  const Shape& shape() const { return shape_; }
  template <typename T>
  Elements<T> elements() const {
    const T* values = values_.unchecked_data<T>();
    Elements<T> elements;
    elements.reserve(numbers_.size());
    if (!std::is_sorted(numbers_.begin(), numbers_.end())) {
      for (size_t i = 0; i < numbers_.size(); ++i) elements.emplace_back(numbers_[i], values[i]);
      std::sort(elements.begin(), elements.end());
      elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
      return elements;
    }
    std::vector<typename Elements<T>::value_type::second_type> set;
    for (size_t i = 0; i < numbers_.size();) {
      const int64_t number = numbers_[i];
      set.clear();
      while (i < numbers_.size() && numbers_[i] == number) set.emplace_back(values[i++]);
      std::sort(set.begin(), set.end());
      set.erase(std::unique(set.begin(), set.end()), set.end());
      for (const auto& value : set) elements.emplace_back(number, value);
    }
    return elements;
  }

 private:
  Sets(Shape shape, Tensor values, std::vector<int64_t> numbers)
      : shape_(std::move(shape)), values_(std::move(values)), numbers_(std::move(numbers)) {}

  Shape shape_;
  Tensor values_;
  std::vector<int64_t> numbers_;  ///< Of the set that each value belongs to.
};

enum class SetOperation { kAMinusB, kBMinusA, kIntersection, kUnion };

template <typename T>
Elements<T> Apply(SetOperation operation, const Elements<T>& a, const Elements<T>& b) {
  Elements<T> result;
  const auto to = std::back_inserter(result);
  switch (operation) {
    case SetOperation::kAMinusB:
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case SetOperation::kBMinusA:
      std::set_difference(b.begin(), b.end(), a.begin(), a.end(), to);
      break;
    case SetOperation::kIntersection:
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case SetOperation::kUnion:
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), to);
  }
  return result;
}

/// Makes outputs 0 to 2 the sparse tensor of sets that is arranged as `shape`.
template <typename T>
absl::Status PutSets(KernelContext& ctx, const Shape& shape, const Elements<T>& elements) {
  const auto count = static_cast<int64_t>(elements.size());
  const int rank = shape.rank() + 1;
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices,
                          ctx.AllocateOutput(0, ElementType::kInt64, Shape({count, rank})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, kElementType<T>, Shape({count})));
  int64_t* index = indices->mutable_data<int64_t>();
  T* out = values->mutable_data<T>();
  int64_t place = 0, largest = 0;
  for (int64_t i = 0; i < count; ++i, index += rank) {
    int64_t number = elements[i].first;
    place = i > 0 && elements[i - 1].first == number ? place + 1 : 0;
    largest = std::max(largest, place + 1);
    index[rank - 1] = place;
    for (int d = rank - 2; d >= 0; --d) {
      index[d] = number % shape.dim(d);
      number /= shape.dim(d);
    }
    out[i] = T(elements[i].second);
  }
  DimVector sizes(shape.dims().begin(), shape.dims().end());
  sizes.push_back(largest);
  return PutIntegers(ctx, 2, ElementType::kInt64, sizes);
}

template <typename F>
absl::Status SwitchSetType(ElementType type, F&& f) {
  return SwitchType<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, std::string>(
      type, std::forward<F>(f));
}

enum class Operand { kDense, kSparse };

template <Operand kFirst, Operand kSecond>
class SetOperationKernel final : public Kernel {
 public:
  SetOperationKernel(KernelConstruction& c, absl::Status* status)
      : validate_(c.Attr<bool>("validate_indices")) {
    const std::string name = absl::AsciiStrToLower(c.Attr<std::string>("set_operation"));
    if (name == "a-b") {
      operation_ = SetOperation::kAMinusB;
    } else if (name == "b-a") {
      operation_ = SetOperation::kBMinusA;
    } else if (name == "intersection") {
      operation_ = SetOperation::kIntersection;
    } else if (name == "union") {
      operation_ = SetOperation::kUnion;
    } else {
      *status = InvalidArgument("set_operation must be 'a-b', 'b-a', 'intersection' or 'union', ",
                                "got '", name, "'");
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const Sets a, Read<kFirst>(ctx, 0, "set1"));
    TROUPE_ASSIGN_OR_RETURN(const Sets b,
                            Read<kSecond>(ctx, kFirst == Operand::kDense ? 1 : 3, "set2"));
    if (a.shape() != b.shape()) {
      return InvalidArgument("sets are arranged as ", a.shape().ToString(), " and as ",
                             b.shape().ToString(),
                             ": all dimensions but the last one must be the same");
    }
    return SwitchSetType(ctx.input(kFirst == Operand::kDense ? 0 : 1).type(), [&]<typename T>() {
      return PutSets<T>(ctx, a.shape(), Apply<T>(operation_, a.elements<T>(), b.elements<T>()));
    });
  }

 private:
  template <Operand kOperand>
  absl::StatusOr<Sets> Read(KernelContext& ctx, int first, std::string_view what) const {
    if constexpr (kOperand == Operand::kDense) {
      return Sets::Dense(ctx.input(first));
    } else {
      return Sets::Sparse(ctx, first, what, validate_);
    }
  }

  const bool validate_;
  SetOperation operation_ = SetOperation::kUnion;
};

absl::Status SetSize(KernelContext& ctx, bool validate) {
  TROUPE_ASSIGN_OR_RETURN(const Sets sets, Sets::Sparse(ctx, 0, "set", validate));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kInt32, sets.shape()));
  int32_t* sizes = output->mutable_data<int32_t>();
  std::fill_n(sizes, output->num_elements(), 0);
  return SwitchSetType(ctx.input(1).type(), [&]<typename T>() {
    for (const auto& element : sets.elements<T>()) ++sizes[element.first];
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("DenseToDenseSetOperation"),
                (MakeKernel<SetOperationKernel<Operand::kDense, Operand::kDense>>));
REGISTER_KERNEL(KernelSpec("DenseToSparseSetOperation"),
                (MakeKernel<SetOperationKernel<Operand::kDense, Operand::kSparse>>));
REGISTER_KERNEL(KernelSpec("SparseToSparseSetOperation"),
                (MakeKernel<SetOperationKernel<Operand::kSparse, Operand::kSparse>>));
REGISTER_KERNEL(KernelSpec("SetSize"), (MakeAttrKernel<SetSize, "validate_indices">));

}  // namespace
}  // namespace troupe
