#include "kernels/image/jpeg_codec.h"

#include <algorithm>
#include <climits>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

// Needs <cstdio>.
#include <jerror.h>
#include <jpeglib.h>

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

// libjpeg is C: an error jumps out of it, past our frames. So whatever has a destructor is a member
// of `Reader` or `Writer`, and the functions that call libjpeg (those given to `Try`) have plain
// locals only.

/// A block of 64 pixels takes a bit or more: the first scan has a code for each. Twice as many, as
/// blocks at the edges need not be full.
constexpr double kPixelsPerByte = 2 * 64 * 8;

/// A progressive file has about ten scans. Each takes a pass over the image, whatever its length.
constexpr int kMaxScans = 100;

struct Errors {
  jpeg_error_mgr manager;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

void OnError(j_common_ptr codec) {
  auto* errors = reinterpret_cast<Errors*>(codec->err);
  codec->err->format_message(codec, errors->message);
  longjmp(errors->jump, 1);
}
void OnMessage(j_common_ptr) {}

/// Calls `step`; false if libjpeg has jumped out of it.
template <typename F>
[[gnu::noinline]] bool Try(Errors& errors, const F& step) {
  if (setjmp(errors.jump) != 0) return false;
  step();
  return true;
}

/// The source of bytes. What it does at the end of the file follows TensorFlow's: so do, then, the
/// pixels of files that end early.
struct Source {
  jpeg_source_mgr manager;
  const JOCTET* begin;
  size_t size;
  bool recover;
  int repeats;  ///< How often bytes were read again.
};
/// Bytes between two markers may be read for ever: a block takes some thousand.
constexpr int kMaxRepeats = 100000;
constexpr JOCTET kEndOfImage[] = {0xff, JPEG_EOI};

Source* SourceOf(j_decompress_ptr codec) { return reinterpret_cast<Source*>(codec->src); }

void Begin(j_decompress_ptr codec) {
  Source* source = SourceOf(codec);
  source->manager.next_input_byte = source->begin;
  source->manager.bytes_in_buffer = source->size;
}
boolean Refill(j_decompress_ptr codec) {
  Source* source = SourceOf(codec);
  // In the midst of a block or a marker: libjpeg reads it again, or gives up the row.
  if (source->manager.bytes_in_buffer > 0) {
    if (!source->recover) return FALSE;
    if (++source->repeats < kMaxRepeats) return TRUE;
  }
  if (!source->recover || source->manager.next_input_byte == kEndOfImage) {
    ERREXIT(codec, JERR_INPUT_EOF);
  }
  source->manager.next_input_byte = kEndOfImage;
  source->manager.bytes_in_buffer = sizeof(kEndOfImage);
  return TRUE;
}
void Skip(j_decompress_ptr codec, long bytes) {  // NOLINT: libjpeg's type
  Source* source = SourceOf(codec);
  if (bytes <= 0) return;
  if (static_cast<size_t>(bytes) > source->manager.bytes_in_buffer) {
    source->manager.bytes_in_buffer = 0;
    Refill(codec);
    return;
  }
  source->manager.next_input_byte += bytes;
  source->manager.bytes_in_buffer -= static_cast<size_t>(bytes);
}
void End(j_decompress_ptr) {}

void CheckScans(j_common_ptr codec) {
  if (codec->is_decompressor != 0 &&
      reinterpret_cast<j_decompress_ptr>(codec)->input_scan_number > kMaxScans) {
    auto* errors = reinterpret_cast<Errors*>(codec->err);
    std::snprintf(errors->message, sizeof(errors->message), "more than %d scans", kMaxScans);
    longjmp(errors->jump, 1);
  }
}

class Reader {
 public:
  explicit Reader(std::string_view file, bool recover) : file_size_(file.size()) {
    codec_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = OnError;
    errors_.manager.output_message = OnMessage;
    source_.manager = {};
    source_.manager.init_source = Begin;
    source_.manager.fill_input_buffer = Refill;
    source_.manager.skip_input_data = Skip;
    source_.manager.resync_to_restart = jpeg_resync_to_restart;
    source_.manager.term_source = End;
    source_.begin = reinterpret_cast<const JOCTET*>(file.data());
    source_.size = file.size();
    source_.recover = recover;
    source_.repeats = 0;
    progress_ = {};
    progress_.progress_monitor = CheckScans;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { jpeg_destroy_decompress(&codec_); }

  absl::Status ReadHeader() {
    const bool read = Try(errors_, [this] {
      jpeg_create_decompress(&codec_);
      codec_.src = &source_.manager;
      codec_.progress = &progress_;
      complete_ = jpeg_read_header(&codec_, TRUE) == JPEG_HEADER_OK;
    });
    if (!read) return Broken();
    if (!complete_) return InvalidArgument("a JPEG that ends in its header");
    return CheckClaim("JPEG", {1, codec_.image_height, codec_.image_width, 1}, file_size_,
                      kPixelsPerByte);
  }

  absl::StatusOr<ImageForm> DefaultForm() {
    if (!Try(errors_, [this] { jpeg_calc_output_dimensions(&codec_); })) return Broken();
    return ImageForm{1, codec_.output_height, codec_.output_width, codec_.output_components};
  }

  absl::Status Decode(const JpegDecodeOptions& options, PixelAllocator allocate) {
    TROUPE_RETURN_IF_ERROR(Configure(options));
    if (!Try(errors_, [this] { jpeg_calc_output_dimensions(&codec_); })) return Broken();
    TROUPE_RETURN_IF_ERROR(ChooseWindow(options.window));
    if (!Try(errors_, [this] { complete_ = jpeg_start_decompress(&codec_) != FALSE; })) {
      return Broken();
    }
    if (!complete_) return InvalidArgument("a JPEG that ends in its first scans");
    if (options.window.has_value()) {
      if (!Try(errors_, [this] { GoToWindow(); })) return Broken();
      if (codec_.output_scanline != window_.y) {
        return InvalidArgument("a JPEG that ends above row ", window_.y, ", where the window is");
      }
    }
    TROUPE_ASSIGN_OR_RETURN(void* pixels, allocate({1, window_.height, window_.width, channels_}));
    pixels_ = static_cast<JSAMPLE*>(pixels);
    cmyk_ = codec_.out_color_space == JCS_CMYK;
    if (cmyk_ || codec_.output_width != window_.width) {
      row_.resize(size_t{codec_.output_width} * static_cast<size_t>(codec_.output_components));
    }
    if (!Try(errors_, [this] { ReadRows(); })) return Broken();
    return FinishRows(options.recover_truncated, options.acceptable_fraction);
  }

 private:
  absl::Status Broken() const { return InvalidArgument("a broken JPEG: ", errors_.message); }

  absl::Status Configure(const JpegDecodeOptions& options) {
    channels_ = options.channels == 0 ? std::min(codec_.num_components, 3) : options.channels;
    if (channels_ == 1) {
      codec_.out_color_space = JCS_GRAYSCALE;
    } else if (channels_ != 3) {
      return InvalidArgument("a JPEG can be decoded to 1 or 3 channels, not to ", channels_);
    } else {
      // libjpeg makes no RGB of CMYK; ReadRows does.
      const bool cmyk = codec_.jpeg_color_space == JCS_CMYK || codec_.jpeg_color_space == JCS_YCCK;
      codec_.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    }
    codec_.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
    codec_.scale_num = 1;
    codec_.scale_denom = static_cast<unsigned>(options.ratio);
    codec_.dct_method = options.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    return absl::OkStatus();
  }

  absl::Status ChooseWindow(const std::optional<ImageWindow>& window) {
    const int64_t height = codec_.output_height, width = codec_.output_width;
    window_ = window.value_or(ImageWindow{0, 0, height, width});
    if (window_.y >= 0 && window_.x >= 0 && window_.height > 0 && window_.width > 0 &&
        window_.y <= height - window_.height && window_.x <= width - window_.width) {
      return absl::OkStatus();
    }
    return InvalidArgument("the window of ", window_.height, " rows from ", window_.y, " on and ",
                           window_.width, " columns from ", window_.x,
                           " on must lie in the JPEG, of ", height, " x ", width);
  }

  // libjpeg moves the left end of a window to the left, to that of a block.
  void GoToWindow() {
    auto x = static_cast<JDIMENSION>(window_.x), width = static_cast<JDIMENSION>(window_.width);
    jpeg_crop_scanline(&codec_, &x, &width);
    jpeg_skip_scanlines(&codec_, static_cast<JDIMENSION>(window_.y));
  }

  // Counts in `rows_read_`, which is less than the window's height if the file ends early.
  void ReadRows() {
    constexpr int kAtOnce = 8;
    const int64_t stride = window_.width * channels_;
    rows_read_ = 0;
    while (rows_read_ < window_.height) {
      JSAMPROW rows[kAtOnce];
      int wanted = 1;
      if (row_.empty()) {
        wanted = static_cast<int>(std::min<int64_t>(kAtOnce, window_.height - rows_read_));
        for (int i = 0; i < wanted; ++i) rows[i] = pixels_ + (rows_read_ + i) * stride;
      } else {
        rows[0] = row_.data();
      }
      const int read =
          static_cast<int>(jpeg_read_scanlines(&codec_, rows, static_cast<JDIMENSION>(wanted)));
      if (read == 0) return;
      if (!row_.empty()) TakeRow(pixels_ + rows_read_ * stride);
      rows_read_ += read;
    }
    // The end must be there, too.
    if (codec_.output_scanline == codec_.output_height) jpeg_finish_decompress(&codec_);
  }

  void TakeRow(JSAMPLE* out) const {
    const JSAMPLE* in =
        row_.data() + (codec_.output_width - window_.width) * codec_.output_components;
    if (!cmyk_) {
      std::memcpy(out, in, static_cast<size_t>(window_.width * channels_));
      return;
    }
    // Adobe's programs store the complements.
    const int flip = codec_.saw_Adobe_marker != 0 ? 0 : 255;
    for (int64_t x = 0; x < window_.width; ++x, in += 4, out += 3) {
      const int k = in[3] ^ flip;
      for (int c = 0; c < 3; ++c) out[c] = static_cast<JSAMPLE>((in[c] ^ flip) * k / 255);
    }
  }

  absl::Status FinishRows(bool recover, float acceptable_fraction) {
    if (rows_read_ == window_.height) return absl::OkStatus();
    const auto stride = static_cast<size_t>(window_.width * channels_);
    JSAMPLE* missing = pixels_ + static_cast<size_t>(rows_read_) * stride;
    const auto count = static_cast<size_t>(window_.height - rows_read_);
    if (recover && rows_read_ > 0) {
      for (size_t i = 0; i < count; ++i)
        std::memcpy(missing + i * stride, missing - stride, stride);
      return absl::OkStatus();
    }
    const float fraction = static_cast<float>(rows_read_) / static_cast<float>(window_.height);
    if (!recover && fraction < std::min(1.0f, acceptable_fraction)) {
      return InvalidArgument("a JPEG that ends after row ", rows_read_, " of ", window_.height);
    }
    std::memset(missing, 0, count * stride);
    return absl::OkStatus();
  }

  const size_t file_size_;
  jpeg_decompress_struct codec_ = {};
  Errors errors_;
  Source source_;
  jpeg_progress_mgr progress_;
  bool complete_ = false;
  int channels_ = 0;
  ImageWindow window_;
  bool cmyk_ = false;
  JSAMPLE* pixels_ = nullptr;
  std::vector<JSAMPLE> row_;  // If rows are not decoded to where they belong.
  int64_t rows_read_ = 0;
};

class Writer {
 public:
  Writer(const uint8_t* pixels, const ImageForm& form, const JpegEncodeOptions& options,
         std::string* file)
      : pixels_(pixels), form_(form), options_(options), sink_{{}, {}, file, {}} {
    codec_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = OnError;
    errors_.manager.output_message = OnMessage;
    sink_.manager.init_destination = BeginOutput;
    sink_.manager.empty_output_buffer = Flush;
    sink_.manager.term_destination = EndOutput;
    if (!options.xmp_metadata.empty()) {
      // The name space of XMP, and its end.
      packet_ =
          StrCat("http://ns.adobe.com/xap/1.0/", std::string_view("\0", 1), options.xmp_metadata);
    }
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { jpeg_destroy_compress(&codec_); }

  absl::Status Write() {
    const bool written = Try(errors_, [this] { WriteAll(); });
    TROUPE_RETURN_IF_ERROR(sink_.status);
    if (written) return absl::OkStatus();
    return InvalidArgument("a JPEG of ", form_.width, " x ", form_.height,
                           " pixels: ", std::string_view(errors_.message));
  }

 private:
  struct Sink {
    jpeg_destination_mgr manager;
    JOCTET buffer[1 << 14];
    std::string* file;
    absl::Status status;
  };

  static Sink* SinkOf(j_compress_ptr codec) { return reinterpret_cast<Sink*>(codec->dest); }
  static void BeginOutput(j_compress_ptr codec) {
    Sink* sink = SinkOf(codec);
    sink->manager.next_output_byte = sink->buffer;
    sink->manager.free_in_buffer = sizeof(sink->buffer);
  }
  // Whatever is thrown must not pass libjpeg's frames.
  static bool Append(Sink* sink, size_t size) {
    sink->status = CatchExceptions([&] {
      sink->file->append(reinterpret_cast<const char*>(sink->buffer), size);
      return absl::OkStatus();
    });
    return sink->status.ok();
  }
  static boolean Flush(j_compress_ptr codec) {
    if (!Append(SinkOf(codec), sizeof(Sink::buffer))) ERREXIT(codec, JERR_FILE_WRITE);
    BeginOutput(codec);
    return TRUE;
  }
  static void EndOutput(j_compress_ptr codec) {
    Sink* sink = SinkOf(codec);
    if (!Append(sink, sizeof(sink->buffer) - sink->manager.free_in_buffer)) {
      ERREXIT(codec, JERR_FILE_WRITE);
    }
  }

  void WriteAll() {
    jpeg_create_compress(&codec_);
    codec_.dest = &sink_.manager;
    codec_.image_width = static_cast<JDIMENSION>(form_.width);
    codec_.image_height = static_cast<JDIMENSION>(form_.height);
    codec_.input_components = static_cast<int>(form_.channels);
    codec_.in_color_space = form_.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&codec_);
    if (options_.optimize_size) codec_.optimize_coding = TRUE;
    codec_.density_unit = options_.per_centimeter ? 2 : 1;
    codec_.X_density = static_cast<UINT16>(options_.x_density);
    codec_.Y_density = static_cast<UINT16>(options_.y_density);
    jpeg_set_quality(&codec_, options_.quality, TRUE);
    if (options_.progressive) jpeg_simple_progression(&codec_);
    if (!options_.chroma_downsampling) {
      for (int i = 0; i < codec_.num_components; ++i) {
        codec_.comp_info[i].h_samp_factor = 1;
        codec_.comp_info[i].v_samp_factor = 1;
      }
    }
    jpeg_start_compress(&codec_, TRUE);
    if (!packet_.empty()) {
      jpeg_write_marker(&codec_, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(packet_.data()),
                        static_cast<unsigned>(packet_.size()));
    }
    const int64_t stride = form_.width * form_.channels;
    while (codec_.next_scanline < codec_.image_height) {
      JSAMPROW row = const_cast<JSAMPROW>(pixels_ + codec_.next_scanline * stride);
      jpeg_write_scanlines(&codec_, &row, 1);
    }
    jpeg_finish_compress(&codec_);
  }

  const uint8_t* const pixels_;
  const ImageForm form_;
  const JpegEncodeOptions& options_;
  std::string packet_;
  jpeg_compress_struct codec_ = {};
  Errors errors_;
  Sink sink_;
};

}  // namespace

absl::Status DecodeJpeg(std::string_view file, const JpegDecodeOptions& options,
                        PixelAllocator allocate) {
  Reader reader(file, options.recover_truncated);
  TROUPE_RETURN_IF_ERROR(reader.ReadHeader());
  return reader.Decode(options, allocate);
}

absl::StatusOr<ImageForm> ReadJpegForm(std::string_view file) {
  Reader reader(file, /*recover=*/false);
  TROUPE_RETURN_IF_ERROR(reader.ReadHeader());
  return reader.DefaultForm();
}

absl::Status EncodeJpeg(const uint8_t* pixels, const ImageForm& form,
                        const JpegEncodeOptions& options, std::string* file) {
  file->clear();
  if (form.height <= 0 || form.width <= 0 || form.height > JPEG_MAX_DIMENSION ||
      form.width > JPEG_MAX_DIMENSION) {
    return InvalidArgument("a JPEG has 1 to ", JPEG_MAX_DIMENSION, " rows and columns, not ",
                           form.height, " x ", form.width);
  }
  return Writer(pixels, form, options, file).Write();
}

}  // namespace troupe
