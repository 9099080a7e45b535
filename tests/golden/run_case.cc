#include "tests/golden/run_case.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "api/session.h"
#include "devices/cpu/instruction_set.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/gradients/add_gradients.h"
#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/stats.pb.h"
#include "graph/protos/tensor.pb.h"
#include "kernels/argument_spaces.h"
#include "kernels/kernel_registry.h"
#include "tests/golden/compare.h"
#include "tests/golden/spread.h"
#include "tests/golden/tensorflow_ops.h"

namespace troupe::golden {
namespace {

/// TensorFlow's ops and their stages.
const std::map<std::string_view, int>& TensorFlowOps() {
  static const std::map<std::string_view, int>* const ops = [] {
    auto* stages = new std::map<std::string_view, int>;
    std::string_view rest = kTensorFlowOps;  // lines "name stage"
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      const size_t space = line.find(' ');
      if (space + 1 < line.size()) (*stages)[line.substr(0, space)] = line[space + 1] - '0';
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    return stages;
  }();
  return *ops;
}

/// The ops of a case's graph and functions.
std::vector<std::string> Ops(const Case& test) {
  std::vector<std::string> ops;
  GraphDef def;
  if (!def.ParseFromString(test.graph())) return ops;
  for (const NodeDef& node : def.node()) ops.push_back(node.op());
  for (const FunctionDef& function : def.library().function()) {
    for (const NodeDef& node : function.node_def()) ops.push_back(node.op());
  }
  return ops;
}

absl::StatusOr<Tensor> ParseTensor(const std::string& bytes) {
  TensorProto proto;
  if (!proto.ParseFromString(bytes)) return InvalidArgument("the case holds a broken TensorProto");
  return TensorFromProto(proto);
}

absl::Status ParseFeeds(const google::protobuf::RepeatedPtrField<NamedTensor>& feeds,
                        NamedTensors* tensors) {
  for (const NamedTensor& feed : feeds) {
    absl::StatusOr<Tensor> tensor = ParseTensor(feed.tensor());
    if (!tensor.ok()) return tensor.status();
    tensors->emplace_back(feed.name(), *std::move(tensor));
  }
  return absl::OkStatus();
}

std::string FullName(const std::string& tensor) {
  return tensor.find(':') == std::string::npos ? tensor + ":0" : tensor;
}

/// The recorded case's tolerance. Without fused multiply-adds (x86-64-v2) the sum of a product
/// rounds differently from the recorded one. A card's functions (exp, tanh, ...) differ in their
/// last bits, which count in cases about single ops only where these have one right result.
Tolerance ToleranceOf(const Case& test) {
  double least = ActiveInstructionSet() == InstructionSet::kV2 ? 3e-7 : 0;
  if (CurrentSpread().device_type == "GPU" && test.op().empty()) least = 1e-6;
  return {std::max<double>(test.rtol(), least), test.atol(), test.any_order()};
}

/// One case under way.
class CaseRunner {
 public:
  explicit CaseRunner(const Case& test) : test_(test), tolerance_(ToleranceOf(test)) {
    // Some loops take 10,000 turns; a machine may be busy with other tests.
    run_options_.timeout = absl::Seconds(100);
    run_options_.trace = CurrentSpread().device_type != "CPU";
  }

  PlacedOps ops() const { return ops_; }

  /// What was wrong.
  std::vector<std::string> Run() {
    absl::Status built = Build();
    if (!test_.build_error().empty()) {
      // What importing does not refuse, running must.
      const bool imported = built.ok();
      if (imported) built = RunEverything();
      if (!CodeMatches(built.code(), test_.build_error())) {
        Fail(StrCat(imported ? "run" : "import", ": got ", StatusLine(built), ", want ",
                    test_.build_error()));
      }
      return std::move(failures_);
    }
    if (!built.ok()) {
      Fail(StrCat("import: got ", StatusLine(built), ", want OK"));
      return std::move(failures_);
    }
    for (const ShapeCheck& check : test_.shape()) CheckShape(check);
    const bool several = !CurrentSpread().devices.empty() || CurrentSpread().device_type != "CPU";
    // Later steps work on the state that earlier ones leave: after a failure they would only echo
    // it.
    for (int i = 0; i < test_.step_size() && CheckStep(i); ++i) {
      // Nor is it settled, over several devices, what a step that fails has updated by then.
      if (!test_.step(i).error().empty() && several) break;
    }
    for (int i = 0; i < test_.gradient_size(); ++i) CheckGradient(i);
    return std::move(failures_);
  }

 private:
  void Fail(std::string what) { failures_.push_back(std::move(what)); }

  absl::Status Build() {
    GraphDef def;
    TROUPE_RETURN_IF_ERROR(ParseGraphDef(test_.graph(), &def));
    SpreadGraph(test_.name(), ExpectsError(), &def);
    graph_ = std::make_shared<Graph>();
    TROUPE_RETURN_IF_ERROR(ImportGraphDef(def, ImportOptions(), graph_.get()));
    SessionOptions options;
    options.target = CurrentSpread().target;
    options.optimize = CurrentSpread().optimize;
    // Which updates a step that fails has made by then is settled on one thread only.
    if (ExpectsError()) options.threads = 1;
    const Spread& spread = CurrentSpread();
    const int devices = std::max(1, static_cast<int>(spread.devices.size()));
    if (spread.target.empty()) options.devices[spread.device_type].count = devices;
    // Not every node has a kernel there.
    if (spread.device_type != "CPU") options.allow_soft_placement = true;
    TROUPE_ASSIGN_OR_RETURN(session_, Session::Create(graph_, options));
    // What an earlier case has left in worker processes; local sessions have containers of their
    // own.
    return options.target.empty() ? absl::OkStatus() : session_->Reset(ContainersOf(def));
  }

  /// The containers that nodes name, the default one included.
  static std::vector<std::string> ContainersOf(const GraphDef& def) {
    std::set<std::string> names = {""};
    for (const NodeDef& node : def.node()) {
      const auto container = node.attr().find("container");
      if (container != node.attr().end()) names.insert(container->second.s());
    }
    return {names.begin(), names.end()};
  }

  bool ExpectsError() const {
    if (!test_.build_error().empty()) return true;
    for (const Step& step : test_.step()) {
      if (!step.error().empty()) return true;
    }
    return false;
  }

  /// Fetches every output that no node consumes, and runs the nodes that have none.
  absl::Status RunEverything() {
    std::vector<std::string> fetches, targets;
    for (const Node* node : graph_->nodes()) {
      if (node->IsSource() || node->IsSink()) continue;
      std::vector<bool> consumed(static_cast<size_t>(node->num_outputs()));
      for (const Edge* edge : node->out_edges()) {
        if (!edge->control()) consumed[static_cast<size_t>(edge->src_output)] = true;
      }
      for (size_t i = 0; i < consumed.size(); ++i) {
        if (!consumed[i]) fetches.push_back(StrCat(node->name(), ":", i));
      }
      if (consumed.empty()) targets.push_back(node->name());
    }
    std::vector<Tensor> values;
    return session_->Run(run_options_, {}, fetches, targets, &values);
  }

  void CheckShape(const ShapeCheck& check) {
    TensorShapeProto proto;
    absl::StatusOr<PartialShape> want = absl::DataLossError("the case holds a broken shape");
    if (proto.ParseFromString(check.shape())) want = PartialShape::FromProto(proto);
    const absl::StatusOr<Output> output = graph_->FindOutput(check.tensor());
    if (!want.ok() || !output.ok()) {
      return Fail(StrCat("shape ", check.tensor(), ": got ",
                         StatusLine(want.ok() ? output.status() : want.status()), ", want OK"));
    }
    if (output->shape() != *want) {
      Fail(StrCat("shape ", check.tensor(), ": got ", output->shape().ToString(), ", want ",
                  want->ToString()));
    }
  }

  /// Runs a step as TensorFlow's Python client does, by which the cases were recorded: a fetch that
  /// is fed is the value fed, and is not asked of the session, which refuses it.
  absl::Status RunStep(const Step& step, std::vector<Tensor>* values) {
    NamedTensors feeds;
    TROUPE_RETURN_IF_ERROR(ParseFeeds(step.feed(), &feeds));
    std::vector<std::string> fetches;
    std::vector<size_t> positions;
    values->assign(static_cast<size_t>(step.fetch_size()), Tensor());
    for (int i = 0; i < step.fetch_size(); ++i) {
      const auto fed = std::find_if(feeds.begin(), feeds.end(), [&](const auto& feed) {
        return FullName(feed.first) == FullName(step.fetch(i));
      });
      if (fed != feeds.end()) {
        (*values)[static_cast<size_t>(i)] = fed->second;
      } else {
        fetches.push_back(step.fetch(i));
        positions.push_back(static_cast<size_t>(i));
      }
    }
    const std::vector<std::string> targets(step.target().begin(), step.target().end());
    if (fetches.empty() && targets.empty() && step.fetch_size() > 0) return absl::OkStatus();
    std::vector<Tensor> fetched;
    RunMetadata metadata;
    TROUPE_RETURN_IF_ERROR(
        session_->Run(run_options_, feeds, fetches, targets, &fetched, &metadata));
    Count(metadata);
    if (fetched.size() != fetches.size()) {
      return absl::InternalError(
          StrCat("the session gave ", fetched.size(), " values for ", fetches.size(), " fetches"));
    }
    for (size_t i = 0; i < fetched.size(); ++i) (*values)[positions[i]] = std::move(fetched[i]);
    return absl::OkStatus();
  }

  /// Whether devices of the spread's type have a kernel for the op, if this process knows them.
  static bool HasKernel(const std::string& op) {
    const auto kernels = KernelRegistry::Global()->ForOp(op);
    return std::any_of(kernels.begin(), kernels.end(), [](const KernelRegistration* kernel) {
      const std::string& type = kernel->spec.device_type;
      return type == CurrentSpread().device_type || type == kAnyDeviceType;
    });
  }

  /// Which nodes ran where, but for those that only bring values to and fro.
  void Count(const RunMetadata& metadata) {
    for (const DeviceStepStats& device : metadata.step_stats().dev_stats()) {
      if (device.device().ends_with("/stream:all")) continue;  // What the others have enqueued.
      const bool there = device.device().find(StrCat("/device:", CurrentSpread().device_type,
                                                     ":")) != std::string::npos;
      for (const NodeExecStats& node : device.node_stats()) {
        const std::string& label = node.timeline_label();  // "name = Op"
        const std::string op = label.substr(label.rfind(' ') + 1);
        if (op.starts_with("_")) continue;
        const auto [placed, first] = ops_.try_emplace(op);
        if (first) placed->second.has_kernel = HasKernel(op);
        ++(there ? placed->second.there : placed->second.elsewhere);
      }
    }
  }

  /// False if something was wrong.
  bool CheckStep(int index) {
    const Step& step = test_.step(index);
    const std::string where = StrCat("step ", index);
    const size_t failures = failures_.size();
    std::vector<Tensor> values;
    const absl::Status status = RunStep(step, &values);
    if (!step.error().empty()) {
      if (!CodeMatches(status.code(), step.error())) {
        Fail(StrCat(where, ": got ", StatusLine(status), ", want ", step.error()));
      }
    } else if (!status.ok()) {
      Fail(StrCat(where, ": got ", StatusLine(status), ", want OK"));
    } else if (step.expected_size() != step.fetch_size()) {
      Fail(StrCat(where, ": got ", step.fetch_size(), " values, want ", step.expected_size()));
    } else {
      for (int i = 0; i < step.fetch_size(); ++i) {
        CheckValue(StrCat(where, " ", step.fetch(i)), values[static_cast<size_t>(i)],
                   step.expected(i));
      }
    }
    return failures_.size() == failures;
  }

  void CheckValue(const std::string& where, const Tensor& got, const std::string& expected) {
    const absl::StatusOr<Tensor> want = ParseTensor(expected);
    if (!want.ok()) {
      return Fail(StrCat(where, ": want unreadable: ", StatusLine(want.status())));
    }
    const std::string difference = CompareTensors(got, *want, tolerance_);
    if (!difference.empty()) Fail(StrCat(where, ": ", difference));
  }

  /// Nodes for the tensors of a gradient check.
  absl::Status FindAll(const google::protobuf::RepeatedPtrField<std::string>& names,
                       std::vector<Output>* outputs) {
    for (const std::string& name : names) {
      TROUPE_ASSIGN_OR_RETURN(Output output, graph_->FindOutput(name));
      outputs->push_back(output);
    }
    return absl::OkStatus();
  }

  absl::Status Prepare(const GradientCheck& check, std::vector<Output>* ys, std::vector<Output>* xs,
                       std::vector<Output>* grad_ys, FeedMap* feeds) {
    TROUPE_RETURN_IF_ERROR(FindAll(check.y(), ys));
    TROUPE_RETURN_IF_ERROR(FindAll(check.x(), xs));
    for (const std::string& bytes : check.grad_y()) {
      TROUPE_ASSIGN_OR_RETURN(Tensor value, ParseTensor(bytes));
      TROUPE_ASSIGN_OR_RETURN(Node * node,
                              graph_->AddNode(NodeSpec("Const", graph_->UniqueName("grad_y"))
                                                  .Attr("dtype", value.type())
                                                  .Attr("value", value)));
      grad_ys->push_back(Output(node));
    }
    NamedTensors named;
    TROUPE_RETURN_IF_ERROR(ParseFeeds(check.feed(), &named));
    for (auto& [name, tensor] : named) {
      TROUPE_ASSIGN_OR_RETURN(Output output, graph_->FindOutput(name));
      feeds->emplace_back(output, std::move(tensor));
    }
    return absl::OkStatus();
  }

  void CheckGradient(int index) {
    const GradientCheck& check = test_.gradient(index);
    const std::string where = StrCat("gradient ", index);
    std::vector<Output> ys, xs, grad_ys, grads;
    FeedMap feeds;
    if (absl::Status status = Prepare(check, &ys, &xs, &grad_ys, &feeds); !status.ok()) {
      return Fail(StrCat(where, ": preparing: got ", StatusLine(status), ", want OK"));
    }
    const absl::Status added = AddSymbolicGradients(ys, xs, grad_ys, &grads);
    if (!check.error().empty()) {
      if (!CodeMatches(added.code(), check.error())) {
        Fail(StrCat(where, ": adding: got ", StatusLine(added), ", want ", check.error()));
      }
      return;
    }
    if (!added.ok()) return Fail(StrCat(where, ": adding: got ", StatusLine(added), ", want OK"));
    if (grads.size() != xs.size() || check.expected_size() != check.x_size()) {
      return Fail(
          StrCat(where, ": got ", grads.size(), " gradients, want ", check.expected_size()));
    }
    std::vector<Output> fetches;
    for (size_t i = 0; i < grads.size(); ++i) {
      const bool connected = !check.expected(static_cast<int>(i)).empty();
      if (grads[i].valid() != connected) {
        Fail(StrCat(where, " ", check.x(static_cast<int>(i)), ": got ",
                    connected ? "unconnected, want a gradient" : "a gradient, want unconnected"));
      }
      if (grads[i].valid() && connected) fetches.push_back(grads[i]);
    }
    if (fetches.empty()) return;
    const absl::StatusOr<std::vector<Tensor>> values =
        session_->Run(feeds, fetches, {}, run_options_);
    if (!values.ok()) {
      return Fail(StrCat(where, ": got ", StatusLine(values.status()), ", want OK"));
    }
    size_t next = 0;
    for (size_t i = 0; i < grads.size(); ++i) {
      const std::string& expected = check.expected(static_cast<int>(i));
      if (!grads[i].valid() || expected.empty()) continue;
      CheckValue(StrCat(where, " ", check.x(static_cast<int>(i))), (*values)[next++], expected);
    }
  }

  const Case& test_;
  const Tolerance tolerance_;
  RunOptions run_options_;
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Session> session_;
  std::vector<std::string> failures_;
  PlacedOps ops_;
};

}  // namespace

std::string MissingOp(const Case& test) {
  for (const std::string& op : Ops(test)) {
    if (TensorFlowOps().contains(op) && !OpRegistry::Global()->LookUp(op).ok()) return op;
  }
  return "";
}

int Stage(const Case& test) {
  int stage = 0;
  bool calls_functions = false;
  for (const std::string& op : Ops(test)) {
    const auto found = TensorFlowOps().find(op);
    if (found != TensorFlowOps().end()) {
      stage = std::max(stage, found->second);
    } else {
      calls_functions = true;
    }
  }
  // The gradient of a call is the op SymbolicGradient.
  if (calls_functions && test.gradient_size() > 0) {
    stage = std::max(stage, TensorFlowOps().at("SymbolicGradient"));
  }
  return stage;
}

Outcome RunCase(const Case& test) {
  Outcome outcome;
  if (test.build_error().empty()) {
    outcome.missing_op = MissingOp(test);
    if (!outcome.missing_op.empty()) {
      outcome.verdict = Verdict::kSkipped;
      return outcome;
    }
  }
  const std::clock_t start = std::clock();
  {
    CaseRunner runner(test);
    outcome.failures = runner.Run();
    outcome.ops = runner.ops();
  }
  outcome.processor_seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (!outcome.failures.empty()) outcome.verdict = Verdict::kFailed;
  return outcome;
}

}  // namespace troupe::golden
