// Writes the C++ functions for all registered ops: `troupe_opgen TEXTS HEADER SOURCE`, where TEXTS
// is argument_texts.txt. `troupe_opgen --check TEXTS` writes nothing: it fails if an argument has
// no text, or a text no argument.
//
// An op `Foo` with inputs x and y, a required attribute k and one with a default becomes
//
//     struct FooAttrs { float alpha = 0.5f; };
//     Output Foo(const Scope& scope, Input x, Input y, int64_t k, const FooAttrs& attrs = {});
//
// Attributes that follow from the inputs (element types, numbers of tensors) are not asked for. Ops
// with several outputs give a struct of them, ops without outputs their node.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "api/opgen/argument_texts.h"
#include "devices/element_type.h"
#include "devices/status_macros.h"
#include "graph/gradients/gradient_registry.h"
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

/// "a", "a or b", "a, b or c".
std::string Choice(const std::vector<std::string>& items, const char* last = " or ") {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    text += StrCat(i == 0 ? "" : i + 1 < items.size() ? ", " : last, items[i]);
  }
  return text;
}

/// An attribute's default for people.
std::string PlainDefault(const OpDef::AttrDef& attr) {
  const std::string value = DefaultValue(attr);
  if (attr.type() == "type") {
    return ElementTypeName(static_cast<ElementType>(attr.default_value().type()));
  }
  if (attr.type() == "list(type)") {
    std::vector<std::string> types;
    for (const int type : attr.default_value().list().type()) {
      types.push_back(ElementTypeName(static_cast<ElementType>(type)));
    }
    return types.empty() ? "none" : Choice(types, ", ");
  }
  if (attr.type() == "shape" && attr.default_value().shape().unknown_rank()) return "unknown";
  if (value == "{}") return "none";
  return attr.type() == "float" ? value.substr(0, value.size() - 1) : value;
}

/// The element type(s) and number of an argument.
std::string Describe(const OpDef::ArgDef& arg) {
  std::string type = arg.type_attr();
  if (type.empty()) type = ElementTypeName(static_cast<ElementType>(arg.type()));
  if (arg.is_ref()) type = "a reference to a variable of " + type;
  if (!arg.number_attr().empty()) type = arg.number_attr() + " tensors of " + type;
  if (!arg.type_list_attr().empty()) type = "tensors of the types " + arg.type_list_attr();
  return type;
}

/// The values that an attribute may have; "" if that is any of its kind.
std::string AllowedValues(const OpDef::AttrDef& attr) {
  std::vector<std::string> values;
  for (const int type : attr.allowed_values().list().type()) {
    values.push_back(ElementTypeName(static_cast<ElementType>(type)));
  }
  for (const std::string& text : attr.allowed_values().list().s()) values.push_back(Quote(text));
  return Choice(values);
}

/// The kind of an attribute's values, those that are allowed, and how many or how large at least.
std::string DescribeValues(const OpDef::AttrDef& attr) {
  const bool list = attr.type().starts_with("list(");
  std::string kind = list ? attr.type().substr(5, attr.type().size() - 6) : attr.type();
  const std::string allowed = AllowedValues(attr);
  if (!allowed.empty()) kind = allowed;
  if (list) kind = "list of " + kind;
  if (!attr.has_minimum() || attr.minimum() == INT64_MIN) return kind;
  if (list) return attr.minimum() > 0 ? StrCat(kind, ", ", attr.minimum(), " or more") : kind;
  return StrCat(kind, " >= ", attr.minimum());
}

/// Wraps `text` into lines that begin with `margin`, the first one with `first`.
void Comment(std::ostream& out, const std::string& text, const std::string& first = "///",
             const std::string& margin = "///") {
  std::istringstream words(text);
  std::string word, line = first;
  while (words >> word) {
    if (line.size() + word.size() + 1 > 98) {
      out << line << "\n";
      line = margin;
    }
    line += " " + word;
  }
  if (line != first) out << line << "\n";
}

void CommentItem(std::ostream& out, const std::string& text) {
  Comment(out, text, "/// -", "///  ");
}

class OpWriter {
 public:
  OpWriter(const OpDef& op, const ArgumentTexts& texts) : op_(op), texts_(texts) {
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

  /// The arguments that nothing is said of but their types, as in "input MatMul.a". The only output
  /// of an op is what the op's text says it computes, and what follows from an input needs none.
  std::vector<std::string> Undescribed() const {
    std::vector<std::string> names;
    const auto add = [&](const char* word, ArgumentKind kind, const std::string& name) {
      if (ArgumentTexts::OpTellsOf(op_, name) || !texts_.Find(op_, kind, name).empty()) return;
      names.push_back(StrCat(word, " ", op_.name(), ".", name));
    };
    for (const auto& arg : op_.input_arg()) add("input", ArgumentKind::kInput, arg.name());
    for (const auto& arg : op_.output_arg()) {
      if (op_.output_arg_size() > 1) add("output", ArgumentKind::kOutput, arg.name());
    }
    for (const auto* attrs : {&required_, &optional_}) {
      for (const auto* attr : *attrs) add("attr", ArgumentKind::kAttr, attr->name());
    }
    return names;
  }

  void WriteHeader(std::ostream& out) const {
    if (!optional_.empty()) {
      out << "/// Optional attributes of `" << op_.name() << "`.\n";
      out << "struct " << op_.name() << "Attrs {\n";
      for (const auto* attr : optional_) {
        const std::string allowed = AllowedValues(*attr);
        if (!allowed.empty()) Comment(out, allowed + ".", "  ///", "  ///");
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

  /// What type a literal for `arg`, or in it, gets, as an argument: "", if it keeps its own.
  std::string LiteralType(const OpDef::ArgDef& arg) const {
    if (!arg.type_list_attr().empty()) return "";
    if (arg.type_attr().empty()) return StrCat(", ", TypeValue(arg.type()));
    std::string others, lists;
    for (const auto& other : op_.input_arg()) {
      if (other.type_attr() != arg.type_attr()) continue;
      if (other.name() == arg.name() && !IsList(arg)) continue;
      std::string& names = IsList(other) ? lists : others;
      names += StrCat(names.empty() ? "&" : ", &", Identifier(other.name()));
    }
    if (others.empty() && lists.empty()) return "";
    return StrCat(", TypeOfOthers({", others, "}", lists.empty() ? "" : ", {" + lists + "}", ")");
  }

  void WriteSource(std::ostream& out) const {
    out << Signature(/*with_default=*/false) << " {\n";
    for (const auto& arg : op_.input_arg()) {
      const std::string name = Identifier(arg.name());
      if (IsList(arg)) {
        out << "  const std::vector<Output> " << name << "_tensor = " << name << ".ToOutputs(scope"
            << LiteralType(arg) << ");\n";
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
    WriteArguments(out, "Inputs", ArgumentKind::kInput, op_.input_arg());
    WriteArguments(out, "Outputs", ArgumentKind::kOutput, op_.output_arg());
    bool first = true;
    for (const auto& attr : op_.attr()) {
      const std::string text = DescribeAttr(attr);
      if (text.empty()) continue;
      if (first) out << "///\n/// Attributes:\n";
      first = false;
      CommentItem(out, StrCat("`", attr.name(), "`: ", text));
    }
    const absl::StatusOr<GradientFn> gradient = GradientRegistry::Global()->LookUp(op_.name());
    std::string rest;
    if (op_.is_stateful()) rest += "Stateful. ";
    if (gradient.ok()) rest += *gradient != nullptr ? "Has a gradient. " : "Gradients end here. ";
    if (op_.has_deprecation()) {
      rest += StrCat("Deprecated in graphs of version ", op_.deprecation().version(),
                     " and later: ", op_.deprecation().explanation(), ".");
    }
    if (!rest.empty()) out << "///\n";
    Comment(out, rest);
  }

  template <typename Arguments>
  void WriteArguments(std::ostream& out, const char* title, ArgumentKind kind,
                      const Arguments& arguments) const {
    if (arguments.empty()) return;
    out << "///\n/// " << title << ":\n";
    for (const auto& arg : arguments) {
      CommentItem(out, StrCat("`", arg.name(), "`: ", WithText(Describe(arg), kind, arg.name())));
    }
  }

  /// What an argument's values may be, and what is said of it.
  std::string WithText(const std::string& values, ArgumentKind kind,
                       const std::string& name) const {
    const std::string text = texts_.Find(op_, kind, name);
    return text.empty() ? values : StrCat(values, ". ", text);
  }

  /// What the values of an attribute may be, and where they come from; "": it cannot be given here.
  std::string DescribeAttr(const OpDef::AttrDef& attr) const {
    std::vector<std::string> inputs;
    for (const auto& arg : op_.input_arg()) {
      for (const auto& name : {arg.type_attr(), arg.number_attr(), arg.type_list_attr()}) {
        if (name == attr.name()) inputs.push_back("`" + arg.name() + "`");
      }
    }
    if (!inputs.empty()) {
      return StrCat(DescribeValues(attr), "; follows from ", Choice(inputs, " and "));
    }
    const auto is_this = [&](const OpDef::AttrDef* other) { return other == &attr; };
    if (std::any_of(required_.begin(), required_.end(), is_this)) {
      return WithText(StrCat(DescribeValues(attr), "; required"), ArgumentKind::kAttr, attr.name());
    }
    if (std::none_of(optional_.begin(), optional_.end(), is_this)) return "";
    return WithText(StrCat(DescribeValues(attr), "; ", PlainDefault(attr), " by default"),
                    ArgumentKind::kAttr, attr.name());
  }

  static void WriteAttr(std::ostream& out, const OpDef::AttrDef& attr, const std::string& value) {
    const bool list = attr.type().rfind("list(", 0) == 0;
    out << "    spec.Attr(\"" << attr.name() << "\", "
        << (list ? "absl::MakeConstSpan(" + value + ")" : value) << ");\n";
  }

  const OpDef& op_;
  const ArgumentTexts& texts_;
  std::vector<const OpDef::AttrDef*> required_, optional_;
  bool supported_ = true;
};

constexpr char kHeaderStart[] =
    R"(/// One function for every registered op. Written by troupe_opgen from the op registry.
///
/// Each adds one node to the scope's graph and gives its outputs; shapes and element types are checked at once,
/// and an error is kept in the scope (`Scope::status`); the outputs are invalid then. Inputs may be tensors of the
/// graph or values, also in lists. The rules for shapes, broadcasting and errors are TensorFlow's for the op of the
/// same name: InvalidArgument for inputs of other element types or shapes than an op takes, for values of attributes
/// that are not allowed, and when it runs for values of inputs that it refuses. docs/ops.md lists all ops with their
/// devices and the element types of their kernels.
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

/// Calls `visit` with a writer for each op that has a function.
template <typename Visit>
absl::Status ForEachOp(const ArgumentTexts& texts, Visit visit) {
  for (const std::string& name : OpRegistry::Global()->Names()) {
    if (name == "Const" || name[0] == '_') continue;
    TROUPE_ASSIGN_OR_RETURN(const OpRegistration* op, OpRegistry::Global()->LookUp(name));
    const OpWriter writer(*op->def, texts);
    if (writer.supported()) visit(writer);
  }
  return absl::OkStatus();
}

absl::Status Write(const ArgumentTexts& texts, const char* header_path, const char* source_path) {
  std::ofstream header(header_path), source(source_path);
  header << kHeaderStart;
  source << kSourceStart;
  TROUPE_RETURN_IF_ERROR(ForEachOp(texts, [&](const OpWriter& writer) {
    writer.WriteHeader(header);
    writer.WriteSource(source);
  }));
  header << "}  // namespace troupe::ops\nTROUPE_EXPORT_END\n\n#endif  // TROUPE_API_OPS_H_\n";
  source << "}  // namespace troupe::ops\n";
  if (header.flush().good() && source.flush().good()) return absl::OkStatus();
  return absl::UnavailableError(StrCat("cannot write ", header_path, " and ", source_path));
}

absl::Status Check(const ArgumentTexts& texts) {
  std::string wrong;
  TROUPE_RETURN_IF_ERROR(ForEachOp(texts, [&](const OpWriter& writer) {
    for (const std::string& name : writer.Undescribed()) {
      wrong += StrCat("\n", name, " has no text: name it in the op's Doc, in backquotes, or here");
    }
  }));
  for (const std::string& entry : texts.Unused()) {
    wrong += StrCat("\n'", entry, "' is of no argument that lacks a text");
  }
  return wrong.empty() ? absl::OkStatus() : absl::FailedPreconditionError(wrong);
}

int Main(int argc, char** argv) {
  const bool check = argc == 3 && std::string(argv[1]) == "--check";
  if (argc != 4 && !check) {
    std::cerr << "usage: troupe_opgen TEXTS HEADER SOURCE\n"
                 "       troupe_opgen --check TEXTS\n";
    return 2;
  }
  const absl::StatusOr<ArgumentTexts> texts = ArgumentTexts::Read(argv[check ? 2 : 1]);
  absl::Status status = texts.status();
  if (status.ok()) status = check ? Check(*texts) : Write(*texts, argv[2], argv[3]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
