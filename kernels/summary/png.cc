#include "kernels/summary/png.h"

#include <png.h>
#include <zlib.h>

#include <csetjmp>
#include <cstring>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr int kBitDepth = 8;

/// What libpng's callbacks are given. Nothing here is thrown: libpng is C, and jumps.
struct Sink {
  std::string* png;
  absl::Status status;
  char message[128] = "";
};

void OnError(png_structp png, png_const_charp message) {
  auto* sink = static_cast<Sink*>(png_get_error_ptr(png));
  std::strncpy(sink->message, message, sizeof(sink->message) - 1);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void OnBytes(png_structp png, png_bytep bytes, size_t size) {
  auto* sink = static_cast<Sink*>(png_get_io_ptr(png));
  sink->status = CatchExceptions([&] {
    sink->png->append(reinterpret_cast<const char*>(bytes), size);
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

/// False: libpng has jumped out. In between nothing may need a destructor.
bool Write(png_structp png, png_infop info, Sink* sink, const ByteImage& image) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, sink, OnBytes, OnFlush);
  png_set_compression_level(png, Z_DEFAULT_COMPRESSION);
  png_set_compression_mem_level(png, MAX_MEM_LEVEL);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), kBitDepth, ColorType(image.channels),
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const uint8_t* row = image.pixels.data();
  for (int64_t y = 0; y < image.height; ++y, row += image.width * image.channels) {
    png_write_row(png, row);
  }
  png_write_end(png, nullptr);
  return true;
}

}  // namespace

absl::Status EncodePng(const ByteImage& image, std::string* out) {
  out->clear();
  Sink sink{out};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &sink, OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_write_struct(&png, nullptr);
    return absl::ResourceExhaustedError("no memory to write a PNG");
  }
  const bool written = Write(png, info, &sink, image);
  png_destroy_write_struct(&png, &info);
  TROUPE_RETURN_IF_ERROR(sink.status);
  if (written) return absl::OkStatus();
  return absl::InternalError(StrCat("a PNG of ", image.width, " x ", image.height,
                                    " pixels: ", std::string_view(sink.message)));
}

}  // namespace troupe
