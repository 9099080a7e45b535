// The nodes of functional control flow as Switch, Merge, Enter, Exit, NextIteration.
#include "graph/passes/lower_functions.h"

#include <algorithm>
#include <array>

#include "devices/status_macros.h"
#include "graph/passes/function_expander.h"

namespace troupe {
namespace {

using Types = std::vector<DataType>;

absl::StatusOr<Types> TypesOf(const NodeDef& node, const char* attr) {
  auto found = node.attr().find(attr);
  if (found == node.attr().end()) return InvalidArgument("lacks the attribute '", attr, "'");
  Types types;
  for (int type : found->second.list().type()) types.push_back(static_cast<DataType>(type));
  return types;
}

absl::StatusOr<const NameAttrList*> FunctionOf(const NodeDef& node, const char* attr) {
  auto found = node.attr().find(attr);
  if (found == node.attr().end() || found->second.value_case() != AttrValue::kFunc) {
    return InvalidArgument("lacks the attribute '", attr, "', a function");
  }
  return &found->second.func();
}

absl::Status CheckCount(const std::vector<std::string>& inputs, size_t expected) {
  if (inputs.size() == expected) return absl::OkStatus();
  return InvalidArgument("has ", inputs.size(), " inputs, expected ", expected);
}

void SetScalar(int32_t value, NodeDef* constant) {
  AttrValue& attr = (*constant->mutable_attr())["value"];
  attr.mutable_tensor()->set_dtype(DT_INT32);
  attr.mutable_tensor()->mutable_tensor_shape();
  attr.mutable_tensor()->add_int_val(value);
}

std::vector<std::string> With(std::vector<std::string> list, const std::vector<std::string>& more) {
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace

bool IsFunctionalOp(std::string_view op) {
  static constexpr std::array<std::string_view, 10> kOps = {
      "If",  "StatelessIf",   "While",           "StatelessWhile",          "Case",
      "For", "StatelessCase", "PartitionedCall", "StatefulPartitionedCall", "RemoteCall"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

absl::Status FunctionExpander::Lower(const NodeDef& node, Strings inputs, Strings controls) {
  const std::string& op = node.op();
  if (op == "If" || op == "StatelessIf") {
    return LowerIf(node, std::move(inputs), std::move(controls));
  }
  if (op == "Case" || op == "StatelessCase") {
    return LowerCase(node, std::move(inputs), std::move(controls));
  }
  if (op == "While" || op == "StatelessWhile") {
    return LowerWhile(node, std::move(inputs), std::move(controls));
  }
  if (op == "For") return LowerFor(node, std::move(inputs), std::move(controls));
  if (op == "RemoteCall" && !inputs.empty()) {
    // The device to call on: everything runs here.
    controls.push_back("^" + inputs.front().substr(0, inputs.front().rfind(':')));
    inputs.erase(inputs.begin());
  }
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* function, FunctionOf(node, "f"));
  TROUPE_ASSIGN_OR_RETURN(const Types results, TypesOf(node, "Tout"));
  return InlineCall(node, function->name(), function->attr(), std::move(inputs),
                    std::move(controls), &results);
}

// --- branches ----------------------------------------------------------------------------------

absl::StatusOr<FunctionExpander::Expanded> FunctionExpander::AddBranch(
    const NodeDef& node, const NameAttrList& function, const std::string& what,
    const Strings& switches, const std::string& pred_switch, int port, std::string* pivot) {
  const std::string prefix = StrCat(node.name(), "/", what);
  TROUPE_ASSIGN_OR_RETURN(*pivot, AddNode(prefix + "_pivot", "Identity", node.device(),
                                          {StrCat(pred_switch, ":", port)}, DT_BOOL));
  BindOptions options;
  for (const std::string& value : switches) {
    options.arguments.push_back({StrCat(value, ":", port), true});
  }
  options.controls = {"^" + *pivot};
  options.device = node.device();
  TROUPE_ASSIGN_OR_RETURN(const Types arg_types, TypesOf(node, "Tin"));
  TROUPE_ASSIGN_OR_RETURN(const Types result_types, TypesOf(node, "Tout"));
  return AddBody(function.name(), function.attr(), prefix, options, /*lowered=*/true, &arg_types,
                 &result_types);
}

absl::Status FunctionExpander::JoinBranches(const NodeDef& node,
                                            const std::vector<Expanded>& branches,
                                            const Strings& pivots) {
  TROUPE_ASSIGN_OR_RETURN(const Types types, TypesOf(node, "Tout"));
  const int64_t n = static_cast<int64_t>(branches.size());
  Strings results, controls;
  for (size_t i = 0; i < types.size(); ++i) {
    Strings inputs;
    for (const Expanded& branch : branches) inputs.push_back(branch.results[i]);
    TROUPE_ASSIGN_OR_RETURN(std::string merge, AddNode(StrCat(node.name(), "/merge_", i), "Merge",
                                                       node.device(), inputs, types[i]));
    (*Last()->mutable_attr())["N"].set_i(n);
    results.push_back(merge);
  }
  const bool effects = std::any_of(branches.begin(), branches.end(),
                                   [](const Expanded& branch) { return !branch.done.empty(); });
  if (effects || types.empty()) {
    // Which branch was taken, once its effects have happened.
    Strings taken;
    for (size_t k = 0; k < branches.size(); ++k) {
      TROUPE_ASSIGN_OR_RETURN(std::string done,
                              AddNode(StrCat(node.name(), "/done_", k), "Identity", node.device(),
                                      With({pivots[k]}, branches[k].done), DT_BOOL));
      taken.push_back(done);
    }
    TROUPE_ASSIGN_OR_RETURN(std::string merge, AddNode(StrCat(node.name(), "/done"), "Merge",
                                                       node.device(), taken, DT_BOOL));
    (*Last()->mutable_attr())["N"].set_i(n);
    controls.push_back("^" + merge);
  }
  return AddResult(node, results, types, controls);
}

absl::Status FunctionExpander::LowerIf(const NodeDef& node, Strings inputs, Strings controls) {
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* then_branch, FunctionOf(node, "then_branch"));
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* else_branch, FunctionOf(node, "else_branch"));
  TROUPE_ASSIGN_OR_RETURN(const Types types, TypesOf(node, "Tin"));
  TROUPE_RETURN_IF_ERROR(CheckCount(inputs, types.size() + 1));
  auto type = node.attr().find("Tcond");
  const bool is_bool = type != node.attr().end() && type->second.type() == DT_BOOL;
  std::string pred = inputs[0];
  if (!is_bool || !controls.empty()) {
    TROUPE_ASSIGN_OR_RETURN(
        pred, AddNode(node.name() + "/pred", is_bool ? "Identity" : "ToBool", node.device(),
                      With({pred}, controls),
                      type != node.attr().end() ? type->second.type() : DT_INVALID));
  }
  TROUPE_ASSIGN_OR_RETURN(std::string pred_switch, AddNode(node.name() + "/switch_pred", "Switch",
                                                           node.device(), {pred, pred}, DT_BOOL));
  Strings switches;
  for (size_t i = 0; i < types.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(std::string value,
                            AddNode(StrCat(node.name(), "/switch_", i), "Switch", node.device(),
                                    {inputs[i + 1], pred}, types[i]));
    switches.push_back(value);
  }
  Strings pivots(2);
  std::vector<Expanded> branches(2);
  TROUPE_ASSIGN_OR_RETURN(
      branches[0], AddBranch(node, *else_branch, "else", switches, pred_switch, 0, &pivots[0]));
  TROUPE_ASSIGN_OR_RETURN(
      branches[1], AddBranch(node, *then_branch, "then", switches, pred_switch, 1, &pivots[1]));
  return JoinBranches(node, branches, pivots);
}

absl::Status FunctionExpander::LowerCase(const NodeDef& node, Strings inputs, Strings controls) {
  auto found = node.attr().find("branches");
  if (found == node.attr().end() || found->second.list().func_size() == 0) {
    return InvalidArgument("lacks the attribute 'branches', a list of functions");
  }
  const auto& functions = found->second.list().func();
  TROUPE_ASSIGN_OR_RETURN(const Types types, TypesOf(node, "Tin"));
  TROUPE_RETURN_IF_ERROR(CheckCount(inputs, types.size() + 1));
  const std::string index = inputs[0];
  Strings values(inputs.begin() + 1, inputs.end());
  if (functions.size() == 1) {
    TROUPE_ASSIGN_OR_RETURN(const Types results, TypesOf(node, "Tout"));
    controls.push_back("^" + index.substr(0, index.rfind(':')));
    return InlineCall(node, functions[0].name(), functions[0].attr(), std::move(values),
                      std::move(controls), &results);
  }
  // One question after the other, so that any index outside the range comes to the last branch.
  TROUPE_ASSIGN_OR_RETURN(std::string rest,
                          AddNode(node.name() + "/index", "Identity", node.device(),
                                  With({index}, controls), DT_INT32));
  std::vector<Expanded> branches;
  Strings pivots;
  for (int k = 0; k + 1 < functions.size(); ++k) {
    TROUPE_ASSIGN_OR_RETURN(std::string number,
                            AddNode(StrCat(node.name(), "/number_", k), "Const", node.device(),
                                    {"^" + rest}, DT_INT32, "dtype"));
    SetScalar(k, Last());
    TROUPE_ASSIGN_OR_RETURN(std::string pred, AddNode(StrCat(node.name(), "/is_", k), "Equal",
                                                      node.device(), {rest, number}, DT_INT32));
    TROUPE_ASSIGN_OR_RETURN(std::string pred_switch,
                            AddNode(StrCat(node.name(), "/switch_pred_", k), "Switch",
                                    node.device(), {pred, pred}, DT_BOOL));
    Strings switches;
    for (size_t i = 0; i < values.size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(std::string value,
                              AddNode(StrCat(node.name(), "/switch_", k, "_", i), "Switch",
                                      node.device(), {values[i], pred}, types[i]));
      switches.push_back(value);
      values[i] = value + ":0";
    }
    pivots.emplace_back();
    TROUPE_ASSIGN_OR_RETURN(Expanded branch, AddBranch(node, functions[k], StrCat("branch_", k),
                                                       switches, pred_switch, 1, &pivots.back()));
    branches.push_back(std::move(branch));
    if (k + 2 == functions.size()) {
      pivots.emplace_back();
      TROUPE_ASSIGN_OR_RETURN(branch, AddBranch(node, functions[k + 1], StrCat("branch_", k + 1),
                                                switches, pred_switch, 0, &pivots.back()));
      branches.push_back(std::move(branch));
    } else {
      TROUPE_ASSIGN_OR_RETURN(std::string value,
                              AddNode(StrCat(node.name(), "/switch_index_", k), "Switch",
                                      node.device(), {rest, pred}, DT_INT32));
      TROUPE_ASSIGN_OR_RETURN(rest, AddNode(StrCat(node.name(), "/index_", k + 1), "Identity",
                                            node.device(), {value}, DT_INT32));
    }
  }
  return JoinBranches(node, branches, pivots);
}

// --- loops -------------------------------------------------------------------------------------

/// A loop under construction.
struct FunctionExpander::Loop {
  const NodeDef& node;
  Strings inputs, controls;
  Types types;
  std::vector<bool> invariant;
  // Per variable; of an invariant only the Enter.
  Strings enters, merges, switches, results;
  std::vector<int> merge_index = {};
  int pivot = -1;    ///< The first variable that is no invariant.
  std::string cond;  ///< The LoopCond.
  Strings body_done;
};

absl::Status FunctionExpander::EnterLoop(Loop* loop) {
  const NodeDef& node = loop->node;
  int64_t parallel = 10;
  if (auto found = node.attr().find("parallel_iterations"); found != node.attr().end()) {
    parallel = found->second.i();
  }
  loop->merge_index.resize(loop->types.size());
  for (size_t i = 0; i < loop->types.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(std::string enter,
                            AddNode(StrCat(node.name(), "/enter_", i), "Enter", node.device(),
                                    With({loop->inputs[i]}, loop->controls), loop->types[i]));
    AttrMap& attrs = *Last()->mutable_attr();
    attrs["frame_name"].set_s(node.name());
    attrs["is_constant"].set_b(loop->invariant[i]);
    attrs["parallel_iterations"].set_i(parallel);
    loop->enters.push_back(enter);
    loop->merges.push_back(enter);
    if (loop->invariant[i]) continue;
    if (loop->pivot < 0) loop->pivot = static_cast<int>(i);
    // The second input is the NextIteration, which comes last.
    TROUPE_ASSIGN_OR_RETURN(loop->merges[i], AddNode(StrCat(node.name(), "/merge_", i), "Merge",
                                                     node.device(), {enter}, loop->types[i]));
    (*Last()->mutable_attr())["N"].set_i(2);
    loop->merge_index[i] = out_.node_size() - 1;
  }
  return absl::OkStatus();
}

absl::Status FunctionExpander::LeaveLoop(Loop* loop) {
  const NodeDef& node = loop->node;
  Strings results;
  for (size_t i = 0; i < loop->types.size(); ++i) {
    if (loop->invariant[i]) {
      results.push_back(loop->inputs[i]);
      continue;
    }
    const DataType type = loop->types[i];
    TROUPE_ASSIGN_OR_RETURN(
        std::string next, AddNode(StrCat(node.name(), "/next_", i), "NextIteration", node.device(),
                                  With({loop->results[i]}, loop->body_done), type));
    out_.mutable_node(loop->merge_index[i])->add_input(next);
    TROUPE_ASSIGN_OR_RETURN(std::string exit,
                            AddNode(StrCat(node.name(), "/exit_", i), "Exit", node.device(),
                                    {loop->switches[i] + ":0"}, type));
    results.push_back(exit);
  }
  loop->results = std::move(results);
  return absl::OkStatus();
}

absl::Status FunctionExpander::LowerWhile(const NodeDef& node, Strings inputs, Strings controls) {
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* cond, FunctionOf(node, "cond"));
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* body, FunctionOf(node, "body"));
  TROUPE_ASSIGN_OR_RETURN(const Types types, TypesOf(node, "T"));
  TROUPE_RETURN_IF_ERROR(CheckCount(inputs, types.size()));
  Loop loop{.node = node,
            .inputs = std::move(inputs),
            .controls = std::move(controls),
            .types = types,
            .invariant = {},
            .enters = {},
            .merges = {},
            .switches = {},
            .results = {},
            .cond = {},
            .body_done = {}};
  TROUPE_ASSIGN_OR_RETURN(const FunctionDef* body_def, library_.Get(body->name()));
  // Which variables does the body only pass on?
  BindOptions trial;
  trial.rename = [](const std::string& name) { return name; };
  for (size_t i = 0; i < types.size(); ++i) trial.arguments.push_back({StrCat("^", i), true});
  absl::StatusOr<BoundFunction> bound = BindFunction(library_, *body_def, body->attr(), trial);
  if (!bound.ok()) {
    return absl::Status(
        bound.status().code(),
        StrCat("calls function '", body->name(), "': ", std::string(bound.status().message())));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    loop.invariant.push_back(i < bound->results.size() && bound->results[i] == StrCat("^", i));
  }
  const size_t n = types.size();
  if (std::find(loop.invariant.begin(), loop.invariant.end(), false) == loop.invariant.end()) {
    // Something must go round, so that it is known where the iterations begin.
    TROUPE_ASSIGN_OR_RETURN(
        std::string token,
        AddNode(
            node.name() + "/token", "Const", node.device(),
            n > 0 ? With(loop.controls, {"^" + loop.inputs[0].substr(0, loop.inputs[0].rfind(':'))})
                  : loop.controls,
            DT_INT32, "dtype"));
    SetScalar(0, Last());
    loop.inputs.push_back(token);
    loop.types.push_back(DT_INT32);
    loop.invariant.push_back(false);
  }
  TROUPE_RETURN_IF_ERROR(EnterLoop(&loop));

  BindOptions options;
  for (size_t i = 0; i < n; ++i) {
    options.arguments.push_back({loop.merges[i], !loop.invariant[i]});
  }
  options.controls = {"^" + loop.merges[loop.pivot]};
  options.device = node.device();
  TROUPE_ASSIGN_OR_RETURN(Expanded go_on, AddBody(cond->name(), cond->attr(), node.name() + "/cond",
                                                  options, /*lowered=*/true, &types, nullptr));
  if (go_on.results.size() != 1) {
    return InvalidArgument("calls function '", cond->name(), "': a condition has one result, not ",
                           go_on.results.size());
  }
  std::string pred = go_on.results[0];
  if (go_on.types[0] != DT_BOOL) {
    TROUPE_ASSIGN_OR_RETURN(
        pred, AddNode(node.name() + "/pred", "ToBool", node.device(), {pred}, go_on.types[0]));
  }
  TROUPE_ASSIGN_OR_RETURN(loop.cond, AddNode(node.name() + "/loop_cond", "LoopCond", node.device(),
                                             With({pred}, go_on.done)));
  for (size_t i = 0; i < loop.types.size(); ++i) {
    loop.switches.emplace_back();
    if (loop.invariant[i]) continue;
    TROUPE_ASSIGN_OR_RETURN(loop.switches[i],
                            AddNode(StrCat(node.name(), "/switch_", i), "Switch", node.device(),
                                    {loop.merges[i], loop.cond}, loop.types[i]));
  }
  TROUPE_ASSIGN_OR_RETURN(std::string pivot,
                          AddNode(node.name() + "/pivot", "Identity", node.device(),
                                  {loop.switches[loop.pivot] + ":1"}, loop.types[loop.pivot]));
  options.arguments.clear();
  for (size_t i = 0; i < n; ++i) {
    if (loop.invariant[i]) {
      options.arguments.push_back({loop.enters[i], false});
    } else {
      options.arguments.push_back({loop.switches[i] + ":1", true});
    }
  }
  options.controls = {"^" + pivot};
  TROUPE_ASSIGN_OR_RETURN(Expanded next, AddBody(body->name(), body->attr(), node.name() + "/body",
                                                 options, /*lowered=*/true, &types, &types));
  loop.results = std::move(next.results);
  for (size_t i = 0; i < n; ++i) {
    if (loop.invariant[i]) continue;
    // An invariant is there after the last iteration as well: only an iteration may pass it on.
    for (size_t j = 0; j < n; ++j) {
      if (!loop.invariant[j] || loop.results[i] != loop.enters[j]) continue;
      TROUPE_ASSIGN_OR_RETURN(loop.results[i],
                              AddNode(StrCat(node.name(), "/hold_", i), "Identity", node.device(),
                                      {loop.enters[j], "^" + pivot}, types[i]));
      break;
    }
  }
  if (loop.types.size() > n) loop.results.push_back(pivot);
  loop.body_done = std::move(next.done);
  TROUPE_RETURN_IF_ERROR(LeaveLoop(&loop));
  Strings done;
  if (loop.types.size() > n) {
    done.push_back("^" + loop.results.back());
    loop.results.pop_back();
  }
  return AddResult(node, loop.results, types, With(done, loop.controls));
}

absl::Status FunctionExpander::LowerFor(const NodeDef& node, Strings inputs, Strings controls) {
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* body, FunctionOf(node, "body"));
  TROUPE_ASSIGN_OR_RETURN(const Types types, TypesOf(node, "T"));
  TROUPE_RETURN_IF_ERROR(CheckCount(inputs, types.size() + 3));
  const std::string name = node.name();
  auto add = [&](const char* what, const char* op, const Strings& from, DataType type) {
    return AddNode(StrCat(name, "/", what), op, node.device(), from, type);
  };
  // Bounds that lead nowhere are refused: start <= limit for a positive step, >= for a negative
  // one.
  TROUPE_ASSIGN_OR_RETURN(std::string start,
                          add("start", "Identity", With({inputs[0]}, controls), DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string zero, AddNode(name + "/zero", "Const", node.device(),
                                                    {"^" + start}, DT_INT32, "dtype"));
  SetScalar(0, Last());
  const std::string &limit = inputs[1], &delta = inputs[2];
  TROUPE_ASSIGN_OR_RETURN(std::string up, add("up", "Greater", {delta, zero}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string down, add("down", "Less", {delta, zero}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string below, add("below", "LessEqual", {start, limit}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string above,
                          add("above", "GreaterEqual", {start, limit}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string empty, add("empty", "Equal", {start, limit}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string rises, add("rises", "LogicalAnd", {up, below}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(std::string falls, add("falls", "LogicalAnd", {down, above}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(std::string moves, add("moves", "LogicalOr", {rises, falls}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(std::string sound, add("sound", "LogicalOr", {moves, empty}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(std::string check,
                          add("check", "Assert", {sound, start, limit, delta}, DT_INVALID));
  for (int i = 0; i < 3; ++i) {
    (*Last()->mutable_attr())["T"].mutable_list()->add_type(DT_INT32);
  }
  // Variables: the index, limit, delta, up, down, and the node's own.
  Loop loop{.node = node,
            .inputs = {start, limit, delta, up, down},
            .controls = {"^" + check},
            .types = {DT_INT32, DT_INT32, DT_INT32, DT_BOOL, DT_BOOL},
            .invariant = {false, true, true, true, true},
            .enters = {},
            .merges = {},
            .switches = {},
            .results = {},
            .cond = {},
            .body_done = {}};
  for (size_t i = 0; i < types.size(); ++i) {
    loop.inputs.push_back(inputs[i + 3]);
    loop.types.push_back(types[i]);
    loop.invariant.push_back(false);
  }
  TROUPE_RETURN_IF_ERROR(EnterLoop(&loop));
  const std::string& index = loop.merges[0];
  TROUPE_ASSIGN_OR_RETURN(std::string less, add("less", "Less", {index, loop.enters[1]}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string more,
                          add("more", "Greater", {index, loop.enters[1]}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string go_up,
                          add("go_up", "LogicalAnd", {less, loop.enters[3]}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(std::string go_down,
                          add("go_down", "LogicalAnd", {more, loop.enters[4]}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(std::string go_on,
                          add("go_on", "LogicalOr", {go_up, go_down}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(loop.cond, add("loop_cond", "LoopCond", {go_on}, DT_INVALID));
  for (size_t i = 0; i < loop.types.size(); ++i) {
    loop.switches.emplace_back();
    if (loop.invariant[i]) continue;
    TROUPE_ASSIGN_OR_RETURN(loop.switches[i],
                            AddNode(StrCat(name, "/switch_", i), "Switch", node.device(),
                                    {loop.merges[i], loop.cond}, loop.types[i]));
  }
  TROUPE_ASSIGN_OR_RETURN(std::string pivot,
                          add("pivot", "Identity", {loop.switches[0] + ":1"}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(std::string next_index,
                          add("add", "AddV2", {pivot, loop.enters[2]}, DT_INT32));
  BindOptions options;
  options.arguments.push_back({pivot, true});
  for (size_t i = 5; i < loop.types.size(); ++i) {
    options.arguments.push_back({loop.switches[i] + ":1", true});
  }
  options.controls = {"^" + pivot};
  options.device = node.device();
  Types arg_types = types;
  arg_types.insert(arg_types.begin(), DT_INT32);
  TROUPE_ASSIGN_OR_RETURN(Expanded next, AddBody(body->name(), body->attr(), name + "/body",
                                                 options, /*lowered=*/true, &arg_types, &types));
  loop.results = {next_index, "", "", "", ""};
  loop.results.insert(loop.results.end(), next.results.begin(), next.results.end());
  loop.body_done = std::move(next.done);
  TROUPE_RETURN_IF_ERROR(LeaveLoop(&loop));
  Strings done = With(loop.controls, {"^" + loop.results[0]});
  loop.results.erase(loop.results.begin(), loop.results.begin() + 5);
  return AddResult(node, loop.results, types, done);
}

}  // namespace troupe
