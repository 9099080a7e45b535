// Writes the C++ functions for all registered ops: `troupe_opgen HEADER SOURCE`.
//
// An op `Foo` with inputs x and y, a required attribute k and one with a default becomes
//
//     struct FooAttrs { float alpha = 0.5f; };
//     Output Foo(const Scope& scope, Input x, Input y, int64_t k, const FooAttrs& attrs = {});
//
// Attributes that follow from the inputs (element types, numbers of tensors) are not asked for. Ops
// with several outputs give a struct of them, ops without outputs their node.

#include <cctype>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "devices/element_type.h"
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"

namespace troupe {
namespace {

const std::set<std::string>& ReservedNames() {
  static const auto* names = new std::set<std::string>{
      "and",     "attrs",  "bool",     "break",    "case",    "class",    "const",     "continue",
      "default", "delete", "do",       "double",   "else",    "enum",     "explicit",  "false",
      "float",   "for",    "goto",     "if",       "int",     "long",     "namespace", "new",
      "node",    "not",    "operator", "or",       "private", "public",   "return",    "scope",
      "short",   "signed", "sizeof",   "static",   "struct",  "switch",   "template",  "this",
      "throw",   "true",   "try",      "typename", "union",   "unsigned", "using",     "virtual",
      "void",    "while",  "xor"};
  return *names;
}

std::string Identifier(const std::string& name) {
  return ReservedNames().count(name) != 0 ? name + "_" : name;
}

std::string Quote(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (std::isprint(c)) {
      out << c;
    } else {
      char octal[8];
      snprintf(octal, sizeof(octal), "\\%03o", c);
      out << octal;
    }
  }
  out << '"';
  return out.str();
}

/// The C++ type of an attribute's kind; "" for kinds that op functions do not take.
std::string CppType(const std::string& kind) {
  if (kind == "string") return "std::string";
  if (kind == "int") return "int64_t";
  if (kind == "float") return "float";
  if (kind == "bool") return "bool";
  if (kind == "type") return "ElementType";
  if (kind == "shape") return "PartialShape";
  if (kind == "tensor") return "Tensor";
  if (kind == "list(string)") return "std::vector<std::string>";
  if (kind == "list(int)") return "std::vector<int64_t>";
  if (kind == "list(type)") return "std::vector<ElementType>";
  if (kind == "list(shape)") return "std::vector<PartialShape>";
  return "";
}

std::string Number(float value) {
  std::ostringstream out;
  out.precision(9);
  out << value;
  std::string text = out.str();
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text + "f";
}

std::string TypeValue(DataType type) {
  return StrCat("static_cast<ElementType>(", static_cast<int>(type), ") /* ",
                ElementTypeName(static_cast<ElementType>(type)), " */");
}

std::string ShapeValue(const TensorShapeProto& shape) {
  if (shape.unknown_rank()) return "PartialShape()";
  std::string dims;
  for (const auto& dim : shape.dim()) dims += StrCat(dims.empty() ? "" : ", ", dim.size());
  return StrCat("PartialShape({", dims, "})");
}

std::string DefaultValue(const OpDef::AttrDef& attr) {
  const AttrValue& value = attr.default_value();
  const std::string& kind = attr.type();
  if (kind == "string") return Quote(value.s());
  if (kind == "int") return StrCat(value.i());
  if (kind == "float") return Number(value.f());
  if (kind == "bool") return value.b() ? "true" : "false";
  if (kind == "type") return TypeValue(value.type());
  if (kind == "shape") return ShapeValue(value.shape());
  std::string items;
  auto add = [&](const std::string& item) { items += (items.empty() ? "" : ", ") + item; };
  for (const auto& item : value.list().s()) add(Quote(item));
  for (const auto item : value.list().i()) add(StrCat(item));
  for (const auto item : value.list().type()) add(TypeValue(static_cast<DataType>(item)));
  for (const auto& item : value.list().shape()) add(ShapeValue(item));
  return "{" + items + "}";
}

bool IsList(const OpDef::ArgDef& arg) {
  return !arg.number_attr().empty() || !arg.type_list_attr().empty();
}

/// The element type(s) and number of an argument, for the comment.
std::string Describe(const OpDef::ArgDef& arg) {
  std::string type;
  if (!arg.type_attr().empty()) {
    type = arg.type_attr();
  } else if (!arg.type_list_attr().empty()) {
    type = arg.type_list_attr();
  } else {
    type = ElementTypeName(static_cast<ElementType>(arg.type()));
  }
  if (!arg.number_attr().empty()) type = arg.number_attr() + " * " + type;
  if (arg.is_ref()) type = "Ref(" + type + ")";
  return "`" + arg.name() + "`: " + type;
}

void Comment(std::ostream& out, const std::string& text) {
  std::istringstream words(text);
  std::string word, line = "///";
  while (words >> word) {
    if (line.size() + word.size() + 1 > 98) {
      out << line << "\n";
      line = "///";
    }
    line += " " + word;
  }
  if (line != "///") out << line << "\n";
}

class OpWriter {
 public:
  explicit OpWriter(const OpDef& op) : op_(op) {
    std::set<std::string> inferred;
    for (const auto& arg : op.input_arg()) {
      inferred.insert(arg.type_attr());
      inferred.insert(arg.number_attr());
      inferred.insert(arg.type_list_attr());
    }
    for (const auto& attr : op.attr()) {
      if (inferred.count(attr.name()) != 0) continue;
      const bool has_default = attr.has_default_value();
      if (CppType(attr.type()).empty() || (has_default && attr.type() == "tensor")) {
        if (!has_default) supported_ = false;
        continue;
      }
      (has_default ? optional_ : required_).push_back(&attr);
    }
  }

  bool supported() const { return supported_; }

  void WriteHeader(std::ostream& out) const {
    if (!optional_.empty()) {
      out << "/// Optional attributes of `" << op_.name() << "`.\n";
      out << "struct " << op_.name() << "Attrs {\n";
      for (const auto* attr : optional_) {
        out << "  " << CppType(attr->type()) << " " << Identifier(attr->name()) << " = "
            << DefaultValue(*attr) << ";\n";
      }
      out << "};\n";
    }
    if (op_.output_arg_size() > 1) {
      out << "/// Outputs of `" << op_.name() << "`.\n";
      out << "struct " << op_.name() << "Outputs {\n";
      for (const auto& arg : op_.output_arg()) {
        out << "  " << OutputType(arg) << " " << Identifier(arg.name()) << ";\n";
      }
      out << "  Node* node = nullptr;\n};\n";
    }
    WriteComment(out);
    out << Signature(/*with_default=*/true) << ";\n\n";
  }

  /// What type a literal for `arg` gets, as an argument: "", if it keeps its own.
  std::string LiteralType(const OpDef::ArgDef& arg) const {
    if (arg.type_attr().empty()) return StrCat(", ", TypeValue(arg.type()));
    std::string others;
    for (const auto& other : op_.input_arg()) {
      if (IsList(other) || other.type_attr() != arg.type_attr() || other.name() == arg.name()) {
        continue;
      }
      others += StrCat(others.empty() ? "&" : ", &", Identifier(other.name()));
    }
    return others.empty() ? "" : StrCat(", TypeOfOthers({", others, "})");
  }

  void WriteSource(std::ostream& out) const {
    out << Signature(/*with_default=*/false) << " {\n";
    for (const auto& arg : op_.input_arg()) {
      const std::string name = Identifier(arg.name());
      if (IsList(arg)) {
        out << "  const std::vector<Output> " << name << "_tensor = " << name << ".ToOutputs(scope"
            << (arg.number_attr().empty() ? "" : ", /*same_type=*/true") << ");\n";
      } else {
        out << "  const Output " << name << "_tensor = " << name << ".ToOutput(scope"
            << LiteralType(arg) << ");\n";
      }
    }
    out << "  Node* const added = scope.AddNode(\"" << op_.name()
        << "\", [&](ScopedSpec& spec) {\n";
    for (const auto& arg : op_.input_arg()) {
      out << "    spec.Input(" << Identifier(arg.name()) << "_tensor);\n";
    }
    for (const auto* attr : required_) WriteAttr(out, *attr, Identifier(attr->name()));
    for (const auto* attr : optional_) WriteAttr(out, *attr, "attrs." + Identifier(attr->name()));
    bool needs_container = false;
    for (const auto* attr : optional_) needs_container |= attr->name() == "container";
    if (needs_container) {
      out << "    if (attrs.container.empty()) spec.Attr(\"container\", scope.container());\n";
    }
    out << "    (void)spec;\n  });\n";
    const int outputs = op_.output_arg_size();
    if (outputs == 0) {
      out << "  return added;\n";
    } else if (outputs == 1) {
      const auto& arg = op_.output_arg(0);
      if (IsList(arg)) {
        out << "  return " << ListOf(arg) << ";\n";
      } else {
        out << "  return added == nullptr ? Output() : Output(added, 0);\n";
      }
    } else {
      out << "  " << op_.name() << "Outputs result;\n";
      out << "  result.node = added;\n";
      for (const auto& arg : op_.output_arg()) {
        out << "  result." << Identifier(arg.name()) << " = "
            << (IsList(arg) ? ListOf(arg) : StrCat("OneOf(added, \"", arg.name(), "\")")) << ";\n";
      }
      out << "  return result;\n";
    }
    out << "}\n\n";
  }

 private:
  static std::string OutputType(const OpDef::ArgDef& arg) {
    return IsList(arg) ? "OutputList" : "Output";
  }

  /// An expression for a list of outputs, which has its length after an error, too.
  std::string ListOf(const OpDef::ArgDef& arg) const {
    const bool number = !arg.number_attr().empty();
    const std::string& counted = number ? arg.number_attr() : arg.type_list_attr();
    std::string count = "0";
    for (const auto& input : op_.input_arg()) {
      if (counted == (number ? input.number_attr() : input.type_list_attr())) {
        count = Identifier(input.name()) + ".size()";
      }
    }
    for (const auto* attr : required_) {
      if (attr->name() == counted) count = Identifier(counted) + (number ? "" : ".size()");
    }
    for (const auto* attr : optional_) {
      if (attr->name() == counted)
        count = "attrs." + Identifier(counted) + (number ? "" : ".size()");
    }
    return StrCat("ListOf(added, \"", arg.name(), "\", static_cast<int64_t>(", count, "))");
  }

  std::string Signature(bool with_default) const {
    std::string result = "Node*";
    if (op_.output_arg_size() == 1) result = OutputType(op_.output_arg(0));
    if (op_.output_arg_size() > 1) result = op_.name() + "Outputs";
    std::string text = result + " " + op_.name() + "(const Scope& scope";
    for (const auto& arg : op_.input_arg()) {
      text += IsList(arg) ? ", const InputList& " : ", const Input& ";
      text += Identifier(arg.name());
    }
    for (const auto* attr : required_) {
      const std::string type = CppType(attr->type());
      const bool by_value =
          type == "int64_t" || type == "float" || type == "bool" || type == "ElementType";
      text += ", " + (by_value ? type : "const " + type + "&") + " " + Identifier(attr->name());
    }
    if (!optional_.empty()) {
      text += ", const " + op_.name() + "Attrs& attrs" + (with_default ? " = {}" : "");
    }
    return text + ")";
  }

  void WriteComment(std::ostream& out) const {
    Comment(out, StrCat(op_.summary(), " ", op_.description()));
    if (op_.input_arg_size() > 0) {
      std::string text = "Inputs:";
      for (const auto& arg : op_.input_arg()) text += " " + Describe(arg) + ",";
      text.back() = '.';
      Comment(out, text);
    }
    if (op_.output_arg_size() > 0) {
      std::string text = "Outputs:";
      for (const auto& arg : op_.output_arg()) text += " " + Describe(arg) + ",";
      text.back() = '.';
      Comment(out, text);
    }
    for (const auto& attr : op_.attr()) {
      if (attr.type() != "type" || !attr.has_allowed_values()) continue;
      std::string text = "`" + attr.name() + "` is one of";
      for (const auto type : attr.allowed_values().list().type()) {
        text += " " + ElementTypeName(static_cast<ElementType>(type)) + ",";
      }
      text.back() = '.';
      Comment(out, text);
    }
  }

  static void WriteAttr(std::ostream& out, const OpDef::AttrDef& attr, const std::string& value) {
    const bool list = attr.type().rfind("list(", 0) == 0;
    out << "    spec.Attr(\"" << attr.name() << "\", "
        << (list ? "absl::MakeConstSpan(" + value + ")" : value) << ");\n";
  }

  const OpDef& op_;
  std::vector<const OpDef::AttrDef*> required_, optional_;
  bool supported_ = true;
};

constexpr char kHeaderStart[] =
    R"(/// One function for every registered op. Written by troupe_opgen from the op registry.
///
/// Each adds one node to the scope's graph and gives its outputs; shapes and element types are checked at once,
/// and an error is kept in the scope (`Scope::status`); the outputs are invalid then. Inputs may be tensors of the
/// graph or values, also in lists. The rules for shapes, broadcasting and errors are TensorFlow's for the op of the
/// same name.
#ifndef TROUPE_API_OPS_H_
#define TROUPE_API_OPS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "api/scope.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe::ops {

using ::troupe::Const;

)";

constexpr char kSourceStart[] = R"(// Written by troupe_opgen from the op registry.
#include "api/ops.h"

namespace troupe::ops {

namespace {

Output OneOf(Node* node, std::string_view name) {
  return node == nullptr ? Output() : Output(node, node->OutputRange(name).first);
}

OutputList ListOf(Node* node, std::string_view name, int64_t asked) {
  constexpr int64_t kMost = 1000000;  // No op has more.
  if (asked < 0 || asked > kMost) asked = 0;
  if (node == nullptr) return OutputList(static_cast<size_t>(asked));
  OutputList outputs;
  const auto [begin, end] = node->OutputRange(name);
  for (int i = begin; i < end; ++i) outputs.emplace_back(node, i);
  return outputs;
}

}  // namespace

)";

int Main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: troupe_opgen HEADER SOURCE\n";
    return 2;
  }
  std::ofstream header(argv[1]), source(argv[2]);
  header << kHeaderStart;
  source << kSourceStart;
  for (const std::string& name : OpRegistry::Global()->Names()) {
    if (name == "Const" || name[0] == '_') continue;
    absl::StatusOr<const OpRegistration*> op = OpRegistry::Global()->LookUp(name);
    if (!op.ok()) {
      std::cerr << name << ": " << op.status() << "\n";
      return 1;
    }
    OpWriter writer(*(*op)->def);
    if (!writer.supported()) continue;
    writer.WriteHeader(header);
    writer.WriteSource(source);
  }
  header << "}  // namespace troupe::ops\nTROUPE_EXPORT_END\n\n#endif  // TROUPE_API_OPS_H_\n";
  source << "}  // namespace troupe::ops\n";
  return header.good() && source.good() ? 0 : 1;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
