/// Small image files for tests: the fuzzer's first inputs, without the byte before each.
#ifndef TROUPE_TESTS_KERNELS_IMAGE_IMAGE_FILE_H_
#define TROUPE_TESTS_KERNELS_IMAGE_IMAGE_FILE_H_

#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "tests/source_dir.h"

namespace troupe::testing {

inline constexpr const char* kImageFiles[] = {"bmp_alpha",   "bmp_gray",           "gif_interlaced",
                                              "gif_partial", "gif_transparent",    "jpeg_color",
                                              "jpeg_gray",   "jpeg_progressive",   "png_gray",
                                              "png_palette", "png_rgb_interlaced", "png_texts"};

inline std::string ImageFile(const std::string& name) {
  std::ifstream file(TROUPE_SOURCE_DIR "/tests/fuzz/corpus/image_fuzz/" + name, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_GT(bytes.size(), 1u) << name;
  return bytes.substr(1);
}

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_IMAGE_IMAGE_FILE_H_
