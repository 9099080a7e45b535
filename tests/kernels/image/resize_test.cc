// Resizing against naive loops in double precision.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

struct Mode {
  bool align_corners, half_pixel_centers;
};
constexpr Mode kModes[] = {{false, false}, {true, false}, {false, true}};

double Scale(int64_t from, int64_t to, const Mode& mode) {
  const auto f = static_cast<float>(from), t = static_cast<float>(to);
  return static_cast<double>(mode.align_corners && to > 1 ? (f - 1) / (t - 1) : f / t);
}

/// weights[i] of old pixel i in new pixel `x`.
std::vector<double> Weights(const std::string& op, int64_t x, int64_t from, int64_t to,
                            const Mode& mode) {
  std::vector<double> weights(static_cast<size_t>(from), 0.0);
  const double scale = Scale(from, to, mode);
  const auto at = static_cast<double>(x);
  const double position = mode.half_pixel_centers ? (at + 0.5) * scale - 0.5 : at * scale;
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i, 0, from - 1); };
  const auto lower = static_cast<int64_t>(std::floor(position));
  const double fraction = position - static_cast<double>(lower);
  if (op == "ResizeBilinear") {
    weights[clamp(lower)] += 1 - fraction;
    weights[clamp(lower + 1)] += fraction;
  } else if (op == "ResizeBicubic") {
    const double a = mode.half_pixel_centers ? -0.5 : -0.75;
    double sum = 0;
    for (int k = -1; k <= 2; ++k) {
      const double d = std::abs(fraction - k);
      const double weight = d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1
                                   : a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
      if (mode.half_pixel_centers && clamp(lower + k) != lower + k) continue;
      weights[clamp(lower + k)] += weight;
      sum += weight;
    }
    for (double& weight : weights) weight /= sum;
  } else {
    const double begin = at * scale, end = (at + 1) * scale;
    for (int64_t i = 0; i < from; ++i) {
      const auto low = static_cast<double>(i);
      const double high = i == from - 1 ? std::max(low + 1, end) : low + 1;
      weights[i] = std::max(0.0, std::min(end, high) - std::max(begin, low)) / scale;
    }
  }
  return weights;
}

Tensor Naive(const std::string& op, const Tensor& images, int64_t height, int64_t width,
             const Mode& mode) {
  const int64_t from_height = images.dim(1), from_width = images.dim(2), channels = images.dim(3);
  Tensor out =
      Tensor::Uninitialized(ElementType::kFloat, Shape({images.dim(0), height, width, channels}));
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    const int64_t c = i % channels, x = i / channels % width, y = i / channels / width % height;
    const int64_t image = i / channels / width / height;
    const auto rows = Weights(op, y, from_height, height, mode);
    const auto columns = Weights(op, x, from_width, width, mode);
    double sum = 0;
    for (int64_t r = 0; r < from_height; ++r) {
      for (int64_t k = 0; k < from_width && rows[r] != 0; ++k) {
        sum += rows[r] * columns[k] *
               At(images, ((image * from_height + r) * from_width + k) * channels + c);
      }
    }
    Set(&out, i, sum);
  }
  return out;
}

Tensor Resize(const std::string& op, const Tensor& images, int32_t height, int32_t width,
              const Mode& mode, int threads = 1) {
  OpTest test(op, threads);
  test.Input(images).Input(Tensor::Vector<int32_t>({height, width}));
  test.Attr("align_corners", mode.align_corners);
  if (op != "ResizeArea") test.Attr("half_pixel_centers", mode.half_pixel_centers);
  EXPECT_TRUE(test.Run().ok());
  return test.output(0);
}

struct Sizes {
  Shape images;
  int32_t height, width;
};
const Sizes kSizes[] = {{{2, 5, 7, 3}, 11, 4}, {{1, 9, 6, 3}, 3, 13}, {{1, 4, 4, 1}, 9, 9},
                        {{2, 3, 8, 4}, 3, 8},  {{1, 1, 1, 3}, 4, 5},  {{1, 12, 17, 5}, 5, 2},
                        {{3, 2, 2, 2}, 1, 1},  {{1, 40, 3, 3}, 7, 1}};
constexpr ElementType kTypes[] = {ElementType::kFloat,    ElementType::kUint8, ElementType::kHalf,
                                  ElementType::kDouble,   ElementType::kInt16, ElementType::kUint16,
                                  ElementType::kBfloat16, ElementType::kInt32};

TEST(Resize, EqualsNaiveLoops) {
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeArea"}) {
    uint32_t seed = 1;
    for (const Sizes& s : kSizes) {
      for (const Mode& mode : kModes) {
        if (std::string(op) == "ResizeArea" && (mode.half_pixel_centers || mode.align_corners)) {
          continue;
        }
        for (const ElementType type : kTypes) {
          const Tensor images = RandomTensor(type, s.images, 0, 100, ++seed);
          SCOPED_TRACE(StrCat(op, " ", ElementTypeName(type), s.images.ToString(), " to ", s.height,
                              " x ", s.width, mode.align_corners ? " corners" : "",
                              mode.half_pixel_centers ? " half" : ""));
          // The weights of cubic convolution are those of steps of 1/1024.
          const double atol = std::string(op) == "ResizeBicubic" ? 0.3 : 1e-3;
          ExpectNear(Resize(op, images, s.height, s.width, mode),
                     Naive(op, images, s.height, s.width, mode), 1e-5, atol);
        }
      }
    }
  }
}

TEST(Resize, TakesTheNearestPixel) {
  for (const Sizes& s : kSizes) {
    for (const Mode& mode : kModes) {
      const Tensor images = RandomTensor(ElementType::kInt32, s.images, -1000, 1000);
      const Tensor got = Resize("ResizeNearestNeighbor", images, s.height, s.width, mode);
      const int64_t channels = s.images.dim(3);
      const auto index = [&](int64_t i, int64_t from, int64_t to) {
        // Ties are ties of floats.
        const float at = (static_cast<float>(i) + (mode.half_pixel_centers ? 0.5f : 0.0f)) *
                         static_cast<float>(Scale(from, to, mode));
        return std::min(from - 1,
                        static_cast<int64_t>(mode.align_corners ? std::round(at) : std::floor(at)));
      };
      for (int64_t i = 0; i < got.num_elements(); ++i) {
        const int64_t c = i % channels, x = i / channels % s.width;
        const int64_t y = i / channels / s.width % s.height;
        const int64_t image = i / channels / s.width / s.height;
        const int64_t at =
            ((image * s.images.dim(1) + index(y, s.images.dim(1), s.height)) * s.images.dim(2) +
             index(x, s.images.dim(2), s.width)) *
                channels +
            c;
        ASSERT_EQ(At(got, i), At(images, at));
      }
    }
  }
}

// <resize(x), g> = <x, gradient(g)>.
TEST(Resize, GradientsAreTheTranspose) {
  const auto dot = [](const Tensor& a, const Tensor& b) {
    double sum = 0;
    for (int64_t i = 0; i < a.num_elements(); ++i) sum += At(a, i) * At(b, i);
    return sum;
  };
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"}) {
    const bool nearest = std::string(op) == "ResizeNearestNeighbor";
    for (const Sizes& s : kSizes) {
      for (const Mode& mode : kModes) {
        for (const ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
          const Tensor x = RandomTensor(type, s.images, -1, 1);
          const Tensor resized = Resize(op, x, s.height, s.width, mode);
          const Tensor g =
              RandomTensor(nearest ? type : ElementType::kFloat, resized.shape(), -1, 1, 7);
          OpTest gradient(std::string(op) + "Grad");
          gradient.Input(g).Input(
              nearest ? Tensor::Vector<int32_t>({static_cast<int32_t>(s.images.dim(1)),
                                                 static_cast<int32_t>(s.images.dim(2))})
                      : x);
          gradient.Attr("align_corners", mode.align_corners);
          gradient.Attr("half_pixel_centers", mode.half_pixel_centers);
          ASSERT_TRUE(gradient.Run().ok());
          ASSERT_EQ(gradient.output(0).shape(), s.images);
          EXPECT_NEAR(dot(resized, g), dot(x, gradient.output(0)), 2e-4)
              << op << s.images.ToString();
        }
      }
    }
  }
}

TEST(Resize, HasTheSameBitsOnAnyNumberOfThreads) {
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeArea"}) {
    for (const ElementType type : {ElementType::kUint8, ElementType::kFloat}) {
      const Tensor images = RandomTensor(type, Shape({3, 97, 131, 3}), 0, 255);
      const Tensor one = Resize(op, images, 61, 75, {false, false});
      const Tensor four = Resize(op, images, 61, 75, {false, false}, 4);
      ExpectEqual(four, one);
    }
  }
}

/// Elements have numbers beyond 2^31. Of such an image only a few pages are ever touched.
TEST(Resize, TakesAVeryWideImage) {
  constexpr int64_t kWidth = 800'000'000, kChannels = 4, kPixels = 32;
  Tensor image = Tensor::Uninitialized(ElementType::kUint8, Shape({1, 1, kWidth, kChannels}));
  const auto pixel = [&](int64_t x) {
    return image.mutable_data<uint8_t>() + x * (kWidth / kPixels) * kChannels;
  };
  for (int64_t x = 0; x < kPixels; ++x) {
    for (int64_t c = 0; c < kChannels; ++c) pixel(x)[c] = static_cast<uint8_t>(8 * x + c);
  }
  const Tensor out = Resize("ResizeBilinear", image, 1, kPixels, {false, false});
  for (int64_t i = 0; i < kPixels * kChannels; ++i) {
    const int64_t x = i / kChannels, c = i % kChannels;
    EXPECT_EQ(out.unchecked_data<float>()[i], static_cast<float>(8 * x + c)) << i;
  }
}

TEST(Resize, RefusesBadInput) {
  const Tensor images = RandomTensor(ElementType::kFloat, Shape({1, 3, 3, 2}), 0, 1);
  struct Bad {
    Tensor images, size;
    bool both = false;
  };
  const Bad kBad[] = {
      {RandomTensor(ElementType::kFloat, Shape({3, 3, 2}), 0, 1), Tensor::Vector<int32_t>({2, 2})},
      {images, Tensor::Vector<int32_t>({2, 2, 2})},
      {images, Tensor::Vector<int32_t>({2, 0})},
      {images, Tensor::Vector<int32_t>({-1, 2})},
      {RandomTensor(ElementType::kFloat, Shape({1, 0, 3, 2}), 0, 1),
       Tensor::Vector<int32_t>({2, 2})},
      {images, Tensor::Vector<int32_t>({2, 2}), true}};
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"}) {
    for (const Bad& bad : kBad) {
      OpTest test(op);
      test.Input(bad.images).Input(bad.size);
      test.Attr("align_corners", bad.both).Attr("half_pixel_centers", bad.both);
      EXPECT_EQ(test.Run().code(), absl::StatusCode::kInvalidArgument) << op;
    }
  }
  // Larger than any memory: refused, and not by a crash.
  OpTest large("ResizeBilinear");
  large.Input(images).Input(Tensor::Vector<int32_t>({INT32_MAX, INT32_MAX}));
  EXPECT_FALSE(large.Run().ok());
}

}  // namespace
}  // namespace troupe::testing
