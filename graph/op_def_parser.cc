#include "graph/op_def_parser.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <cctype>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "devices/element_type.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

/// What is left of a specification, and the whole for messages.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : whole_(text), rest_(text) {}

  void SkipSpace() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) {
      rest_.remove_prefix(1);
    }
  }
  bool Consume(std::string_view token) {
    SkipSpace();
    if (rest_.substr(0, token.size()) != token) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  /// A letter or underscore, then letters, digits and underscores; empty if there is none.
  std::string_view Word() {
    SkipSpace();
    size_t size = 0;
    auto part = [this](size_t i) {
      const unsigned char c = static_cast<unsigned char>(rest_[i]);
      return std::isalpha(c) || c == '_' || (i > 0 && std::isdigit(c));
    };
    while (size < rest_.size() && part(size)) ++size;
    std::string_view word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return word;
  }
  bool Number(int64_t* value) {
    SkipSpace();
    size_t size = !rest_.empty() && rest_.front() == '-' ? 1 : 0;
    while (size < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[size]))) ++size;
    if (!absl::SimpleAtoi(absl::string_view(rest_.data(), size), value)) return false;
    rest_.remove_prefix(size);
    return true;
  }
  /// A text in single or double quotes, escapes resolved.
  bool Quoted(std::string* value) {
    SkipSpace();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return false;
    const char quote = rest_.front();
    size_t end = 1;
    bool escapes = false;
    for (; end < rest_.size() && rest_[end] != quote; ++end) {
      if (rest_[end] == '\\') {
        ++end;
        escapes = true;
      }
    }
    if (end >= rest_.size()) return false;
    const std::string_view quoted = rest_.substr(0, end + 1);
    rest_.remove_prefix(end + 1);
    if (!escapes) {
      *value = quoted.substr(1, end - 1);
      return true;
    }
    AttrValue parsed;
    if (!google::protobuf::TextFormat::ParseFromString(StrCat("s: ", quoted), &parsed)) {
      return false;
    }
    *value = parsed.s();
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return rest_.empty();
  }
  std::string_view rest() const { return rest_; }
  void SkipAll() { rest_ = {}; }

  absl::Status Error(std::string_view what) const {
    return InvalidArgument(what, " at '", rest_, "' in '", whole_, "'");
  }

 private:
  std::string_view whole_;
  std::string_view rest_;
};

using E = ElementType;
constexpr E kNumberTypes[] = {E::kFloat,      E::kDouble,    E::kInt32,  E::kUint8,   E::kInt16,
                              E::kInt8,       E::kComplex64, E::kInt64,  E::kQint8,   E::kQuint8,
                              E::kQint32,     E::kBfloat16,  E::kQint16, E::kQuint16, E::kUint16,
                              E::kComplex128, E::kHalf,      E::kUint32, E::kUint64};
constexpr E kRealNumberTypes[] = {E::kFloat,  E::kDouble, E::kInt32,  E::kUint8,
                                  E::kInt16,  E::kInt8,   E::kInt64,  E::kBfloat16,
                                  E::kUint16, E::kHalf,   E::kUint32, E::kUint64};
constexpr E kQuantizedTypes[] = {E::kQint8, E::kQuint8, E::kQint32, E::kQint16, E::kQuint16};

/// Adds the types that `word` stands for: a group or one type. False if it is neither.
bool AddTypes(std::string_view word, AttrValue::ListValue* list) {
  auto add = [list](const auto& types) {
    for (E type : types) list->add_type(static_cast<DataType>(type));
    return true;
  };
  if (word == "numbertype" || word == "numerictype") return add(kNumberTypes);
  if (word == "realnumbertype" || word == "realnumerictype") return add(kRealNumberTypes);
  if (word == "quantizedtype") return add(kQuantizedTypes);
  E type;
  if (!ParseElementType(word, &type)) return false;
  list->add_type(static_cast<DataType>(type));
  return true;
}

/// The kind of an attribute, without the enclosing `list()`.
absl::Status ParseKind(Cursor* cursor, OpDef::AttrDef* attr, std::string* kind) {
  AttrValue::ListValue* allowed;
  if (cursor->Consume("{")) {
    std::string text;
    allowed = attr->mutable_allowed_values()->mutable_list();
    do {
      if (cursor->Quoted(&text)) {
        if (allowed->type_size() > 0) return cursor->Error("texts and types are mixed");
        *allowed->add_s() = text;
      } else if (const std::string_view word = cursor->Word(); !AddTypes(word, allowed)) {
        return cursor->Error(StrCat("'", word, "' is neither a type nor a text"));
      }
    } while (cursor->Consume(","));
    if (!cursor->Consume("}")) return cursor->Error("expected '}'");
    *kind = allowed->s_size() > 0 ? "string" : "type";
    if (allowed->s_size() > 0 && allowed->type_size() > 0) {
      return cursor->Error("texts and types are mixed");
    }
    return absl::OkStatus();
  }
  const std::string_view word = cursor->Word();
  for (std::string_view plain :
       {"string", "int", "float", "bool", "type", "shape", "tensor", "func"}) {
    if (word == plain) {
      *kind = word;
      return absl::OkStatus();
    }
  }
  if (word == "numbertype" || word == "numerictype" || word == "realnumbertype" ||
      word == "realnumerictype" || word == "quantizedtype") {
    AddTypes(word, attr->mutable_allowed_values()->mutable_list());
    *kind = "type";
    return absl::OkStatus();
  }
  return cursor->Error(StrCat("unknown kind of attribute '", word, "'"));
}

/// The field of AttrValue, or of its list, that a kind is kept in.
std::string_view FieldOf(std::string_view kind) {
  if (kind == "string") return "s";
  if (kind == "int") return "i";
  if (kind == "float") return "f";
  if (kind == "bool") return "b";
  return kind;  // type, shape, tensor, func
}

/// Values that need no text parser. False if `text` is something else.
bool ParseSimple(std::string_view kind, std::string_view text, AttrValue* value) {
  const absl::string_view piece(text.data(), text.size());
  if (kind == "bool" && (text == "true" || text == "false")) {
    value->set_b(text == "true");
    return true;
  }
  int64_t number;
  if (kind == "int" && absl::SimpleAtoi(piece, &number)) {
    value->set_i(number);
    return true;
  }
  float real;
  if (kind == "float" && absl::SimpleAtof(piece, &real)) {
    value->set_f(real);
    return true;
  }
  ElementType type;
  if (kind == "type" && ParseElementType(text, &type)) {
    value->set_type(static_cast<DataType>(type));
    return true;
  }
  if (kind == "string") {
    Cursor cursor(text);
    std::string quoted;
    if (cursor.Quoted(&quoted) && cursor.AtEnd()) {
      value->set_s(quoted);
      return true;
    }
  }
  if (kind.substr(0, 5) == "list(" && text == "[]") {
    value->mutable_list();
    return true;
  }
  return false;
}

/// Keeps the parser's first complaint.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string& message) override {
    if (message_.empty()) message_ = message;
  }
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

}  // namespace

absl::Status ParseAttrText(std::string_view kind, std::string_view text, AttrValue* value) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  if (ParseSimple(kind, text, value)) return absl::OkStatus();
  std::string message;
  if (kind.substr(0, 5) == "list(") {
    const std::string_view element = kind.substr(5, kind.size() - 6);
    message = StrCat("list { ", FieldOf(element), ": ", text, " }");
  } else {
    message = StrCat(FieldOf(kind), ": ", text);
  }
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(32);
  if (!parser.ParseFromString(message, value)) {
    return InvalidArgument("'", text, "' is no value of kind ", kind, ": ", error.message());
  }
  return absl::OkStatus();
}

absl::Status ParseAttrSpec(std::string_view spec, OpDef::AttrDef* attr) {
  Cursor cursor(spec);
  const std::string_view name = cursor.Word();
  if (name.empty() || !cursor.Consume(":")) return cursor.Error("expected 'name:'");
  attr->set_name(std::string(name));
  std::string kind;
  if (cursor.Consume("list(")) {
    TROUPE_RETURN_IF_ERROR(ParseKind(&cursor, attr, &kind));
    if (!cursor.Consume(")")) return cursor.Error("expected ')'");
    kind = StrCat("list(", kind, ")");
  } else {
    TROUPE_RETURN_IF_ERROR(ParseKind(&cursor, attr, &kind));
  }
  attr->set_type(kind);
  if (cursor.Consume(">=")) {
    int64_t minimum;
    if (!cursor.Number(&minimum)) return cursor.Error("expected a number after '>='");
    if (kind != "int" && kind.substr(0, 5) != "list(") {
      return cursor.Error("only attributes of kind int and lists have a minimum");
    }
    attr->set_has_minimum(true);
    attr->set_minimum(minimum);
  }
  if (cursor.Consume("=")) {
    const std::string_view text = cursor.rest();
    const absl::Status status = ParseAttrText(kind, text, attr->mutable_default_value());
    if (!status.ok()) {
      return InvalidArgument("default value in '", spec, "': ", std::string(status.message()));
    }
    cursor.SkipAll();
  }
  if (!cursor.AtEnd()) return cursor.Error("what follows is not understood");
  return absl::OkStatus();
}

absl::Status ParseArgSpec(std::string_view spec, OpDef* op_def, OpDef::ArgDef* arg) {
  Cursor cursor(spec);
  const std::string_view name = cursor.Word();
  if (name.empty() || !cursor.Consume(":")) return cursor.Error("expected 'name:'");
  arg->set_name(std::string(name));
  const bool ref = cursor.Consume("Ref(");
  arg->set_is_ref(ref);
  auto find = [op_def](std::string_view attr_name) -> OpDef::AttrDef* {
    for (OpDef::AttrDef& attr : *op_def->mutable_attr()) {
      if (attr.name() == attr_name) return &attr;
    }
    return nullptr;
  };
  auto at_least_one = [](OpDef::AttrDef* attr) {
    if (attr->has_minimum()) return;
    attr->set_has_minimum(true);
    attr->set_minimum(1);
  };

  std::string_view word = cursor.Word();
  if (cursor.Consume("*")) {
    OpDef::AttrDef* number = find(word);
    if (number == nullptr || number->type() != "int") {
      return cursor.Error(StrCat("'", word, "' is no attribute of kind int"));
    }
    at_least_one(number);
    arg->set_number_attr(std::string(word));
    word = cursor.Word();
  }
  ElementType type;
  if (OpDef::AttrDef* attr = find(word); attr != nullptr) {
    if (attr->type() == "type") {
      arg->set_type_attr(std::string(word));
    } else if (attr->type() == "list(type)" && arg->number_attr().empty()) {
      at_least_one(attr);
      arg->set_type_list_attr(std::string(word));
    } else {
      return cursor.Error(StrCat("attribute '", word, "' is of kind ", attr->type(),
                                 ", which is no type of an argument"));
    }
  } else if (ParseElementType(word, &type)) {
    arg->set_type(static_cast<DataType>(type));
  } else {
    return cursor.Error(StrCat("'", word, "' is neither a type nor an attribute"));
  }
  if (ref && !cursor.Consume(")")) return cursor.Error("expected ')'");
  if (!cursor.AtEnd()) return cursor.Error("what follows is not understood");
  return absl::OkStatus();
}

}  // namespace troupe
