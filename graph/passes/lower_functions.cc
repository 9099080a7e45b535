// The nodes of functional control flow as Switch, Merge, Enter, Exit, NextIteration.
#include "graph/passes/lower_functions.h"

#include <algorithm>
#include <array>

#include "devices/exceptions.h"
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
  std::string device = node.device();
  if (op == "RemoteCall") {
    device = DeviceWithin(node.device(), *Target(node));
    controls.push_back("^" + inputs.front().substr(0, inputs.front().rfind(':')));
    inputs.erase(inputs.begin());
  }
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* function, FunctionOf(node, "f"));
  TROUPE_ASSIGN_OR_RETURN(const Types results, TypesOf(node, "Tout"));
  return InlineCall(node, function->name(), function->attr(), device, std::move(inputs),
                    std::move(controls), &results);
}

absl::StatusOr<FunctionExpander::Expanded> FunctionExpander::AddGated(
    const NodeDef& node, const NameAttrList& function, const std::string& what,
    std::vector<BoundArgument> arguments, const std::string& gate, const Types& arg_types,
    const Types* result_types) {
  BindOptions options;
  options.arguments = std::move(arguments);
  options.controls = {"^" + gate};
  options.device = node.device();
  return AddBody(function.name(), function.attr(), StrCat(node.name(), "/", what), options,
                 /*lowered=*/true, &arg_types, result_types);
}

absl::StatusOr<std::string> FunctionExpander::AddConstant(const NodeDef& node,
                                                          const std::string& what,
                                                          const Strings& controls, int32_t value) {
  TROUPE_ASSIGN_OR_RETURN(std::string name,
                          AddPart(node, what, "Const", controls, DT_INT32, "dtype"));
  AttrValue& attr = (*Last()->mutable_attr())["value"];
  attr.mutable_tensor()->set_dtype(DT_INT32);
  attr.mutable_tensor()->mutable_tensor_shape();
  attr.mutable_tensor()->add_int_val(value);
  return name;
}

// --- branches ----------------------------------------------------------------------------------

absl::StatusOr<FunctionExpander::Expanded> FunctionExpander::AddBranch(
    const NodeDef& node, const NameAttrList& function, const std::string& what,
    const Strings& switches, const std::string& pred_switch, int port, std::string* pivot) {
  TROUPE_ASSIGN_OR_RETURN(*pivot, AddPart(node, what + "_pivot", "Identity",
                                          {StrCat(pred_switch, ":", port)}, DT_BOOL));
  std::vector<BoundArgument> arguments;
  for (const std::string& value : switches) arguments.push_back({StrCat(value, ":", port), true});
  TROUPE_ASSIGN_OR_RETURN(const Types arg_types, TypesOf(node, "Tin"));
  TROUPE_ASSIGN_OR_RETURN(const Types result_types, TypesOf(node, "Tout"));
  return AddGated(node, function, what, std::move(arguments), *pivot, arg_types, &result_types);
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
    TROUPE_ASSIGN_OR_RETURN(std::string merge,
                            AddPart(node, StrCat("merge_", i), "Merge", inputs, types[i]));
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
                              AddPart(node, StrCat("done_", k), "Identity",
                                      With({pivots[k]}, branches[k].done), DT_BOOL));
      taken.push_back(done);
    }
    TROUPE_ASSIGN_OR_RETURN(std::string merge, AddPart(node, "done", "Merge", taken, DT_BOOL));
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
        pred, AddPart(node, "pred", is_bool ? "Identity" : "ToBool", With({pred}, controls),
                      type != node.attr().end() ? type->second.type() : DT_INVALID));
  }
  TROUPE_ASSIGN_OR_RETURN(std::string pred_switch,
                          AddPart(node, "switch_pred", "Switch", {pred, pred}, DT_BOOL));
  Strings switches;
  for (size_t i = 0; i < types.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(std::string value, AddPart(node, StrCat("switch_", i), "Switch",
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
    return InlineCall(node, functions[0].name(), functions[0].attr(), node.device(),
                      std::move(values), std::move(controls), &results);
  }
  // One question after the other, so that any index outside the range comes to the last branch.
  TROUPE_ASSIGN_OR_RETURN(std::string rest,
                          AddPart(node, "index", "Identity", With({index}, controls), DT_INT32));
  std::vector<Expanded> branches;
  Strings pivots;
  for (int k = 0; k + 1 < functions.size(); ++k) {
    TROUPE_ASSIGN_OR_RETURN(std::string number,
                            AddConstant(node, StrCat("number_", k), {"^" + rest}, k));
    TROUPE_ASSIGN_OR_RETURN(std::string pred,
                            AddPart(node, StrCat("is_", k), "Equal", {rest, number}, DT_INT32));
    TROUPE_ASSIGN_OR_RETURN(std::string pred_switch, AddPart(node, StrCat("switch_pred_", k),
                                                             "Switch", {pred, pred}, DT_BOOL));
    Strings switches;
    for (size_t i = 0; i < values.size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(std::string value, AddPart(node, StrCat("switch_", k, "_", i),
                                                         "Switch", {values[i], pred}, types[i]));
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
      TROUPE_ASSIGN_OR_RETURN(std::string value, AddPart(node, StrCat("switch_index_", k), "Switch",
                                                         {rest, pred}, DT_INT32));
      TROUPE_ASSIGN_OR_RETURN(
          rest, AddPart(node, StrCat("index_", k + 1), "Identity", {value}, DT_INT32));
    }
  }
  return JoinBranches(node, branches, pivots);
}

// --- loops -------------------------------------------------------------------------------------

/// A variable of a loop: what stands for it at each place.
struct FunctionExpander::LoopVariable {
  std::string input;
  DataType type;
  bool invariant = false;  ///< It has an Enter only.
  std::string enter = {};
  std::string merge = {};   ///< Its value in an iteration; of an invariant the Enter.
  std::string choice = {};  ///< The Switch: output 1 goes into the body.
  std::string next = {};    ///< What the body gives.
  std::string result = {};  ///< Outside, after the loop.
  int merge_index = -1;     ///< The Merge in `out_`.
};

/// A loop under construction.
struct FunctionExpander::Loop {
  const NodeDef& node;
  Strings controls;
  std::vector<LoopVariable> variables;
  const LoopVariable* leader = nullptr;  ///< The first variable that is no invariant.
  std::string cond = {};                 ///< The LoopCond.
  std::string pivot = {};                ///< Runs exactly when an iteration does.
  Strings body_done = {};
};

absl::Status FunctionExpander::EnterLoop(Loop* loop) {
  const NodeDef& node = loop->node;
  int64_t parallel = 10;
  if (auto found = node.attr().find("parallel_iterations"); found != node.attr().end()) {
    parallel = found->second.i();
  }
  for (size_t i = 0; i < loop->variables.size(); ++i) {
    LoopVariable& variable = loop->variables[i];
    TROUPE_ASSIGN_OR_RETURN(variable.enter,
                            AddPart(node, StrCat("enter_", i), "Enter",
                                    With({variable.input}, loop->controls), variable.type));
    AttrMap& attrs = *Last()->mutable_attr();
    attrs["frame_name"].set_s(node.name());
    attrs["is_constant"].set_b(variable.invariant);
    attrs["parallel_iterations"].set_i(parallel);
    variable.merge = variable.enter;
    if (variable.invariant) continue;
    if (loop->leader == nullptr) loop->leader = &variable;
    // The second input is the NextIteration, which comes last.
    TROUPE_ASSIGN_OR_RETURN(variable.merge, AddPart(node, StrCat("merge_", i), "Merge",
                                                    {variable.enter}, variable.type));
    (*Last()->mutable_attr())["N"].set_i(2);
    variable.merge_index = out_.node_size() - 1;
  }
  return absl::OkStatus();
}

absl::Status FunctionExpander::BeginBody(const Strings& condition, Loop* loop) {
  const NodeDef& node = loop->node;
  TROUPE_ASSIGN_OR_RETURN(loop->cond, AddPart(node, "loop_cond", "LoopCond", condition));
  for (size_t i = 0; i < loop->variables.size(); ++i) {
    LoopVariable& variable = loop->variables[i];
    if (variable.invariant) continue;
    TROUPE_ASSIGN_OR_RETURN(variable.choice, AddPart(node, StrCat("switch_", i), "Switch",
                                                     {variable.merge, loop->cond}, variable.type));
  }
  TROUPE_ASSIGN_OR_RETURN(loop->pivot, AddPart(node, "pivot", "Identity",
                                               {loop->leader->choice + ":1"}, loop->leader->type));
  return absl::OkStatus();
}

absl::Status FunctionExpander::LeaveLoop(Loop* loop) {
  const NodeDef& node = loop->node;
  for (size_t i = 0; i < loop->variables.size(); ++i) {
    LoopVariable& variable = loop->variables[i];
    variable.result = variable.input;
    if (variable.invariant) continue;
    TROUPE_ASSIGN_OR_RETURN(std::string next,
                            AddPart(node, StrCat("next_", i), "NextIteration",
                                    With({variable.next}, loop->body_done), variable.type));
    out_.mutable_node(variable.merge_index)->add_input(next);
    TROUPE_ASSIGN_OR_RETURN(variable.result, AddPart(node, StrCat("exit_", i), "Exit",
                                                     {variable.choice + ":0"}, variable.type));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<bool>> FunctionExpander::PassedOn(const NameAttrList& body, size_t n) {
  TROUPE_ASSIGN_OR_RETURN(const FunctionDef* function, library_.Get(body.name()));
  BindOptions trial;
  trial.rename = [](const std::string& name) { return name; };
  for (size_t i = 0; i < n; ++i) trial.arguments.push_back({StrCat("^", i), true});
  absl::StatusOr<BoundFunction> bound = BindFunction(library_, *function, body.attr(), trial);
  if (!bound.ok()) {
    return WithContext(StrCat("calls function '", body.name(), "': "), bound.status());
  }
  std::vector<bool> passed_on(n);
  for (size_t i = 0; i < n && i < bound->results.size(); ++i) {
    passed_on[i] = bound->results[i] == StrCat("^", i);
  }
  return passed_on;
}

absl::StatusOr<FunctionExpander::Strings> FunctionExpander::AddCondition(const NameAttrList& cond,
                                                                         const Types& types,
                                                                         const Loop& loop) {
  const NodeDef& node = loop.node;
  std::vector<BoundArgument> arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    arguments.push_back({loop.variables[i].merge, !loop.variables[i].invariant});
  }
  TROUPE_ASSIGN_OR_RETURN(Expanded go_on, AddGated(node, cond, "cond", std::move(arguments),
                                                   loop.leader->merge, types, nullptr));
  if (go_on.results.size() != 1) {
    return InvalidArgument("calls function '", cond.name(), "': a condition has one result, not ",
                           go_on.results.size());
  }
  std::string pred = go_on.results[0];
  if (go_on.types[0] != DT_BOOL) {
    TROUPE_ASSIGN_OR_RETURN(pred, AddPart(node, "pred", "ToBool", {pred}, go_on.types[0]));
  }
  return With({pred}, go_on.done);
}

absl::Status FunctionExpander::HoldInvariants(Loop* loop) {
  const NodeDef& node = loop->node;
  for (size_t i = 0; i < loop->variables.size(); ++i) {
    LoopVariable& variable = loop->variables[i];
    if (variable.invariant) continue;
    for (const LoopVariable& other : loop->variables) {
      if (!other.invariant || variable.next != other.enter) continue;
      TROUPE_ASSIGN_OR_RETURN(variable.next,
                              AddPart(node, StrCat("hold_", i), "Identity",
                                      {other.enter, "^" + loop->pivot}, variable.type));
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionExpander::LowerWhile(const NodeDef& node, Strings inputs, Strings controls) {
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* cond, FunctionOf(node, "cond"));
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* body, FunctionOf(node, "body"));
  TROUPE_ASSIGN_OR_RETURN(const Types types, TypesOf(node, "T"));
  TROUPE_RETURN_IF_ERROR(CheckCount(inputs, types.size()));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<bool> passed_on, PassedOn(*body, types.size()));
  Loop loop{.node = node, .controls = std::move(controls), .variables = {}};
  for (size_t i = 0; i < types.size(); ++i) {
    loop.variables.push_back({.input = inputs[i], .type = types[i], .invariant = passed_on[i]});
  }
  const bool needs_token = std::find(passed_on.begin(), passed_on.end(), false) == passed_on.end();
  if (needs_token) {
    // Something must go round, so that it is known where the iterations begin.
    Strings after = loop.controls;
    if (!inputs.empty()) after.push_back("^" + inputs[0].substr(0, inputs[0].rfind(':')));
    TROUPE_ASSIGN_OR_RETURN(const std::string token, AddConstant(node, "token", after, 0));
    loop.variables.push_back({.input = token, .type = DT_INT32});
  }
  TROUPE_RETURN_IF_ERROR(EnterLoop(&loop));
  TROUPE_ASSIGN_OR_RETURN(const Strings condition, AddCondition(*cond, types, loop));
  TROUPE_RETURN_IF_ERROR(BeginBody(condition, &loop));

  std::vector<BoundArgument> arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    const LoopVariable& variable = loop.variables[i];
    arguments.push_back(
        {variable.invariant ? variable.enter : variable.choice + ":1", !variable.invariant});
  }
  TROUPE_ASSIGN_OR_RETURN(Expanded given, AddGated(node, *body, "body", std::move(arguments),
                                                   loop.pivot, types, &types));
  for (size_t i = 0; i < types.size(); ++i) loop.variables[i].next = given.results[i];
  if (needs_token) loop.variables.back().next = loop.pivot;
  loop.body_done = std::move(given.done);
  // An invariant is there after the last iteration as well: only an iteration may pass it on.
  TROUPE_RETURN_IF_ERROR(HoldInvariants(&loop));
  TROUPE_RETURN_IF_ERROR(LeaveLoop(&loop));
  Strings results, done = loop.controls;
  for (size_t i = 0; i < types.size(); ++i) results.push_back(loop.variables[i].result);
  if (needs_token) done.insert(done.begin(), "^" + loop.variables.back().result);
  return AddResult(node, results, types, done);
}

absl::StatusOr<FunctionExpander::Bounds> FunctionExpander::AddBounds(const NodeDef& node,
                                                                     const Strings& inputs,
                                                                     const Strings& controls) {
  auto add = [&](const char* what, const char* op, const Strings& from, DataType type) {
    return AddPart(node, what, op, from, type);
  };
  Bounds bounds{.limit = inputs[1], .delta = inputs[2]};
  TROUPE_ASSIGN_OR_RETURN(bounds.start,
                          add("start", "Identity", With({inputs[0]}, controls), DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(const std::string zero,
                          AddConstant(node, "zero", {"^" + bounds.start}, 0));
  const Strings ends = {bounds.start, bounds.limit};
  TROUPE_ASSIGN_OR_RETURN(bounds.up, add("up", "Greater", {bounds.delta, zero}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(bounds.down, add("down", "Less", {bounds.delta, zero}, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(const std::string below, add("below", "LessEqual", ends, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(const std::string above, add("above", "GreaterEqual", ends, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(const std::string empty, add("empty", "Equal", ends, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(const std::string rises,
                          add("rises", "LogicalAnd", {bounds.up, below}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(const std::string falls,
                          add("falls", "LogicalAnd", {bounds.down, above}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(const std::string moves,
                          add("moves", "LogicalOr", {rises, falls}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(const std::string sound,
                          add("sound", "LogicalOr", {moves, empty}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(
      bounds.check,
      add("check", "Assert", {sound, bounds.start, bounds.limit, bounds.delta}, DT_INVALID));
  for (int i = 0; i < 3; ++i) {
    (*Last()->mutable_attr())["T"].mutable_list()->add_type(DT_INT32);
  }
  return bounds;
}

absl::Status FunctionExpander::LowerFor(const NodeDef& node, Strings inputs, Strings controls) {
  TROUPE_ASSIGN_OR_RETURN(const NameAttrList* body, FunctionOf(node, "body"));
  TROUPE_ASSIGN_OR_RETURN(const Types types, TypesOf(node, "T"));
  TROUPE_RETURN_IF_ERROR(CheckCount(inputs, types.size() + 3));
  auto add = [&](const char* what, const char* op, const Strings& from, DataType type) {
    return AddPart(node, what, op, from, type);
  };
  TROUPE_ASSIGN_OR_RETURN(const Bounds bounds, AddBounds(node, inputs, controls));
  Loop loop{.node = node, .controls = {"^" + bounds.check}, .variables = {}};
  enum : size_t { kIndex, kLimit, kDelta, kUp, kDown, kOwn };  // The node's own come last.
  std::vector<LoopVariable>& variables = loop.variables;
  variables = {{.input = bounds.start, .type = DT_INT32},
               {.input = bounds.limit, .type = DT_INT32, .invariant = true},
               {.input = bounds.delta, .type = DT_INT32, .invariant = true},
               {.input = bounds.up, .type = DT_BOOL, .invariant = true},
               {.input = bounds.down, .type = DT_BOOL, .invariant = true}};
  for (size_t i = 0; i < types.size(); ++i) {
    variables.push_back({.input = inputs[i + 3], .type = types[i]});
  }
  TROUPE_RETURN_IF_ERROR(EnterLoop(&loop));
  const Strings sides = {variables[kIndex].merge, variables[kLimit].enter};
  TROUPE_ASSIGN_OR_RETURN(const std::string less, add("less", "Less", sides, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(const std::string more, add("more", "Greater", sides, DT_INT32));
  TROUPE_ASSIGN_OR_RETURN(const std::string go_up,
                          add("go_up", "LogicalAnd", {less, variables[kUp].enter}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(const std::string go_down,
                          add("go_down", "LogicalAnd", {more, variables[kDown].enter}, DT_INVALID));
  TROUPE_ASSIGN_OR_RETURN(const std::string go_on,
                          add("go_on", "LogicalOr", {go_up, go_down}, DT_INVALID));
  TROUPE_RETURN_IF_ERROR(BeginBody({go_on}, &loop));
  TROUPE_ASSIGN_OR_RETURN(variables[kIndex].next,
                          add("add", "AddV2", {loop.pivot, variables[kDelta].enter}, DT_INT32));
  std::vector<BoundArgument> arguments = {{loop.pivot, true}};
  for (size_t i = kOwn; i < variables.size(); ++i) {
    arguments.push_back({variables[i].choice + ":1", true});
  }
  Types arg_types = types;
  arg_types.insert(arg_types.begin(), DT_INT32);
  TROUPE_ASSIGN_OR_RETURN(Expanded given, AddGated(node, *body, "body", std::move(arguments),
                                                   loop.pivot, arg_types, &types));
  for (size_t i = 0; i < types.size(); ++i) variables[kOwn + i].next = given.results[i];
  loop.body_done = std::move(given.done);
  TROUPE_RETURN_IF_ERROR(LeaveLoop(&loop));
  Strings results;
  for (size_t i = kOwn; i < variables.size(); ++i) results.push_back(variables[i].result);
  return AddResult(node, results, types, With(loop.controls, {"^" + variables[kIndex].result}));
}

}  // namespace troupe
