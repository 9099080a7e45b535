/// Messages `Example` and `SequenceExample`, which record files mostly hold, made and read in C++.
///
///     auto writer = RecordWriter::Create("train.tfrecord", {.compression =
///     FileCompression::kGzip});
///     (*writer)->Write(ExampleBuilder().Add("pixels", pixels).Add("label", 3).Serialize());
///     ...
///     auto example = ExampleReader::Parse(record);
///     absl::StatusOr<absl::Span<const float>> pixels = example->Floats("pixels");
///
/// A feature is a list of floats, of 64-bit integers or of strings (any bytes). Its name is UTF-8.
#ifndef TROUPE_API_EXAMPLES_H_
#define TROUPE_API_EXAMPLES_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class Example;
class Feature;
class Features;
class SequenceExample;

/// The values of a feature as builders take them: floating-point numbers, integers that fit into
/// 64 bits with a sign, or strings; one of them, a braced list, a vector, an array or a span. A
/// value, used while it is added.
class FeatureInput {
 public:
  template <typename T>
  static constexpr bool kNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, uint64_t>;
  template <typename T>
  static constexpr bool kText = std::is_convertible_v<const T&, std::string_view>;

  template <typename T>
  requires(kNumber<T> || kText<T>) FeatureInput(const T& value) {  // NOLINT: a conversion
    Append(value);
  }
  template <typename T>
  requires(kNumber<T> || kText<T>) FeatureInput(std::initializer_list<T> values) {  // NOLINT
    for (const T& value : values) Append(value);
    if (values.size() == 0) kind_ = KindOf<T>();
  }
  /// A container of such values.
  template <typename List, typename T = std::decay_t<decltype(*std::begin(std::declval<List&>()))>>
  requires(!kText<List> && (kNumber<T> || kText<T>)) FeatureInput(const List& values) {  // NOLINT
    for (const auto& value : values) Append(static_cast<const T&>(value));
    if (std::begin(values) == std::end(values)) kind_ = KindOf<T>();
  }

 private:
  friend class ExampleBuilder;
  friend class SequenceExampleBuilder;
  enum class Kind : uint8_t { kFloats, kInts, kStrings };

  template <typename T>
  static constexpr Kind KindOf() {
    return std::is_floating_point_v<T> ? Kind::kFloats
           : std::is_arithmetic_v<T>   ? Kind::kInts
                                       : Kind::kStrings;
  }
  template <typename T>
  void Append(const T& value) {
    kind_ = KindOf<T>();
    if constexpr (std::is_floating_point_v<T>) {
      floats_.push_back(static_cast<float>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
      ints_.push_back(static_cast<int64_t>(value));
    } else {
      strings_.emplace_back(std::string_view(value));
    }
  }
  void CopyTo(Feature* feature) const;

  Kind kind_ = Kind::kFloats;
  std::vector<float> floats_;
  std::vector<int64_t> ints_;
  std::vector<std::string> strings_;
};

/// Makes an `Example`. Thread-compatible.
class ExampleBuilder {
 public:
  ExampleBuilder();
  ~ExampleBuilder();
  ExampleBuilder(ExampleBuilder&&) noexcept;
  ExampleBuilder& operator=(ExampleBuilder&&) noexcept;

  /// A feature, in place of one of this name: `Add("x", {1.5f, 2.0f})`, `Add("label", 3)`,
  /// `Add("name", "cat")`.
  ExampleBuilder& Add(std::string_view name, const FeatureInput& values);
  /// The message; the same features give the same bytes.
  std::string Serialize() const;

 private:
  std::unique_ptr<Example> example_;
};

/// Makes a `SequenceExample`: features of the whole, and lists of features, one for each step in
/// time. Thread-compatible.
class SequenceExampleBuilder {
 public:
  SequenceExampleBuilder();
  ~SequenceExampleBuilder();
  SequenceExampleBuilder(SequenceExampleBuilder&&) noexcept;
  SequenceExampleBuilder& operator=(SequenceExampleBuilder&&) noexcept;

  /// A feature of the whole, in place of one of this name.
  SequenceExampleBuilder& AddContext(std::string_view name, const FeatureInput& values);
  /// One more step of the list `name`.
  SequenceExampleBuilder& AddStep(std::string_view name, const FeatureInput& values);
  std::string Serialize() const;

 private:
  std::unique_ptr<SequenceExample> example_;
};

/// The values of a feature. Refers to the reader that it comes from.
class FeatureValues {
 public:
  enum class Kind : uint8_t { kNone, kFloats, kInts, kStrings };

  explicit FeatureValues(const Feature* feature) : feature_(feature) {}
  Kind kind() const;
  int64_t size() const;
  // Empty if the values are of another kind.
  absl::Span<const float> floats() const;
  absl::Span<const int64_t> ints() const;
  std::vector<std::string_view> strings() const;

 private:
  const Feature* feature_;
};

/// Features by name. Refers to the reader that it comes from.
class FeatureMap {
 public:
  explicit FeatureMap(const Features* features) : features_(features) {}

  /// Sorted.
  std::vector<std::string> names() const;
  bool Has(std::string_view name) const;
  // NotFound if there is no such feature; InvalidArgument, which says what there is, if its values
  // are of another kind.
  absl::StatusOr<FeatureValues> Find(std::string_view name) const;
  absl::StatusOr<absl::Span<const float>> Floats(std::string_view name) const;
  absl::StatusOr<absl::Span<const int64_t>> Ints(std::string_view name) const;
  absl::StatusOr<std::vector<std::string_view>> Strings(std::string_view name) const;

 private:
  const Features* features_;
};

/// A parsed `Example`. What it gives refers to it. Thread-safe.
class ExampleReader {
 public:
  /// InvalidArgument if the bytes are no such message.
  static absl::StatusOr<ExampleReader> Parse(std::string_view bytes);

  FeatureMap features() const;
  absl::StatusOr<absl::Span<const float>> Floats(std::string_view name) const {
    return features().Floats(name);
  }
  absl::StatusOr<absl::Span<const int64_t>> Ints(std::string_view name) const {
    return features().Ints(name);
  }
  absl::StatusOr<std::vector<std::string_view>> Strings(std::string_view name) const {
    return features().Strings(name);
  }

 private:
  explicit ExampleReader(std::shared_ptr<const Example> example) : example_(std::move(example)) {}
  std::shared_ptr<const Example> example_;
};

/// A parsed `SequenceExample`. What it gives refers to it. Thread-safe.
class SequenceExampleReader {
 public:
  /// InvalidArgument if the bytes are no such message.
  static absl::StatusOr<SequenceExampleReader> Parse(std::string_view bytes);

  FeatureMap context() const;
  /// Names of the lists, sorted.
  std::vector<std::string> list_names() const;
  /// The steps of a list, NotFound if there is none of this name.
  absl::StatusOr<std::vector<FeatureValues>> Steps(std::string_view name) const;

 private:
  explicit SequenceExampleReader(std::shared_ptr<const SequenceExample> example)
      : example_(std::move(example)) {}
  std::shared_ptr<const SequenceExample> example_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_EXAMPLES_H_
