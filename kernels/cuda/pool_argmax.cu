// Max poolings with indices: a thread for each element. The gradient is gathered from the windows
// that an element is in. Indices that point elsewhere, which no pooling gives, make each thread
// look at all outputs of its image.
#include "kernels/cuda/pool_argmax.h"

#include "kernels/cuda/late_check.cuh"
#include "kernels/cuda/parallel.cuh"
#include "kernels/cuda/windows.cuh"

namespace troupe::cuda {
namespace {

struct Plan {
  Coordinates<4> inputs, outputs;  ///< Images, rows, columns, channels.
  Slide rows, columns;
  int64_t depth, image_size, output_size;
  bool include_batch;

  explicit Plan(const ArgmaxPool& p)
      : inputs(p.batch, p.rows.input, p.columns.input, p.depth),
        outputs(p.batch, p.rows.output, p.columns.output, p.depth),
        rows(p.rows),
        columns(p.columns),
        depth(p.depth),
        image_size(p.rows.input * p.columns.input * p.depth),
        output_size(p.rows.output * p.columns.output * p.depth),
        include_batch(p.include_batch) {}

  /// The index of an image's first element.
  __device__ int64_t First(int64_t image) const { return include_batch ? image * image_size : 0; }
};

template <typename T>
struct FindMax {
  Plan plan;
  const T* input;
  T* output;
  int64_t* argmax;

  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    int64_t at[4];
    plan.outputs.Split(i, at);
    const Slide::Range rows = plan.rows.ElementsOf(at[1]), columns = plan.columns.ElementsOf(at[2]);
    const T* const image = input + at[0] * plan.image_size;
    int64_t found = (rows.begin * plan.columns.input + columns.begin) * plan.depth + at[3];
    T best = image[found];
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const int64_t here = (y * plan.columns.input + x) * plan.depth + at[3];
        const T value = image[here];
        if (!(static_cast<W>(value) > static_cast<W>(best))) continue;
        best = value;
        found = here;
      }
    }
    output[i] = best;
    argmax[i] = plan.First(at[0]) + found;
  }
};

struct CheckArgmax {
  Plan plan;
  const int64_t* argmax;
  int32_t* strays;
  LateCheck check;

  __device__ void operator()(int64_t i) const {
    int64_t at[4], from[4];
    plan.outputs.Split(i, at);
    const int64_t first = plan.First(at[0]), index = argmax[i] - first;
    if (index < 0 || index >= plan.image_size) {
      ReportLate(check, i, argmax[i], plan.include_batch ? first : plan.image_size);
      return;
    }
    plan.inputs.Split(index, from);
    const Slide::Range rows = plan.rows.ElementsOf(at[1]), columns = plan.columns.ElementsOf(at[2]);
    const bool in_window = from[1] >= rows.begin && from[1] < rows.end &&
                           from[2] >= columns.begin && from[2] < columns.end && from[3] == at[3];
    if (!in_window) *strays = 1;  // Whoever writes it.
  }
};

template <typename T>
struct TakeGradients {
  Plan plan;
  const T* gradient;
  const int64_t* argmax;
  const int32_t* strays;
  T* output;

  __device__ void operator()(int64_t i) const {
    using W = WideType<T>;
    int64_t at[4];
    plan.inputs.Split(i, at);
    const int64_t own = i - at[0] * plan.image_size + plan.First(at[0]);
    const int64_t outputs = at[0] * plan.output_size;
    W sum(0);
    const auto add = [&](int64_t output) {
      if (argmax[output] == own) sum += static_cast<W>(gradient[output]);
    };
    if (*strays != 0) {
      for (int64_t k = 0; k < plan.output_size; ++k) add(outputs + k);
    } else {
      const Slide::Range rows = plan.rows.WindowsOf(at[1]), columns = plan.columns.WindowsOf(at[2]);
      for (int64_t y = rows.begin; y < rows.end; ++y) {
        for (int64_t x = columns.begin; x < columns.end; ++x) {
          add(outputs + (y * plan.columns.output + x) * plan.depth + at[3]);
        }
      }
    }
    output[i] = static_cast<T>(sum);
  }
};

}  // namespace

cudaError_t LaunchMaxPoolArgmax(Number type, const ArgmaxPool& p, const void* input, void* output,
                                int64_t* argmax, cudaStream_t stream) {
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    const Plan plan(p);
    return ForEach(p.batch * plan.output_size, stream,
                   FindMax<T>{plan, static_cast<const T*>(input), static_cast<T*>(output), argmax});
  });
}

cudaError_t LaunchMaxPoolArgmaxGrad(Number type, const ArgmaxPool& p, const void* gradient,
                                    const int64_t* argmax, int32_t* strays, const LateCheck& check,
                                    void* output, cudaStream_t stream) {
  const Plan plan(p);
  cudaError_t error = cudaMemsetAsync(strays, 0, sizeof(*strays), stream);
  if (error != cudaSuccess) return error;
  error = ForEach(p.batch * plan.output_size, stream, CheckArgmax{plan, argmax, strays, check});
  if (error != cudaSuccess) return error;
  return VisitFloating(type, [&](auto tag) {
    using T = typename decltype(tag)::Type;
    return ForEach(p.batch * plan.image_size, stream,
                   TakeGradients<T>{plan, static_cast<const T*>(gradient), argmax, strays,
                                    static_cast<T*>(output)});
  });
}

}  // namespace troupe::cuda
