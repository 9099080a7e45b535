/// Optionals: variants that hold a tuple of tensors, or nothing.
#ifndef TROUPE_KERNELS_CONTROL_OPTIONAL_H_
#define TROUPE_KERNELS_CONTROL_OPTIONAL_H_

#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "kernels/data/element_memory.h"
#include "kernels/data/variant_value.h"

namespace troupe {

/// What the variants of the Optional ops hold. Thread-compatible.
class Optional final : public VariantValue {
 public:
  Optional() : VariantValue(Kind::kOptional) {}
  Optional(const Optional&) = default;

  bool has_value() const { return has_value_; }
  const std::vector<Tensor>& components() const { return components_; }
  absl::Status Set(std::vector<Tensor> components) {
    for (const Tensor& component : components) TROUPE_RETURN_IF_ERROR(Nest(component));
    components_ = std::move(components);
    has_value_ = true;
    return absl::OkStatus();
  }

  const char* name() const override { return "Optional"; }
  RefPtr<VariantValue> Copy() const override { return MakeRef<Optional>(*this); }
  absl::StatusOr<RefPtr<VariantValue>> ZerosLike(const ElementMemory& memory) const override {
    auto zeros = MakeRef<Optional>();
    if (!has_value_) return {std::move(zeros)};
    std::vector<Tensor> components;
    for (const Tensor& component : components_) {
      TROUPE_ASSIGN_OR_RETURN(Tensor zero, memory.ZerosLike(component));
      components.push_back(std::move(zero));
    }
    TROUPE_RETURN_IF_ERROR(zeros->Set(std::move(components)));
    return {std::move(zeros)};
  }
  absl::Status AddFrom(const VariantValue& value, const ElementMemory& memory) override {
    const auto& other = static_cast<const Optional&>(value);
    if (has_value_ != other.has_value_) {
      return InvalidArgument("Cannot add optionals because one has a value and the other doesn't.");
    }
    if (components_.size() != other.components_.size()) {
      return InvalidArgument("Cannot add optionals of ", components_.size(), " and ",
                             other.components_.size(), " components.");
    }
    for (size_t i = 0; i < components_.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(memory.Add(&components_[i], other.components_[i]));
      TROUPE_RETURN_IF_ERROR(Nest(components_[i]));
    }
    return absl::OkStatus();
  }
  absl::Span<Tensor> tensors() override { return absl::MakeSpan(components_); }

 private:
  std::vector<Tensor> components_;
  bool has_value_ = false;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_CONTROL_OPTIONAL_H_
