#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "api/cli/cli.h"
#include "devices/npy.h"
#include "devices/resource_handle.h"
#include "devices/status_macros.h"
#include "kernels/type_switch.h"

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

absl::StatusOr<double> AsDouble(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (value.is_string()) {  // JSON has no numbers for these.
    std::string text = value.get<std::string>();
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (text == "nan") return std::nan("");
    if (text == "inf" || text == "infinity") return std::numeric_limits<double>::infinity();
    if (text == "-inf" || text == "-infinity") return -std::numeric_limits<double>::infinity();
  }
  return InvalidArgument("not a number: ", value.dump());
}

template <typename T>
absl::StatusOr<T> Convert(const json& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) return InvalidArgument("not a string: ", value.dump());
    return value.get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean()) return value.get<bool>();
    TROUPE_ASSIGN_OR_RETURN(double number, AsDouble(value));
    return number != 0;
  } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    TROUPE_ASSIGN_OR_RETURN(double number, AsDouble(value));
    return T(static_cast<typename T::value_type>(number));
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (value.is_number_unsigned()) {
      const uint64_t number = value.get<uint64_t>();
      if (number > static_cast<uint64_t>(Limits::max())) {
        return InvalidArgument(value.dump(), " does not fit ", ElementTypeName(kElementType<T>));
      }
      return static_cast<T>(number);
    }
    if (value.is_number_integer()) {
      const int64_t number = value.get<int64_t>();  // Negative.
      if (std::is_unsigned_v<T> || number < static_cast<int64_t>(Limits::min())) {
        return InvalidArgument(value.dump(), " does not fit ", ElementTypeName(kElementType<T>));
      }
      return static_cast<T>(number);
    }
    TROUPE_ASSIGN_OR_RETURN(double number, AsDouble(value));
    if (!(number >= static_cast<double>(Limits::min()) &&
          number < std::ldexp(1.0, Limits::digits))) {
      return InvalidArgument(value.dump(), " does not fit ", ElementTypeName(kElementType<T>));
    }
    return static_cast<T>(number);
  } else {
    TROUPE_ASSIGN_OR_RETURN(double number, AsDouble(value));
    return static_cast<T>(number);
  }
}

template <typename F>
absl::Status SwitchValueType(ElementType type, F&& f) {
  return SwitchType<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                    uint64_t, half, bfloat16, complex64, complex128, bool, std::string>(
      type, std::forward<F>(f));
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
std::string ElementText(const std::string& v) {
  return json(v).dump(-1, ' ', false, json::error_handler_t::replace);
}
template <typename T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) std::string ElementText(T v) {
  return std::to_string(v);
}

template <typename T>
void AppendJson(const T*& element, absl::Span<const int64_t> dims, std::string* out) {
  if (dims.empty()) {
    *out += ElementText(*element++);
    return;
  }
  *out += '[';
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i > 0) *out += ',';
    AppendJson(element, dims.subspan(1), out);
  }
  *out += ']';
}

}  // namespace

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
  const json value = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
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

std::string ToJson(const Tensor& tensor) {
  std::string out;
  const absl::Status status = SwitchValueType(tensor.type(), [&]<typename T>() -> absl::Status {
    const T* element = tensor.unchecked_data<T>();
    AppendJson(element, tensor.shape().dims(), &out);
    return absl::OkStatus();
  });
  return status.ok() ? out : "null";
}

}  // namespace troupe::cli
