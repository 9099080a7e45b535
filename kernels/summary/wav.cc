#include "kernels/summary/wav.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "devices/status_macros.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "WAV is little-endian");

/// The beginning of a file, byte for byte.
struct Header {
  char riff[4] = {'R', 'I', 'F', 'F'};
  uint32_t riff_bytes;  ///< After this field.
  char wave[4] = {'W', 'A', 'V', 'E'};
  char format[4] = {'f', 'm', 't', ' '};
  uint32_t format_bytes = 16;
  uint16_t pcm = 1;
  uint16_t channels;
  uint32_t rate;
  uint32_t bytes_per_second;
  uint16_t bytes_per_frame;
  uint16_t bits_per_sample = 16;
  char data[4] = {'d', 'a', 't', 'a'};
  uint32_t data_bytes;
};
static_assert(sizeof(Header) == 44);

constexpr int64_t kBytesPerSample = 2;

int16_t ToInteger(float sample) {
  if (std::isnan(sample)) return 0;
  return static_cast<int16_t>(std::clamp(std::round(sample * 32768.0f), -32768.0f, 32767.0f));
}

absl::Status Check(const Sound& sound) {
  constexpr int64_t kMost16 = std::numeric_limits<uint16_t>::max();
  constexpr int64_t kMost32 = std::numeric_limits<uint32_t>::max();
  if (sound.rate < 1 || sound.rate > kMost32) {
    return InvalidArgument("a sound's rate must be in [1, ", kMost32, "] hertz, got ", sound.rate);
  }
  if (sound.channels < 1 || sound.channels > kMost16) {
    return InvalidArgument("a sound must have 1 to ", kMost16, " channels, got ", sound.channels);
  }
  constexpr int64_t kMostSamples = (kMost32 - sizeof(Header)) / kBytesPerSample;
  if (sound.frames > kMostSamples / sound.channels) {
    return InvalidArgument("a sound of ", sound.channels, " channels can have ",
                           kMostSamples / sound.channels, " frames, got ", sound.frames);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EncodeWav(const Sound& sound, std::string* wav) {
  TROUPE_RETURN_IF_ERROR(Check(sound));
  const int64_t data_bytes = sound.frames * sound.channels * kBytesPerSample;
  const int64_t bytes_per_frame = sound.channels * kBytesPerSample;
  Header header;
  header.riff_bytes = static_cast<uint32_t>(sizeof(Header) - 8 + data_bytes);
  header.channels = static_cast<uint16_t>(sound.channels);
  header.rate = static_cast<uint32_t>(sound.rate);
  // What does not fit is cut off, as TensorFlow does: no player looks at these two.
  header.bytes_per_second = static_cast<uint32_t>(sound.rate * bytes_per_frame);
  header.bytes_per_frame = static_cast<uint16_t>(bytes_per_frame);
  header.data_bytes = static_cast<uint32_t>(data_bytes);
  wav->resize(sizeof(Header) + data_bytes);
  std::memcpy(wav->data(), &header, sizeof(Header));
  char* to = wav->data() + sizeof(Header);
  for (const float sample : sound.samples) {
    const int16_t integer = ToInteger(sample);
    std::memcpy(to, &integer, kBytesPerSample);
    to += kBytesPerSample;
  }
  return absl::OkStatus();
}

}  // namespace troupe
