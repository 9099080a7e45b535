#include "kernels/array/index_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "devices/status_macros.h"

namespace troupe {

absl::StatusOr<IndexView> IndexView::Of(const Tensor& tensor, std::string_view what) {
  IndexView view;
  if (tensor.type() == ElementType::kInt64) {
    view.view_ = tensor.unchecked_data<int64_t>();
  } else {
    TROUPE_ASSIGN_OR_RETURN(view.copy_, ReadIntegers(tensor, what));
  }
  return view;
}

absl::Status IndexOutOfRange(const Tensor& tensor, std::string_view what, int64_t i, int64_t value,
                             int64_t limit) {
  DimVector at(tensor.rank());
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    at[d] = i % tensor.dim(d);
    i /= tensor.dim(d);
  }
  return InvalidArgument(std::string(what), "[", absl::StrJoin(at, ","), "] = ", value,
                         " is not in [0, ", limit, ")");
}

}  // namespace troupe
