/// Indices of whatever integer type as 64-bit numbers.
#ifndef TROUPE_KERNELS_ARRAY_INDEX_VIEW_H_
#define TROUPE_KERNELS_ARRAY_INDEX_VIEW_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "devices/tensor.h"
#include "kernels/common/integer_input.h"

namespace troupe {

/// Views an int64 tensor, copies one of another integer type. The tensor must outlive the view.
class IndexView {
 public:
  static absl::StatusOr<IndexView> Of(const Tensor& tensor, std::string_view what);
  int64_t operator[](int64_t i) const { return data()[i]; }
  const int64_t* data() const { return view_ != nullptr ? view_ : copy_.data(); }

 private:
  const int64_t* view_ = nullptr;
  DimVector copy_;
};

/// "indices[1,0] = 7 is not in [0, 4)", for element `i` of `tensor`.
absl::Status IndexOutOfRange(const Tensor& tensor, std::string_view what, int64_t i, int64_t value,
                             int64_t limit);

}  // namespace troupe

#endif  // TROUPE_KERNELS_ARRAY_INDEX_VIEW_H_
