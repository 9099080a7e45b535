#include "api/opgen/argument_texts.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "absl/strings/str_split.h"
#include "devices/status_macros.h"
#include "graph/op_registry.h"

namespace troupe {
namespace {

bool IsPartOfName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string TextOf(const OpDef& op) { return op.summary() + " " + op.description(); }

/// Whether `pattern` is all of `text`; '*' stands for any number of characters.
bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (; !Matches(pattern, text); text.remove_prefix(1)) {
    if (text.empty()) return false;
  }
  return true;
}

/// The op that `op` is like, by its text: "As `Foo`", "Gradient of `Foo`"; nullptr if it names
/// none.
const OpDef* OpLike(const OpDef& op) {
  const std::string text = TextOf(op);
  for (const std::string_view words : {"As `", "as `", "radient of `", "radients of `", "omputes `",
                                       "those of `", "derivative of `"}) {
    const size_t at = text.find(words);
    if (at == std::string::npos) continue;
    const size_t begin = at + words.size();
    const std::string name = text.substr(begin, text.find('`', begin) - begin);
    if (name == op.name()) continue;
    const auto found = OpRegistry::Global()->LookUp(name);
    if (found.ok()) return (*found)->def.get();
  }
  return nullptr;
}

bool Has(const OpDef& op, ArgumentKind kind, std::string_view name) {
  const auto named = [&](const auto& argument) { return argument.name() == name; };
  if (kind == ArgumentKind::kAttr) return std::any_of(op.attr().begin(), op.attr().end(), named);
  // A gradient has the forward op's outputs as inputs.
  return std::any_of(op.input_arg().begin(), op.input_arg().end(), named) ||
         std::any_of(op.output_arg().begin(), op.output_arg().end(), named);
}

absl::StatusOr<ArgumentKind> ParseKind(std::string_view word) {
  if (word == "input") return ArgumentKind::kInput;
  if (word == "output") return ArgumentKind::kOutput;
  if (word == "attr") return ArgumentKind::kAttr;
  return InvalidArgument("'", word, "' is none of input, output, attr");
}

}  // namespace

absl::StatusOr<ArgumentTexts> ArgumentTexts::Read(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError("there is no file " + path);
  ArgumentTexts texts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == ' ' && !texts.entries_.empty()) {  // Goes on.
      texts.entries_.back().text += line.substr(line.find_first_not_of(' ') - 1);
      continue;
    }
    const size_t blank = line.find(' '), dot = line.find('.'), colon = line.find(": ");
    if (blank >= dot || dot >= colon || colon == std::string::npos) {
      return InvalidArgument(path, ":", number, ": expected 'KIND OPS.NAME: TEXT', got '", line,
                             "'");
    }
    Entry entry;
    TROUPE_ASSIGN_OR_RETURN(entry.kind, ParseKind(std::string_view(line).substr(0, blank)));
    entry.ops = absl::StrSplit(line.substr(blank + 1, dot - blank - 1), '|');
    entry.name = line.substr(dot + 1, colon - dot - 1);
    entry.text = line.substr(colon + 2);
    entry.head = line.substr(0, colon);
    texts.entries_.push_back(std::move(entry));
  }
  return texts;
}

bool ArgumentTexts::OpTellsOf(const OpDef& op, std::string_view name) {
  const std::string text = TextOf(op);
  for (size_t at = text.find('`'); at != std::string::npos; at = text.find('`', at + 1)) {
    std::string_view rest = std::string_view(text).substr(at + 1);
    if (!rest.starts_with(name)) continue;
    rest.remove_prefix(name.size());
    if (rest.empty() || !IsPartOfName(rest[0])) return true;
  }
  return false;
}

int ArgumentTexts::BestEntry(std::string_view op, ArgumentKind kind, std::string_view name) const {
  int best = -1;
  ptrdiff_t most = -1;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.kind != kind || entry.name != name) continue;
    for (const std::string& pattern : entry.ops) {
      const ptrdiff_t letters = std::count_if(pattern.begin(), pattern.end(), IsPartOfName);
      if (letters <= most || !Matches(pattern, op)) continue;
      best = static_cast<int>(i);
      most = letters;
    }
  }
  return best;
}

std::string ArgumentTexts::Find(const OpDef& op, ArgumentKind kind, std::string_view name) const {
  if (OpTellsOf(op, name)) return "";
  if (const int best = BestEntry(op.name(), kind, name); best >= 0) {
    used_.insert(best);
    return entries_[best].text;
  }
  const OpDef* like = &op;
  for (int steps = 0; steps < 5; ++steps) {
    like = OpLike(*like);
    if (like == nullptr || !Has(*like, kind, name)) return "";
    if (OpTellsOf(*like, name)) return "As in `" + like->name() + "`.";
    if (const int best = BestEntry(like->name(), kind, name); best >= 0) {
      used_.insert(best);
      return entries_[best].text;
    }
  }
  return "";
}

std::vector<std::string> ArgumentTexts::Unused() const {
  std::vector<std::string> unused;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (used_.count(static_cast<int>(i)) == 0) unused.push_back(entries_[i].head);
  }
  return unused;
}

}  // namespace troupe
