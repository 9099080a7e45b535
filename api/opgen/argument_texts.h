/// What the comments of op functions say of inputs, outputs and attributes beyond their types.
///
/// An op's own text names most of them, in backquotes, and says what they are. For the others there
/// is api/opgen/argument_texts.txt, where one line serves all ops that have a like-named argument
/// of the same meaning. An op whose text says that it is as another op, or the gradient of one,
/// takes what is left from that op.
#ifndef TROUPE_API_OPGEN_ARGUMENT_TEXTS_H_
#define TROUPE_API_OPGEN_ARGUMENT_TEXTS_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

enum class ArgumentKind { kInput, kOutput, kAttr };

/// Not thread-safe.
class ArgumentTexts {
 public:
  /// InvalidArgument names the line that is no entry; NotFound if there is no such file.
  static absl::StatusOr<ArgumentTexts> Read(const std::string& path);

  /// True if the op's own text tells of the argument.
  static bool OpTellsOf(const OpDef& op, std::string_view name);
  /// A sentence or two for an argument that the op's own text leaves out; "": nothing is known.
  std::string Find(const OpDef& op, ArgumentKind kind, std::string_view name) const;
  /// The entries that `Find` never gave, as the file has them.
  std::vector<std::string> Unused() const;

 private:
  struct Entry {
    ArgumentKind kind;
    std::vector<std::string> ops;  // Names, in which '*' stands for anything.
    std::string name, text;
    std::string head;  // What is before the text, for messages.
  };

  /// The entry for an argument whose pattern has the most letters, or -1.
  int BestEntry(std::string_view op, ArgumentKind kind, std::string_view name) const;

  std::vector<Entry> entries_;
  mutable std::set<int> used_;
};

}  // namespace troupe

#endif  // TROUPE_API_OPGEN_ARGUMENT_TEXTS_H_
