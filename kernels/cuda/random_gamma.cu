// Numbers of gamma distributions, by the CPU's method (kernels/random/gamma_kernels.cc).
#include "kernels/cuda/random.cuh"

namespace troupe::cuda {
namespace {

/// The uniform and the normal numbers of a stream, each from the back of its pairs.
class Numbers {
 public:
  __device__ Numbers(const PhiloxStart& start, uint64_t block) : start_(start), block_(block) {}

  __device__ double Uniform() {
    if (uniforms_left_ == 0) {
      const Words words = BlockAt(start_, block_++);
      for (int j = 0; j < 2; ++j) uniforms_[j] = cuda::Uniform<double>(words, j);
      uniforms_left_ = 2;
    }
    return uniforms_[--uniforms_left_];
  }
  __device__ double Normal() {
    if (normals_left_ == 0) {
      const Words words = BlockAt(start_, block_++);
      BoxMuller(cuda::Uniform<double>(words, 0), cuda::Uniform<double>(words, 1), normals_);
      normals_left_ = 2;
    }
    return normals_[--normals_left_];
  }

 private:
  const PhiloxStart& start_;
  uint64_t block_;
  double uniforms_[2], normals_[2];
  int uniforms_left_ = 0, normals_left_ = 0;
};

/// Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", ACM TOMS 26 (2000).
__device__ double DrawGamma(double alpha, Numbers& numbers) {
  if (alpha == 1) return -log1p(-numbers.Uniform());
  // The method is for alpha >= 1; below that a number of alpha + 1 is scaled down.
  const double d = alpha + (alpha < 1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
  while (true) {
    const double x = numbers.Normal();
    double v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = numbers.Uniform();
    // The first condition is sufficient, and spares the logarithms.
    if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v))) {
      const double drawn = d * v;
      return alpha < 1 ? drawn * pow(numbers.Uniform(), 1 / alpha) : drawn;
    }
  }
}

/// An output takes 256 blocks; they are counted set by set.
template <typename T>
struct Gamma {
  __device__ void operator()(int64_t i) const {
    const int64_t sample = i / call.sets, set = i - sample * call.sets;
    Numbers numbers(call.start, static_cast<uint64_t>(set * call.samples + sample) * 256);
    const auto alpha = static_cast<WideType<T>>(static_cast<const T*>(call.alpha)[set]);
    static_cast<T*>(call.out)[i] =
        static_cast<T>(static_cast<WideType<T>>(DrawGamma(alpha, numbers)));
  }
  GammaCall call;
};

}  // namespace

cudaError_t LaunchGamma(const GammaCall& call, cudaStream_t stream) {
  return VisitFloating(call.type, [&](auto tag) {
    return ForEach(call.sets * call.samples, stream, Gamma<typename decltype(tag)::Type>{call});
  });
}

}  // namespace troupe::cuda
