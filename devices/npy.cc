#include "devices/npy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeader = 64 << 10;  // numpy's own limit is 10,000 characters

struct NpyType {
  ElementType type;
  const char* code;  // without byte order
};
constexpr NpyType kTypes[] = {
    {ElementType::kBool, "b1"},      {ElementType::kInt8, "i1"},
    {ElementType::kInt16, "i2"},     {ElementType::kInt32, "i4"},
    {ElementType::kInt64, "i8"},     {ElementType::kUint8, "u1"},
    {ElementType::kUint16, "u2"},    {ElementType::kUint32, "u4"},
    {ElementType::kUint64, "u8"},    {ElementType::kHalf, "f2"},
    {ElementType::kFloat, "f4"},     {ElementType::kDouble, "f8"},
    {ElementType::kComplex64, "c8"}, {ElementType::kComplex128, "c16"},
    {ElementType::kBfloat16, "V2"},
};

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

absl::Status Malformed(std::string_view what, size_t offset) {
  return InvalidArgument("Not a readable .npy file: ", what, " (at byte ", offset, ")");
}

/// Reads the dictionary literal.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, size_t offset) : text_(text), offset_(offset) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    if (!Take('{')) return Error("the header is no dictionary");
    while (!Take('}')) {
      std::string key;
      if (!String(&key) || !Take(':')) return Error("expected a quoted key and a colon");
      bool ok = false;
      if (key == "descr" && !header.descr) {
        header.descr.emplace();
        ok = String(&*header.descr);
      } else if (key == "fortran_order" && !header.fortran_order) {
        ok = Bool(&header.fortran_order);
      } else if (key == "shape" && !header.shape) {
        header.shape.emplace();
        ok = Tuple(&*header.shape);
      } else {
        return Error("unknown or repeated key");
      }
      if (!ok) return Error("malformed value of the header");
      if (!Take(',') && Peek() != '}') return Error("expected ',' or '}'");
    }
    SkipSpace();
    if (at_ != text_.size()) return Error("something follows the header's dictionary");
    if (!header.descr || !header.fortran_order || !header.shape) {
      return Error("the header lacks one of descr, fortran_order, shape");
    }
    return header;
  }

 private:
  absl::Status Error(std::string_view what) const { return Malformed(what, offset_ + at_); }
  void SkipSpace() {
    while (at_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  char Peek() {
    SkipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool Word(std::string_view word) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool String(std::string* value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return false;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return false;
    *value = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return true;
  }
  bool Bool(std::optional<bool>* value) {
    if (Word("True")) {
      *value = true;
    } else if (Word("False")) {
      *value = false;
    } else {
      return false;
    }
    return true;
  }
  bool Tuple(std::vector<int64_t>* dims) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      if (dims->size() > Shape::kMaxRank) return false;
      int64_t size = 0;
      if (!absl::ascii_isdigit(static_cast<unsigned char>(Peek()))) return false;
      while (at_ < text_.size() && absl::ascii_isdigit(static_cast<unsigned char>(text_[at_]))) {
        size = MultiplyWithoutOverflow(size, 10);
        if (size < 0 || __builtin_add_overflow(size, text_[at_] - '0', &size)) return false;
        ++at_;
      }
      Word("L");  // Python 2 wrote long integers so
      dims->push_back(size);
      if (!Take(',')) return Take(')');
    }
    return true;
  }

  std::string_view text_;
  size_t offset_;
  size_t at_ = 0;
};

struct Descr {
  ElementType type;
  bool swap;
};

absl::StatusOr<Descr> ParseDescr(const std::string& descr) {
  if (descr.size() >= 3) {
    const char order = descr[0];
    for (const NpyType& entry : kTypes) {
      if (descr.compare(1, std::string::npos, entry.code) != 0) continue;
      if (order == '<' || order == '=' || order == '|') return Descr{entry.type, false};
      if (order == '>') return Descr{entry.type, true};
    }
  }
  return InvalidArgument(
      "Elements of the type '", absl::CHexEscape(descr.substr(0, 40)),
      "' in a .npy file are not supported; expected b1, i1, i2, i4, i8, u1, u2, u4, "
      "u8, f2, f4, f8, c8 or c16 after '<', '>', '=' or '|'");
}

/// Reverses the bytes of every number; a complex number is two.
void SwapBytes(char* data, size_t bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes; i += width) std::reverse(data + i, data + i + width);
}

/// Column-major elements to row-major ones. Walks the output in order with a counter of indices.
void Transpose(const char* from, const Shape& shape, size_t size, char* to) {
  const int rank = shape.rank();
  std::vector<int64_t> index(rank, 0), stride(rank, 1);
  for (int i = 1; i < rank; ++i) stride[i] = stride[i - 1] * shape.dim(i - 1);
  int64_t at = 0;
  for (int64_t n = shape.num_elements(); n > 0; --n) {
    std::memcpy(to, from + at * static_cast<int64_t>(size), size);
    to += size;
    for (int axis = rank - 1; axis >= 0; --axis) {
      at += stride[axis];
      if (++index[axis] < shape.dim(axis)) break;
      at -= index[axis] * stride[axis];
      index[axis] = 0;
    }
  }
}

absl::Status InFile(const absl::Status& status, const std::string& file) {
  return WithContext(StrCat(file, ": "), status);
}

absl::Status FileError(const char* what, const std::string& file) {
  const int error = errno;
  const std::string message = StrCat("Cannot ", what, " ", file, ": ", std::strerror(error));
  if (error == EISDIR) return InvalidArgument(message);
  if (error == ENOENT) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::UnknownError(message);
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

absl::StatusOr<Tensor> ParseNpy(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return Malformed("it does not begin with \\x93NUMPY", 0);
  if (bytes.size() < 10) return Malformed("it is cut off", bytes.size());
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3) {
    return Malformed(StrCat("version ", major, " is unknown; expected 1, 2 or 3"), 6);
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  const size_t start = 8 + length_bytes;
  if (bytes.size() < start) return Malformed("it is cut off", bytes.size());
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  }
  if (length > bytes.size() - start || length > kMaxHeader) {
    return Malformed(StrCat("the header claims ", length, " bytes, ", bytes.size() - start,
                            " follow, at most ", kMaxHeader, " are allowed"),
                     8);
  }
  TROUPE_ASSIGN_OR_RETURN(const Header header,
                          HeaderParser(bytes.substr(start, length), start).Parse());
  TROUPE_ASSIGN_OR_RETURN(const Descr descr, ParseDescr(*header.descr));
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(*header.shape));
  const std::string_view elements = bytes.substr(start + length);
  const size_t size = ElementSize(descr.type);
  const int64_t expected =
      MultiplyWithoutOverflow(shape.num_elements(), static_cast<int64_t>(size));
  if (expected < 0 || static_cast<size_t>(expected) != elements.size()) {
    return Malformed(
        StrCat("shape ", shape.ToString(), " of type ", ElementTypeName(descr.type), " needs ",
               expected < 0 ? std::string("more than 2^63") : StrCat(expected),
               " bytes, but there are ", elements.size()),
        start + length);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(descr.type, shape));
  if (elements.empty()) return tensor;
  char* data = static_cast<char*>(tensor.mutable_raw_data());
  if (*header.fortran_order && shape.rank() > 1) {
    Transpose(elements.data(), shape, size, data);
  } else {
    std::memcpy(data, elements.data(), elements.size());
  }
  if (descr.swap) SwapBytes(data, elements.size(), IsComplex(descr.type) ? size / 2 : size);
  if (descr.type == ElementType::kBool) {
    for (size_t i = 0; i < elements.size(); ++i) data[i] = data[i] != 0;
  }
  return tensor;
}

absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor) {
  const NpyType* entry = std::find_if(std::begin(kTypes), std::end(kTypes),
                                      [&](const NpyType& t) { return t.type == tensor.type(); });
  if (entry == std::end(kTypes)) {
    return InvalidArgument("A tensor of type ", ElementTypeName(tensor.type()),
                           " cannot be written to a .npy file; cast or print it");
  }
  std::string shape = "(";
  for (int64_t size : tensor.shape().dims()) absl::StrAppend(&shape, size, ", ");
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.pop_back();
  std::string header = StrCat("{'descr': '", ElementSize(tensor.type()) == 1 ? "|" : "<",
                              entry->code, "', 'fortran_order': False, 'shape': ", shape, "), }");
  const size_t start = kMagic.size() + 4;
  // Padded so that the elements begin at a multiple of 64.
  header.append(63 - (start + header.size()) % 64, ' ');
  header.push_back('\n');
  std::string bytes(kMagic);
  bytes.append(
      {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)});
  bytes += header;
  if (tensor.num_elements() > 0) {
    bytes.append(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
  }
  return bytes;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& file) {
  return CatchExceptions([&]() -> absl::StatusOr<Tensor> {
    File in(std::fopen(file.c_str(), "rb"));
    if (!in) return FileError("open", file);
    std::string bytes;
    char block[64 << 10];
    size_t n;
    while ((n = std::fread(block, 1, sizeof(block), in.get())) > 0) bytes.append(block, n);
    if (std::ferror(in.get())) return FileError("read", file);
    absl::StatusOr<Tensor> tensor = ParseNpy(bytes);
    if (!tensor.ok()) return InFile(tensor.status(), file);
    return tensor;
  });
}

absl::Status WriteNpy(const Tensor& tensor, const std::string& file) {
  absl::StatusOr<std::string> bytes = CatchExceptions([&] { return SerializeNpy(tensor); });
  if (!bytes.ok()) return InFile(bytes.status(), file);
  File out(std::fopen(file.c_str(), "wb"));
  if (!out) return FileError("create", file);
  if (std::fwrite(bytes->data(), 1, bytes->size(), out.get()) != bytes->size() ||
      std::fflush(out.get()) != 0) {
    return FileError("write", file);
  }
  return absl::OkStatus();
}

}  // namespace troupe
