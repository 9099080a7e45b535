/// Values of messages `Summary` made of tensors, for ops that put the messages out and for ops that
/// write them to files. All errors are InvalidArgument but where it says otherwise.
#ifndef TROUPE_KERNELS_SUMMARY_SUMMARY_VALUES_H_
#define TROUPE_KERNELS_SUMMARY_SUMMARY_VALUES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/tensor.h"

namespace troupe {

class Summary;

/// The scalar string `tensor`; `what` names it in messages.
absl::StatusOr<std::string> ScalarText(const Tensor& tensor, const char* what);

/// Numbers under tags: both scalars, or of one shape.
absl::Status AddScalars(const Tensor& tags, const Tensor& values, Summary* summary);

/// Also of bool. Refuses what is not finite.
absl::Status AddHistogram(const std::string& tag, const Tensor& values, Summary* summary);

/// The first `most` images of [images, height, width, channels]. `bad_color` is a vector of uint8
/// with a value for each channel at least. Tags are "tag/image/0" and so on, "tag/image" if `most`
/// is 1.
absl::Status AddImages(const std::string& tag, const Tensor& images, int64_t most,
                       const Tensor& bad_color, Summary* summary);

/// The first `most` sounds of [sounds, frames] or [sounds, frames, channels]; `rate` in hertz. Tags
/// are "tag/audio/0" and so on, "tag/audio" if `most` is 1.
absl::Status AddSounds(const std::string& tag, const Tensor& sounds, float rate, int64_t most,
                       Summary* summary);

/// `tensor` with everything in its content, strings excepted.
void AddTensor(const Tensor& tensor, Summary* summary);

}  // namespace troupe

#endif  // TROUPE_KERNELS_SUMMARY_SUMMARY_VALUES_H_
