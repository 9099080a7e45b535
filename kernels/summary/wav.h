/// WAV, written.
#ifndef TROUPE_KERNELS_SUMMARY_WAV_H_
#define TROUPE_KERNELS_SUMMARY_WAV_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace troupe {

/// A sound: [frames, channels] samples, of which 1 and -1 are the loudest.
struct Sound {
  int64_t frames, channels;
  int64_t rate;  ///< Frames a second.
  absl::Span<const float> samples;
};

/// Sets `wav` to the sound as a file of 16-bit integers: samples are rounded, and cut to the range;
/// NaN is 0. InvalidArgument if there is no channel or rate, or more than the format has numbers
/// for.
absl::Status EncodeWav(const Sound& sound, std::string* wav);

}  // namespace troupe

#endif  // TROUPE_KERNELS_SUMMARY_WAV_H_
