// FFT, IFFT, RFFT, IRFFT and their two- and three-dimensional forms, of GPUs.
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fft.h"
#include "kernels/fft/fft_ops.h"

namespace troupe::cuda {
namespace {

constexpr const char* kWhat = "a Fourier transform";

bool IsWide(ElementType type) {
  return type == ElementType::kDouble || type == ElementType::kComplex128;
}
ElementType ComplexType(bool wide) {
  return wide ? ElementType::kComplex128 : ElementType::kComplex64;
}

/// Tables of a kernel in the card's memory. Thread-safe.
class Tables {
 public:
  /// The table for lines of n numbers, which `make()` (giving absl::StatusOr<Tensor>) enqueues if
  /// it was not kept. All that use it are enqueued behind that.
  template <typename Make>
  absl::StatusOr<Tensor> Get(int64_t n, Make make) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = kept_.begin(); it != kept_.end(); ++it) {
      if (it->first != n) continue;
      kept_.splice(kept_.begin(), kept_, it);
      return it->second;
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor table, make());
    kept_.emplace_front(n, table);
    if (kept_.size() > kMost) kept_.pop_back();
    return table;
  }

 private:
  static constexpr size_t kMost = 16;

  std::mutex mutex_;
  std::list<std::pair<int64_t, Tensor>> kept_;  ///< The last used first.
};

class CudaEngine final : public fft::Engine {
 public:
  absl::Status Complex(KernelContext& ctx, ElementType type, const fft::Lines& lines, int64_t n,
                       bool forward, const void* in, void* out) const override {
    const double scale = forward ? 1 : 1 / static_cast<double>(n);
    return Transform(ctx, IsWide(type), lines, n, !forward, scale, in, out);
  }

  absl::Status Real(KernelContext& ctx, ElementType type, int64_t count, int64_t n, const void* in,
                    void* out) const override {
    const bool wide = IsWide(type);
    const cudaStream_t stream = StreamOf(ctx);
    if (n % 2 == 0) {  // Even and odd numbers are the parts of half as many complex ones.
      TROUPE_ASSIGN_OR_RETURN(Tensor halves, Numbers(ctx, wide, count * (n / 2)));
      void* const work = halves.mutable_raw_data();
      TROUPE_RETURN_IF_ERROR(Transform(ctx, wide, {count, 1}, n / 2, false, 1, in, work));
      return CudaStatus(LaunchJoinHalves(wide, count, n, work, out, stream), kWhat);
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor numbers, Numbers(ctx, wide, count * n));
    void* const work = numbers.mutable_raw_data();
    TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchToComplex(wide, count * n, in, work, stream), kWhat));
    TROUPE_RETURN_IF_ERROR(Transform(ctx, wide, {count, 1}, n, false, 1, work, work));
    return CudaStatus(LaunchFirstHalf(wide, count, n, work, out, stream), kWhat);
  }

  absl::Status InverseReal(KernelContext& ctx, ElementType type, int64_t count, int64_t n,
                           const void* in, void* out) const override {
    const bool wide = IsWide(type);
    const cudaStream_t stream = StreamOf(ctx);
    const double scale = 1 / static_cast<double>(n);
    if (n % 2 == 0) {
      TROUPE_ASSIGN_OR_RETURN(Tensor halves, Numbers(ctx, wide, count * (n / 2)));
      void* const work = halves.mutable_raw_data();
      TROUPE_RETURN_IF_ERROR(
          CudaStatus(LaunchSplitHalves(wide, count, n, in, work, stream), kWhat));
      return Transform(ctx, wide, {count, 1}, n / 2, true, scale, work, out);
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor numbers, Numbers(ctx, wide, count * n));
    void* const work = numbers.mutable_raw_data();
    TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchBothHalves(wide, count, n, in, work, stream), kWhat));
    TROUPE_RETURN_IF_ERROR(Transform(ctx, wide, {count, 1}, n, true, scale, work, work));
    return CudaStatus(LaunchToReal(wide, count * n, work, out, stream), kWhat);
  }

 private:
  static absl::StatusOr<Tensor> Numbers(KernelContext& ctx, bool wide, int64_t count) {
    return ctx.AllocateTemp(ComplexType(wide), Shape({count}));
  }

  absl::Status Transform(KernelContext& ctx, bool wide, const fft::Lines& lines, int64_t n,
                         bool inverse, double scale, const void* in, void* out) const {
    std::vector<FftPass> passes = PlanFft(lines.outer, n, lines.inner, wide);
    if (passes.empty()) return RunChirp(ctx, wide, lines, n, inverse, scale, in, out);
    passes.front().swap_in = passes.back().swap_out = inverse;
    passes.back().scale = scale;
    return RunPasses(ctx, wide, passes, lines.outer * n * lines.inner, in, out);
  }

  /// Numbers go back and forth between `out`, which may be `in`, and a buffer.
  absl::Status RunPasses(KernelContext& ctx, bool wide, const std::vector<FftPass>& passes,
                         int64_t numbers, const void* in, void* out) const {
    Tensor buffer;
    if (passes.size() > 1) {
      TROUPE_ASSIGN_OR_RETURN(buffer, Numbers(ctx, wide, numbers));
    }
    for (size_t i = 0; i < passes.size(); ++i) {
      const FftPass& pass = passes[i];
      TROUPE_ASSIGN_OR_RETURN(const Tensor roots, roots_.Get(pass.radix, [&]() {
        return MakeRoots(ctx, wide, pass.radix);
      }));
      const bool last = i + 1 == passes.size();
      void* const to = last || i % 2 == 1 ? out : buffer.mutable_raw_data();
      TROUPE_RETURN_IF_ERROR(
          CudaStatus(LaunchFftPass(wide, pass, roots.raw_data(), in, to, StreamOf(ctx)), kWhat));
      in = to;
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<Tensor> MakeRoots(KernelContext& ctx, bool wide, int64_t n) {
    TROUPE_ASSIGN_OR_RETURN(Tensor roots, Numbers(ctx, wide, n));
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchRoots(wide, n, roots.mutable_raw_data(), StreamOf(ctx)), kWhat));
    return roots;
  }

  absl::Status RunChirp(KernelContext& ctx, bool wide, const fft::Lines& lines, int64_t n,
                        bool inverse, double scale, const void* in, void* out) const {
    const cudaStream_t stream = StreamOf(ctx);
    const Chirp chirp{lines.outer, n, lines.inner, SmoothSize(2 * n - 1)};
    TROUPE_ASSIGN_OR_RETURN(const Tensor filter,
                            filters_.Get(n, [&]() { return MakeFilter(ctx, wide, chirp); }));
    TROUPE_ASSIGN_OR_RETURN(Tensor buffer,
                            Numbers(ctx, wide, lines.outer * chirp.length * lines.inner));
    void* const work = buffer.mutable_raw_data();
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchChirpIn(wide, chirp, inverse, in, work, stream), kWhat));
    TROUPE_RETURN_IF_ERROR(Transform(ctx, wide, lines, chirp.length, false, 1, work, work));
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(LaunchTimesFilter(wide, chirp, filter.raw_data(), work, stream), kWhat));
    // The filter has been divided by the length.
    TROUPE_RETURN_IF_ERROR(Transform(ctx, wide, lines, chirp.length, true, 1, work, work));
    return CudaStatus(LaunchChirpOut(wide, chirp, inverse, scale, work, out, stream), kWhat);
  }

  absl::StatusOr<Tensor> MakeFilter(KernelContext& ctx, bool wide, const Chirp& chirp) const {
    TROUPE_ASSIGN_OR_RETURN(Tensor filter, Numbers(ctx, wide, chirp.length));
    void* const data = filter.mutable_raw_data();
    TROUPE_RETURN_IF_ERROR(CudaStatus(LaunchChirpFilter(wide, chirp, data, StreamOf(ctx)), kWhat));
    TROUPE_RETURN_IF_ERROR(Transform(ctx, wide, {1, 1}, chirp.length, false, 1, data, data));
    return filter;
  }

  mutable Tables roots_, filters_;
};

}  // namespace

void RegisterFft(Extension& extension) {
  fft::ForEachSpec([&extension](const KernelSpec& spec) {
    KernelSpec of_cards = spec;
    of_cards.Device("GPU");
    if (spec.op.find("RFFT") != std::string::npos) of_cards.HostMemory("fft_length");
    extension.Kernel(of_cards, [](KernelConstruction& construction) {
      return fft::Make(construction, std::make_unique<CudaEngine>());
    });
  });
}

}  // namespace troupe::cuda
