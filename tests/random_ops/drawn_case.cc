#include "tests/random_ops/drawn_case.h"

#include <set>
#include <utility>

#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"

namespace troupe::random_ops {
namespace {

/// FNV-1a: seeds must not depend on the standard library.
uint64_t Hash(std::string_view text, uint64_t hash) {
  for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace

void AddCases(const golden::CaseFile& file, CasesByOp* cases) {
  for (const golden::Case& recorded : file.case_()) {
    GraphDef def;
    if (!def.ParseFromString(recorded.graph())) continue;
    std::set<std::string> ops;
    for (const NodeDef& node : def.node()) ops.insert(node.op());
    for (const FunctionDef& function : def.library().function()) {
      for (const NodeDef& node : function.node_def()) ops.insert(node.op());
    }
    if (ops.contains(std::string(kEndsTheProcess))) continue;
    for (const std::string& op : ops) (*cases)[op].push_back(&recorded);
  }
}

golden::Case DrawCase(const std::string& op, uint64_t seed, int64_t number,
                      const CasesByOp& cases) {
  RandomSource random(Hash(op, seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(number)));
  const auto recorded = cases.find(op);
  const bool alone = recorded == cases.end() || random.Chance(50);
  golden::Case drawn = alone ? CaseFromDefinition(op, &random)
                             : CaseFromCase(op, *random.Pick(recorded->second), &random);
  drawn.set_name(StrCat(op, "/", number));
  drawn.set_op(op);
  drawn.clear_tag();
  drawn.add_tag(random.Chance(50) ? "threads=1" : "threads=3");
  if (random.Chance(50)) drawn.add_tag("plain");
  return drawn;
}

}  // namespace troupe::random_ops
