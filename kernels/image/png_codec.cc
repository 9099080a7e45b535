#include "kernels/image/png_codec.h"

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstring>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

// libpng is C: an error jumps out of it, past our frames. So the functions that call it (those
// given to `Try`) have plain locals only, and nothing is thrown.

/// Deflate packs at most this many bytes into one.
constexpr double kMostCompressed = 1032;
/// libpng keeps texts and palettes that nobody asks for, inflated: 0 would allow any number of
/// them, 1 allows none.
constexpr int kNoCachedChunks = 1;
/// Of a chunk that is kept, such as a color profile, inflated. libpng's own default.
constexpr size_t kMostChunkBytes = 8'000'000;

struct Errors {
  char message[128] = "";
};

void OnError(png_structp png, png_const_charp message) {
  auto* errors = static_cast<Errors*>(png_get_error_ptr(png));
  std::strncpy(errors->message, message, sizeof(errors->message) - 1);
  png_longjmp(png, 1);
}
void OnWarning(png_structp, png_const_charp) {}

/// Calls `step`; false if libpng has jumped out of it.
template <typename F>
[[gnu::noinline]] bool Try(png_structp png, const F& step) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  step();
  return true;
}

// --- reading -------------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(std::string_view file) : rest_(file), file_size_(file.size()) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, OnError, OnWarning);
    if (png_ == nullptr) return;
    png_set_chunk_cache_max(png_, kNoCachedChunks);
    png_set_chunk_malloc_max(png_, kMostChunkBytes);
    info_ = png_create_info_struct(png_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }

  absl::Status Decode(int channels, int bits, PixelAllocator allocate) {
    if (info_ == nullptr) return absl::ResourceExhaustedError("no memory to read a PNG");
    if (!Try(png_, [this] { ReadHeader(); })) return Broken();
    const int stored_bits = bit_depth_ * png_get_channels(png_, info_);
    TROUPE_RETURN_IF_ERROR(
        CheckClaim("PNG", {1, height_, width_, 1}, file_size_, kMostCompressed * 8 / stored_bits));
    channels_ = channels == 0 ? StoredChannels() : channels;
    if (!Try(png_, [this, bits] { Configure(bits); })) return Broken();
    const bool widen = bits == 16 && bit_depth_ <= 8;
    const auto values = static_cast<size_t>(channels_) * width_;
    const size_t stride = values * static_cast<size_t>(bits / 8);
    if (png_get_rowbytes(png_, info_) != (widen ? values : stride)) {
      return absl::InternalError(StrCat("libpng gives rows of ", png_get_rowbytes(png_, info_),
                                        " bytes for ", width_, " pixels of ", channels_,
                                        " channels"));
    }
    TROUPE_ASSIGN_OR_RETURN(void* pixels, allocate({1, height_, width_, channels_}));
    auto* rows = static_cast<png_bytep>(pixels);
    if (!Try(png_, [this, rows, stride] { ReadRows(rows, stride); })) return Broken();
    if (widen) {
      for (png_uint_32 y = 0; y < height_; ++y) Widen(rows + y * stride, values);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Broken() const { return InvalidArgument("a broken PNG: ", errors_.message); }

  static void OnRead(png_structp png, png_bytep bytes, size_t size) {
    auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
    if (reader->rest_.size() < size) png_error(png, "the file ends early");
    std::memcpy(bytes, reader->rest_.data(), size);
    reader->rest_.remove_prefix(size);
  }

  void ReadHeader() {
    png_set_read_fn(png_, this, OnRead);
    png_read_info(png_, info_);
    png_get_IHDR(png_, info_, &width_, &height_, &bit_depth_, &color_type_, nullptr, nullptr,
                 nullptr);
  }

  bool HasTransparentColor() const { return png_get_valid(png_, info_, PNG_INFO_tRNS) != 0; }

  int StoredChannels() const {
    if (color_type_ == PNG_COLOR_TYPE_PALETTE) return HasTransparentColor() ? 4 : 3;
    return png_get_channels(png_, info_);
  }

  // Asks libpng for the conversions that TensorFlow asks for.
  void Configure(int bits) {
    const bool has_alpha = (color_type_ & PNG_COLOR_MASK_ALPHA) != 0;
    const bool is_gray = (color_type_ & PNG_COLOR_MASK_COLOR) == 0;
    const bool wants_alpha = channels_ % 2 == 0;
    if (wants_alpha && !has_alpha) {
      if (HasTransparentColor()) {
        png_set_tRNS_to_alpha(png_);
      } else {
        png_set_add_alpha(png_, (1u << bit_depth_) - 1, PNG_FILLER_AFTER);
      }
    } else if (!wants_alpha && (has_alpha || HasTransparentColor())) {
      png_set_strip_alpha(png_);
    }
    if (bit_depth_ > 8 && bits == 8) png_set_strip_16(png_);
    png_set_packing(png_);
    passes_ = png_set_interlace_handling(png_);
    if (bits == 16 && std::endian::native == std::endian::little) png_set_swap(png_);
    if (color_type_ == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (is_gray && bit_depth_ < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (channels_ < 3 && !is_gray) {
      constexpr double kRed = 0.299, kGreen = 0.587;  // ITU-R BT.601
      png_set_rgb_to_gray(png_, PNG_ERROR_ACTION_NONE, kRed, kGreen);
    } else if (channels_ >= 3 && is_gray) {
      png_set_gray_to_rgb(png_);
    }
    png_read_update_info(png_, info_);
  }

  void ReadRows(png_bytep rows, size_t stride) {
    for (int pass = 0; pass < passes_; ++pass) {
      for (png_uint_32 y = 0; y < height_; ++y) png_read_row(png_, rows + y * stride, nullptr);
    }
    png_read_end(png_, info_);
  }

  /// Makes 16 bits of the `count` bytes of a row, in place.
  static void Widen(png_bytep row, size_t count) {
    for (size_t i = count; i-- > 0;) {
      const auto value = static_cast<uint16_t>(row[i] * 257);
      std::memcpy(row + 2 * i, &value, sizeof(value));
    }
  }

  std::string_view rest_;
  const size_t file_size_;
  Errors errors_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  png_uint_32 width_ = 0, height_ = 0;
  int bit_depth_ = 0, color_type_ = 0, channels_ = 0, passes_ = 0;
};

// --- writing -------------------------------------------------------------------------------------

struct Sink {
  std::string* file;
  absl::Status status;
};

void OnBytes(png_structp png, png_bytep bytes, size_t size) {
  auto* sink = static_cast<Sink*>(png_get_io_ptr(png));
  sink->status = CatchExceptions([&] {
    sink->file->append(reinterpret_cast<const char*>(bytes), size);
    return absl::OkStatus();
  });
  if (!sink->status.ok()) png_error(png, "no memory");
}

void OnFlush(png_structp) {}

int ColorType(int64_t channels) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  return kTypes[channels - 1];
}

void Write(png_structp png, png_infop info, Sink* sink, const PngImage& image, int level) {
  png_set_write_fn(png, sink, OnBytes, OnFlush);
  png_set_compression_level(png, level < 0 ? Z_DEFAULT_COMPRESSION : level);
  png_set_compression_mem_level(png, MAX_MEM_LEVEL);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), image.bits, ColorType(image.channels),
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (image.bits > 8 && std::endian::native == std::endian::little) png_set_swap(png);
  const auto* row = static_cast<const uint8_t*>(image.pixels);
  const int64_t stride = image.width * image.channels * (image.bits / 8);
  for (int64_t y = 0; y < image.height; ++y, row += stride) png_write_row(png, row);
  png_write_end(png, nullptr);
}

}  // namespace

absl::Status DecodePng(std::string_view file, int channels, int bits, PixelAllocator allocate) {
  return Reader(file).Decode(channels, bits, allocate);
}

absl::Status EncodePng(const PngImage& image, int level, std::string* file) {
  file->clear();
  Sink sink{file, {}};
  Errors errors;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &errors, OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_write_struct(&png, nullptr);
    return absl::ResourceExhaustedError("no memory to write a PNG");
  }
  const bool written = Try(png, [&] { Write(png, info, &sink, image, level); });
  png_destroy_write_struct(&png, &info);
  TROUPE_RETURN_IF_ERROR(sink.status);
  if (written) return absl::OkStatus();
  return absl::InternalError(StrCat("a PNG of ", image.width, " x ", image.height,
                                    " pixels: ", std::string_view(errors.message)));
}

}  // namespace troupe
