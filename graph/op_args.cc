#include "graph/op_args.h"

#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

// More inputs or outputs than this are taken for an attack, not for a graph.
constexpr int64_t kMaxArguments = 1000000;

const google::protobuf::RepeatedPtrField<OpDef::ArgDef>& Args(const OpDef& op_def, ArgSide side) {
  return side == ArgSide::kInputs ? op_def.input_arg() : op_def.output_arg();
}

/// How many tensors an argument stands for; -1 if an attribute is missing or wrong.
int64_t ArgSize(const OpDef::ArgDef& arg, const AttrReader& attrs) {
  if (!arg.number_attr().empty()) return attrs.GetOr<int64_t>(arg.number_attr(), -1);
  if (!arg.type_list_attr().empty()) {
    const AttrValue* value = attrs.Find(arg.type_list_attr());
    return value != nullptr && value->value_case() == AttrValue::kList ? value->list().type_size()
                                                                       : -1;
  }
  return 1;
}

}  // namespace

bool IsElementTypeNumber(int number) {
  constexpr int kLast = static_cast<int>(ElementType::kFloat4E2m1fn);
  return (number >= 1 && number <= kLast) ||
         (number >= 1 + kRefOffset && number <= kLast + kRefOffset);
}

std::string AttrKind(const AttrValue& value) {
  switch (value.value_case()) {
    case AttrValue::kS:
      return "string";
    case AttrValue::kI:
      return "int";
    case AttrValue::kF:
      return "float";
    case AttrValue::kB:
      return "bool";
    case AttrValue::kType:
      return "type";
    case AttrValue::kShape:
      return "shape";
    case AttrValue::kTensor:
      return "tensor";
    case AttrValue::kFunc:
      return "func";
    case AttrValue::kPlaceholder:
      return "placeholder";
    case AttrValue::kList: {
      const AttrValue::ListValue& list = value.list();
      std::string kinds;
      auto add = [&kinds](int size, const char* kind) {
        if (size > 0) absl::StrAppend(&kinds, kinds.empty() ? "" : ",", kind);
      };
      add(list.s_size(), "string");
      add(list.i_size(), "int");
      add(list.f_size(), "float");
      add(list.b_size(), "bool");
      add(list.type_size(), "type");
      add(list.shape_size(), "shape");
      add(list.tensor_size(), "tensor");
      add(list.func_size(), "func");
      return kinds.empty() ? "list" : absl::StrCat("list(", kinds, ")");
    }
    case AttrValue::VALUE_NOT_SET:
      break;
  }
  return "nothing";
}

absl::Status ArgTypes(const OpDef& op_def, ArgSide side, const AttrReader& attrs,
                      std::vector<ElementType>* types) {
  types->clear();
  for (const OpDef::ArgDef& arg : Args(op_def, side)) {
    const size_t first = types->size();
    if (!arg.type_list_attr().empty()) {
      std::vector<ElementType> list;
      TROUPE_RETURN_IF_ERROR(attrs.Get(arg.type_list_attr(), &list));
      types->insert(types->end(), list.begin(), list.end());
    } else {
      ElementType type = static_cast<ElementType>(arg.type());
      if (!arg.type_attr().empty()) TROUPE_RETURN_IF_ERROR(attrs.Get(arg.type_attr(), &type));
      if (type == ElementType::kInvalid) {
        return InvalidArgument("node '", attrs.def().name(), "' (op ", op_def.name(),
                               "): the type of argument '", arg.name(), "' is not known");
      }
      int64_t count = 1;
      if (!arg.number_attr().empty()) TROUPE_RETURN_IF_ERROR(attrs.Get(arg.number_attr(), &count));
      if (count < 0 || count > kMaxArguments - static_cast<int64_t>(first)) {
        return InvalidArgument("node '", attrs.def().name(), "' (op ", op_def.name(),
                               "): attribute '", arg.number_attr(), "' is ", count,
                               "; expected 0 to ", kMaxArguments, " tensors in all");
      }
      types->insert(types->end(), count, type);
    }
    if (arg.is_ref()) {
      for (size_t i = first; i < types->size(); ++i) (*types)[i] = MakeRefType((*types)[i]);
    }
  }
  return absl::OkStatus();
}

std::pair<int, int> ArgRange(const OpDef& op_def, ArgSide side, const AttrReader& attrs,
                             std::string_view name) {
  int64_t begin = 0;
  for (const OpDef::ArgDef& arg : Args(op_def, side)) {
    const int64_t size = ArgSize(arg, attrs);
    if (size < 0 || size > kMaxArguments - begin) break;
    if (arg.name() == name) return {static_cast<int>(begin), static_cast<int>(begin + size)};
    begin += size;
  }
  return {-1, -1};
}

}  // namespace troupe
