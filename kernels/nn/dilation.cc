// Dilation2D, the grayscale dilation of mathematical morphology, and its gradients.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/common/switch_number.h"
#include "kernels/kernel.h"
#include "kernels/nn/dilation_shape.h"
#include "kernels/nn/plus.h"

namespace troupe {
namespace {

// Nanoseconds that a row of the output takes.
double RowNs(const DilationShape& s) {
  return static_cast<double>(s.columns.output * s.depth) *
         static_cast<double>(s.rows.size * s.columns.size);
}

template <typename T>
T LowestOf() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(-std::numeric_limits<float>::infinity());
  }
}

class DilationKernel : public Kernel {
 public:
  DilationKernel(KernelConstruction& construction, absl::Status* status) {
    *status = attributes_.Read(construction);
  }

 protected:
  // Calls visit(input pixel, filter pixel) for the elements inside the input of the window at an
  // output row, counted over all images, and column.
  template <typename Visit>
  static void ForWindow(const DilationShape& s, int64_t row, int64_t column, Visit visit) {
    const int64_t image = row / s.rows.output * s.rows.input;
    const int64_t y0 = row % s.rows.output * s.rows.stride - s.rows.pad_before;
    const int64_t x0 = column * s.columns.stride - s.columns.pad_before;
    for (int64_t r = 0; r < s.rows.size; ++r) {
      const int64_t y = y0 + r * s.rows.dilation;
      if (y < 0 || y >= s.rows.input) continue;
      for (int64_t c = 0; c < s.columns.size; ++c) {
        const int64_t x = x0 + c * s.columns.dilation;
        if (x < 0 || x >= s.columns.input) continue;
        visit((image + y) * s.columns.input + x, r * s.columns.size + c);
      }
    }
  }

  // For each channel of an output pixel where its largest sum stems from: an element of the input
  // and one of the filter.
  template <typename T>
  class Sources {
   public:
    explicit Sources(const DilationShape& s)
        : depth_(s.depth), pixels_(s.rows.size * s.columns.size), taps_(s.depth) {}

    /// False if the window is outside the input.
    bool Find(const DilationShape& s, int64_t row, int64_t column, const T* in, const T* filter) {
      inside_.clear();
      ForWindow(s, row, column, [&](int64_t from, int64_t tap) {
        pixels_[tap] = from;
        inside_.push_back(static_cast<int32_t>(tap));
      });
      if (inside_.empty()) return false;
      int64_t c = 0;
      for (; c + kBlock <= depth_; c += kBlock) FindBlock<kBlock>(in, filter, c);
      for (; c < depth_; ++c) FindBlock<1>(in, filter, c);
      return true;
    }

    int64_t input(int64_t c) const { return pixels_[taps_[c]] * depth_ + c; }
    int64_t filter(int64_t c) const { return taps_[c] * depth_ + c; }

   private:
    static constexpr int kBlock = 8;  // channels at once, in vectors

    template <int kCount>
    void FindBlock(const T* in, const T* filter, int64_t c) {
      T best[kCount];
      int32_t taps[kCount];
      for (size_t i = 0; i < inside_.size(); ++i) {
        const int32_t tap = inside_[i];
        const T *x = in + pixels_[tap] * depth_ + c, *f = filter + tap * depth_ + c;
        for (int k = 0; k < kCount; ++k) {
          const T sum = Plus(x[k], f[k]);
          const bool more = i == 0 || sum > best[k];
          best[k] = more ? sum : best[k];
          taps[k] = more ? tap : taps[k];
        }
      }
      std::copy_n(taps, kCount, taps_.data() + c);
    }

    const int64_t depth_;
    std::vector<int64_t> pixels_;  // of the input, under each element of the window
    std::vector<int32_t> inside_;  // the elements of the window that are over the input
    std::vector<int32_t> taps_;
  };

  DilationAttributes attributes_;
};

class Dilation2DKernel final : public DilationKernel {
 public:
  using DilationKernel::DilationKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const DilationShape s, attributes_.Resolve(in.shape(), filter.shape()));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), s.output_shape()));
    if (out->num_elements() == 0) return absl::OkStatus();
    return SwitchReal(in.type(), [&]<typename T>() {
      ctx.ParallelFor(s.batch * s.rows.output, KernelContext::GrainFor(RowNs(s)),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t row = begin; row < end; ++row) {
                          Row(s, row, in.unchecked_data<T>(), filter.unchecked_data<T>(),
                              out->mutable_data<T>());
                        }
                      });
      return absl::OkStatus();
    });
  }

 private:
  template <typename T>
  static void Row(const DilationShape& s, int64_t row, const T* in, const T* filter, T* out) {
    for (int64_t column = 0; column < s.columns.output; ++column) {
      T* best = out + (row * s.columns.output + column) * s.depth;
      std::fill_n(best, s.depth, LowestOf<T>());
      ForWindow(s, row, column, [&](int64_t from, int64_t tap) {
        const T *x = in + from * s.depth, *f = filter + tap * s.depth;
        for (int64_t c = 0; c < s.depth; ++c) {
          const T sum = Plus(x[c], f[c]);
          best[c] = sum > best[c] ? sum : best[c];
        }
      });
    }
  }
};

class DilationBackpropInputKernel final : public DilationKernel {
 public:
  using DilationKernel::DilationKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const DilationShape s, attributes_.ResolveGradient(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), in.shape()));
    std::memset(out->mutable_raw_data(), 0, out->bytes());
    if (gradient.num_elements() == 0) return absl::OkStatus();
    const double image_ns = 2 * RowNs(s) * static_cast<double>(s.rows.output);
    return SwitchReal(in.type(), [&]<typename T>() {
      ctx.ParallelFor(s.batch, KernelContext::GrainFor(image_ns), [&](int64_t begin, int64_t end) {
        Sources<T> sources(s);
        T* dx = out->mutable_data<T>();
        const T* dy =
            gradient.unchecked_data<T>() + begin * s.rows.output * s.columns.output * s.depth;
        for (int64_t row = begin * s.rows.output; row < end * s.rows.output; ++row) {
          for (int64_t column = 0; column < s.columns.output; ++column, dy += s.depth) {
            if (!sources.Find(s, row, column, in.unchecked_data<T>(), filter.unchecked_data<T>())) {
              continue;
            }
            for (int64_t c = 0; c < s.depth; ++c) {
              T& sum = dx[sources.input(c)];
              sum = Plus(sum, dy[c]);
            }
          }
        }
      });
      return absl::OkStatus();
    });
  }
};

class DilationBackpropFilterKernel final : public DilationKernel {
 public:
  using DilationKernel::DilationKernel;

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &in = ctx.input(0), &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const DilationShape s, attributes_.ResolveGradient(ctx));
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.type(), filter.shape()));
    std::memset(out->mutable_raw_data(), 0, out->bytes());
    if (gradient.num_elements() == 0) return absl::OkStatus();
    return SwitchReal(in.type(), [&]<typename T>() {
      // The outputs of all images add to the same few elements: on this thread alone.
      Sources<T> sources(s);
      T* df = out->mutable_data<T>();
      const T* dy = gradient.unchecked_data<T>();
      for (int64_t row = 0; row < s.batch * s.rows.output; ++row) {
        for (int64_t column = 0; column < s.columns.output; ++column, dy += s.depth) {
          if (!sources.Find(s, row, column, in.unchecked_data<T>(), filter.unchecked_data<T>())) {
            continue;
          }
          for (int64_t c = 0; c < s.depth; ++c) {
            T& sum = df[sources.filter(c)];
            sum = Plus(sum, dy[c]);
          }
        }
      }
      return absl::OkStatus();
    });
  }
};

KernelSpec Spec(const char* op) { return KernelSpec(op).Types("T", RealNumberTypes()); }
REGISTER_KERNEL(Spec("Dilation2D"), MakeKernel<Dilation2DKernel>);
REGISTER_KERNEL(Spec("Dilation2DBackpropInput"), MakeKernel<DilationBackpropInputKernel>);
REGISTER_KERNEL(Spec("Dilation2DBackpropFilter"), MakeKernel<DilationBackpropFilterKernel>);

}  // namespace
}  // namespace troupe
