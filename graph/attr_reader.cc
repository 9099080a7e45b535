#include "graph/attr_reader.h"

#include <cstdint>
#include <limits>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/op_args.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

using Value = AttrValue;

absl::Status Missing(const NodeDef& def, std::string_view name) {
  return absl::NotFoundError(
      StrCat("node '", def.name(), "' (op ", def.op(), ") has no attribute '", name, "'"));
}

absl::Status WrongKind(const NodeDef& def, std::string_view name, std::string_view wanted,
                       const AttrValue& value) {
  return InvalidArgument("attribute '", name, "' of node '", def.name(), "' (op ", def.op(),
                         ") should be of kind ", wanted, " but is of kind ", AttrKind(value));
}

absl::Status BadValue(const NodeDef& def, std::string_view name, const absl::Status& status) {
  return WithContext(
      StrCat("attribute '", name, "' of node '", def.name(), "' (op ", def.op(), "): "), status);
}

/// Finds a single value of the given kind.
absl::Status Single(const AttrReader& reader, std::string_view name, Value::ValueCase kind,
                    std::string_view kind_name, const AttrValue** found) {
  *found = reader.Find(name);
  if (*found == nullptr) return Missing(reader.def(), name);
  if ((*found)->value_case() != kind) return WrongKind(reader.def(), name, kind_name, **found);
  return absl::OkStatus();
}

int ListSize(const AttrValue::ListValue& list) {
  return list.s_size() + list.i_size() + list.f_size() + list.b_size() + list.type_size() +
         list.shape_size() + list.tensor_size() + list.func_size();
}

/// Sets `values` anew by `add` for each element of a list; `field` gives those of the kind that all
/// must be of.
template <typename Field, typename T, typename AddElement>
absl::Status List(const AttrReader& reader, std::string_view name, std::string_view kind_name,
                  Field field, std::vector<T>* values, AddElement add) {
  const AttrValue* value = reader.Find(name);
  if (value == nullptr) return Missing(reader.def(), name);
  const auto& elements = field(value->list());
  if (value->value_case() != Value::kList || ListSize(value->list()) != elements.size()) {
    return WrongKind(reader.def(), name, kind_name, *value);
  }
  values->clear();
  for (const auto& element : elements) TROUPE_RETURN_IF_ERROR(add(element));
  return absl::OkStatus();
}

/// The same for elements that are taken as they are.
template <typename Field, typename T>
absl::Status PlainList(const AttrReader& reader, std::string_view name, std::string_view kind_name,
                       Field field, std::vector<T>* values) {
  return List(reader, name, kind_name, field, values, [&](const auto& element) {
    values->push_back(element);
    return absl::OkStatus();
  });
}

absl::Status Narrow(const AttrReader& reader, std::string_view name, int64_t wide, int32_t* value) {
  if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("attribute '", name, "' of node '", reader.def().name(), "' (op ",
                           reader.def().op(), ") is ", wide, ", which is past 32 bits");
  }
  *value = static_cast<int32_t>(wide);
  return absl::OkStatus();
}

absl::Status ToElementType(const AttrReader& reader, std::string_view name, int number,
                           ElementType* value) {
  if (number != 0 && !IsElementTypeNumber(number)) {
    return InvalidArgument("attribute '", name, "' of node '", reader.def().name(), "' (op ",
                           reader.def().op(), ") has the value ", number,
                           ", which is no element type");
  }
  *value = static_cast<ElementType>(number);
  return absl::OkStatus();
}

}  // namespace

const AttrValue* AttrReader::Find(std::string_view name) const {
  const auto& attrs = def_->attr();
  auto found = attrs.find(std::string(name));
  return found == attrs.end() ? nullptr : &found->second;
}

absl::Status AttrReader::Get(std::string_view name, std::string* value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kS, "string", &found));
  *value = found->s();
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, int64_t* value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kI, "int", &found));
  *value = found->i();
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, int32_t* value) const {
  int64_t wide;
  TROUPE_RETURN_IF_ERROR(Get(name, &wide));
  return Narrow(*this, name, wide, value);
}

absl::Status AttrReader::Get(std::string_view name, float* value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kF, "float", &found));
  *value = found->f();
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, bool* value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kB, "bool", &found));
  *value = found->b();
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, ElementType* value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kType, "type", &found));
  return ToElementType(*this, name, found->type(), value);
}

absl::Status AttrReader::Get(std::string_view name, PartialShape* value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kShape, "shape", &found));
  auto shape = PartialShape::FromProto(found->shape());
  if (!shape.ok()) return BadValue(*def_, name, shape.status());
  *value = *std::move(shape);
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, Tensor* value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kTensor, "tensor", &found));
  auto tensor = TensorFromProto(found->tensor());
  if (!tensor.ok()) return BadValue(*def_, name, tensor.status());
  *value = *std::move(tensor);
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, const NameAttrList** value) const {
  const AttrValue* found;
  TROUPE_RETURN_IF_ERROR(Single(*this, name, Value::kFunc, "func", &found));
  *value = &found->func();
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, std::vector<std::string>* value) const {
  return PlainList(
      *this, name, "list(string)", [](const auto& l) -> auto& { return l.s(); }, value);
}

absl::Status AttrReader::Get(std::string_view name, std::vector<int64_t>* value) const {
  return PlainList(
      *this, name, "list(int)", [](const auto& l) -> auto& { return l.i(); }, value);
}

absl::Status AttrReader::Get(std::string_view name, std::vector<int32_t>* value) const {
  std::vector<int64_t> wide;
  TROUPE_RETURN_IF_ERROR(Get(name, &wide));
  value->resize(wide.size());
  for (size_t i = 0; i < wide.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(Narrow(*this, name, wide[i], &(*value)[i]));
  }
  return absl::OkStatus();
}

absl::Status AttrReader::Get(std::string_view name, std::vector<float>* value) const {
  return PlainList(
      *this, name, "list(float)", [](const auto& l) -> auto& { return l.f(); }, value);
}

absl::Status AttrReader::Get(std::string_view name, std::vector<bool>* value) const {
  return PlainList(
      *this, name, "list(bool)", [](const auto& l) -> auto& { return l.b(); }, value);
}

absl::Status AttrReader::Get(std::string_view name, std::vector<ElementType>* value) const {
  return List(
      *this, name, "list(type)", [](const auto& l) -> auto& { return l.type(); }, value,
      [&](int number) { return ToElementType(*this, name, number, &value->emplace_back()); });
}

absl::Status AttrReader::Get(std::string_view name, std::vector<PartialShape>* value) const {
  return List(
      *this, name, "list(shape)", [](const auto& l) -> auto& { return l.shape(); }, value,
      [&](const TensorShapeProto& proto) -> absl::Status {
        auto shape = PartialShape::FromProto(proto);
        if (!shape.ok()) return BadValue(*def_, name, shape.status());
        value->push_back(*std::move(shape));
        return absl::OkStatus();
      });
}

}  // namespace troupe
