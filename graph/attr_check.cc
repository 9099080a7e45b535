#include "graph/attr_check.h"

#include <algorithm>
#include <string>

#include "devices/element_type.h"
#include "devices/shape.h"
#include "devices/status_macros.h"
#include "graph/op_args.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

std::string_view Where(const NodeDef& def, const OpDef::AttrDef& attr, std::string* text) {
  *text = StrCat("attribute '", attr.name(), "' of node '", def.name(), "' (op ", def.op(), ")");
  return *text;
}

/// Number of values of the list's kind, -1 if it holds values of another one.
int ListSize(std::string_view kind, const AttrValue::ListValue& list) {
  const int sizes[] = {list.s_size(),    list.i_size(),     list.f_size(),      list.b_size(),
                       list.type_size(), list.shape_size(), list.tensor_size(), list.func_size()};
  constexpr std::string_view kinds[] = {"string", "int",   "float",  "bool",
                                        "type",   "shape", "tensor", "func"};
  int size = 0;
  for (int i = 0; i < 8; ++i) {
    if (sizes[i] == 0) continue;
    if (kinds[i] != kind) return -1;
    size = sizes[i];
  }
  return size;
}

bool KindFits(const OpDef::AttrDef& attr, const AttrValue& value) {
  const std::string& kind = attr.type();
  if (kind.compare(0, 5, "list(") != 0) return AttrKind(value) == kind;
  return value.value_case() == AttrValue::kList &&
         ListSize(std::string_view(kind).substr(5, kind.size() - 6), value.list()) >= 0;
}

void StrAppendName(std::string* names, std::string_view name) {
  if (!names->empty()) *names += ", ";
  *names += name;
}

absl::Status CheckType(const NodeDef& def, const OpDef::AttrDef& attr, int number) {
  std::string where;
  if (number == 0 || !IsElementTypeNumber(number)) {
    return InvalidArgument(Where(def, attr, &where), " has the value ", number,
                           ", which is no element type");
  }
  const ElementType type = static_cast<ElementType>(number);
  if (IsRefType(type)) {
    return InvalidArgument(Where(def, attr, &where), " is ", ElementTypeName(type),
                           "; it must not be a reference type");
  }
  if (!attr.has_allowed_values()) return absl::OkStatus();
  const auto& allowed = attr.allowed_values().list().type();
  if (std::find(allowed.begin(), allowed.end(), number) != allowed.end()) return absl::OkStatus();
  std::string names;
  for (int t : allowed) {
    StrAppendName(&names, ElementTypeName(static_cast<ElementType>(t)));
  }
  return InvalidArgument(Where(def, attr, &where), " is ", ElementTypeName(type),
                         ", which is not in the list of allowed values: ", names);
}

absl::Status CheckText(const NodeDef& def, const OpDef::AttrDef& attr, const std::string& text) {
  if (!attr.has_allowed_values()) return absl::OkStatus();
  const auto& allowed = attr.allowed_values().list().s();
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return absl::OkStatus();
  std::string names, where;
  for (const std::string& s : allowed) StrAppendName(&names, StrCat("'", s, "'"));
  return InvalidArgument(Where(def, attr, &where), " is '", text,
                         "', which is not in the list of allowed values: ", names);
}

absl::Status CheckShape(const NodeDef& def, const OpDef::AttrDef& attr,
                        const TensorShapeProto& shape) {
  const absl::Status status = PartialShape::FromProto(shape).status();
  if (status.ok()) return status;
  std::string where;
  return InvalidArgument(Where(def, attr, &where), ": ", status.message());
}

absl::Status CheckValue(const NodeDef& def, const OpDef::AttrDef& attr, const AttrValue& value) {
  std::string where;
  if (!KindFits(attr, value)) {
    return InvalidArgument(Where(def, attr, &where), " should be of kind ", attr.type(),
                           " but is of kind ", AttrKind(value));
  }
  switch (value.value_case()) {
    case AttrValue::kS:
      return CheckText(def, attr, value.s());
    case AttrValue::kType:
      return CheckType(def, attr, value.type());
    case AttrValue::kShape:
      return CheckShape(def, attr, value.shape());
    case AttrValue::kI:
      if (!attr.has_minimum() || value.i() >= attr.minimum()) return absl::OkStatus();
      return InvalidArgument(Where(def, attr, &where), " is ", value.i(), "; it must be at least ",
                             attr.minimum());
    case AttrValue::kList: {
      const AttrValue::ListValue& list = value.list();
      const std::string_view kind = attr.type();
      const int size = ListSize(kind.substr(5, kind.size() - 6), list);
      if (attr.has_minimum() && size < attr.minimum()) {
        return InvalidArgument(Where(def, attr, &where), " is a list of ", size,
                               "; it must have at least ", attr.minimum());
      }
      for (int type : list.type()) TROUPE_RETURN_IF_ERROR(CheckType(def, attr, type));
      for (const std::string& text : list.s()) TROUPE_RETURN_IF_ERROR(CheckText(def, attr, text));
      for (const auto& shape : list.shape()) TROUPE_RETURN_IF_ERROR(CheckShape(def, attr, shape));
      return absl::OkStatus();
    }
    default:
      return absl::OkStatus();
  }
}

}  // namespace

void FillDefaultAttrs(const OpDef& op_def, NodeDef* def) {
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    if (!attr.has_default_value() || def->attr().contains(attr.name())) continue;
    (*def->mutable_attr())[attr.name()] = attr.default_value();
  }
}

absl::Status CheckAttrs(const OpDef& op_def, const NodeDef& def) {
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    auto found = def.attr().find(attr.name());
    if (found == def.attr().end()) {
      return InvalidArgument("node '", def.name(), "' (op ", def.op(), ") lacks the attribute '",
                             attr.name(), "' of kind ", attr.type());
    }
    TROUPE_RETURN_IF_ERROR(CheckValue(def, attr, found->second));
  }
  return absl::OkStatus();
}

}  // namespace troupe
