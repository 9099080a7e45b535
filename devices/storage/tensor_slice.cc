#include "devices/storage/tensor_slice.h"

#include <bit>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "devices/status_macros.h"
#include "graph/protos/tensor.pb.h"

namespace troupe {
namespace {

absl::Status BadText(std::string_view text, std::string_view why) {
  return InvalidArgument("'", absl::CHexEscape({text.data(), text.size()}), "' is no slice: ", why,
                         "; expected '-' or 'start,length' for each dimension, with ':' between");
}

/// `value` in as few bytes as it needs, the highest first, after their number (TensorFlow's ordered
/// code of unsigned numbers).
void AppendOrdered(uint64_t value, std::string* key) {
  const int bytes = (std::bit_width(value) + 7) / 8;
  key->push_back(static_cast<char>(bytes));
  for (int i = bytes - 1; i >= 0; --i) key->push_back(static_cast<char>(value >> (8 * i)));
}

/// So that no string is the beginning of another: 0 becomes 0 255, 255 becomes 255 0, and 0 1 ends
/// it.
void AppendOrdered(std::string_view text, std::string* key) {
  for (const char c : text) {
    key->push_back(c);
    if (c == '\0') key->push_back('\xff');
    if (c == '\xff') key->push_back('\0');
  }
  key->append({'\0', '\1'});
}

/// `n` bytes hold 7n - 1 bits in two's complement, the highest byte first. The first bits, which
/// would be copies of the sign, say how many bytes there are: n of them are flipped.
void AppendSignedOrdered(int64_t value, std::string* key) {
  const auto magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  const int bytes = std::bit_width(magnitude) / 7 + 1;
  const char sign = value < 0 ? '\xff' : '\0';
  std::string code(2, sign);
  for (int i = 7; i >= 0; --i) code.push_back(static_cast<char>(value >> (8 * i)));
  code.erase(0, code.size() - static_cast<size_t>(bytes));
  const uint32_t flipped = 0xffff0000u >> bytes & 0xffff;
  code[0] = static_cast<char>(code[0] ^ static_cast<char>(flipped >> 8));
  if (bytes > 1) code[1] = static_cast<char>(code[1] ^ static_cast<char>(flipped));
  key->append(code);
}

}  // namespace

absl::StatusOr<TensorSlice> TensorSlice::Parse(std::string_view text) {
  std::vector<Extent> extents;
  if (text.empty()) return TensorSlice(std::move(extents));
  for (absl::string_view part : absl::StrSplit(absl::string_view(text.data(), text.size()), ':')) {
    Extent extent;
    if (part != "-") {
      const std::vector<absl::string_view> numbers = absl::StrSplit(part, ',');
      if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &extent.start) ||
          !absl::SimpleAtoi(numbers[1], &extent.length)) {
        return BadText(text, "a dimension is neither");
      }
      if (extent.start < 0 || extent.length <= 0) {
        return BadText(text, "a start is negative or a length is not positive");
      }
    }
    extents.push_back(extent);
  }
  if (extents.size() > Shape::kMaxRank) return BadText(text, "too many dimensions");
  return TensorSlice(std::move(extents));
}

absl::StatusOr<TensorSlice> TensorSlice::FromProto(const TensorSliceProto& proto) {
  if (proto.extent_size() > Shape::kMaxRank) {
    return InvalidArgument("A slice has ", proto.extent_size(), " dimensions; at most ",
                           Shape::kMaxRank, " are possible");
  }
  std::vector<Extent> extents;
  for (const TensorSliceProto::Extent& from : proto.extent()) {
    Extent extent{from.start(), from.has_length_hack_case() == TensorSliceProto::Extent::kLength
                                    ? from.length()
                                    : kAll};
    if (extent.start < 0 || extent.length < kAll || (extent.length == kAll && extent.start != 0)) {
      return InvalidArgument("A slice begins at ", extent.start, " and has the length ",
                             extent.length, " in dimension ", extents.size(),
                             "; neither may be negative");
    }
    extents.push_back(extent);
  }
  return TensorSlice(std::move(extents));
}

void TensorSlice::ToProto(TensorSliceProto* proto) const {
  proto->clear_extent();
  for (const Extent& extent : extents_) {
    TensorSliceProto::Extent* to = proto->add_extent();
    if (extent.length == kAll) continue;
    to->set_start(extent.start);
    to->set_length(extent.length);
  }
}

std::string TensorSlice::ToString() const {
  std::string text;
  for (const Extent& extent : extents_) {
    if (!text.empty()) text += ':';
    text += extent.length == kAll ? "-" : StrCat(extent.start, ",", extent.length);
  }
  return text;
}

bool TensorSlice::IsAll() const { return *this == TensorSlice(rank()); }

absl::StatusOr<TensorSlice> TensorSlice::In(const Shape& full) const {
  if (full.rank() != rank()) {
    return InvalidArgument("The slice '", ToString(), "' has ", rank(),
                           " dimensions, the tensor of shape ", full.ToString(), " has ",
                           full.rank());
  }
  TensorSlice result = *this;
  for (int i = 0; i < rank(); ++i) {
    Extent& extent = result.extents_[static_cast<size_t>(i)];
    if (extent.length == kAll) extent.length = full.dim(i);
    if (extent.start > full.dim(i) || extent.length > full.dim(i) - extent.start) {
      return InvalidArgument("The slice '", ToString(), "' is not inside the shape ",
                             full.ToString(), ": see dimension ", i);
    }
  }
  return result;
}

Shape TensorSlice::shape() const {
  Shape shape;
  for (const Extent& extent : extents_) shape.AddDim(extent.length);
  return shape;
}

absl::StatusOr<ShapeAndSlice> ParseShapeAndSlice(std::string_view text) {
  std::vector<absl::string_view> parts =
      absl::StrSplit(absl::string_view(text.data(), text.size()), ' ');
  const absl::string_view slice = parts.back();
  parts.pop_back();
  std::vector<int64_t> dims(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!absl::SimpleAtoi(parts[i], &dims[i])) {
      return InvalidArgument("'", absl::CHexEscape({text.data(), text.size()}),
                             "' is no shape and slice: expected the sizes of the whole tensor and "
                             "the slice, with spaces between, such as '4 5 0,2:-'");
    }
  }
  ShapeAndSlice result;
  TROUPE_ASSIGN_OR_RETURN(result.full, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(result.slice, TensorSlice::Parse({slice.data(), slice.size()}));
  TROUPE_RETURN_IF_ERROR(result.slice.In(result.full).status());
  return result;
}

std::string SliceKey(std::string_view tensor, const TensorSlice& slice) {
  std::string key;
  AppendOrdered(uint64_t{0}, &key);
  AppendOrdered(tensor, &key);
  AppendOrdered(static_cast<uint64_t>(slice.rank()), &key);
  for (const TensorSlice::Extent& extent : slice.extents()) {
    AppendSignedOrdered(extent.start, &key);
    AppendSignedOrdered(extent.length, &key);
  }
  return key;
}

}  // namespace troupe
