#include "tests/golden/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "devices/narrow_types.h"
#include "devices/quantized.h"
#include "devices/status_macros.h"

namespace troupe::golden {
namespace {

// 80 bits on x86, so that 64-bit integers are exact.
using Real = long double;
using Pair = std::pair<Real, Real>;

template <typename T>
Pair Scalar(const Tensor& tensor, int64_t i) {
  return {static_cast<Real>(tensor.unchecked_data<T>()[i]), 0};
}

template <typename T>
Pair Complex(const Tensor& tensor, int64_t i) {
  const T& value = tensor.unchecked_data<T>()[i];
  return {value.real(), value.imag()};
}

template <typename T>
Pair Narrow(const Tensor& tensor, int64_t i) {
  return {static_cast<float>(tensor.unchecked_data<T>()[i]), 0};
}

template <typename Q>
Pair Stored(const Tensor& tensor, int64_t i) {
  return {static_cast<Real>(tensor.unchecked_data<Q>()[i].value), 0};
}

/// Real and imaginary part of element i.
Pair Element(const Tensor& tensor, int64_t i) {
  switch (tensor.type()) {
    case ElementType::kFloat:
      return Scalar<float>(tensor, i);
    case ElementType::kDouble:
      return Scalar<double>(tensor, i);
    case ElementType::kHalf:
      return Narrow<half>(tensor, i);
    case ElementType::kBfloat16:
      return Narrow<bfloat16>(tensor, i);
    case ElementType::kInt8:
      return Scalar<int8_t>(tensor, i);
    case ElementType::kInt16:
      return Scalar<int16_t>(tensor, i);
    case ElementType::kInt32:
      return Scalar<int32_t>(tensor, i);
    case ElementType::kInt64:
      return Scalar<int64_t>(tensor, i);
    case ElementType::kUint8:
      return Scalar<uint8_t>(tensor, i);
    case ElementType::kUint16:
      return Scalar<uint16_t>(tensor, i);
    case ElementType::kUint32:
      return Scalar<uint32_t>(tensor, i);
    case ElementType::kUint64:
      return Scalar<uint64_t>(tensor, i);
    case ElementType::kBool:
      return Scalar<bool>(tensor, i);
    case ElementType::kQint8:
      return Stored<qint8>(tensor, i);
    case ElementType::kQint16:
      return Stored<qint16>(tensor, i);
    case ElementType::kQint32:
      return Stored<qint32>(tensor, i);
    case ElementType::kQuint8:
      return Stored<quint8>(tensor, i);
    case ElementType::kQuint16:
      return Stored<quint16>(tensor, i);
    case ElementType::kFloat8E5m2:
      return Narrow<float8_e5m2>(tensor, i);
    case ElementType::kFloat8E4m3fn:
      return Narrow<float8_e4m3fn>(tensor, i);
    case ElementType::kInt4:
      return Narrow<int4>(tensor, i);
    case ElementType::kUint4:
      return Narrow<uint4>(tensor, i);
    case ElementType::kComplex64:
      return Complex<complex64>(tensor, i);
    case ElementType::kComplex128:
      return Complex<complex128>(tensor, i);
    default:
      return {0, 0};
  }
}

/// Elements in ascending order, NaN last.
std::vector<int64_t> SortedOrder(const Tensor& tensor) {
  std::vector<int64_t> order(static_cast<size_t>(tensor.num_elements()));
  std::iota(order.begin(), order.end(), 0);
  if (tensor.type() == ElementType::kString) {
    const std::string* strings = tensor.unchecked_data<std::string>();
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return strings[a] < strings[b]; });
    return order;
  }
  const auto key = [&](int64_t i) {
    Pair p = Element(tensor, i);
    const Real infinity = std::numeric_limits<Real>::infinity();
    // A NaN has no place in an order; after the infinities it has.
    return std::tuple(std::isnan(p.first), std::isnan(p.first) ? infinity : p.first,
                      std::isnan(p.second), std::isnan(p.second) ? infinity : p.second);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return key(a) < key(b); });
  return order;
}

bool SameBits(const Tensor& got, int64_t i, const Tensor& want, int64_t j) {
  const int parts = IsComplex(got.type()) ? 2 : 1;
  const size_t width = ElementSize(got.type()) / parts;
  const Pair g = Element(got, i), w = Element(want, j);
  for (int part = 0; part < parts; ++part) {
    const char* a = static_cast<const char*>(got.raw_data()) + (i * parts + part) * width;
    const char* b = static_cast<const char*>(want.raw_data()) + (j * parts + part) * width;
    const bool both_nan = part == 0 ? std::isnan(g.first) && std::isnan(w.first)
                                    : std::isnan(g.second) && std::isnan(w.second);
    if (!both_nan && std::memcmp(a, b, width) != 0) return false;
  }
  return true;
}

bool Special(Real x) { return !std::isfinite(x); }
bool SameSpecial(Real a, Real b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Compares within tolerance; raises `max_error` to the distance.
bool Close(const Pair& got, const Pair& want, const Tolerance& tolerance, double* max_error) {
  const bool special[2] = {Special(got.first) || Special(want.first),
                           Special(got.second) || Special(want.second)};
  if ((special[0] && !SameSpecial(got.first, want.first)) ||
      (special[1] && !SameSpecial(got.second, want.second))) {
    *max_error = std::numeric_limits<double>::infinity();
    return false;
  }
  const Real re = special[0] ? 0 : got.first - want.first;
  const Real im = special[1] ? 0 : got.second - want.second;
  const Real size = std::hypot(special[0] ? 0 : want.first, special[1] ? 0 : want.second);
  const Real error = std::hypot(re, im);
  *max_error = std::max(*max_error, static_cast<double>(error));
  return error <= tolerance.absolute + tolerance.relative * size;
}

std::string ElementText(const Tensor& tensor, int64_t i) {
  if (tensor.type() == ElementType::kString)
    return tensor.Reshaped(Shape({tensor.num_elements()})).Slice(i, i + 1).ToString();
  const Pair p = Element(tensor, i);
  const auto text = [](Real x) {
    char buffer[40];
    std::snprintf(buffer, sizeof(buffer), "%.*Lg", 17, x);
    return std::string(buffer);
  };
  return IsComplex(tensor.type()) ? StrCat("(", text(p.first), ",", text(p.second), ")")
                                  : text(p.first);
}

}  // namespace

std::string CompareTensors(const Tensor& got, const Tensor& want, const Tolerance& tolerance) {
  const auto report = [&](const std::string& rest) {
    return StrCat("got ", got.ToString(12), ", want ", want.ToString(12), rest);
  };
  if (got.type() != want.type() || got.shape() != want.shape()) {
    return report(", max error inf (type or shape differs)");
  }
  if (got.type() == ElementType::kResource || got.type() == ElementType::kVariant) return "";
  const bool strings = got.type() == ElementType::kString;
  const bool exact = tolerance.relative == 0 && tolerance.absolute == 0;
  std::vector<int64_t> got_order, want_order;
  if (tolerance.any_order) {
    got_order = SortedOrder(got);
    want_order = SortedOrder(want);
  }
  double max_error = 0;
  int64_t differ = 0, first_got = 0, first_want = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const int64_t g = tolerance.any_order ? got_order[i] : i;
    const int64_t w = tolerance.any_order ? want_order[i] : i;
    bool same;
    if (strings) {
      same = got.unchecked_data<std::string>()[g] == want.unchecked_data<std::string>()[w];
    } else {
      const bool close = Close(Element(got, g), Element(want, w), tolerance, &max_error);
      same = exact ? SameBits(got, g, want, w) : close;
    }
    if (same) continue;
    if (differ++ == 0) {
      first_got = g;
      first_want = w;
    }
  }
  if (differ == 0) return "";
  return report(StrCat(", max error ", strings ? "inf" : StrCat(max_error), " (", differ, " of ",
                       want.num_elements(), " differ, first element ", first_want, ": ",
                       ElementText(got, first_got), " against ", ElementText(want, first_want),
                       ")"));
}

bool CodeMatches(absl::StatusCode code, std::string_view wanted) {
  const std::string name = absl::StatusCodeToString(code);
  while (!wanted.empty()) {
    const size_t bar = std::min(wanted.find('|'), wanted.size());
    if (wanted.substr(0, bar) == name) return true;
    wanted.remove_prefix(std::min(bar + 1, wanted.size()));
  }
  return false;
}

std::string StatusLine(const absl::Status& status) {
  std::string line = status.ok() ? "OK"
                                 : StrCat(absl::StatusCodeToString(status.code()), ": ",
                                          std::string(status.message()));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace troupe::golden
