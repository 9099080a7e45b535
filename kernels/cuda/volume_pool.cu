// Poolings of volumes: a thread for each element of the output, or, where channels lie together,
// for 16 bytes of them. Gradients are gathered from the windows that an element is in.
#include "kernels/cuda/volume_pool.h"

#include "kernels/cuda/group.cuh"
#include "kernels/cuda/windows.cuh"

namespace troupe::cuda {
namespace {

using Range = Slide::Range;

/// One side of a pooling, of packs of channels.
struct Side {
  Coordinates<5> items;
  int64_t planes, rows, columns, packs;
  bool channels_first;

  struct Place {
    int64_t volume, plane, row, column, pack;
  };
  __device__ Place Of(int64_t i) const {
    int64_t at[5];
    items.Split(i, at);
    if (channels_first) return {at[0], at[2], at[3], at[4], at[1]};
    return {at[0], at[1], at[2], at[3], at[4]};
  }
  /// The pack of the same volume and channels at another pixel.
  __device__ int64_t At(const Place& p, int64_t plane, int64_t row, int64_t column) const {
    const int64_t volume = channels_first ? p.volume * packs + p.pack : p.volume;
    const int64_t pixel = ((volume * planes + plane) * rows + row) * columns + column;
    return channels_first ? pixel : pixel * packs + p.pack;
  }
};

Side MakeSide(const VolumePool& p, bool output, int pack) {
  const auto size = [output](const WindowAxis& a) { return output ? a.output : a.input; };
  const int64_t planes = size(p.planes), rows = size(p.rows), columns = size(p.columns);
  const int64_t packs = p.channels / pack;
  return {p.channels_first ? Coordinates<5>(p.batch, packs, planes, rows, columns)
                           : Coordinates<5>(p.batch, planes, rows, columns, packs),
          planes,
          rows,
          columns,
          packs,
          p.channels_first};
}

struct Plan {
  Side input, output;
  Slide planes, rows, columns;

  Plan(const VolumePool& p, int pack)
      : input(MakeSide(p, false, pack)),
        output(MakeSide(p, true, pack)),
        planes(p.planes),
        rows(p.rows),
        columns(p.columns) {}

  /// Calls body(element) for the packs of the input in a window; gives their number.
  template <typename Body>
  __device__ int64_t ForElements(const Side::Place& window, Body body) const {
    const Range z = planes.ElementsOf(window.plane), y = rows.ElementsOf(window.row);
    const Range x = columns.ElementsOf(window.column);
    For(z, y, x, [&](int64_t plane, int64_t row, int64_t column) {
      body(input.At(window, plane, row, column));
    });
    return z.size() * y.size() * x.size();
  }
  /// Calls body(window, its number of elements) for the windows that have a pack of the input.
  template <typename Body>
  __device__ void ForWindows(const Side::Place& element, Body body) const {
    For(planes.WindowsOf(element.plane), rows.WindowsOf(element.row),
        columns.WindowsOf(element.column), [&](int64_t plane, int64_t row, int64_t column) {
          const int64_t count = planes.ElementsOf(plane).size() * rows.ElementsOf(row).size() *
                                columns.ElementsOf(column).size();
          body(output.At(element, plane, row, column), count);
        });
  }

 private:
  template <typename Body>
  __device__ static void For(const Range& planes, const Range& rows, const Range& columns,
                             Body body) {
    for (int64_t z = planes.begin; z < planes.end; ++z) {
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t x = columns.begin; x < columns.end; ++x) body(z, y, x);
      }
    }
  }
};

template <typename T, int kPack>
__device__ Packed<T, kPack> Narrow(const float (&values)[kPack]) {
  Packed<T, kPack> result;
  for (int k = 0; k < kPack; ++k) result.values[k] = static_cast<T>(values[k]);
  return result;
}

template <typename T, int kPack>
struct Max {
  static constexpr bool kOverOutput = true;
  Plan plan;
  const Packed<T, kPack>* input;
  Packed<T, kPack>* output;
  __device__ void operator()(int64_t i) const {
    float best[kPack];
    for (int k = 0; k < kPack; ++k) best[k] = -kInfinity<float>;
    plan.ForElements(plan.output.Of(i), [&](int64_t at) {
      const Packed<T, kPack> in = input[at];
      for (int k = 0; k < kPack; ++k) {
        const auto value = static_cast<float>(in.values[k]);
        best[k] = best[k] > value ? best[k] : value;
      }
    });
    output[i] = Narrow<T>(best);
  }
};

template <typename T, int kPack>
struct MaxGrad {
  static constexpr bool kOverOutput = false;
  Plan plan;
  const Packed<T, kPack>*input, *pooled, *gradient;
  Packed<T, kPack>* output;
  __device__ void operator()(int64_t i) const {
    const Packed<T, kPack> own = input[i];
    float sums[kPack] = {};
    plan.ForWindows(plan.input.Of(i), [&](int64_t at, int64_t) {
      const Packed<T, kPack> largest = pooled[at], dy = gradient[at];
      for (int k = 0; k < kPack; ++k) {
        if (static_cast<float>(own.values[k]) == static_cast<float>(largest.values[k])) {
          sums[k] += static_cast<float>(dy.values[k]);
        }
      }
    });
    output[i] = Narrow<T>(sums);
  }
};

template <typename T, int kPack>
struct MaxGradGrad {
  static constexpr bool kOverOutput = true;
  Plan plan;
  const Packed<T, kPack>*input, *pooled, *gradient;
  Packed<T, kPack>* output;
  __device__ void operator()(int64_t i) const {
    const Packed<T, kPack> largest = pooled[i];
    float taken[kPack] = {};
    bool found[kPack] = {};
    plan.ForElements(plan.output.Of(i), [&](int64_t at) {
      const Packed<T, kPack> in = input[at], from = gradient[at];
      for (int k = 0; k < kPack; ++k) {
        const bool is_largest =
            static_cast<float>(in.values[k]) == static_cast<float>(largest.values[k]);
        if (found[k] || !is_largest) continue;
        found[k] = true;
        taken[k] = static_cast<float>(from.values[k]);
      }
    });
    output[i] = Narrow<T>(taken);
  }
};

template <typename T, int kPack>
struct Avg {
  static constexpr bool kOverOutput = true;
  Plan plan;
  const Packed<T, kPack>* input;
  Packed<T, kPack>* output;
  __device__ void operator()(int64_t i) const {
    float sums[kPack] = {};
    const int64_t count = plan.ForElements(plan.output.Of(i), [&](int64_t at) {
      const Packed<T, kPack> in = input[at];
      for (int k = 0; k < kPack; ++k) sums[k] += static_cast<float>(in.values[k]);
    });
    const float part = 1 / static_cast<float>(count);
    for (int k = 0; k < kPack; ++k) sums[k] *= part;
    output[i] = Narrow<T>(sums);
  }
};

template <typename T, int kPack>
struct AvgGrad {
  static constexpr bool kOverOutput = false;
  Plan plan;
  const Packed<T, kPack>* gradient;
  Packed<T, kPack>* output;
  __device__ void operator()(int64_t i) const {
    float sums[kPack] = {};
    plan.ForWindows(plan.input.Of(i), [&](int64_t at, int64_t count) {
      const Packed<T, kPack> dy = gradient[at];
      const float part = 1 / static_cast<float>(count);
      for (int k = 0; k < kPack; ++k) sums[k] += static_cast<float>(dy.values[k]) * part;
    });
    output[i] = Narrow<T>(sums);
  }
};

/// Any pointer, as a pointer to packs.
struct Operand {
  const void* data;
  template <typename P>
  operator P*() const {
    return static_cast<P*>(const_cast<void*>(data));
  }
};

template <template <typename, int> class Body, typename T, int kPack, typename... Operands>
cudaError_t RunAs(const VolumePool& p, cudaStream_t stream, Operands... operands) {
  using B = Body<T, kPack>;
  const Plan plan(p, kPack);
  const Side& over = B::kOverOutput ? plan.output : plan.input;
  return ForEach(p.batch * over.planes * over.rows * over.columns * over.packs, stream,
                 B{plan, operands...});
}

/// `operands` are the members of Body after the plan.
template <template <typename, int> class Body, typename... Operands>
cudaError_t Run(Number type, const VolumePool& p, cudaStream_t stream, Operands... operands) {
  return VisitSmallFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    constexpr int kPack = 16 / sizeof(T);
    const bool packed =
        !p.channels_first && p.channels % kPack == 0 && (IsAligned(operands.data) && ...);
    return packed ? RunAs<Body, T, kPack>(p, stream, operands...)
                  : RunAs<Body, T, 1>(p, stream, operands...);
  });
}

}  // namespace

cudaError_t LaunchVolumeMax(Number type, const VolumePool& p, const void* input, void* output,
                            cudaStream_t stream) {
  return Run<Max>(type, p, stream, Operand{input}, Operand{output});
}

cudaError_t LaunchVolumeMaxGrad(Number type, const VolumePool& p, const void* input,
                                const void* pooled, const void* gradient, void* output,
                                cudaStream_t stream) {
  return Run<MaxGrad>(type, p, stream, Operand{input}, Operand{pooled}, Operand{gradient},
                      Operand{output});
}

cudaError_t LaunchVolumeMaxGradGrad(Number type, const VolumePool& p, const void* input,
                                    const void* pooled, const void* gradient, void* output,
                                    cudaStream_t stream) {
  return Run<MaxGradGrad>(type, p, stream, Operand{input}, Operand{pooled}, Operand{gradient},
                          Operand{output});
}

cudaError_t LaunchVolumeAvg(Number type, const VolumePool& p, const void* input, void* output,
                            cudaStream_t stream) {
  return Run<Avg>(type, p, stream, Operand{input}, Operand{output});
}

cudaError_t LaunchVolumeAvgGrad(Number type, const VolumePool& p, const void* gradient,
                                void* output, cudaStream_t stream) {
  return Run<AvgGrad>(type, p, stream, Operand{gradient}, Operand{output});
}

}  // namespace troupe::cuda
