#include "devices/shape.h"

#include <cassert>
#include <limits>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "devices/status_macros.h"
#include "graph/protos/tensor.pb.h"

namespace troupe {
namespace {

/// The product of sizes; saturates, so that a wrong caller's tensor is refused by the allocator
/// instead of wrapping to a small size.
int64_t Product(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t size : dims) {
    product = MultiplyWithoutOverflow(product, size);
    if (product < 0) {
      assert(false && "a shape's number of elements overflows");
      return std::numeric_limits<int64_t>::max();
    }
  }
  return product;
}

std::string DimsToString(absl::Span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    if (dims[i] < 0) {
      text += '?';
    } else {
      absl::StrAppend(&text, dims[i]);
    }
  }
  return text + ']';
}

/// As given, negative sizes included, for messages.
std::string RawDims(absl::Span<const int64_t> dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size() && i < 16; ++i) absl::StrAppend(&text, i ? "," : "", dims[i]);
  return text + (dims.size() > 16 ? ",...]" : "]");
}

absl::Status TooLarge(absl::Span<const int64_t> dims, size_t i) {
  return InvalidArgument("Shape ", RawDims(dims),
                         " is too large: the product of its sizes up to dimension ", i,
                         " (number of elements) overflows 63 bits");
}

absl::Status CheckRank(size_t rank) {
  if (rank <= static_cast<size_t>(Shape::kMaxRank)) return absl::OkStatus();
  return InvalidArgument("Shape has ", rank, " dimensions, but at most ", Shape::kMaxRank,
                         " are allowed");
}

absl::StatusOr<std::vector<int64_t>> ProtoDims(const TensorShapeProto& proto) {
  TROUPE_RETURN_IF_ERROR(CheckRank(static_cast<size_t>(proto.dim_size())));
  std::vector<int64_t> dims;
  dims.reserve(proto.dim_size());
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return dims;
}

}  // namespace

int64_t MultiplyWithoutOverflow(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product) || product < 0) return -1;
  return product;
}

Shape::Shape(absl::Span<const int64_t> dims)
    : num_elements_(Product(dims)), rank_(static_cast<uint8_t>(dims.size())) {
  assert(dims.size() <= kMaxRank);
  if (rank_ > kInline) heap_ = new int64_t[rank_];
  std::copy(dims.begin(), dims.begin() + rank_, data());
}

absl::StatusOr<Shape> Shape::Create(absl::Span<const int64_t> dims) {
  TROUPE_RETURN_IF_ERROR(CheckRank(dims.size()));
  int64_t product = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return InvalidArgument("Shape ", RawDims(dims), " has a negative size in dimension ", i,
                             "; expected sizes >= 0");
    }
    product = MultiplyWithoutOverflow(product, dims[i]);
    if (product < 0) return TooLarge(dims, i);
  }
  return Shape(dims);
}

absl::StatusOr<Shape> Shape::FromProto(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    return InvalidArgument("Shape has unknown rank; expected a fully known shape");
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ProtoDims(proto));
  return Create(dims);
}

void Shape::ToProto(TensorShapeProto* proto) const {
  proto->Clear();
  for (int64_t size : dims()) proto->add_dim()->set_size(size);
}

void Shape::set_dim(int i, int64_t size) {
  assert(i >= 0 && i < rank_ && size >= 0);
  data()[i] = size;
  num_elements_ = Product(dims());
}

void Shape::AddDim(int64_t size) { InsertDim(rank_, size); }

void Shape::InsertDim(int at, int64_t size) {
  assert(at >= 0 && at <= rank_ && size >= 0 && rank_ < kMaxRank);
  absl::InlinedVector<int64_t, 8> changed(dims().begin(), dims().end());
  changed.insert(changed.begin() + at, size);
  *this = Shape(absl::MakeConstSpan(changed));
}

void Shape::RemoveDim(int at) {
  assert(at >= 0 && at < rank_);
  absl::InlinedVector<int64_t, 8> changed(dims().begin(), dims().end());
  changed.erase(changed.begin() + at);
  *this = Shape(absl::MakeConstSpan(changed));
}

std::string Shape::ToString() const { return DimsToString(dims()); }

absl::StatusOr<PartialShape> PartialShape::Create(absl::Span<const int64_t> dims) {
  TROUPE_RETURN_IF_ERROR(CheckRank(dims.size()));
  int64_t product = 1;  // -1 once a size is unknown
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < kUnknown) {
      return InvalidArgument("Shape ", RawDims(dims), " has the size ", dims[i], " in dimension ",
                             i, "; expected -1 (unknown) or more");
    }
    if (product < 0 || dims[i] == kUnknown) {
      product = -1;
      continue;
    }
    product = MultiplyWithoutOverflow(product, dims[i]);
    if (product < 0) return TooLarge(dims, i);
  }
  return PartialShape(dims);
}

absl::StatusOr<PartialShape> PartialShape::FromProto(const TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() > 0) {
      return InvalidArgument("Shape of unknown rank lists ", proto.dim_size(), " dimensions");
    }
    return PartialShape();
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<int64_t> dims, ProtoDims(proto));
  return Create(dims);
}

void PartialShape::ToProto(TensorShapeProto* proto) const {
  proto->Clear();
  if (!known_rank_) {
    proto->set_unknown_rank(true);
    return;
  }
  for (int64_t size : dims_) proto->add_dim()->set_size(size);
}

bool PartialShape::fully_known() const {
  return known_rank_ && std::all_of(dims_.begin(), dims_.end(), [](int64_t d) { return d >= 0; });
}

absl::StatusOr<Shape> PartialShape::ToShape() const {
  if (!fully_known()) {
    return InvalidArgument("Shape ", ToString(), " is not fully known");
  }
  return Shape::Create(dims_);
}

bool PartialShape::IsCompatibleWith(const PartialShape& other) const {
  if (!known_rank_ || !other.known_rank_) return true;
  if (dims_.size() != other.dims_.size()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && other.dims_[i] >= 0 && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

bool PartialShape::IsCompatibleWith(const Shape& other) const {
  if (!known_rank_) return true;
  if (rank() != other.rank()) return false;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] >= 0 && dims_[i] != other.dim(static_cast<int>(i))) return false;
  }
  return true;
}

absl::StatusOr<PartialShape> PartialShape::MergeWith(const PartialShape& other) const {
  if (!known_rank_) return other;
  if (!other.known_rank_) return *this;
  if (dims_.size() != other.dims_.size()) {
    return InvalidArgument("Incompatible ranks during merge: ", ToString(), " vs. ",
                           other.ToString());
  }
  PartialShape merged = *this;
  for (size_t i = 0; i < dims_.size(); ++i) {
    if (dims_[i] < 0) {
      merged.dims_[i] = other.dims_[i];
    } else if (other.dims_[i] >= 0 && other.dims_[i] != dims_[i]) {
      return InvalidArgument("Incompatible shapes during merge: ", ToString(), " vs. ",
                             other.ToString());
    }
  }
  return merged;
}

PartialShape PartialShape::Concatenate(const PartialShape& other) const {
  if (!known_rank_ || !other.known_rank_) return PartialShape();
  PartialShape result = *this;
  result.dims_.insert(result.dims_.end(), other.dims_.begin(), other.dims_.end());
  return result;
}

std::string PartialShape::ToString() const {
  return known_rank_ ? DimsToString(dims_) : "<unknown>";
}

}  // namespace troupe
