#include "api/control_flow.h"

#include "api/internal/flow_context.h"
#include "api/ops.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using Kind = FlowContext::Kind;

/// InvalidArgument unless `tensor` can be a scalar bool.
absl::Status CheckPredicate(const std::string& what, const Output& tensor) {
  if (!tensor.valid()) return InvalidArgument(what, " is no tensor");
  const PartialShape& shape = tensor.shape();
  if (tensor.type() == ElementType::kBool && shape.IsCompatibleWith(PartialShape({}))) {
    return absl::OkStatus();
  }
  return InvalidArgument(what, " must be a scalar of type bool, but '", tensor.name(), "' is ",
                         ElementTypeName(tensor.type()), " of shape ", shape.ToString(),
                         ": compare, or reduce with All or Any");
}

// --- Cond ---

struct Branch {
  const char* name;
  std::vector<Output> results;
};

/// The results of a branch as tensors inside it. A node without outputs becomes a token.
bool TakeResults(const Scope& own, const Scope& inside, Node* pivot, Branch* branch) {
  for (size_t i = 0; i < branch->results.size() && own.ok(); ++i) {
    Output& result = branch->results[i];
    if (result.valid() && result.node->num_outputs() == 0) {
      result = ops::Identity(inside.WithControlDependencies({result}), Output(pivot));
    } else if (result.valid()) {
      result = inside.Bring(result);
    } else {
      own.UpdateStatus(InvalidArgument("Cond '", NameOf(own), "': result ", i, " of the ",
                                       branch->name, " branch is no tensor"));
    }
  }
  return own.ok();
}

absl::Status CheckBranches(const std::string& name, const Branch& a, const Branch& b) {
  if (a.results.size() != b.results.size()) {
    return InvalidArgument("Cond '", name, "': the true branch gives ", a.results.size(),
                           " results but the false branch ", b.results.size(),
                           "; both must give equally many");
  }
  for (size_t i = 0; i < a.results.size(); ++i) {
    if (a.results[i].type() == b.results[i].type()) continue;
    return InvalidArgument(
        "Cond '", name, "': result ", i, " is ", ElementTypeName(a.results[i].type()), " ('",
        a.results[i].name(), "') in the true branch but ", ElementTypeName(b.results[i].type()),
        " ('", b.results[i].name(), "') in the false branch; both must be of one type: use Cast");
  }
  return absl::OkStatus();
}

}  // namespace

OutputList Cond(const Scope& scope, const Input& predicate, const BranchFunction& if_true,
                const BranchFunction& if_false) {
  if (!scope.ok()) return {};
  const Scope own = OwnScope(scope, "cond");
  const Output given = own.Bring(predicate.ToOutput(own));
  if (own.ok())
    own.UpdateStatus(CheckPredicate(StrCat("predicate of Cond '", NameOf(own), "'"), given));
  if (own.ok() && (if_true == nullptr || if_false == nullptr)) {
    own.UpdateStatus(InvalidArgument("Cond '", NameOf(own), "' lacks a branch"));
  }
  if (!own.ok()) return {};
  // The scope's control inputs go to the predicate, which everything in the branches waits for.
  const Output pred = ops::Identity(own.WithOpName("pred_id"), given);
  const std::shared_ptr<FlowContext>& outer = scope.flow_context();
  const Scope bare = own.WithFlowContext(outer);
  const ops::SwitchOutputs choice = ops::Switch(bare, pred, pred);

  auto switches = std::make_shared<std::map<std::pair<Node*, int>, Node*>>();
  Branch branches[2] = {{"false", {}}, {"true", {}}};
  const auto failed = [&branches] { return std::vector<Output>(branches[1].results.size()); };
  for (const int taken : {1, 0}) {
    const Output side = taken != 0 ? choice.output_true : choice.output_false;
    const Output pivot = ops::Identity(bare.WithOpName(taken != 0 ? "switch_t" : "switch_f"), side);
    if (!own.ok()) return failed();
    auto context = std::make_shared<FlowContext>();
    context->kind = Kind::kBranch;
    context->parent = outer;
    context->prefix = own.prefix();
    context->pivot = pivot.node;
    context->predicate = pred;
    context->branch = taken;
    context->switches = switches;
    for (const Output& known : {given, pred, pivot}) {
      context->brought[{known.node, known.index}] = pivot;
    }
    own.SetFlowContextOf(pivot.node, context);
    const Scope inside = own.WithFlowContext(context);
    branches[taken].results = taken != 0 ? if_true(inside) : if_false(inside);
    if (!TakeResults(own, inside, pivot.node, &branches[taken])) return failed();
  }
  own.UpdateStatus(CheckBranches(NameOf(own), branches[1], branches[0]));
  std::vector<Output> results;
  for (size_t i = 0; i < branches[1].results.size() && own.ok(); ++i) {
    results.push_back(ops::Merge(bare, {branches[0].results[i], branches[1].results[i]}).output);
  }
  return own.ok() ? results : failed();
}

Output Cond(const Scope& scope, const Input& predicate, const SingleBranchFunction& if_true,
            const SingleBranchFunction& if_false) {
  auto list = [](const SingleBranchFunction& branch) -> BranchFunction {
    if (branch == nullptr) return nullptr;
    return [&branch](const Scope& s) { return std::vector<Output>{branch(s)}; };
  };
  const std::vector<Output> results = Cond(scope, predicate, list(if_true), list(if_false));
  return results.empty() ? Output() : results[0];
}

// --- Case ---

namespace {

std::vector<Output> CaseFrom(const Scope& scope, const std::vector<Output>& predicates,
                             const std::vector<std::pair<Input, BranchFunction>>& cases, size_t i,
                             const BranchFunction& otherwise) {
  if (i == cases.size()) return otherwise(scope);
  return Cond(scope, predicates[i], cases[i].second, BranchFunction([&](const Scope& rest) {
                return CaseFrom(rest, predicates, cases, i + 1, otherwise);
              }));
}

/// Branches [begin, end), of which `index` names one.
std::vector<Output> Halve(const Scope& scope, const Output& index,
                          const std::vector<BranchFunction>& branches, size_t begin, size_t end) {
  if (end - begin == 1) return branches[begin](scope);
  const size_t middle = begin + (end - begin) / 2;
  return Cond(
      scope, ops::Less(scope, index, static_cast<int32_t>(middle)),
      BranchFunction([&](const Scope& s) { return Halve(s, index, branches, begin, middle); }),
      BranchFunction([&](const Scope& s) { return Halve(s, index, branches, middle, end); }));
}

}  // namespace

OutputList Case(const Scope& scope, const std::vector<std::pair<Input, BranchFunction>>& cases,
                const BranchFunction& otherwise) {
  if (!scope.ok()) return {};
  const Scope own = OwnScope(scope, "case");
  std::vector<Output> predicates;
  for (const auto& [predicate, branch] : cases) predicates.push_back(predicate.ToOutput(own));
  return CaseFrom(own, predicates, cases, 0, otherwise);
}

OutputList SwitchCase(const Scope& scope, const Input& index,
                      const std::vector<BranchFunction>& branches) {
  if (!scope.ok()) return {};
  const Scope own = OwnScope(scope, "switch_case");
  if (branches.empty()) {
    own.UpdateStatus(InvalidArgument("SwitchCase '", NameOf(own), "' has no branches"));
    return {};
  }
  const Output given = index.ToOutput(own);
  // Indices that name no branch become that of the last one.
  const int32_t last = static_cast<int32_t>(branches.size()) - 1;
  const Output named =
      ops::LogicalAnd(own, ops::GreaterEqual(own, given, 0), ops::LessEqual(own, given, last));
  const Output clamped = ops::SelectV2(own, named, given, last);
  if (!own.ok()) return {};
  return Halve(own, clamped, branches, 0, branches.size());
}

// --- WhileLoop ---

namespace {

/// True if every full shape that fits `shape` fits `general`.
bool AsNarrow(const PartialShape& shape, const PartialShape& general) {
  if (general.unknown_rank()) return true;
  if (shape.unknown_rank() || shape.rank() != general.rank()) return false;
  for (int d = 0; d < shape.rank(); ++d) {
    if (general.dim(d) >= 0 && general.dim(d) != shape.dim(d)) return false;
  }
  return true;
}

/// Builds one loop.
class LoopBuilder {
 public:
  LoopBuilder(const Scope& scope, Scope own, const WhileOptions& options)
      : own_(std::move(own)),
        name_(NameOf(own_)),
        options_(options),
        outer_(scope.flow_context()),
        context_(std::make_shared<FlowContext>()),
        inside_(own_.WithFlowContext(context_)) {
    context_->kind = Kind::kLoop;
    context_->parent = outer_;
    context_->prefix = own_.prefix();
    context_->frame = StrCat(own_.prefix(), "while_context");
    context_->parallel_iterations = options.parallel_iterations;
  }

  std::vector<Output> Build(const InputList& variables, const LoopCondition& condition,
                            const LoopBody& body) {
    own_.UpdateStatus(Check(variables.size()));
    if (own_.ok()) AddMerges(variables.ToOutputs(own_));
    if (!own_.ok()) return {};

    const Output go_on = condition(inside_, merges_);
    if (own_.ok()) {
      own_.UpdateStatus(CheckPredicate(StrCat("condition of WhileLoop '", name_, "'"), go_on));
    }
    if (!own_.ok()) return {};
    AddSwitches(ops::LoopCond(inside_.WithOpName("LoopCond"), go_on));
    if (!own_.ok()) return {};

    std::vector<Output> results = body(inside_, body_variables_);
    if (own_.ok()) own_.UpdateStatus(CheckResults(results));
    if (own_.ok()) own_.UpdateStatus(Close(results));
    return own_.ok() ? exits_ : std::vector<Output>();
  }

 private:
  absl::Status Check(size_t num_variables) const {
    if (num_variables == 0) {
      return InvalidArgument("WhileLoop '", name_, "' has no variables; a loop needs at least one");
    }
    if (options_.parallel_iterations < 1) {
      return InvalidArgument("WhileLoop '", name_, "': parallel_iterations is ",
                             options_.parallel_iterations, ", but must be at least 1");
    }
    if (!options_.shape_invariants.empty() && options_.shape_invariants.size() != num_variables) {
      return InvalidArgument("WhileLoop '", name_, "' has ", num_variables, " variables but ",
                             options_.shape_invariants.size(), " shape invariants");
    }
    return absl::OkStatus();
  }

  /// "variable 1 ('x:0') of WhileLoop 'while'".
  std::string Variable(size_t i) const {
    return StrCat("variable ", i, " ('", initial_[i].name(), "') of WhileLoop '", name_, "'");
  }

  void AddMerges(std::vector<Output> initial) {
    initial_ = std::move(initial);
    std::vector<Output> enters;
    for (size_t i = 0; i < initial_.size(); ++i) {
      if (!initial_[i].valid()) {
        own_.UpdateStatus(
            InvalidArgument("variable ", i, " of WhileLoop '", name_, "' is no tensor"));
        return;
      }
      const ops::EnterAttrs attrs{.parallel_iterations = options_.parallel_iterations};
      const Output enter =
          ops::Enter(own_.WithOpName("Enter"), initial_[i], context_->frame, attrs);
      if (!enter.valid()) return;
      own_.SetFlowContextOf(enter.node, context_);
      enters.push_back(enter);
    }
    for (size_t i = 0; i < enters.size(); ++i) {
      PartialShape shape = enters[i].shape();
      if (!options_.shape_invariants.empty()) {
        const PartialShape& invariant = options_.shape_invariants[i];
        if (!AsNarrow(shape, invariant)) {
          own_.UpdateStatus(
              InvalidArgument("the shape invariant ", invariant.ToString(), " of ", Variable(i),
                              " does not fit its initial shape ", shape.ToString(),
                              ": an invariant must leave unknown what is unknown or changes"));
          return;
        }
        shape = invariant;
      }
      // The second input comes when the body is there.
      const Output inputs[] = {enters[i], Output()};
      Node* merge = inside_.AddNode(
          "Merge", [&](ScopedSpec& spec) { spec.Input(absl::MakeConstSpan(inputs)); });
      if (merge == nullptr) return;
      own_.UpdateStatus(own_.graph()->RefineShape(merge, shape));
      merges_.emplace_back(merge, 0);
    }
    context_->pivot = merges_[0].node;
  }

  void AddSwitches(const Output& go_on) {
    for (const Output& merge : merges_) {
      const ops::SwitchOutputs choice = ops::Switch(inside_, merge, go_on);
      const Output exit = ops::Exit(inside_, choice.output_false);
      const Output variable = ops::Identity(inside_, choice.output_true);
      if (!own_.ok()) return;
      exits_.push_back(exit);
      own_.SetFlowContextOf(exit.node, outer_);
      body_variables_.push_back(variable);
    }
    context_->pivot = body_variables_[0].node;
    context_->body_begin = body_variables_[0].node->id();
  }

  absl::Status CheckResults(const std::vector<Output>& results) const {
    if (results.size() != merges_.size()) {
      return InvalidArgument("the body of WhileLoop '", name_, "' gives ", results.size(),
                             " results for ", merges_.size(), " variables");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].valid() || results[i].node->num_outputs() == 0) {
        return InvalidArgument("the body's result for ", Variable(i), " is no tensor");
      }
      if (results[i].type() != merges_[i].type()) {
        return InvalidArgument(Variable(i), " is ", ElementTypeName(merges_[i].type()),
                               " but the body's result for it, '", results[i].name(), "', is ",
                               ElementTypeName(results[i].type()), "; a variable keeps its type");
      }
      if (!AsNarrow(results[i].shape(), merges_[i].shape())) {
        return InvalidArgument(
            Variable(i), " has the shape ", merges_[i].shape().ToString(),
            ", which is no invariant of the loop: after an iteration ('", results[i].name(),
            "') it is ", results[i].shape().ToString(),
            ". Give WhileOptions::shape_invariants with unknown sizes where it changes, or fix the "
            "result's shape (Graph::RefineShape, EnsureShape)");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Close(const std::vector<Output>& results) {
    for (size_t i = 0; i < results.size(); ++i) {
      const Output next = ops::NextIteration(inside_, results[i]);
      if (!own_.ok()) return own_.status();
      TROUPE_RETURN_IF_ERROR(own_.graph()->AddBackEdge(next, merges_[i].node, 1));
    }
    return absl::OkStatus();
  }

  const Scope own_;
  const std::string name_;
  const WhileOptions& options_;
  const std::shared_ptr<FlowContext> outer_, context_;
  const Scope inside_;
  std::vector<Output> initial_, merges_, body_variables_, exits_;
};

/// Counts the iterations in a variable of its own, the first one.
std::vector<Output> CountedLoop(const Scope& scope, const Scope& own, const InputList& variables,
                                const LoopCondition& condition, const LoopBody& body,
                                WhileOptions options) {
  const Output limit = options.maximum_iterations->ToOutput(own);
  options.maximum_iterations.reset();
  if (!own.ok()) return {};
  if (!limit.valid() || limit.type() != ElementType::kInt32) {
    own.UpdateStatus(InvalidArgument("maximum_iterations of WhileLoop '", NameOf(own),
                                     "' must be a scalar int32"));
    return {};
  }
  std::vector<Input> counted = {Input(0)};
  for (size_t i = 0; i < variables.size(); ++i) counted.push_back(variables[i]);
  if (!options.shape_invariants.empty()) {
    options.shape_invariants.insert(options.shape_invariants.begin(), PartialShape({}));
  }
  LoopBuilder builder(scope, own, options);
  std::vector<Output> results = builder.Build(
      counted,
      [&](const Scope& s, absl::Span<const Output> v) {
        return ops::LogicalAnd(s, ops::Less(s, v[0], limit), condition(s, v.subspan(1)));
      },
      [&](const Scope& s, absl::Span<const Output> v) {
        std::vector<Output> next = body(s, v.subspan(1));
        next.insert(next.begin(), ops::Add(s, v[0], 1));
        return next;
      });
  if (!results.empty()) results.erase(results.begin());
  return results;
}

}  // namespace

OutputList WhileLoop(const Scope& scope, const InputList& variables, const LoopCondition& condition,
                     const LoopBody& body, const WhileOptions& options) {
  OutputList results;
  if (scope.ok()) {
    const Scope own = OwnScope(scope, "while");
    const bool counted = options.maximum_iterations.has_value() && !variables.empty();
    if (condition == nullptr || body == nullptr) {
      own.UpdateStatus(
          InvalidArgument("WhileLoop '", NameOf(own), "' lacks its condition or its body"));
    } else {
      results = counted ? CountedLoop(scope, own, variables, condition, body, options)
                        : LoopBuilder(scope, own, options).Build(variables, condition, body);
    }
  }
  results.resize(variables.size());  // Invalid after an error.
  return results;
}

}  // namespace troupe
