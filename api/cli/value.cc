#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/cli/cli.h"
#include "api/cli/value_types.h"
#include "devices/npy.h"
#include "devices/resource_handle.h"
#include "devices/status_macros.h"

namespace troupe::cli {

namespace {

using nlohmann::json;

// Deeper nesting is no tensor that anybody wants to type.
constexpr int kMaxDepth = 32;

/// The text's first part, for messages.
std::string Quoted(std::string_view text) {
  return StrCat("\"", text.substr(0, 40), text.size() > 40 ? "...\"" : "\"");
}

absl::Status ShapeOf(const json& value, std::vector<int64_t>* dims) {
  const json* inner = &value;
  while (inner->is_array()) {
    if (dims->size() >= kMaxDepth)
      return InvalidArgument("lists are nested more than ", kMaxDepth, " deep");
    dims->push_back(static_cast<int64_t>(inner->size()));
    if (inner->empty()) break;
    inner = &inner->front();
  }
  return absl::OkStatus();
}

/// Calls `leaf` for each element, checking that lists are as regular as the shape.
template <typename F>
absl::Status ForEach(const json& value, absl::Span<const int64_t> dims, const F& leaf) {
  if (dims.empty()) {
    if (value.is_array()) return InvalidArgument("lists of unequal depth");
    return leaf(value);
  }
  if (!value.is_array() || static_cast<int64_t>(value.size()) != dims[0]) {
    return InvalidArgument("lists of unequal length");
  }
  for (const json& item : value) {
    TROUPE_RETURN_IF_ERROR(ForEach(item, dims.subspan(1), leaf));
  }
  return absl::OkStatus();
}

/// JSON has no words for these numbers: they stand in it as strings that begin with this byte.
constexpr char kMark = '\0';
constexpr std::pair<std::string_view, double> kNumberWords[] = {
    {"NaN", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", std::numeric_limits<double>::infinity()},
    {"-Infinity", -std::numeric_limits<double>::infinity()}};

/// The text with number words as marked strings.
std::string MarkNumberWords(std::string_view text) {
  std::string marked;
  bool quoted = false;
  for (size_t i = 0; i < text.size();) {
    const auto* word = std::find_if(std::begin(kNumberWords), std::end(kNumberWords), [&](auto& w) {
      return !quoted && text.substr(i, w.first.size()) == w.first;
    });
    if (word != std::end(kNumberWords)) {
      marked += StrCat("\"\\u0000", word->first, "\"");
      i += word->first.size();
      continue;
    }
    if (quoted && text[i] == '\\') {  // With what it escapes.
      marked += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    marked += text[i++];
  }
  return marked;
}

/// The number that a marked string stands for.
std::optional<double> NumberWord(const json& value) {
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  for (const auto& [word, number] : kNumberWords) {
    if (!text.empty() && text[0] == kMark && text.substr(1) == word) return number;
  }
  return std::nullopt;
}

/// A leaf as its author wrote it.
std::string Written(const json& value) {
  return NumberWord(value) ? value.get<std::string>().substr(1) : value.dump();
}

absl::Status DoesNotFit(const json& value, ElementType type) {
  return InvalidArgument(Written(value), " is no value of type ", ElementTypeName(type));
}

absl::StatusOr<double> AsDouble(const json& value, ElementType type) {
  if (value.is_number()) return value.get<double>();
  if (const std::optional<double> number = NumberWord(value)) return *number;
  return DoesNotFit(value, type);
}

/// Decimal fractions are rounded; nothing else is lost.
template <typename T>
absl::StatusOr<T> Convert(const json& value) {
  constexpr ElementType kType = kElementType<T>;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string() || NumberWord(value)) return DoesNotFit(value, kType);
    return value.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean()) return value.get<bool>();
    TROUPE_ASSIGN_OR_RETURN(const double number, AsDouble(value, kType));
    if (number != 0 && number != 1) return DoesNotFit(value, kType);
    return number == 1;
  } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    TROUPE_ASSIGN_OR_RETURN(const auto real, Convert<typename T::value_type>(value));
    return T(real);
  } else if constexpr (std::is_integral_v<T>) {
    if (value.is_number_integer()) {  // Of 64 bits, with a sign or without.
      const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<uint64_t>())
                                                   : std::in_range<T>(value.get<int64_t>());
      return fits ? absl::StatusOr<T>(value.get<T>()) : DoesNotFit(value, kType);
    }
    TROUPE_ASSIGN_OR_RETURN(const double number, AsDouble(value, kType));
    using Limits = std::numeric_limits<T>;
    if (!(number >= static_cast<double>(Limits::min()) &&
          number < std::ldexp(1.0, Limits::digits) && number == std::floor(number))) {
      return DoesNotFit(value, kType);
    }
    return static_cast<T>(number);
  } else if constexpr (IsQuantized(kType)) {
    TROUPE_ASSIGN_OR_RETURN(const auto stored, Convert<typename T::Storage>(value));
    return T(stored);
  } else if constexpr (IsNarrow(kType) && !IsFloat8(kType)) {
    TROUPE_ASSIGN_OR_RETURN(const int32_t number, Convert<int32_t>(value));
    if (static_cast<int>(T(number)) != number) return DoesNotFit(value, kType);
    return T(number);
  } else {
    TROUPE_ASSIGN_OR_RETURN(const double number, AsDouble(value, kType));
    const T result = static_cast<T>(number);
    if constexpr (!std::is_same_v<T, double>) {
      // Not every type has infinities.
      const auto made = static_cast<float>(result);
      const bool overflow = std::isinf(made) && !std::isinf(number);
      if (overflow || std::isnan(made) != std::isnan(number)) return DoesNotFit(value, kType);
    }
    return result;
  }
}

std::string NumberText(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  if (std::strpbrk(text, ".e") == nullptr) std::strcat(text, ".0");
  return text;
}

std::string ElementText(float v) { return NumberText(v, 9); }
std::string ElementText(double v) { return NumberText(v, 17); }
std::string ElementText(half v) { return NumberText(static_cast<float>(v), 5); }
std::string ElementText(bfloat16 v) { return NumberText(static_cast<float>(v), 4); }
std::string ElementText(bool v) { return v ? "true" : "false"; }
std::string ElementText(complex64 v) {
  return "[" + ElementText(v.real()) + "," + ElementText(v.imag()) + "]";
}
std::string ElementText(complex128 v) {
  return "[" + ElementText(v.real()) + "," + ElementText(v.imag()) + "]";
}
/// `text` as JSON without its quotes; nothing if it is not UTF-8.
std::optional<std::string> Unquoted(const std::string& text) {
  try {
    const std::string quoted = json(text).dump();
    return quoted.substr(1, quoted.size() - 2);
  } catch (const json::type_error&) {
    return std::nullopt;
  }
}

/// Bytes that are not UTF-8 are written as \xNN.
std::string ElementText(const std::string& v) {
  if (const auto whole = Unquoted(v)) return '"' + *whole + '"';
  std::string text = "\"";
  for (size_t i = 0; i < v.size();) {
    size_t size = 1;  // Of the character that begins here.
    auto character = Unquoted(v.substr(i, size));
    while (!character && size < 4) character = Unquoted(v.substr(i, ++size));
    if (character) {
      text += *character;
      i += size;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(v[i++]));
      text += escaped;
    }
  }
  return text + '"';
}
template <typename T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) std::string ElementText(T v) {
  return std::to_string(v);
}
template <typename T>
requires(IsQuantized(kElementType<T>) || IsNarrow(kElementType<T>)) std::string ElementText(T v) {
  if constexpr (IsQuantized(kElementType<T>)) {
    return std::to_string(v.value);
  } else if constexpr (IsFloat8(kElementType<T>)) {
    return NumberText(static_cast<float>(v), 3);
  } else {
    return std::to_string(static_cast<int>(v));
  }
}

template <typename T>
void AppendJson(const T* elements, absl::Span<const int64_t> dims, int64_t edge, std::string* out) {
  if (dims.empty()) {
    *out += ElementText(*elements);
    return;
  }
  int64_t stride = 1;
  for (int64_t size : dims.subspan(1)) stride *= size;
  *out += '[';
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i > 0) *out += ',';
    if (edge > 0 && i == edge && dims[0] > 2 * edge) {
      *out += "...,";
      i = dims[0] - edge;
    }
    AppendJson(elements + i * stride, dims.subspan(1), edge, out);
  }
  *out += ']';
}

}  // namespace

std::string EscapeLine(const std::string& text) {
  const bool utf8 = Unquoted(text).has_value();
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f && (utf8 || byte < 0x80)) {
      line += c;
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof(escaped), "\\x%02x", byte);
    line += escaped;
  }
  return line;
}

absl::StatusOr<Tensor> ParseValue(std::string_view text, ElementType type) {
  if (text.size() > 4 && text.substr(text.size() - 4) == ".npy") {
    TROUPE_ASSIGN_OR_RETURN(Tensor value, ReadNpy(std::string(text)));
    if (value.type() != type) {
      return InvalidArgument("file ", text, " holds ", ElementTypeName(value.type()), ", expected ",
                             ElementTypeName(type));
    }
    return value;
  }
  // Refuse nesting before the parser recurses into it.
  int depth = 0;
  for (char c : text) {
    if (c == '[' && ++depth > 1000) return InvalidArgument("lists are nested too deep");
    if (c == ']') --depth;
  }
  const json value = json::parse(MarkNumberWords(text), nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    return InvalidArgument(Quoted(text), " is neither JSON nor the name of a .npy file");
  }
  std::vector<int64_t> dims;
  TROUPE_RETURN_IF_ERROR(ShapeOf(value, &dims));
  TROUPE_ASSIGN_OR_RETURN(Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  TROUPE_RETURN_IF_ERROR(SwitchValueType(type, [&]<typename T>() -> absl::Status {
    T* out = tensor.mutable_data<T>();
    return ForEach(value, shape.dims(), [&](const json& leaf) -> absl::Status {
      TROUPE_ASSIGN_OR_RETURN(*out++, Convert<T>(leaf));
      return absl::OkStatus();
    });
  }));
  return tensor;
}

std::string ToJson(const Tensor& tensor, int64_t edge) {
  std::string out;
  const absl::Status status = SwitchValueType(tensor.type(), [&]<typename T>() -> absl::Status {
    AppendJson(tensor.unchecked_data<T>(), tensor.shape().dims(), edge, &out);
    return absl::OkStatus();
  });
  return status.ok() ? out : "null";
}

}  // namespace troupe::cli
