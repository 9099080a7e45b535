// FractionalMaxPool, FractionalAvgPool and their gradients (Graham, "Fractional Max-Pooling",
// 2014).
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/integer_input.h"
#include "kernels/common/philox.h"
#include "kernels/common/registration.h"
#include "kernels/kernel.h"
#include "kernels/nn/plus.h"
#include "kernels/nn/pool_shape.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

// Where the regions of one dimension begin, and after them where the last one ends.
using Borders = std::vector<int64_t>;

// Lengths of `output` regions of `input` elements, some one longer than the others, in a random
// order.
Borders ShuffledLengths(int64_t input, int64_t output, Philox* position) {
  Borders lengths(output, input / output);
  for (int64_t i = 0; i < input % output; ++i) ++lengths[i];
  PhiloxWords words(*position);
  for (int64_t i = 0; i + 1 < output; ++i) {
    std::swap(lengths[i], lengths[i + words() % static_cast<uint32_t>(output - i)]);
  }
  position->Skip(static_cast<uint64_t>(output + 3) / 4);
  return lengths;
}

// Lengths as even as may be: region i begins at ceil(alpha (i + u)) for one random number u.
Borders EvenLengths(int64_t input, int64_t output, Philox* position) {
  const double alpha = static_cast<double>(input) / static_cast<double>(output);
  const int64_t shorter = input / output;
  const double most =
      std::min(static_cast<double>(shorter + 2) / alpha - 1,
               static_cast<double>(input + 1 - shorter) / alpha - static_cast<double>(output - 1));
  const Philox::Block block = position->Next();
  const double u =
      std::ldexp(static_cast<double>((uint64_t{block[0] & 0xfffff} << 32) | block[1]), -52) * most;
  Borders lengths(output);
  int64_t begin = 1;
  for (int64_t i = 0; i < output; ++i) {
    const int64_t end =
        i + 1 == output ? input + 1
                        : static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i + 1) + u)));
    lengths[i] = end - begin;
    begin = end;
  }
  return lengths;
}

Borders MakeBorders(int64_t input, int64_t output, bool pseudo_random, Philox* position) {
  const Borders lengths = pseudo_random ? EvenLengths(input, output, position)
                                        : ShuffledLengths(input, output, position);
  Borders borders = {0};
  for (const int64_t length : lengths) borders.push_back(borders.back() + length);
  return borders;
}

// One dimension: region i is [borders[i], borders[i + 1]), and one more if regions overlap.
struct Regions {
  const int64_t* borders;
  int64_t count, input;
  bool overlapping;

  int64_t begin(int64_t i) const { return std::clamp<int64_t>(borders[i], 0, input); }
  int64_t end(int64_t i) const {
    const int64_t border = std::clamp<int64_t>(borders[i + 1], 0, input);
    return std::min(input, border + (overlapping ? 1 : 0));
  }
};

// Pooling of [batch, rows, columns, depth].
struct RegionGrid {
  int64_t batch, depth;
  Regions rows, columns;

  Shape output_shape() const { return {batch, rows.count, columns.count, depth}; }
  int64_t pixels() const { return batch * rows.count * columns.count; }
  // Nanoseconds for an output pixel.
  double pixel_ns() const {
    const double inputs = static_cast<double>(rows.input) * static_cast<double>(columns.input);
    return static_cast<double>(depth) * inputs /
           static_cast<double>(std::max<int64_t>(1, rows.count * columns.count));
  }

  // Calls visit(first element of an input pixel) for the region of output pixel i, row by row.
  template <typename Visit>
  void ForRegion(int64_t i, Visit visit) const {
    const int64_t row = i / columns.count % rows.count, column = i % columns.count;
    const int64_t first_row = i / columns.count / rows.count * rows.input;
    for (int64_t y = rows.begin(row); y < rows.end(row); ++y) {
      for (int64_t x = columns.begin(column); x < columns.end(column); ++x) {
        visit(((first_row + y) * columns.input + x) * depth);
      }
    }
  }
  int64_t RegionSize(int64_t i) const {
    const int64_t row = i / columns.count % rows.count, column = i % columns.count;
    return (rows.end(row) - rows.begin(row)) * (columns.end(column) - columns.begin(column));
  }
};

// The largest elements of a region, the first of equal ones, and where they are (if asked for).
template <bool kWhere, typename T>
void LargestOf(const RegionGrid& grid, int64_t i, const T* __restrict in, T* __restrict largest,
               int64_t* __restrict where) {
  bool is_first = true;
  grid.ForRegion(i, [&, depth = grid.depth](int64_t at) {
    const T* x = in + at;
    if (is_first) {
      std::copy_n(x, depth, largest);
      if constexpr (kWhere) std::iota(where, where + depth, at);
    } else if constexpr (kWhere) {
      for (int64_t c = 0; c < depth; ++c) {
        if (!(x[c] > largest[c])) continue;
        largest[c] = x[c];
        where[c] = at + c;
      }
    } else {
      for (int64_t c = 0; c < depth; ++c) largest[c] = x[c] > largest[c] ? x[c] : largest[c];
    }
    is_first = false;
  });
}

template <typename T>
void MeanOf(const RegionGrid& grid, int64_t i, const T* __restrict in, T* __restrict mean) {
  std::fill_n(mean, grid.depth, T(0));
  grid.ForRegion(i, [in, mean, depth = grid.depth](int64_t at) {
    const T* __restrict x = in + at;
    T* __restrict sum = mean;
    int64_t c = 0;
    for (; c + 8 <= depth; c += 8) {
      for (int64_t k = c; k < c + 8; ++k) sum[k] = Plus(sum[k], x[k]);  // in vectors
    }
    for (; c < depth; ++c) sum[c] = Plus(sum[c], x[c]);
  });
  const T size = static_cast<T>(grid.RegionSize(i));
  if (size == T(0)) return;
  int64_t c = 0;
  for (; c + 8 <= grid.depth; c += 8) {
    for (int64_t k = c; k < c + 8; ++k) mean[k] /= size;
  }
  for (; c < grid.depth; ++c) mean[c] /= size;
}

template <bool kIsMax>
class FractionalPoolKernel final : public Kernel {
 public:
  FractionalPoolKernel(KernelConstruction& construction, absl::Status* status)
      : pseudo_random_(construction.Attr<bool>("pseudo_random")),
        overlapping_(construction.Attr<bool>("overlapping")) {
    *status = Read(construction);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 4) {
      return InvalidArgument("the input must be of rank 4, got shape ", in.shape().ToString());
    }
    Borders borders[2];
    // The sequences of a seed are the same in every run.
    Philox position = PhiloxStream(seed_, seed2_).Reserve(0);
    for (int d = 0; d < 4; ++d) {
      const auto size = static_cast<double>(in.dim(d));
      const auto ratio = static_cast<double>(ratios_[d]);
      if (size < ratio) {
        return InvalidArgument("dimension ", d, " of the input of shape ", in.shape().ToString(),
                               " is smaller than its pooling ratio, ", ratio);
      }
      if (d == 0 || d == 3) continue;
      if (in.dim(d) > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("the input of shape ", in.shape().ToString(), " is too large");
      }
      borders[d - 1] = MakeBorders(in.dim(d), static_cast<int64_t>(std::floor(size / ratio)),
                                   pseudo_random_, &position);
    }
    const auto regions = [&](int d) {
      const Borders& b = borders[d - 1];
      return Regions{b.data(), static_cast<int64_t>(b.size()) - 1, in.dim(d), overlapping_};
    };
    const RegionGrid grid{in.dim(0), in.dim(3), regions(1), regions(2)};
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), grid.output_shape()));
    for (int i = 0; i < 2; ++i) {
      TROUPE_RETURN_IF_ERROR(PutIntegers(ctx, i + 1, ElementType::kInt64, borders[i]));
    }
    return SwitchType<float, double, int32_t, int64_t>(in.type(), [&]<typename T>() {
      const T* from = in.unchecked_data<T>();
      T* to = out->mutable_data<T>();
      ctx.ParallelFor(grid.pixels(), KernelContext::GrainFor(grid.pixel_ns()),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          if constexpr (kIsMax) {
                            LargestOf<false, T>(grid, i, from, to + i * grid.depth, nullptr);
                          } else {
                            MeanOf(grid, i, from, to + i * grid.depth);
                          }
                        }
                      });
      return absl::OkStatus();
    });
  }

 private:
  absl::Status Read(const KernelConstruction& construction) {
    TROUPE_RETURN_IF_ERROR(construction.GetAttr("pooling_ratio", &ratios_));
    if (ratios_.size() != 4) {
      return InvalidArgument("pooling_ratio must have 4 elements, got ", ratios_.size());
    }
    for (const float ratio : ratios_) {
      if (!(ratio >= 1)) {
        return InvalidArgument("the pooling ratios must be at least 1, got ", ratio);
      }
    }
    if (ratios_[0] != 1 || ratios_[3] != 1) {
      return absl::UnimplementedError("the pooling ratios of batch and channels must be 1");
    }
    seed_ = construction.Attr<int64_t>("seed");
    seed2_ = construction.Attr<int64_t>("seed2");
    if (!construction.Attr<bool>("deterministic")) {
      if (seed_ == 0 && seed2_ == 0) return absl::OkStatus();
      return InvalidArgument("seed and seed2 must be 0 unless deterministic is set, got ", seed_,
                             " and ", seed2_);
    }
    if (seed_ == 0 && seed2_ == 0) {
      const Philox drawn = PhiloxStream(0, 0).Reserve(0);
      seed_ = static_cast<int64_t>(drawn.key());
      seed2_ = static_cast<int64_t>(drawn.counter_high());
    }
    return absl::OkStatus();
  }

  const bool pseudo_random_, overlapping_;
  std::vector<float> ratios_;
  int64_t seed_ = 0, seed2_ = 0;
};

// The regions of a gradient, from the sequences that are inputs `at` and `at` + 1.
absl::StatusOr<RegionGrid> ReadRegions(const KernelContext& ctx, int at, const Shape& input,
                                       const Shape& gradient, bool overlapping) {
  if (input.rank() != 4 || gradient.rank() != 4) {
    return InvalidArgument("the input and out_backprop must be of rank 4, got shapes ",
                           input.ToString(), " and ", gradient.ToString());
  }
  RegionGrid grid{input.dim(0), input.dim(3), {}, {}};
  Regions* regions[] = {&grid.rows, &grid.columns};
  for (int d = 0; d < 2; ++d) {
    const char* name = d == 0 ? "row_pooling_sequence" : "col_pooling_sequence";
    const Tensor& borders = ctx.input(at + d);
    if (borders.rank() != 1 || borders.dim(0) != gradient.dim(d + 1) + 1) {
      return InvalidArgument(name, " must be a vector of ", gradient.dim(d + 1), " + 1 elements, ",
                             "got shape ", borders.shape().ToString());
    }
    *regions[d] = {borders.unchecked_data<int64_t>(), gradient.dim(d + 1), input.dim(d + 1),
                   overlapping};
  }
  if (!(gradient == grid.output_shape())) {
    return InvalidArgument("out_backprop has shape ", gradient.ToString(), ", expected ",
                           grid.output_shape().ToString());
  }
  return grid;
}

// Regions that overlap add to the same elements: one image after the other, on as many threads as
// there are images.
template <typename Body>
void ForImages(KernelContext& ctx, const RegionGrid& grid, Body body) {
  const int64_t pixels = grid.rows.count * grid.columns.count;
  const double ns = grid.pixel_ns() * static_cast<double>(pixels);
  ctx.ParallelFor(grid.batch, KernelContext::GrainFor(ns),
                  [&](int64_t begin, int64_t end) { body(begin * pixels, end * pixels); });
}

absl::Status FractionalMaxPoolGrad(KernelContext& ctx, bool overlapping) {
  const Tensor &in = ctx.input(0), &pooled = ctx.input(1), &gradient = ctx.input(2);
  TROUPE_ASSIGN_OR_RETURN(const RegionGrid grid,
                          ReadRegions(ctx, 3, in.shape(), gradient.shape(), overlapping));
  TROUPE_RETURN_IF_ERROR(CheckPoolShape("orig_output", pooled.shape(), grid.output_shape()));
  for (const Regions* regions : {&grid.rows, &grid.columns}) {
    for (int64_t i = 0; i < regions->count; ++i) {
      if (regions->begin(i) < regions->end(i)) continue;
      return InvalidArgument("the pooling sequences leave region ", i, ", from ",
                             regions->borders[i], " to ", regions->borders[i + 1],
                             ", without elements of the input of shape ", in.shape().ToString());
    }
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
  return SwitchType<float, double, int32_t, int64_t>(in.type(), [&]<typename T>() -> absl::Status {
    T* dx = out->mutable_data<T>();
    std::fill_n(dx, out->num_elements(), T(0));
    std::vector<char> differs(grid.batch, 0);
    ForImages(ctx, grid, [&](int64_t begin, int64_t end) {
      std::vector<T> largest(grid.depth);
      std::vector<int64_t> where(grid.depth);
      for (int64_t i = begin; i < end; ++i) {
        LargestOf<true, T>(grid, i, in.unchecked_data<T>(), largest.data(), where.data());
        for (int64_t c = 0; c < grid.depth; ++c) {
          const int64_t at = i * grid.depth + c;
          if (!(largest[c] == pooled.unchecked_data<T>()[at])) {
            differs[i / grid.columns.count / grid.rows.count] = 1;
          }
          dx[where[c]] = Plus(dx[where[c]], gradient.unchecked_data<T>()[at]);
        }
      }
    });
    if (std::find(differs.begin(), differs.end(), 1) != differs.end()) {
      return InvalidArgument("orig_output is not what pooling orig_input by these sequences gives");
    }
    return absl::OkStatus();
  });
}

absl::Status FractionalAvgPoolGrad(KernelContext& ctx, bool overlapping) {
  const Tensor& gradient = ctx.input(1);
  TROUPE_ASSIGN_OR_RETURN(const Shape shape,
                          ReadShapeVector(ctx.input(0), "orig_input_tensor_shape"));
  TROUPE_ASSIGN_OR_RETURN(const RegionGrid grid,
                          ReadRegions(ctx, 2, shape, gradient.shape(), overlapping));
  for (const Regions* regions : {&grid.rows, &grid.columns}) {
    for (int64_t i = 0; i < regions->count; ++i) {
      if (regions->borders[i] >= 0 && regions->borders[i] < regions->borders[i + 1]) continue;
      return InvalidArgument("the pooling sequences must increase and must not be negative, got ",
                             regions->borders[i], " and ", regions->borders[i + 1]);
    }
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, gradient.type(), shape));
  return SwitchType<float, double, int32_t, int64_t>(gradient.type(), [&]<typename T>() {
    std::vector<double> sums(out->num_elements(), 0.0);
    ForImages(ctx, grid, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* dy = gradient.unchecked_data<T>() + i * grid.depth;
        const auto size = static_cast<double>(grid.RegionSize(i));
        grid.ForRegion(i, [&](int64_t at) {
          for (int64_t c = 0; c < grid.depth; ++c) {
            sums[at + c] += static_cast<double>(dy[c]) / size;
          }
        });
      }
    });
    T* dx = out->mutable_data<T>();
    for (size_t i = 0; i < sums.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        // What does not fit becomes the nearest that does.
        constexpr double kMost = static_cast<double>(std::numeric_limits<T>::max());
        dx[i] = sums[i] >= kMost    ? std::numeric_limits<T>::max()
                : sums[i] <= -kMost ? std::numeric_limits<T>::min()
                                    : static_cast<T>(sums[i]);
      } else {
        dx[i] = static_cast<T>(sums[i]);
      }
    }
    return absl::OkStatus();
  });
}

KernelSpec Spec(const char* op) {
  return KernelSpec(op).Types(
      "T", {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32, ElementType::kInt64});
}

REGISTER_KERNEL(Spec("FractionalMaxPool"), MakeKernel<FractionalPoolKernel<true>>);
REGISTER_KERNEL(Spec("FractionalAvgPool"), MakeKernel<FractionalPoolKernel<false>>);
REGISTER_KERNEL(Spec("FractionalMaxPoolGrad"),
                (MakeAttrKernel<FractionalMaxPoolGrad, "overlapping">));
REGISTER_KERNEL(Spec("FractionalAvgPoolGrad"),
                (MakeAttrKernel<FractionalAvgPoolGrad, "overlapping">));

}  // namespace
}  // namespace troupe
