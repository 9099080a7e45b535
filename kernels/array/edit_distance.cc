// EditDistance: Levenshtein distances between the sequences of two sparse tensors.
#include <algorithm>
#include <complex>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"

namespace troupe {
namespace {

/// The entries of a sparse tensor in the order of the sequences that they belong to; those of one
/// in the order in which they are given.
struct Sequences {
  std::vector<int64_t> place;  ///< Of the sequence of each entry, in the output.
  std::vector<int64_t> order;
};

/// Entries [begin, end) of an order are one sequence.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

absl::Status CheckSparse(const Tensor& indices, const Tensor& values, const Tensor& shape,
                         const char* what) {
  if (indices.rank() == 2 && values.rank() == 1 && shape.rank() == 1 && shape.dim(0) > 0 &&
      indices.dim(0) == values.dim(0) && indices.dim(1) == shape.dim(0)) {
    return absl::OkStatus();
  }
  return InvalidArgument("the ", what, " must have indices [n, rank], values [n] and a shape ",
                         "[rank], rank at least 1; got shapes ", indices.shape().ToString(), ", ",
                         values.shape().ToString(), " and ", shape.shape().ToString());
}

absl::StatusOr<Sequences> Sort(const Tensor& indices, const Shape& output, const char* what) {
  const int64_t count = indices.dim(0), rank = indices.dim(1);
  const DimVector strides = RowMajorStrides(output.dims());
  const int64_t* index = indices.unchecked_data<int64_t>();
  Sequences sequences;
  sequences.place.resize(count, 0);
  sequences.order.resize(count);
  for (int64_t i = 0; i < count; ++i, index += rank) {
    for (int64_t d = 0; d + 1 < rank; ++d) {
      const int64_t size = output.dim(static_cast<int>(d));
      if (index[d] < 0 || index[d] >= size) {
        return InvalidArgument("index ", index[d], " in dimension ", d, " of the ", what,
                               " is not in [0, ", size, ")");
      }
      sequences.place[i] += index[d] * strides[d];
    }
  }
  std::iota(sequences.order.begin(), sequences.order.end(), 0);
  std::stable_sort(sequences.order.begin(), sequences.order.end(),
                   [&](int64_t a, int64_t b) { return sequences.place[a] < sequences.place[b]; });
  return sequences;
}

/// The sequence at `place`, which begins at `*next` of the order if there is one.
Range Take(const Sequences& sequences, int64_t place, int64_t* next) {
  const int64_t count = static_cast<int64_t>(sequences.order.size());
  Range range{*next, *next};
  while (range.end < count && sequences.place[sequences.order[range.end]] == place) ++range.end;
  *next = range.end;
  return range;
}

template <typename T>
int64_t Distance(const T* a, const int64_t* a_order, int64_t n, const T* b, const int64_t* b_order,
                 int64_t m) {
  // Wagner and Fischer, "The String-to-String Correction Problem", with one row of the table.
  std::vector<int64_t> row(m + 1);
  std::iota(row.begin(), row.end(), 0);
  for (int64_t i = 1; i <= n; ++i) {
    int64_t diagonal = row[0];
    row[0] = i;
    for (int64_t j = 1; j <= m; ++j) {
      const int64_t replaced = diagonal + (a[a_order[i - 1]] == b[b_order[j - 1]] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min(replaced, std::min(row[j], row[j - 1]) + 1);
    }
  }
  return row[m];
}

absl::StatusOr<Shape> OutputShape(const Tensor& hypothesis, const Tensor& truth) {
  if (hypothesis.dim(0) != truth.dim(0)) {
    return InvalidArgument("hypotheses and truths must have the same rank, got ", hypothesis.dim(0),
                           " and ", truth.dim(0));
  }
  DimVector dims;
  const int64_t *a = hypothesis.unchecked_data<int64_t>(), *b = truth.unchecked_data<int64_t>();
  for (int64_t d = 0; d < truth.dim(0); ++d) {
    if (a[d] < 0 || b[d] < 0) return InvalidArgument("the shapes must not hold negative sizes");
    if (d + 1 < truth.dim(0)) dims.push_back(std::max(a[d], b[d]));
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  if (shape.num_elements() > 0) return shape;
  return InvalidArgument("there are no sequences: the output would have the shape ",
                         shape.ToString());
}

absl::Status EditDistance(KernelContext& ctx, bool normalize) {
  TROUPE_RETURN_IF_ERROR(CheckSparse(ctx.input(0), ctx.input(1), ctx.input(2), "hypotheses"));
  TROUPE_RETURN_IF_ERROR(CheckSparse(ctx.input(3), ctx.input(4), ctx.input(5), "truths"));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, OutputShape(ctx.input(2), ctx.input(5)));
  TROUPE_ASSIGN_OR_RETURN(const Sequences hypotheses, Sort(ctx.input(0), shape, "hypotheses"));
  TROUPE_ASSIGN_OR_RETURN(const Sequences truths, Sort(ctx.input(3), shape, "truths"));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(0, ElementType::kFloat, shape));
  float* out = output->mutable_data<float>();
  return SwitchNumber<bool, std::string>(ctx.input(1).type(), [&]<typename T>() {
    const T *hypothesis = ctx.input(1).unchecked_data<T>(),
            *truth = ctx.input(4).unchecked_data<T>();
    int64_t next_hypothesis = 0, next_truth = 0;
    for (int64_t place = 0; place < shape.num_elements(); ++place) {
      const Range h = Take(hypotheses, place, &next_hypothesis);
      const Range t = Take(truths, place, &next_truth);
      const int64_t distance = Distance(truth, truths.order.data() + t.begin, t.size(), hypothesis,
                                        hypotheses.order.data() + h.begin, h.size());
      out[place] = static_cast<float>(distance);
      // Something instead of nothing is infinitely far away.
      if (normalize && distance > 0) out[place] /= static_cast<float>(t.size());
    }
    return absl::OkStatus();
  });
}

REGISTER_KERNEL(KernelSpec("EditDistance").Types("T", WithString(PlainTypes())),
                (MakeAttrKernel<EditDistance, "normalize">));

}  // namespace
}  // namespace troupe
