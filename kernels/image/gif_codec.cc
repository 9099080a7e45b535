#include "kernels/image/gif_codec.h"

#include <gif_lib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "devices/status_macros.h"

namespace troupe {
namespace {

/// LZW with codes of 12 bits and 4,096 strings, the longest of 3,838 bytes.
constexpr double kPixelsPerByte = 3838 * 8 / 12.0;

constexpr int kRgb = 3;

struct Rest {
  std::string_view bytes;
};

int OnRead(GifFileType* gif, GifByteType* bytes, int size) {
  auto* rest = static_cast<Rest*>(gif->UserData);
  const size_t count = std::min(static_cast<size_t>(size), rest->bytes.size());
  std::memcpy(bytes, rest->bytes.data(), count);
  rest->bytes.remove_prefix(count);
  return static_cast<int>(count);
}

struct Close {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};

/// One pass over a file, frame by frame. giflib's own pass over all (DGifSlurp) would allocate what
/// headers claim.
class FrameReader {
 public:
  absl::Status Open(std::string_view file) {
    rest_.bytes = file;
    int error = D_GIF_SUCCEEDED;
    gif_.reset(DGifOpen(&rest_, OnRead, &error));
    if (gif_ == nullptr) return Broken(error);
    return absl::OkStatus();
  }

  /// Goes to the next frame; false if there is none.
  absl::StatusOr<bool> Next() {
    transparent_ = NO_TRANSPARENT_COLOR;
    while (true) {
      GifRecordType type;
      if (DGifGetRecordType(gif_.get(), &type) == GIF_ERROR) return Broken(gif_->Error);
      if (type == TERMINATE_RECORD_TYPE) return false;
      if (type == EXTENSION_RECORD_TYPE) {
        TROUPE_RETURN_IF_ERROR(ReadExtension());
      } else if (type == IMAGE_DESC_RECORD_TYPE) {
        if (DGifGetImageDesc(gif_.get()) == GIF_ERROR) return Broken(gif_->Error);
        ++frames_;
        return true;
      }
    }
  }

  /// Of the current frame.
  const GifImageDesc& frame() const { return gif_->Image; }

  absl::Status Skip() {
    int bits;
    GifByteType* block;
    if (DGifGetCode(gif_.get(), &bits, &block) == GIF_ERROR) return Broken(gif_->Error);
    while (block != nullptr) {
      if (DGifGetCodeNext(gif_.get(), &block) == GIF_ERROR) return Broken(gif_->Error);
    }
    return absl::OkStatus();
  }

  /// Draws the current frame over `canvas`, [height, width, 3]. False: the frame is broken, and the
  /// canvas is as it may be. An error: a frame that can be read has not the colors that it uses.
  absl::StatusOr<bool> Draw(int64_t height, int64_t width, uint8_t* canvas) {
    const GifImageDesc& part = frame();
    const ColorMapObject* colors = part.ColorMap != nullptr ? part.ColorMap : gif_->SColorMap;
    absl::Status status;
    if (colors == nullptr)
      status = InvalidArgument("frame ", frames_ - 1, " of a GIF has no colors");
    line_.resize(static_cast<size_t>(part.Width));
    // Interlaced frames have the rows 0, 8, ..., then 4, 12, ..., then 2, 6, ..., then 1, 3, ...
    constexpr int kOffsets[] = {0, 4, 2, 1}, kSteps[] = {8, 8, 4, 2};
    for (int pass = 0; pass < (part.Interlace ? 4 : 1); ++pass) {
      const int step = part.Interlace ? kSteps[pass] : 1;
      for (int y = part.Interlace ? kOffsets[pass] : 0; y < part.Height; y += step) {
        if (DGifGetLine(gif_.get(), line_.data(), part.Width) == GIF_ERROR) return false;
        const int64_t row = int64_t{part.Top} + y;
        if (row >= height || !status.ok()) continue;
        status = DrawLine(*colors, width, canvas + row * width * kRgb);
      }
    }
    if (!status.ok()) return status;
    return true;
  }
  /// What giflib says of a broken frame.
  absl::Status Error() const { return Broken(gif_->Error); }

 private:
  static absl::Status Broken(int error) {
    const char* text = GifErrorString(error);
    return InvalidArgument("a broken GIF: ", text == nullptr ? "the file ends early" : text);
  }

  absl::Status ReadExtension() {
    int code;
    GifByteType* block;  // Its first byte is its length.
    if (DGifGetExtension(gif_.get(), &code, &block) == GIF_ERROR) return Broken(gif_->Error);
    GraphicsControlBlock control;
    if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
      transparent_ = control.TransparentColor;
    }
    while (block != nullptr) {
      if (DGifGetExtensionNext(gif_.get(), &block) == GIF_ERROR) return Broken(gif_->Error);
    }
    return absl::OkStatus();
  }

  absl::Status DrawLine(const ColorMapObject& colors, int64_t width, uint8_t* row) const {
    const int64_t left = frame().Left;
    const int64_t count = std::min<int64_t>(frame().Width, width - left);
    for (int64_t x = 0; x < count; ++x) {
      const int index = line_[static_cast<size_t>(x)];
      if (index >= colors.ColorCount) {
        return InvalidArgument("a GIF uses color ", index, " of ", colors.ColorCount);
      }
      if (index == transparent_) continue;
      const GifColorType& color = colors.Colors[index];
      uint8_t* pixel = row + (left + x) * kRgb;
      pixel[0] = color.Red;
      pixel[1] = color.Green;
      pixel[2] = color.Blue;
    }
    return absl::OkStatus();
  }

  Rest rest_;
  std::unique_ptr<GifFileType, Close> gif_;
  int64_t frames_ = 0;
  int transparent_ = NO_TRANSPARENT_COLOR;
  std::vector<GifByteType> line_;
};

/// Counts frames and finds the largest size of the first ones, `at_most` of them. Whatever is
/// broken or cut off behind the first frame ends the file, as in TensorFlow: it has the frames
/// before.
absl::StatusOr<ImageForm> FindForm(std::string_view file, int64_t at_most) {
  FrameReader reader;
  TROUPE_RETURN_IF_ERROR(reader.Open(file));
  ImageForm form{0, 0, 0, kRgb};
  while (form.frames < at_most) {
    const absl::StatusOr<bool> there = reader.Next();
    if (there.ok() && !*there) break;
    absl::Status whole = there.ok() ? reader.Skip() : there.status();
    const ImageForm frame{1, reader.frame().Height, reader.frame().Width, kRgb};
    if (whole.ok()) whole = CheckClaim("GIF", frame, file.size(), kPixelsPerByte);
    if (!whole.ok() && form.frames == 0) return whole;
    if (!whole.ok()) break;
    ++form.frames;
    form.height = std::max(form.height, frame.height);
    form.width = std::max(form.width, frame.width);
  }
  if (form.frames == 0) return InvalidArgument("a GIF without frames");
  return form;
}

/// Draws frames, each over the one before it, into [frames, height, width, 3] pixels; nullptr:
/// reads them only. Gives how many are whole: fewer than there are if one is broken.
absl::StatusOr<int64_t> DrawFrames(std::string_view file, const ImageForm& form, uint8_t* canvas) {
  const auto size = static_cast<size_t>(form.height * form.width * kRgb);
  FrameReader reader;
  TROUPE_RETURN_IF_ERROR(reader.Open(file));
  for (int64_t i = 0; i < form.frames; ++i) {
    TROUPE_RETURN_IF_ERROR(reader.Next().status());
    if (canvas != nullptr && i == 0) std::memset(canvas, 0, size);
    if (canvas != nullptr && i > 0) std::memcpy(canvas, canvas - size, size);
    TROUPE_ASSIGN_OR_RETURN(const bool whole,
                            reader.Draw(canvas == nullptr ? 0 : form.height, form.width, canvas));
    if (!whole && i == 0) return reader.Error();
    if (!whole) return i;
    if (canvas != nullptr) canvas += size;
  }
  return form.frames;
}

}  // namespace

absl::Status DecodeGif(std::string_view file, bool first_frame_only, PixelAllocator allocate) {
  int64_t at_most = std::numeric_limits<int64_t>::max();
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(ImageForm form, FindForm(file, at_most));
    const int64_t found = form.frames;
    if (first_frame_only) form.frames = 1;
    const absl::Status claim =
        CheckClaim("GIF", form, file.size(), kPixelsPerByte * static_cast<double>(form.frames));
    const absl::StatusOr<void*> pixels = claim.ok() ? allocate(form) : claim;
    // What is wrong in a frame shows when it is decoded. That is done twice if so many frames claim
    // too much or cannot be taken, and for files of which fewer are whole.
    TROUPE_ASSIGN_OR_RETURN(
        const int64_t whole,
        DrawFrames(file, form, pixels.ok() ? static_cast<uint8_t*>(*pixels) : nullptr));
    if (whole == form.frames) return pixels.status();
    at_most = std::min(whole, found);
  }
}

}  // namespace troupe
