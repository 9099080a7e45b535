#include "kernels/kernel_registry.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "devices/exceptions.h"
#include "devices/narrow_types.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"
#include "kernels/argument_spaces.h"
#include "kernels/common/quantized_types.h"

namespace troupe {
namespace {

bool Contains(const std::vector<ElementType>& types, ElementType type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// True if the node's type attribute (or all of its list of types) is among `types`.
bool Holds(const NodeDef& def, const std::string& attr, const std::vector<ElementType>& types) {
  const auto found = def.attr().find(attr);
  if (found == def.attr().end()) return false;
  const AttrValue& value = found->second;
  if (value.value_case() == AttrValue::kType) {
    return Contains(types, RemoveRef(static_cast<ElementType>(value.type())));
  }
  if (value.value_case() != AttrValue::kList) return false;
  for (const int type : value.list().type()) {
    if (!Contains(types, RemoveRef(static_cast<ElementType>(type)))) return false;
  }
  return true;
}

bool Fits(const KernelSpec& spec, const NodeDef& def) {
  for (const auto& [attr, types] : spec.constraints) {
    if (!Holds(def, attr, types)) return false;
  }
  return true;
}

/// "CPU with T in {float, double}".
std::string Describe(const KernelSpec& spec) {
  std::string text = spec.device_type;
  const char* joint = " with ";
  for (const auto& [attr, types] : spec.constraints) {
    absl::StrAppend(&text, joint, attr, " in {",
                    absl::StrJoin(types, ", ",
                                  [](std::string* out, ElementType type) {
                                    absl::StrAppend(out, ElementTypeName(type));
                                  }),
                    "}");
    joint = ", ";
  }
  return text;
}

/// "T=string, Tidx=int32": what the registrations' constraints look at.
std::string DescribeTypes(const NodeDef& def,
                          const std::vector<const KernelRegistration*>& registrations) {
  std::vector<std::string> attrs;
  for (const KernelRegistration* registration : registrations) {
    for (const auto& [attr, types] : registration->spec.constraints) {
      if (std::find(attrs.begin(), attrs.end(), attr) == attrs.end()) attrs.push_back(attr);
    }
  }
  std::string text;
  for (const std::string& attr : attrs) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", attr, "=");
    const auto found = def.attr().find(attr);
    if (found == def.attr().end()) {
      absl::StrAppend(&text, "(missing)");
    } else if (found->second.value_case() == AttrValue::kList) {
      absl::StrAppend(&text, "[",
                      absl::StrJoin(found->second.list().type(), ",",
                                    [](std::string* out, int type) {
                                      absl::StrAppend(
                                          out, ElementTypeName(static_cast<ElementType>(type)));
                                    }),
                      "]");
    } else {
      absl::StrAppend(&text, ElementTypeName(static_cast<ElementType>(found->second.type())));
    }
  }
  return text;
}

std::string Where(const NodeDef& def) {
  return absl::StrCat("node '", def.name(), "' (op ", def.op(), ")");
}

}  // namespace

struct KernelRegistry::Impl {
  mutable std::mutex mutex;
  /// In order of registration; addresses stay.
  std::deque<KernelRegistration> registrations;
  /// Built when somebody looks, so that registering at start-up is an append.
  mutable absl::flat_hash_map<std::string_view, std::vector<const KernelRegistration*>> by_op;
  mutable size_t indexed = 0;

  /// `mutex` is held.
  const std::vector<const KernelRegistration*>& Lookup(std::string_view op) const {
    static const auto* none = new std::vector<const KernelRegistration*>;
    for (; indexed < registrations.size(); ++indexed) {
      const KernelRegistration& registration = registrations[indexed];
      by_op[registration.spec.op].push_back(&registration);
    }
    const auto found = by_op.find(op);
    return found == by_op.end() ? *none : found->second;
  }
};

KernelRegistry::KernelRegistry() : impl_(new Impl) {}

KernelSpec::KernelSpec(std::string_view op_name) : op(op_name) {}
KernelSpec::KernelSpec(const KernelSpec&) = default;
KernelSpec::KernelSpec(KernelSpec&&) noexcept = default;
KernelSpec& KernelSpec::operator=(const KernelSpec&) = default;
KernelSpec& KernelSpec::operator=(KernelSpec&&) noexcept = default;
KernelSpec::~KernelSpec() = default;

KernelSpec& KernelSpec::Device(std::string_view type) {
  device_type = type;
  return *this;
}

KernelSpec& KernelSpec::Types(std::string_view attr, absl::Span<const ElementType> types) {
  constraints.emplace_back(attr, std::vector<ElementType>(types.begin(), types.end()));
  return *this;
}

KernelSpec& KernelSpec::HostMemory(std::string_view argument) {
  host_arguments.emplace_back(argument);
  return *this;
}

KernelSpec& KernelSpec::Cost(KernelCost c) {
  cost = c;
  return *this;
}

KernelSpec& KernelSpec::Priority(int p) {
  priority = p;
  return *this;
}

internal::KernelRegistrar::KernelRegistrar(const KernelSpec& spec, KernelFactory factory) {
  KernelRegistry::Global()->Register(spec, factory);
}

KernelRegistry* KernelRegistry::Global() {
  static auto* registry = new KernelRegistry;
  return registry;
}

void KernelRegistry::Register(KernelSpec spec, KernelFactory factory) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  impl_->registrations.push_back({std::move(spec), factory});
}

std::vector<const KernelRegistration*> KernelRegistry::ForOp(std::string_view op) const {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  return impl_->Lookup(op);
}

absl::StatusOr<const KernelRegistration*> KernelRegistry::Find(std::string_view device_type,
                                                               const NodeDef& def) const {
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    for (const std::string_view type : {device_type, kAnyDeviceType}) {
      const KernelRegistration* best = nullptr;
      for (const KernelRegistration* registration : impl_->Lookup(def.op())) {
        const KernelSpec& spec = registration->spec;
        if (spec.device_type == type && Fits(spec, def) &&
            (best == nullptr || spec.priority > best->spec.priority)) {
          best = registration;
        }
      }
      if (best != nullptr) return best;
    }
  }

  const std::vector<const KernelRegistration*> all = ForOp(def.op());
  if (all.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no kernel is registered for the op of ", Where(def),
                     " on any device: register one with REGISTER_KERNEL, or load the library that "
                     "has it"));
  }
  std::vector<std::string> descriptions;
  for (const KernelRegistration* registration : all) {
    descriptions.push_back(Describe(registration->spec));
  }
  return absl::NotFoundError(absl::StrCat(
      "no kernel fits ", Where(def), " with ", DescribeTypes(def, all), " on device type ",
      std::string(device_type), "; registered are: ", absl::StrJoin(descriptions, "; "),
      ". Cast the inputs to a type that is listed, or place the node on a device that is"));
}

absl::StatusOr<std::unique_ptr<Kernel>> KernelRegistry::Create(KernelConstruction& construction,
                                                               std::string_view device_type) const {
  const NodeDef& def = construction.attrs().def();
  TROUPE_ASSIGN_OR_RETURN(const KernelRegistration* registration, Find(device_type, def));
  absl::StatusOr<std::unique_ptr<Kernel>> kernel =
      CatchExceptions([&] { return registration->factory(construction); });
  if (!kernel.ok()) return WithContext("", kernel.status(), absl::StrCat(" [", Where(def), "]"));
  return kernel;
}

std::vector<ElementType> FloatTypes() {
  return {ElementType::kHalf, ElementType::kBfloat16, ElementType::kFloat, ElementType::kDouble};
}

std::vector<ElementType> IndexTypes() { return {ElementType::kInt32, ElementType::kInt64}; }

std::vector<ElementType> RealNumberTypes() {
  return {ElementType::kInt8,  ElementType::kInt16,    ElementType::kInt32,  ElementType::kInt64,
          ElementType::kUint8, ElementType::kUint16,   ElementType::kUint32, ElementType::kUint64,
          ElementType::kHalf,  ElementType::kBfloat16, ElementType::kFloat,  ElementType::kDouble};
}

namespace {
std::vector<ElementType> With(std::vector<ElementType> types,
                              std::initializer_list<ElementType> more) {
  types.insert(types.end(), more);
  return types;
}
}  // namespace

std::vector<ElementType> NumberTypes() {
  return With(RealNumberTypes(), {ElementType::kComplex64, ElementType::kComplex128});
}
std::vector<ElementType> WithString(std::vector<ElementType> types) {
  return With(std::move(types), {ElementType::kString});
}
std::vector<ElementType> FloatAndComplexTypes() {
  return With(FloatTypes(), {ElementType::kComplex64, ElementType::kComplex128});
}
std::vector<ElementType> PlainTypes() { return With(NumberTypes(), {ElementType::kBool}); }
std::vector<ElementType> AllTypes() {
  std::vector<ElementType> types = WithQuantized(
      With(PlainTypes(), {ElementType::kString, ElementType::kResource, ElementType::kVariant}));
  types.insert(types.end(), std::begin(kNarrowTypes), std::end(kNarrowTypes));
  return types;
}

}  // namespace troupe
