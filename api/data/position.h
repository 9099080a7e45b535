/// How stages write down where they are, and read it again.
#ifndef TROUPE_API_DATA_POSITION_H_
#define TROUPE_API_DATA_POSITION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/data/element.h"

namespace troupe::data {

/// Thread-compatible.
class PositionWriter {
 public:
  PositionWriter() = default;
  /// Elements are refused once there are more bytes.
  explicit PositionWriter(int64_t most) : most_(most) {}

  void Number(uint64_t value);
  void Text(std::string_view text);
  void Append(PositionWriter more) { bytes_ += more.bytes_; }
  /// Unimplemented: resources and variants. ResourceExhausted: a tensor of 2 GiB or more, or it is
  /// `full`.
  absl::Status Put(const Element& element);
  absl::Status Put(const Block& elements);

  /// There are more bytes than there should be.
  bool full() const { return static_cast<int64_t>(bytes_.size()) > most_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
  int64_t most_ = INT64_MAX;
};

/// Reads what a `PositionWriter` has written, from bytes that may be anybody's. After the first
/// error everything is 0 or empty, and `status` says InvalidArgument. Thread-compatible.
class PositionReader {
 public:
  explicit PositionReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Number();
  /// InvalidArgument if it is larger than `most`.
  uint64_t Number(uint64_t most);
  bool Flag() { return Number(1) != 0; }
  std::string_view Text();
  /// The same text is expected: the name of a stage, a parameter.
  void Expect(std::string_view text);
  void Expect(uint64_t value);
  Element TakeElement();
  Block TakeBlock();
  /// What was read cannot be.
  void Refuse();
  void Fail(absl::Status status);

  const absl::Status& status() const { return status_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
  absl::Status status_;
};

}  // namespace troupe::data

#endif  // TROUPE_API_DATA_POSITION_H_
