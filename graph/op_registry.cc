#include "graph/op_registry.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "absl/strings/str_split.h"
#include "devices/status_macros.h"
#include "graph/op_def_parser.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

/// TensorFlow's names of ops: a capital letter first, then letters and digits; underscores in front
/// mark internal ones.
bool IsOpName(std::string_view name) {
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  if (name.empty() || name.front() < 'A' || name.front() > 'Z') return false;
  return std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '>' || c == '.';
  });
}

absl::Status CheckNamesDiffer(const OpDef& def) {
  std::vector<std::string_view> names;
  for (const OpDef::AttrDef& attr : def.attr()) names.push_back(attr.name());
  for (const OpDef::ArgDef& arg : def.input_arg()) names.push_back(arg.name());
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return absl::OkStatus();
  return InvalidArgument("the name '", *twice, "' is used twice");
}

absl::Status CheckDefault(const OpDef::AttrDef& attr) {
  if (!attr.has_default_value()) return absl::OkStatus();
  const AttrValue& value = attr.default_value();
  if (attr.type() == "int" && attr.has_minimum() && value.i() < attr.minimum()) {
    return InvalidArgument("attribute '", attr.name(), "': the default ", value.i(),
                           " is less than the minimum ", attr.minimum());
  }
  if (!attr.has_allowed_values()) return absl::OkStatus();
  const auto& allowed = attr.allowed_values().list();
  auto has_text = [&](const std::string& s) {
    return std::find(allowed.s().begin(), allowed.s().end(), s) != allowed.s().end();
  };
  auto has_type = [&](int t) {
    return std::find(allowed.type().begin(), allowed.type().end(), t) != allowed.type().end();
  };
  bool fits = true;
  if (value.value_case() == AttrValue::kS) fits = has_text(value.s());
  if (value.value_case() == AttrValue::kType) fits = has_type(value.type());
  for (const std::string& s : value.list().s()) fits = fits && has_text(s);
  for (int t : value.list().type()) fits = fits && has_type(t);
  if (fits) return absl::OkStatus();
  return InvalidArgument("attribute '", attr.name(), "': the default is not an allowed value");
}

}  // namespace

OpRegistration::OpRegistration() = default;
OpRegistration::~OpRegistration() = default;

OpDefBuilder::OpDefBuilder(std::string_view name) : name_(name) {}
OpDefBuilder::OpDefBuilder(const OpDefBuilder&) = default;
OpDefBuilder::OpDefBuilder(OpDefBuilder&&) noexcept = default;
OpDefBuilder& OpDefBuilder::operator=(const OpDefBuilder&) = default;
OpDefBuilder& OpDefBuilder::operator=(OpDefBuilder&&) noexcept = default;
OpDefBuilder::~OpDefBuilder() = default;

OpDefBuilder& OpDefBuilder::Deprecated(int version, std::string_view explanation) {
  deprecated_version_ = version;
  deprecation_ = explanation;
  return *this;
}

OpDefBuilder& OpDefBuilder::Doc(std::string_view text) {
  doc_ = text;
  return *this;
}

OpDefBuilder& OpDefBuilder::Add(std::vector<std::string>* list, std::string_view spec) {
  list->emplace_back(spec);
  return *this;
}

internal::OpRegistrar::OpRegistrar(OpDefBuilder& builder) {
  OpRegistry::Global()->Register(std::move(builder));
}

OpDefBuilder& OpDefBuilder::Signature(std::string_view text) {
  constexpr std::string_view kArrow = "->";
  auto add = [](const std::string& specs, std::vector<std::string>* list) {
    if (specs.find_first_not_of(' ') == std::string::npos) return;
    for (const absl::string_view spec : absl::StrSplit(specs, ',')) list->emplace_back(spec);
  };
  const size_t arrow = std::min(text.find(kArrow), text.size());
  add(std::string(text.substr(0, arrow)), &inputs_);
  if (arrow < text.size()) add(std::string(text.substr(arrow + kArrow.size())), &outputs_);
  return *this;
}

absl::Status OpDefBuilder::Build(OpRegistration* registration) const {
  auto def = std::make_unique<OpDef>();
  auto fail = [this](const absl::Status& status) {
    return InvalidArgument("definition of op ", name_, ": ", status.message());
  };
  if (!IsOpName(name_)) {
    return InvalidArgument("'", name_, "' is no name for an op; expected CamelCase");
  }
  def->set_name(name_);
  for (const std::string& spec : attrs_) {
    absl::Status status = ParseAttrSpec(spec, def->add_attr());
    if (status.ok()) status = CheckDefault(*def->attr().rbegin());
    if (!status.ok()) return fail(status);
  }
  for (const std::string& spec : inputs_) {
    absl::Status status = ParseArgSpec(spec, def.get(), def->add_input_arg());
    if (!status.ok()) return fail(status);
  }
  for (const std::string& spec : outputs_) {
    absl::Status status = ParseArgSpec(spec, def.get(), def->add_output_arg());
    if (!status.ok()) return fail(status);
  }
  absl::Status status = CheckNamesDiffer(*def);
  if (!status.ok()) return fail(status);

  def->set_is_stateful(stateful_);
  def->set_is_commutative(commutative_);
  def->set_is_aggregate(aggregate_);
  def->set_allows_uninitialized_input(allows_uninitialized_);
  def->set_is_distributed_communication(distributed_);
  if (deprecated_version_ != 0) {
    def->mutable_deprecation()->set_version(deprecated_version_);
    def->mutable_deprecation()->set_explanation(deprecation_);
  }
  size_t end = doc_.find(". ");
  if (end == std::string::npos) end = doc_.find(".\n");
  if (end == std::string::npos) {
    def->set_summary(doc_);
  } else {
    def->set_summary(doc_.substr(0, end + 1));
    const size_t rest = doc_.find_first_not_of(" \n", end + 1);
    if (rest != std::string::npos) def->set_description(doc_.substr(rest));
  }
  registration->def = std::move(def);
  registration->shape_fn = shape_fn_;
  return absl::OkStatus();
}

/// Definitions as text until they are asked for. Entries never move.
struct OpRegistry::Impl {
  struct Entry {
    explicit Entry(OpDefBuilder b) : builder(std::move(b)) {}
    OpDefBuilder builder;
    std::vector<OpDefBuilder> others;  // registered later under the same name, not yet compared
    bool checked = false;              // parsed, and `others` compared with it
    OpRegistration registration;
    absl::Status status;
  };

  /// Files the builders that came since the last call. Needs the exclusive lock.
  void File() {
    for (OpDefBuilder& builder : builders) {
      auto found = index.find(builder.name());
      if (found != index.end()) {
        found->second->others.push_back(std::move(builder));
        found->second->checked = false;
        continue;
      }
      entries.emplace_back(std::move(builder));
      Entry& entry = entries.back();
      index.emplace(entry.builder.name(), &entry);
    }
    builders.clear();
  }

  /// Needs the exclusive lock.
  static void Check(Entry* entry) {
    if (entry->checked) return;
    entry->checked = true;
    if (entry->registration.def == nullptr)
      entry->status = entry->builder.Build(&entry->registration);
    for (const OpDefBuilder& other : entry->others) {
      if (!entry->status.ok()) break;
      OpRegistration second;
      entry->status = other.Build(&second);
      if (!entry->status.ok()) break;
      OpDef first = *entry->registration.def;
      for (OpDef* def : {&first, second.def.get()}) {
        def->clear_summary();
        def->clear_description();
      }
      if (first.SerializeAsString() != second.def->SerializeAsString()) {
        entry->status = absl::AlreadyExistsError(StrCat(
            "op ", entry->builder.name(), " is registered twice, with different definitions"));
      }
    }
    entry->others.clear();
  }

  /// The entry, checked; nullptr if there is none.
  Entry* Find(std::string_view op) {
    {
      std::shared_lock lock(mutex);
      if (builders.empty()) {
        auto found = index.find(op);
        if (found == index.end()) return nullptr;
        if (found->second->checked) return found->second;
      }
    }
    std::unique_lock lock(mutex);
    File();
    auto found = index.find(op);
    if (found == index.end()) return nullptr;
    Check(found->second);
    return found->second;
  }

  std::shared_mutex mutex;
  std::vector<OpDefBuilder> builders;
  std::deque<Entry> entries;
  std::unordered_map<std::string_view, Entry*> index;
};

OpRegistry* OpRegistry::Global() {
  static auto* registry = new OpRegistry;  // never destroyed: used by static objects
  return registry;
}

OpRegistry::OpRegistry() : impl_(std::make_unique<Impl>()) {}
OpRegistry::~OpRegistry() = default;

void OpRegistry::Register(OpDefBuilder builder) {
  std::unique_lock lock(impl_->mutex);
  impl_->builders.push_back(std::move(builder));
}

absl::StatusOr<const OpRegistration*> OpRegistry::LookUp(std::string_view op) const {
  const Impl::Entry* entry = impl_->Find(op);
  if (entry == nullptr) {
    return absl::NotFoundError(
        StrCat("op type '", op,
               "' is not registered; is its name right, and is the library that "
               "defines it loaded?"));
  }
  if (!entry->status.ok()) return entry->status;
  return &entry->registration;
}

std::vector<std::string> OpRegistry::Names() const {
  std::unique_lock lock(impl_->mutex);
  impl_->File();
  std::vector<std::string> names;
  names.reserve(impl_->entries.size());
  for (const auto& [name, entry] : impl_->index) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace troupe
