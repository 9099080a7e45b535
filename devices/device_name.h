/// Device names: `/job:J/replica:R/task:T/device:TYPE:I`, full or partial.
#ifndef TROUPE_DEVICES_DEVICE_NAME_H_
#define TROUPE_DEVICES_DEVICE_NAME_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A device name of which any part may be missing (unspecified). A value; thread-compatible.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  ///< Upper case: "CPU", "GPU".
  std::optional<int> index;

  /// TensorFlow's grammar, the legacy forms "/cpu:0" and "/gpu:*" included; `*` is unspecified, ""
  /// is everything unspecified. InvalidArgument quotes the name and the part that is wrong.
  static absl::StatusOr<DeviceName> Parse(std::string_view text);

  /// True if all parts are given.
  bool complete() const { return job && replica && task && type && index; }
  /// Canonical text, with only the parts that are given.
  std::string ToString() const;
  /// True if every part given in `pattern` is given here and equal.
  bool Matches(const DeviceName& pattern) const;
  /// Adds the parts given in `other`. A part that both give differently is InvalidArgument, unless
  /// `soft`, when type and index (and only they) give way: they become unspecified.
  absl::Status MergeFrom(const DeviceName& other, bool soft = false);
  /// Inner scope over outer: parts given in `inner` win (`tf.device` nesting).
  static DeviceName Override(const DeviceName& outer, const DeviceName& inner);

  bool operator==(const DeviceName&) const = default;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_DEVICES_DEVICE_NAME_H_
