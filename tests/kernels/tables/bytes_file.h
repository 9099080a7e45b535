/// A file whose contents are given.
#ifndef TROUPE_TESTS_KERNELS_TABLES_BYTES_FILE_H_
#define TROUPE_TESTS_KERNELS_TABLES_BYTES_FILE_H_

#include <algorithm>
#include <string>
#include <utility>

#include "devices/storage/file_system.h"

namespace troupe::testing {

class BytesFile final : public RandomAccessFile {
 public:
  explicit BytesFile(std::string bytes) : bytes_(std::move(bytes)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, absl::Span<char> to) const override {
    if (offset >= bytes_.size()) return size_t{0};
    const size_t count = std::min<size_t>(to.size(), bytes_.size() - offset);
    std::copy_n(bytes_.data() + offset, count, to.data());
    return count;
  }
  absl::StatusOr<uint64_t> Size() const override { return bytes_.size(); }

 private:
  const std::string bytes_;
};

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_TABLES_BYTES_FILE_H_
