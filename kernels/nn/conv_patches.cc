// Convolutions of one group as products, for types without a library. A row of the matrix of
// patches is what the window at a pixel of the output sees; a filter is a matrix whose columns are
// the output's channels.
#include <algorithm>
#include <vector>

#include "kernels/linalg/product.h"
#include "kernels/nn/conv_loops.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

constexpr int64_t kPatchBytes =
    1 << 19;  // Of a block of patches: a part of the second-level cache.

template <typename T>
void Multiply(GemmProblem<T> p) {
  using U = Term<T>;
  RunProductHere<U>({p.m, p.n, p.k, reinterpret_cast<const U*>(p.a), p.a_row, p.a_col,
                     reinterpret_cast<const U*>(p.b), p.b_row, p.b_col, reinterpret_cast<U*>(p.c),
                     p.ldc});
}

template <typename T>
void AddTo(const T* in, int64_t n, T* out) {
  using U = Term<T>;
  for (int64_t i = 0; i < n; ++i)
    out[i] = static_cast<T>(static_cast<U>(out[i]) + static_cast<U>(in[i]));
}

// Numbers of a row of the matrix of patches.
int64_t PatchSize(const ConvShape& s) { return s.window_pixels() * s.in_depth; }

template <typename T>
int64_t RowsOfBlock(const ConvShape& s) {
  const int64_t row_bytes = PatchSize(s) * static_cast<int64_t>(sizeof(T));
  return std::clamp<int64_t>(kPatchBytes / row_bytes, 1, s.batch * s.output_pixels());
}

// The rows of the output's pixels from `begin` to `end`, which are numbered through all images.
template <typename T>
void GatherPatches(const ConvShape& s, const T* input, int64_t begin, int64_t end, T* patches) {
  const int64_t size = PatchSize(s), pixels = s.output_pixels();
  const int64_t image_size = s.input_pixels() * s.in_depth;
  std::fill(patches, patches + (end - begin) * size, T(0));
  for (int64_t i = begin; i < end; ++i) {
    const T* image = input + i / pixels * image_size;
    T* patch = patches + (i - begin) * size;
    ForWindow(s, i % pixels, [&](int64_t from, int64_t element) {
      std::copy_n(image + from * s.in_depth, s.in_depth, patch + element * s.in_depth);
    });
  }
}

double NanosecondsOfRow(const ConvShape& s) {
  return 0.1 * s.image_products() / static_cast<double>(s.output_pixels());
}

}  // namespace

template <typename T>
void PatchConvForward(KernelContext& ctx, const ConvShape& s, const T* input, const T* filter,
                      T* output) {
  const int64_t size = PatchSize(s), rows = s.batch * s.output_pixels(), block = RowsOfBlock<T>(s);
  ctx.ParallelFor((rows + block - 1) / block,
                  KernelContext::GrainFor(NanosecondsOfRow(s) * static_cast<double>(block)),
                  [&](int64_t first, int64_t last) {
                    std::vector<T> patches(static_cast<size_t>(block * size));
                    for (int64_t i = first; i < last; ++i) {
                      const int64_t begin = i * block, end = std::min(begin + block, rows);
                      GatherPatches(s, input, begin, end, patches.data());
                      Multiply<T>({end - begin, s.out_depth, size, patches.data(), size, 1, filter,
                                   s.out_depth, 1, output + begin * s.out_depth, s.out_depth});
                    }
                  });
}

template <typename T>
void PatchConvBackwardInput(KernelContext& ctx, const ConvShape& s, const T* filter,
                            const T* output_gradient, T* input_gradient) {
  const int64_t size = PatchSize(s), pixels = s.output_pixels();
  const int64_t image_size = s.input_pixels() * s.in_depth;
  const int64_t block = std::min(RowsOfBlock<T>(s), pixels);
  ctx.ParallelFor(
      s.batch, KernelContext::GrainFor(NanosecondsOfRow(s) * static_cast<double>(pixels)),
      [&](int64_t first, int64_t last) {
        std::vector<T> patches(static_cast<size_t>(block * size));
        std::fill(input_gradient + first * image_size, input_gradient + last * image_size, T(0));
        for (int64_t n = first; n < last; ++n) {
          T* image = input_gradient + n * image_size;
          for (int64_t begin = 0; begin < pixels; begin += block) {
            const int64_t end = std::min(begin + block, pixels);
            const T* gradient = output_gradient + (n * pixels + begin) * s.out_depth;
            Multiply<T>({end - begin, size, s.out_depth, gradient, s.out_depth, 1, filter, 1,
                         s.out_depth, patches.data(), size});
            for (int64_t i = begin; i < end; ++i) {
              const T* patch = patches.data() + (i - begin) * size;
              ForWindow(s, i, [&](int64_t to, int64_t element) {
                AddTo(patch + element * s.in_depth, s.in_depth, image + to * s.in_depth);
              });
            }
          }
        }
      });
}

template <typename T>
void PatchConvBackwardFilter(KernelContext& ctx, const ConvShape& s, const T* input,
                             const T* output_gradient, T* filter_gradient) {
  const int64_t size = PatchSize(s), rows = s.batch * s.output_pixels(), block = RowsOfBlock<T>(s);
  const int64_t blocks = (rows + block - 1) / block, sum_size = size * s.out_depth;
  // Each piece has a sum of its own; how many there are depends on the sizes only, for the same
  // bits on any number of threads.
  constexpr int64_t kMostPieces = 32, kMostBytes = 64 << 20;
  const int64_t pieces =
      std::min({blocks, kMostPieces,
                std::max<int64_t>(1, kMostBytes / (sum_size * static_cast<int64_t>(sizeof(T))))});
  std::vector<T> sums(static_cast<size_t>((pieces - 1) * sum_size));  // The first is the result.
  const auto sum_of = [&](int64_t piece) {
    return piece == 0 ? filter_gradient : sums.data() + (piece - 1) * sum_size;
  };
  ctx.ParallelFor(
      pieces,
      KernelContext::GrainFor(NanosecondsOfRow(s) * static_cast<double>(rows) /
                              static_cast<double>(pieces)),
      [&](int64_t first, int64_t last) {
        std::vector<T> patches(static_cast<size_t>(block * size)), product;
        for (int64_t piece = first; piece < last; ++piece) {
          T* sum = sum_of(piece);
          const int64_t first_block = blocks * piece / pieces;
          for (int64_t i = first_block; i < blocks * (piece + 1) / pieces; ++i) {
            const int64_t begin = i * block, end = std::min(begin + block, rows);
            GatherPatches(s, input, begin, end, patches.data());
            if (i > first_block) product.resize(static_cast<size_t>(sum_size));
            T* out = i > first_block ? product.data() : sum;
            Multiply<T>({size, s.out_depth, end - begin, patches.data(), 1, size,
                         output_gradient + begin * s.out_depth, s.out_depth, 1, out, s.out_depth});
            if (out != sum) AddTo(out, sum_size, sum);
          }
        }
      });
  for (int64_t piece = 1; piece < pieces; ++piece) AddTo(sum_of(piece), sum_size, filter_gradient);
}

#define TROUPE_INSTANTIATE(T)                                                                    \
  template void PatchConvForward<T>(KernelContext&, const ConvShape&, const T*, const T*, T*);   \
  template void PatchConvBackwardInput<T>(KernelContext&, const ConvShape&, const T*, const T*,  \
                                          T*);                                                   \
  template void PatchConvBackwardFilter<T>(KernelContext&, const ConvShape&, const T*, const T*, \
                                           T*);
TROUPE_INSTANTIATE(double)
TROUPE_INSTANTIATE(int32_t)
#undef TROUPE_INSTANTIATE

}  // namespace troupe
