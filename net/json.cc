#include "net/json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "devices/status_macros.h"

namespace troupe {
namespace {

using nlohmann::json;

/// Builds the value from the parser's events, which come without recursion; returning false stops
/// the parser.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(size_t max_depth) : max_depth_(max_depth) {}

  bool null() override { return Add(Json()) != nullptr; }
  bool boolean(bool value) override {
    Json* out = Add(Json());
    out->kind = Json::Kind::kBool;
    out->boolean = value;
    return true;
  }
  bool number_integer(number_integer_t value) override {
    Json* out = Add(Json());
    out->kind = Json::Kind::kNumber;
    out->integral = true;
    out->integer = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    Json* out = Add(Json());
    out->kind = Json::Kind::kNumber;
    out->integral = value <= static_cast<number_unsigned_t>(INT64_MAX);
    out->integer = out->integral ? static_cast<int64_t>(value) : 0;
    return true;
  }
  bool number_float(number_float_t, const string_t&) override {
    Add(Json())->kind = Json::Kind::kNumber;
    return true;
  }
  bool string(string_t& value) override {
    Json* out = Add(Json());
    out->kind = Json::Kind::kString;
    out->text = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return Fail("binary values are not JSON"); }
  bool start_object(size_t) override { return Open(Json::Kind::kObject); }
  bool start_array(size_t) override { return Open(Json::Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (open_.back()->members.count(name) > 0) {
      return Fail(StrCat("member \"", name.substr(0, 80), "\" is given twice"));
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    if (error_.empty()) error_ = StrCat("syntax error at byte ", position);
    return false;
  }

  const std::string& error() const { return error_; }
  Json TakeRoot() { return std::move(root_); }

 private:
  bool Fail(std::string why) {
    error_ = std::move(why);
    return false;
  }
  Json* Add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json* parent = open_.back();
    if (parent->kind == Json::Kind::kObject) {
      return &(parent->members[std::move(key_)] = std::move(value));
    }
    parent->items.push_back(std::move(value));
    return &parent->items.back();
  }
  bool Open(Json::Kind kind) {
    if (open_.size() >= max_depth_) {
      return Fail(StrCat("nested more than ", max_depth_, " levels deep"));
    }
    Json* value = Add(Json());
    value->kind = kind;
    open_.push_back(value);
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  size_t max_depth_;
  Json root_;
  // A parent does not grow while one of its children is open, so these stay valid.
  std::vector<Json*> open_;
  std::string key_;
  std::string error_;
};

}  // namespace

absl::StatusOr<Json> ParseJson(std::string_view text, size_t max_bytes, int max_depth) {
  if (text.size() > max_bytes) {
    return InvalidArgument("JSON of ", text.size(), " bytes, more than the ", max_bytes,
                           " that are read");
  }
  Builder builder(static_cast<size_t>(max_depth));
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    return InvalidArgument("JSON: ", builder.error().empty() ? "malformed" : builder.error());
  }
  return builder.TakeRoot();
}

std::string JsonQuoted(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace troupe
