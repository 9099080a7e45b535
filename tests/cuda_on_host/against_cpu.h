/// The same nodes on the CPU and on a card (tests/cuda_on_host), which must give the same.
///
///     AgainstCpu both;
///     both.Add("Neg", {Numbers(ElementType::kFloat, Shape({3}), /*seed=*/1)});
///     both.Compare();
#ifndef TROUPE_TESTS_CUDA_ON_HOST_AGAINST_CPU_H_
#define TROUPE_TESTS_CUDA_ON_HOST_AGAINST_CPU_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/session.h"
#include "devices/device.h"
#include "devices/half.h"
#include "graph/graph.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"

namespace troupe::testing {

template <typename T>
inline constexpr bool kIsComplexNumber =
    std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;
template <typename T>
inline constexpr bool kIsRealFloat = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                     std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <typename F>
void SwitchPlain(ElementType type, F&& f) {
  const absl::Status status =
      SwitchType<float, double, half, bfloat16, complex64, complex128, bool, int8_t, int16_t,
                 int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(type, [&]<typename T>() {
        f.template operator()<T>();
        return absl::OkStatus();
      });
  ASSERT_TRUE(status.ok()) << status;
}

// ---- The library under test.

/// Loads what has the kernels of cards. Whether they run on a real one: TROUPE_CUDA_LIBRARY may
/// name the library for these, too.
inline const absl::StatusOr<bool>& LoadedForRealCard() {
  static const absl::StatusOr<bool> real = []() -> absl::StatusOr<bool> {
    setenv("CUDA_ON_HOST_FLUSH", "1", 1);
    const auto session =
        Session::Create(std::make_shared<Graph>(), {.devices = {{"GPU", {.count = 1}}}});
    if (!session.ok()) return session.status();
    const auto devices = (*session)->ListDevices();
    if (!devices.ok()) return devices.status();
    return std::any_of(devices->begin(), devices->end(), [](const DeviceAttributes& device) {
      return device.type == "GPU" && device.description.find("CUDA on the host") != 0;
    });
  }();
  return real;
}
inline void LoadCards() { ASSERT_TRUE(LoadedForRealCard().ok()) << LoadedForRealCard().status(); }
inline bool OnRealCard() { return LoadedForRealCard().value_or(false); }

// ---- Values.

/// Which numbers operands have.
enum class Values {
  /// Of all sizes, with infinities, NaNs and zeros of both signs; no denormals, and on a real card
  /// none near them.
  kAny,
  kModerate,  ///< At most a few powers of two from 1, and zeros.
  kPositive,  ///< The same, above 0.
};

template <typename T>
T RealValue(Values values, std::mt19937_64& random) {
  const auto below = [&random](uint64_t n) { return random() % n; };
  if constexpr (std::is_same_v<T, bool>) {
    return below(2) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (values == Values::kPositive) return static_cast<T>(1 + below(5));
    if (values == Values::kModerate)
      return static_cast<T>(below(11)) - T(std::is_signed_v<T> ? 5 : 0);
    constexpr T kSpecial[] = {
        0, 1, 2, std::numeric_limits<T>::max(), std::numeric_limits<T>::min(), static_cast<T>(-1),
        7};
    return below(3) == 0 ? kSpecial[below(std::size(kSpecial))] : static_cast<T>(random());
  } else {
    constexpr bool kHalf = std::is_same_v<T, half>, kWide = std::is_same_v<T, double>;
    const int range = kHalf ? 14 : kWide ? 1021 : 125;
    // A real card computes with denormal numbers, the CPU takes them for 0: there, no quotient and
    // no product of three numbers is one. Those of half are computed in float.
    const bool narrow = !kHalf && OnRealCard();
    const int limit = narrow ? range / 3 : range;
    const double least = narrow  ? std::ldexp(1.0, -limit)
                         : kHalf ? 0x1p-14
                         : kWide ? 0x1p-1022
                                 : 0x1p-126;
    const double most = narrow                        ? std::ldexp(1.0, limit)
                        : kHalf                       ? 65504.0
                        : std::is_same_v<T, bfloat16> ? 0x1.fep127
                        : kWide                       ? std::numeric_limits<double>::max()
                                                      : double{std::numeric_limits<float>::max()};
    const auto made = [](double x) {
      return T(static_cast<std::conditional_t<kWide, double, float>>(x));
    };
    const double sign = values == Values::kPositive || below(2) == 0 ? 1 : -1;
    const double fraction = 1 + static_cast<double>(below(1 << 20)) / (1 << 20);
    const uint64_t kind = below(10);
    if (values != Values::kAny || kind < 5) {
      if (values != Values::kPositive && kind == 9) return made(sign * 0.0);
      return made(sign * std::ldexp(fraction, static_cast<int>(below(7)) - 3));
    }
    if (kind < 6) return made(sign * static_cast<double>(below(9)) / 2);
    if (kind < 8) {
      const int exponent = static_cast<int>(below(2 * range)) - range;
      return made(sign * std::ldexp(fraction, std::clamp(exponent, -limit, limit)));
    }
    const double specials[] = {0.0,
                               1.0,
                               std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN(),
                               least,
                               most};
    return made(sign * specials[below(std::size(specials))]);
  }
}

inline Tensor Numbers(ElementType type, const Shape& shape, uint64_t seed,
                      Values values = Values::kAny) {
  Tensor tensor = *Tensor::Allocate(type, shape);
  std::mt19937_64 random(seed);
  SwitchPlain(type, [&]<typename T>() {
    for (T& value : tensor.mutable_values<T>()) {
      if constexpr (kIsComplexNumber<T>) {
        using R = typename T::value_type;
        const R real = RealValue<R>(values, random), imag = RealValue<R>(values, random);
        value = T(real, imag);
      } else {
        value = RealValue<T>(values, random);
      }
    }
  });
  return tensor;
}

// ---- Comparison.

/// How far apart results may be: units in the last place; of complex numbers, of the larger part.
/// Denormal numbers count as 0, for the CPU has none.
struct Within {
  double ulps = 0;
  double absolute = 0;
};

template <typename T>
bool IsClose(T got, T want, Within within, double size = 0) {
  if constexpr (kIsComplexNumber<T>) {
    using R = typename T::value_type;
    const auto infinite = [](T x) { return std::isinf(x.real()) || std::isinf(x.imag()); };
    const auto half_nan = [](T x) { return std::isnan(x.real()) || std::isnan(x.imag()); };
    // One infinite part makes an infinity, whatever the other (C, Annex G).
    if (infinite(got) && infinite(want)) {
      if (half_nan(got) || half_nan(want) || within.ulps > 0) return true;
    }
    const R largest = std::max(std::abs(want.real()), std::abs(want.imag()));
    const double of = std::isfinite(largest) ? double{largest} : 0;
    return IsClose(got.real(), want.real(), within, of) &&
           IsClose(got.imag(), want.imag(), within, of);
  } else if constexpr (kIsRealFloat<T>) {
    const double a = static_cast<double>(got), b = static_cast<double>(want);
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    if (a == b) return true;
    constexpr int kDigits = std::is_same_v<T, half>       ? 11
                            : std::is_same_v<T, bfloat16> ? 8
                            : std::is_same_v<T, float>    ? 24
                                                          : 53;
    constexpr int kLeast = std::is_same_v<T, half> ? -14 : std::is_same_v<T, double> ? -1022 : -126;
    const double least = std::ldexp(1.0, kLeast);
    if (std::abs(a) < least && std::abs(b) < least) return true;
    if (!std::isfinite(a) || !std::isfinite(b)) {  // An infinity is next to the largest number.
      const double finite = std::isfinite(a) ? a : b, other = std::isfinite(a) ? b : a;
      return within.ulps > 0 && finite * other > 0 &&
             std::abs(finite) >= static_cast<double>(std::numeric_limits<T>::max());
    }
    const double scale = std::max({std::abs(a), std::abs(b), size, least});
    const double ulp = std::ldexp(1.0, std::ilogb(scale) - kDigits + 1);
    return std::abs(a - b) <= within.ulps * ulp + within.absolute;
  } else {
    return got == want;
  }
}

inline ::testing::AssertionResult SameValues(const Tensor& got, const Tensor& want, Within within) {
  if (got.type() != want.type() || !(got.shape() == want.shape())) {
    return ::testing::AssertionFailure()
           << "got " << got.ToString() << ", want " << want.ToString();
  }
  int64_t bad = -1;
  std::string values;
  SwitchPlain(got.type(), [&]<typename T>() {
    for (int64_t i = 0; i < got.num_elements() && bad < 0; ++i) {
      const T a = got.unchecked_data<T>()[i], b = want.unchecked_data<T>()[i];
      if (IsClose(a, b, within)) continue;
      bad = i;
      values =
          StrCat("got ", Tensor::Scalar(a).ToString(), ", want ", Tensor::Scalar(b).ToString());
      if constexpr (kIsRealFloat<T>) {
        char text[100];
        std::snprintf(text, sizeof(text), ": got %a, want %a", static_cast<double>(a),
                      static_cast<double>(b));
        values += text;
      }
    }
  });
  if (bad < 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "element " << bad << " of " << got.shape().ToString() << ": " << values;
}

// ---- Nodes.

/// An input of a node.
struct Operand {
  enum As : uint8_t {
    kConstant,
    kView,  ///< Behind an element of a longer buffer: not aligned to more than its size.
    kCopy,  ///< A buffer that the kernel may take over.
    kOnHost,
  };
  Operand(Tensor tensor, As how = kConstant) : value(std::move(tensor)), as(how) {}  // NOLINT
  Tensor value;
  As as;
};
inline Operand OnHost(Tensor value) { return {std::move(value), Operand::kOnHost}; }
inline Operand HostInts(std::initializer_list<int32_t> values) {
  return OnHost(Tensor::Vector<int32_t>(values));
}
inline Operand HostInt(int32_t value) { return OnHost(Tensor::Scalar<int32_t>(value)); }

/// The types of attribute `attr` for which an op has a kernel on `device`; all plain ones if it has
/// one that does not say.
inline std::set<ElementType> KernelTypes(const std::string& op, const std::string& device,
                                         const std::string& attr = "T") {
  std::set<ElementType> types;
  for (const KernelRegistration* kernel : KernelRegistry::Global()->ForOp(op)) {
    if (kernel->spec.device_type != device) continue;
    bool says = false;
    for (const auto& [name, list] : kernel->spec.constraints) {
      if (name != attr) continue;
      says = true;
      types.insert(list.begin(), list.end());
    }
    if (says) continue;
    for (const ElementType type : PlainTypes()) types.insert(type);
  }
  EXPECT_FALSE(types.empty()) << "no kernel of " << op << " for " << device << " says " << attr;
  return types;
}

/// A graph with every node twice.
class AgainstCpu {
 public:
  using Attrs = std::function<void(NodeSpec&)>;

  AgainstCpu() = default;
  /// Of graphs of an old version, for ops that later ones lack.
  explicit AgainstCpu(int version) : version_(version) { NewGraph(); }

  /// `attrs` adds attributes that do not follow from the inputs.
  void Add(const std::string& op, const std::vector<Operand>& inputs, Within within = {},
           const Attrs& attrs = nullptr) {
    Pair pair;
    pair.within = within;
    pair.what = op;
    for (const Operand& input : inputs) {
      pair.what += StrCat(" ", ElementTypeName(input.value.type()), input.value.shape().ToString());
    }
    for (const bool card : {false, true}) {
      pair.nodes[card ? 1 : 0] = AddOp(op, inputs, attrs, card);
      if (pair.nodes[card ? 1 : 0] == nullptr) return;
    }
    pairs_.push_back(std::move(pair));
  }

  /// The inputs are one list.
  void AddList(const std::string& op, const std::vector<Operand>& inputs, Within within = {},
               const Attrs& attrs = nullptr) {
    Pair pair{{}, within, op};
    for (const bool card : {false, true}) {
      std::vector<Output> list;
      for (const Operand& input : inputs) list.push_back(Give(input, card));
      NodeSpec node = NodeSpec(op, Name()).Input(list);
      if (attrs) attrs(node);
      pair.nodes[card ? 1 : 0] = AddNode(node, card);
      if (pair.nodes[card ? 1 : 0] == nullptr) return;
    }
    pairs_.push_back(std::move(pair));
  }

  /// The inputs are lists, of which one stays on the host.
  void AddLists(const std::string& op, const std::vector<std::vector<Tensor>>& lists,
                size_t on_host, const Attrs& attrs) {
    Pair pair{{}, {}, op};
    for (const bool card : {false, true}) {
      NodeSpec node(op, Name());
      for (size_t i = 0; i < lists.size(); ++i) {
        std::vector<Output> list;
        for (const Tensor& tensor : lists[i]) {
          const Operand operand(tensor, i == on_host ? Operand::kOnHost : Operand::kConstant);
          list.push_back(Give(operand, card));
        }
        node.Input(list);
      }
      attrs(node);
      pair.nodes[card ? 1 : 0] = AddNode(node, card);
      if (pair.nodes[card ? 1 : 0] == nullptr) return;
    }
    pairs_.push_back(std::move(pair));
  }

  /// Runs all that was added `runs` times, and begins again.
  void Compare(int runs = 1) {
    const std::shared_ptr<Graph> graph = graph_;
    NewGraph();
    const std::vector<Pair> pairs = std::exchange(pairs_, {});
    std::vector<Output> fetches;
    for (const Pair& pair : pairs) {
      for (Node* node : pair.nodes) {
        for (int i = 0; i < node->num_outputs(); ++i) fetches.emplace_back(node, i);
      }
    }
    const auto session = Session::Create(graph, Options());
    ASSERT_TRUE(session.ok()) << session.status();
    for (int run = 0; run < runs; ++run) {
      const auto values = (*session)->Run(fetches);
      ASSERT_TRUE(values.ok()) << values.status();
      const Tensor* next = values->data();
      for (const Pair& pair : pairs) {
        const int count = pair.nodes[0]->num_outputs();
        for (int i = 0; i < count; ++i) {
          EXPECT_TRUE(SameValues(next[count + i], next[i], pair.within))
              << pair.what << ", output " << i << ", run " << run;
        }
        next += 2 * count;
      }
    }
  }

  /// The outputs of the node on one of the two alone.
  static absl::StatusOr<std::vector<Tensor>> OutputsOf(const std::string& op,
                                                       const std::vector<Operand>& inputs,
                                                       const Attrs& attrs, bool card) {
    AgainstCpu both;
    Node* const added = both.AddOp(op, inputs, attrs, card);
    if (added == nullptr) return absl::InternalError("no node");
    const auto session = Session::Create(both.graph_, Options());
    if (!session.ok()) return session.status();
    std::vector<Output> fetches;
    for (int i = 0; i < added->num_outputs(); ++i) fetches.emplace_back(added, i);
    return (*session)->Run(fetches);
  }
  /// The first output of the node on the card.
  static absl::StatusOr<Tensor> OnCard(const std::string& op, const std::vector<Operand>& inputs,
                                       const Attrs& attrs = nullptr) {
    const absl::StatusOr<std::vector<Tensor>> outputs = OutputsOf(op, inputs, attrs, true);
    if (!outputs.ok()) return outputs.status();
    return outputs->front();
  }
  static absl::Status StatusOf(const std::string& op, const std::vector<Operand>& inputs,
                               const Attrs& attrs = nullptr) {
    return OnCard(op, inputs, attrs).status();
  }

 private:
  struct Pair {
    Node* nodes[2];
    Within within;
    std::string what;
  };

  // Without folding of constants, which is the CPU's.
  static SessionOptions Options() {
    return {.devices = {{"GPU", {.count = 1}}}, .optimize = false};
  }

  void NewGraph() {
    graph_ = std::make_shared<Graph>();
    if (version_ > 0) graph_->set_producer(version_);
  }
  Node* AddOp(const std::string& op, const std::vector<Operand>& inputs, const Attrs& attrs,
              bool card) {
    NodeSpec node(op, Name());
    for (const Operand& input : inputs) node.Input(Give(input, card));
    if (attrs) attrs(node);
    return AddNode(node, card);
  }
  Node* AddNode(const NodeSpec& spec, bool card) {
    NodeSpec node = spec;
    node.Device(card ? "/device:GPU:0" : "/device:CPU:0");
    const absl::StatusOr<Node*> added = graph_->AddNode(node);
    EXPECT_TRUE(added.ok()) << added.status();
    return added.ok() ? *added : nullptr;
  }
  std::string Name() { return StrCat("n", next_++); }
  Output Constant(const Tensor& value) {
    return Output(
        AddNode(NodeSpec("Const", Name()).Attr("value", value).Attr("dtype", value.type()), false));
  }
  Output Give(const Operand& input, bool card) {
    const Tensor& value = input.value;
    if (!card || input.as == Operand::kOnHost || input.as == Operand::kConstant) {
      return Constant(value);
    }
    if (input.as == Operand::kCopy) {
      return Output(AddNode(NodeSpec("DeepCopy", Name()).Input(Constant(value)), true));
    }
    Tensor longer = *Tensor::Allocate(value.type(), Shape({value.num_elements() + 1}));
    std::copy_n(static_cast<const char*>(value.raw_data()), value.bytes(),
                static_cast<char*>(longer.mutable_raw_data()) + ElementSize(value.type()));
    std::fill_n(static_cast<char*>(longer.mutable_raw_data()), ElementSize(value.type()), 0);
    const Output part =
        Output(AddNode(NodeSpec("Slice", Name())
                           .Input(Constant(longer))
                           .Input(Constant(Tensor::Vector<int64_t>({1})))
                           .Input(Constant(Tensor::Vector<int64_t>({value.num_elements()}))),
                       true));
    std::vector<int64_t> dims(value.shape().dims().begin(), value.shape().dims().end());
    return Output(AddNode(
        NodeSpec("Reshape", Name()).Input(part).Input(Constant(Tensor::Vector<int64_t>(dims))),
        true));
  }

  int version_ = 0;  ///< 0: the usual one.
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  std::vector<Pair> pairs_;
  int next_ = 0;
};

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_CUDA_ON_HOST_AGAINST_CPU_H_
