// Image files: written and read again, altered, cut, and lying about their size.
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/image/bmp_codec.h"
#include "kernels/image/gif_codec.h"
#include "kernels/image/jpeg_codec.h"
#include "kernels/image/png_codec.h"
#include "tests/kernels/image/image_file.h"
#include "tests/kernels/kernel_test_util.h"
#include "tests/resident_memory.h"
#include "tests/source_dir.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

/// A decoded image.
struct Decoded {
  absl::Status status;
  ImageForm form{0, 0, 0, 0};
  std::vector<uint8_t> bytes;
  bool allocated = false;

  PixelAllocator allocator(int value_bytes = 1) {
    allocate_ = [this, value_bytes](const ImageForm& wanted) -> absl::StatusOr<void*> {
      form = wanted;
      allocated = true;
      bytes.assign(static_cast<size_t>(wanted.frames * wanted.height * wanted.width *
                                       wanted.channels * value_bytes),
                   0);
      return bytes.data();
    };
    return allocate_;
  }

 private:
  std::function<absl::StatusOr<void*>(const ImageForm&)> allocate_;
};

/// By the first byte.
Decoded Decode(const std::string& file, const JpegDecodeOptions& options = {}) {
  Decoded image;
  switch (file.empty() ? 0 : file[0]) {
    case 'B':
      image.status = DecodeBmp(file, 0, image.allocator());
      break;
    case 'G':
      image.status = DecodeGif(file, false, image.allocator());
      break;
    case '\x89':
      image.status = DecodePng(file, 0, 8, image.allocator());
      break;
    default:
      image.status = DecodeJpeg(file, options, image.allocator());
  }
  return image;
}

TEST(ImageCodecs, ReadTheSamples) {
  for (const char* name : kImageFiles) {
    const Decoded image = Decode(ImageFile(name));
    EXPECT_TRUE(image.status.ok()) << name << ": " << image.status;
    EXPECT_GT(image.bytes.size(), 0u) << name;
  }
}

// An error or an image, and never more memory than so small a file can stand for.
TEST(ImageCodecs, TakeEveryByteAlteredOrCut) {
  JpegDecodeOptions recovering;
  recovering.recover_truncated = true;
  recovering.acceptable_fraction = 0.1f;
  for (const char* name : kImageFiles) {
    const std::string file = ImageFile(name);
    for (size_t at = 0; at < file.size(); ++at) {
      for (const int change : {0x01, 0x80, 0xff}) {
        std::string altered = file;
        altered[at] = static_cast<char>(altered[at] ^ change);
        for (const JpegDecodeOptions& options : {JpegDecodeOptions(), recovering}) {
          const Decoded image = Decode(altered, options);
          EXPECT_LT(image.bytes.size(), size_t{1} << 25) << name << " at " << at;
        }
      }
      const std::string cut = file.substr(0, at);
      const Decoded image = Decode(cut);
      // A GIF may end behind its first frame, and a JPEG within its end.
      if (file[0] != 'G' && at + 1 < file.size()) {
        EXPECT_FALSE(image.status.ok()) << name << " cut at " << at << " of " << file.size();
      }
      Decode(cut, recovering);
    }
  }
}

// It has the frames before the cut: TensorFlow 2.21 gives so many from these bytes on.
TEST(ImageCodecs, AGifMayBeCutOff) {
  struct Cut {
    const char* file;
    std::vector<size_t> frame_ends;
  };
  for (const Cut& cut : {Cut{"gif_interlaced", {146}}, Cut{"gif_partial", {96, 114, 140, 163}},
                         Cut{"gif_transparent", {55, 84, 108}}}) {
    const std::string file = ImageFile(cut.file);
    const Decoded whole = Decode(file);
    for (size_t size = 1; size < file.size(); ++size) {
      const auto frames = std::count_if(cut.frame_ends.begin(), cut.frame_ends.end(),
                                        [size](size_t end) { return end <= size; });
      const Decoded image = Decode(file.substr(0, size));
      ASSERT_EQ(image.status.ok(), frames > 0) << cut.file << " of " << size << image.status;
      if (frames == 0) continue;
      EXPECT_EQ(image.form.frames, frames) << cut.file << " of " << size;
      EXPECT_TRUE(std::equal(image.bytes.begin(), image.bytes.end(), whole.bytes.begin()));
    }
  }
}

// Whatever is broken behind its first frame, a GIF has the frames before. Recorded by
// scripts/golden/record_gif_damage.py.
TEST(ImageCodecs, ADamagedGifIsWhatTensorFlowMakesOfIt) {
  std::ifstream recorded(TROUPE_SOURCE_DIR "/tests/kernels/image/testdata/gif_damage.txt");
  int64_t errors = 0, lost = 0, all = 0;
  size_t at = 0;
  for (std::string name, shape; recorded >> name >> at;) {
    uint32_t change = 0, crc = 0;
    recorded >> std::hex >> change >> shape;
    if (shape != "error") recorded >> crc;
    recorded >> std::dec;
    std::string file = ImageFile(name);
    const int64_t frames = Decode(file).form.frames;
    file[at] = static_cast<char>(static_cast<uint32_t>(file[at]) ^ change);
    Decoded image;
    image.status = DecodeGif(file, false, image.allocator());
    const std::string what = StrCat(name, " at ", at, " by ", change);
    ++all;
    // The op looks at the first bytes before.
    if (at < 4) continue;
    ASSERT_EQ(image.status.ok(), shape != "error") << what << image.status;
    if (!image.status.ok()) {
      ++errors;
      continue;
    }
    const ImageForm& form = image.form;
    EXPECT_EQ(StrCat(form.frames, "x", form.height, "x", form.width, "x", form.channels), shape)
        << what;
    EXPECT_EQ(crc32(0, image.bytes.data(), static_cast<uInt>(image.bytes.size())), crc) << what;
    lost += form.frames < frames ? 1 : 0;
  }
  EXPECT_EQ(all, 3 * (147 + 164 + 109));
  EXPECT_GT(errors, 100);
  EXPECT_GT(lost, 100);
}

// Those who can take one frame only take a GIF of which one is whole.
TEST(ImageCodecs, WhoTakesOneFrameTakesTheWholeOne) {
  std::string file = ImageFile("gif_transparent");
  file[70] = static_cast<char>(file[70] ^ 0x80);
  int64_t frames = 0;
  std::vector<uint8_t> bytes;
  const absl::Status status =
      DecodeGif(file, false, [&](const ImageForm& form) -> absl::StatusOr<void*> {
        frames = form.frames;
        if (frames > 1) return InvalidArgument("too many");
        bytes.resize(static_cast<size_t>(form.height * form.width * 3));
        return bytes.data();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(frames, 1);
}

void PutBigEndian(std::string* file, size_t at, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    (*file)[at + i] = static_cast<char>(value >> 8 * (bytes - 1 - i));
  }
}

std::string JpegOf(uint32_t height, uint32_t width) {
  std::string file = ImageFile("jpeg_color");
  const size_t frame = file.find("\xff\xc0");
  PutBigEndian(&file, frame + 5, height, 2);
  PutBigEndian(&file, frame + 7, width, 2);
  return file;
}

std::string PngOf(uint32_t height, uint32_t width) {
  std::string file = ImageFile("png_palette");
  PutBigEndian(&file, 16, width, 4);
  PutBigEndian(&file, 20, height, 4);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(file.data()) + 12, 17);
  PutBigEndian(&file, 29, static_cast<uint32_t>(crc), 4);
  return file;
}

std::string GifOf(uint16_t height, uint16_t width) {
  std::string file = ImageFile("gif_interlaced");
  // The first image descriptor follows the header and the global colors.
  const size_t colors = size_t{3} << ((file[10] & 7) + 1);
  const size_t descriptor = 13 + colors;
  EXPECT_EQ(file[descriptor], ',');
  file[descriptor + 5] = static_cast<char>(width);
  file[descriptor + 6] = static_cast<char>(width >> 8);
  file[descriptor + 7] = static_cast<char>(height);
  file[descriptor + 8] = static_cast<char>(height >> 8);
  return file;
}

std::string BmpOf(uint32_t height, uint32_t width) {
  std::string file = ImageFile("bmp_alpha");
  PutBigEndian(&file, 18, __builtin_bswap32(width), 4);
  PutBigEndian(&file, 22, __builtin_bswap32(height), 4);
  return file;
}

TEST(ImageCodecs, RefuseClaimsBeforeTheyAllocate) {
  for (const std::string& file :
       {JpegOf(65000, 65000), JpegOf(20000, 20000), PngOf(1000000, 1000000), PngOf(20000, 20000),
        GifOf(65535, 65535), GifOf(3000, 3000), BmpOf(30000, 30000), BmpOf(3, 0x7fffffff),
        BmpOf(0x80000000, 4)}) {
    const Decoded image = Decode(file);
    EXPECT_FALSE(image.allocated);
    EXPECT_EQ(image.status.code(), absl::StatusCode::kInvalidArgument) << image.status;
    EXPECT_LT(image.status.message().size(), 200u);
  }
  EXPECT_THAT(Decode(PngOf(20000, 20000)).status.message(), HasSubstr("claims"));
  EXPECT_THAT(Decode(JpegOf(65000, 65000)).status.message(), HasSubstr("the most are"));
}

std::string PngChunk(std::string_view type, std::string_view data) {
  std::string chunk = StrCat(std::string(4, 0), type, data, std::string(4, 0));
  PutBigEndian(&chunk, 0, static_cast<uint32_t>(data.size()), 4);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(chunk.data()) + 4,
                         static_cast<uInt>(4 + data.size()));
  PutBigEndian(&chunk, chunk.size() - 4, static_cast<uint32_t>(crc), 4);
  return chunk;
}

std::string Deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string deflated(size, 0);
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(deflated.data()), &size,
                     reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()),
            Z_OK);
  deflated.resize(size);
  return deflated;
}

/// With chunks between its header and what follows.
std::string PngWith(std::string_view chunks) {
  constexpr size_t kHeader = 33;
  std::string file = ImageFile("png_gray");
  file.insert(kHeader, chunks);
  return file;
}

// A text of some bytes inflates to many.
TEST(ImageCodecs, KeepNoTexts) {
  const std::string text = Deflated(std::string(1 << 20, 'a'));
  std::string chunks;
  for (int i = 0; i < 50; ++i) {
    chunks += PngChunk("zTXt", StrCat("Comment", std::string(2, 0), text));
    chunks += PngChunk("iTXt", StrCat("Comment", std::string("\0\1\0\0\0", 5), text));
  }
  const std::string file = PngWith(chunks);
  Decoded image;
  const int64_t before = ResidentBytes();
  int64_t held = 0;  // When all that precedes the pixels has been read.
  const auto allocator = image.allocator();
  ASSERT_EQ(DecodePng(file, 0, 8,
                      [&](const ImageForm& form) {
                        held = ResidentBytes() - before;
                        return allocator(form);
                      }),
            absl::OkStatus());
  EXPECT_LT(held, 16 << 20);
  EXPECT_EQ(image.bytes, Decode(ImageFile("png_gray")).bytes);
}

TEST(ImageCodecs, TakeColorProfiles) {
  // Profiles have a header of 128 bytes, and may have any tags.
  std::string profile(300'000, 0);
  PutBigEndian(&profile, 0, static_cast<uint32_t>(profile.size()), 4);
  std::memcpy(&profile[8], "\4\x20\0\0mntrGRAYXYZ ", 16);
  std::memcpy(&profile[36], "acsp", 4);
  std::memcpy(&profile[68], "\0\0\xf6\xd6\0\1\0\0\0\0\xd3\x2d", 12);
  const Decoded image =
      Decode(PngWith(PngChunk("iCCP", StrCat("Profile", std::string(2, 0), Deflated(profile)))));
  EXPECT_EQ(image.status, absl::OkStatus());
  EXPECT_EQ(image.bytes, Decode(ImageFile("png_gray")).bytes);
}

// Each scan of a progressive file is a pass over the whole image.
TEST(ImageCodecs, RefuseManyScans) {
  std::string file = ImageFile("jpeg_progressive");
  const size_t scan = file.find("\xff\xda");
  const size_t next = file.find('\xff', scan + 2);
  const std::string one = file.substr(scan, next - scan);
  std::string many = file.substr(0, scan);
  for (int i = 0; i < 1000; ++i) many += one;
  many += file.substr(scan);
  EXPECT_THAT(Decode(many).status.message(), HasSubstr("scans"));
}

TEST(ImageCodecs, EndInTime) {
  // Bytes that libjpeg takes for padding, to the end.
  JpegDecodeOptions recovering;
  recovering.recover_truncated = true;
  const std::string file = ImageFile("jpeg_color");
  Decode(file.substr(0, file.find("\xff\xc4")) + std::string(4, '\xff'), recovering);
}

uint8_t Pattern(int64_t i) { return static_cast<uint8_t>(i * 37 + i / 7 * 11); }

TEST(Png, WritesWhatItReads) {
  for (const int bits : {8, 16}) {
    for (int channels = 1; channels <= 4; ++channels) {
      std::vector<uint8_t> pixels(static_cast<size_t>(5 * 7 * channels * bits / 8));
      for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = Pattern(static_cast<int64_t>(i));
      for (const int level : {-1, 0, 9}) {
        std::string file;
        ASSERT_TRUE(EncodePng({5, 7, channels, pixels.data(), bits}, level, &file).ok());
        Decoded image;
        ASSERT_TRUE(DecodePng(file, 0, bits, image.allocator(bits / 8)).ok());
        EXPECT_EQ(image.form.height, 5);
        EXPECT_EQ(image.form.width, 7);
        EXPECT_EQ(image.form.channels, channels);
        EXPECT_EQ(image.bytes, pixels);
      }
    }
  }
}

/// A smooth image, which JPEG keeps well.
std::vector<uint8_t> Smooth(int64_t height, int64_t width, int64_t channels) {
  std::vector<uint8_t> pixels;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<uint8_t>(128 +
                                              60 * std::sin(0.1 * static_cast<double>(x + 20 * c)) +
                                              50 * std::cos(0.08 * static_cast<double>(y))));
      }
    }
  }
  return pixels;
}

TEST(Jpeg, WritesNearlyWhatItReads) {
  for (const int64_t channels : {1, 3}) {
    const std::vector<uint8_t> pixels = Smooth(37, 50, channels);
    for (const bool progressive : {false, true}) {
      JpegEncodeOptions options;
      options.progressive = progressive;
      options.chroma_downsampling = progressive;
      options.xmp_metadata = "<x/>";
      std::string file;
      ASSERT_TRUE(EncodeJpeg(pixels.data(), {1, 37, 50, channels}, options, &file).ok());
      EXPECT_THAT(file, HasSubstr("<x/>"));
      const Decoded image = Decode(file);
      ASSERT_TRUE(image.status.ok()) << image.status;
      ASSERT_EQ(image.bytes.size(), pixels.size());
      for (size_t i = 0; i < pixels.size(); ++i) {
        EXPECT_NEAR(image.bytes[i], pixels[i], 12) << i;
      }
      const auto form = ReadJpegForm(file);
      ASSERT_TRUE(form.ok()) << form.status();
      EXPECT_EQ(form->height, 37);
      EXPECT_EQ(form->width, 50);
      EXPECT_EQ(form->channels, channels);
    }
  }
}

// A window is that part of the whole, but for the colors at its left and right edge, which depend
// on pixels beyond it.
TEST(Jpeg, DecodesWindows) {
  const std::vector<uint8_t> pixels = Smooth(61, 83, 1);
  std::string file;
  ASSERT_TRUE(EncodeJpeg(pixels.data(), {1, 61, 83, 1}, {}, &file).ok());
  const Decoded whole = Decode(file);
  for (const ImageWindow& window : {ImageWindow{0, 0, 61, 83}, ImageWindow{5, 9, 20, 31},
                                    ImageWindow{60, 82, 1, 1}, ImageWindow{16, 16, 16, 16}}) {
    JpegDecodeOptions options;
    options.window = window;
    const Decoded part = Decode(file, options);
    ASSERT_TRUE(part.status.ok()) << part.status;
    for (int64_t y = 0; y < window.height; ++y) {
      for (int64_t x = 0; x < window.width; ++x) {
        ASSERT_EQ(part.bytes[y * window.width + x],
                  whole.bytes[(window.y + y) * 83 + window.x + x]);
      }
    }
  }
  for (const ImageWindow& window : {ImageWindow{0, 0, 62, 1}, ImageWindow{-1, 0, 1, 1},
                                    ImageWindow{0, 0, 0, 1}, ImageWindow{1, 1, 1, INT64_MAX}}) {
    JpegDecodeOptions options;
    options.window = window;
    EXPECT_EQ(Decode(file, options).status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Jpeg, RefusesSizesThatItCannotHave) {
  std::string file;
  const uint8_t pixel = 0;
  for (const ImageForm& form : {ImageForm{1, 0, 1, 1}, ImageForm{1, 1, 70000, 1}}) {
    EXPECT_EQ(EncodeJpeg(&pixel, form, {}, &file).code(), absl::StatusCode::kInvalidArgument);
  }
}

// --- the kernels ---------------------------------------------------------------------------------

TEST(DecodeKernels, ConvertAndRefuse) {
  const Tensor bmp = Tensor::Scalar(ImageFile("bmp_alpha"));
  OpTest bytes("DecodeImage"), wide("DecodeImage"), floats("DecodeImage");
  ASSERT_TRUE(bytes.Input(bmp).Run().ok());
  ASSERT_TRUE(wide.Input(bmp).Attr("dtype", ElementType::kUint16).Run().ok());
  ASSERT_TRUE(floats.Input(bmp).Attr("dtype", ElementType::kFloat).Run().ok());
  for (int64_t i = 0; i < bytes.output(0).num_elements(); ++i) {
    const double byte = At(bytes.output(0), i);
    EXPECT_EQ(At(wide.output(0), i), byte * 256);
    EXPECT_NEAR(At(floats.output(0), i), byte / 255, 1e-6);
  }
  struct Bad {
    const char* op;
    const char* file;
    int channels;
    const char* message;
  };
  for (const Bad& bad :
       {Bad{"DecodeJpeg", "bmp_alpha", 0, "BMP"}, Bad{"DecodeBmp", "png_gray", 0, "no BMP"},
        Bad{"DecodePng", "gif_partial", 0, "frames"}, Bad{"DecodePng", "gif_partial", 1, "GIF"},
        Bad{"DecodeImage", "jpeg_gray", 4, "JPEG"}, Bad{"DecodeImage", "bmp_alpha", 1, "BMP"}}) {
    OpTest op(bad.op);
    op.Input(Tensor::Scalar(ImageFile(bad.file))).Attr("channels", bad.channels);
    const absl::Status status = op.Run();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.op << " " << bad.file;
    EXPECT_THAT(status.message(), HasSubstr(bad.message));
  }
}

}  // namespace
}  // namespace troupe::testing
