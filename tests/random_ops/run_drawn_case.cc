#include "tests/random_ops/run_drawn_case.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "api/session.h"
#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/gradients/add_gradients.h"
#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/tensor.pb.h"
#include "tests/golden/compare.h"
#include "tests/how_many.h"

namespace troupe::random_ops {
namespace {

/// How long an op may take that waits for others, and any other one.
constexpr absl::Duration kShort = absl::Milliseconds(100);
constexpr absl::Duration kLong = absl::Seconds(20);

/// Whether nodes of the op may wait for others, or be part of a loop or a call without end.
bool MayWait(const std::string& op) {
  constexpr std::string_view kParts[] = {
      "Queue",      "Barrier",  "Mutex", "Accumulator", "Stage", "stage",   "Map",  "Recv",
      "Collective", "Reader",   "NextI", "Merge",       "While", "Switch",  "Call", "If",
      "Case",       "Symbolic", "Actor", "Lock",        "Enter", "Iterator"};
  return op == "For" || !OpRegistry::Global()->LookUp(op).ok() ||
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return op.find(part) != std::string::npos; });
}

bool MayWait(const GraphDef& def) {
  const auto waits = [](const NodeDef& node) { return MayWait(node.op()); };
  return std::any_of(def.node().begin(), def.node().end(), waits) ||
         std::any_of(def.library().function().begin(), def.library().function().end(),
                     [&](const FunctionDef& function) {
                       return std::any_of(function.node_def().begin(), function.node_def().end(),
                                          waits);
                     });
}

bool HasTag(const golden::Case& drawn, std::string_view tag) {
  return std::find(drawn.tag().begin(), drawn.tag().end(), tag) != drawn.tag().end();
}

absl::Status ReadFeeds(const google::protobuf::RepeatedPtrField<golden::NamedTensor>& feeds,
                       NamedTensors* tensors) {
  for (const golden::NamedTensor& feed : feeds) {
    TensorProto proto;
    if (!proto.ParseFromString(feed.tensor())) return InvalidArgument("no TensorProto");
    TROUPE_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto));
    tensors->emplace_back(feed.name(), std::move(tensor));
  }
  return absl::OkStatus();
}

/// Reads every byte, so that a sanitizer sees what is not there.
uint64_t Touch(const Tensor& tensor) {
  uint64_t sum = 0;
  const auto add = [&](const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) sum += static_cast<const uint8_t*>(data)[i];
  };
  if (!tensor.valid() || tensor.num_elements() == 0) return 0;
  if (tensor.type() == ElementType::kString) {
    for (const std::string& text : tensor.unchecked_values<std::string>()) {
      add(text.data(), text.size());
    }
  } else if (IsPlain(tensor.type())) {
    add(tensor.raw_data(), tensor.bytes());
  }
  return sum;
}

class DrawnRun {
 public:
  explicit DrawnRun(const golden::Case& drawn) : drawn_(drawn), graph_(std::make_shared<Graph>()) {}

  DrawnOutcome Run() {
    outcome_.code = "OK";
    const absl::Status status = Prepare();
    if (status.ok()) {
      RunSteps();
    } else {
      Note(status);
    }
    if (session_ != nullptr) CheckSession();
    return std::move(outcome_);
  }

 private:
  void Note(const absl::Status& status) {
    outcome_.code = absl::StatusCodeToString(status.code());
    if (absl::IsDeadlineExceeded(status) && options_.timeout >= kLong) {
      outcome_.wrong = StrCat("has no end: ", golden::StatusLine(status));
    }
  }

  absl::Status Prepare() {
    GraphDef def;
    TROUPE_RETURN_IF_ERROR(ParseGraphDef(drawn_.graph(), &def));
    options_.timeout = MayWait(def) ? kShort * kSlow : kLong * kSlow;
    const absl::Status imported = ImportGraphDef(def, ImportOptions(), graph_.get());
    const int left = graph_->num_nodes();
    if (!imported.ok() && left != 2) {
      outcome_.wrong = StrCat("import has failed and left ", left, " nodes");
    }
    SessionOptions options;
    options.threads = HasTag(drawn_, "threads=1") ? 1 : 3;
    options.optimize = !HasTag(drawn_, "plain");
    TROUPE_ASSIGN_OR_RETURN(session_, Session::Create(graph_, options));
    return imported;
  }

  void RunSteps() {
    for (const golden::Step& step : drawn_.step()) {
      NamedTensors feeds;
      std::vector<Tensor> values;
      absl::Status status = ReadFeeds(step.feed(), &feeds);
      if (status.ok()) {
        status = session_->Run(options_, feeds, {step.fetch().begin(), step.fetch().end()},
                               {step.target().begin(), step.target().end()}, &values);
      }
      Note(status);
      for (const Tensor& value : values) touched_ = touched_ + Touch(value);
    }
    for (const golden::GradientCheck& gradient : drawn_.gradient()) {
      const absl::Status status = RunGradient(gradient);
      if (drawn_.step_size() == 0 || absl::IsDeadlineExceeded(status)) Note(status);
    }
  }

  absl::Status RunGradient(const golden::GradientCheck& gradient) {
    std::vector<Output> ys, xs, grads;
    const auto find = [&](const auto& names, std::vector<Output>* outputs) {
      for (const std::string& name : names) {
        TROUPE_ASSIGN_OR_RETURN(Output output, graph_->FindOutput(name));
        outputs->push_back(output);
      }
      return absl::OkStatus();
    };
    TROUPE_RETURN_IF_ERROR(find(gradient.y(), &ys));
    TROUPE_RETURN_IF_ERROR(find(gradient.x(), &xs));
    TROUPE_RETURN_IF_ERROR(AddSymbolicGradients(ys, xs, {}, &grads));
    std::erase_if(grads, [](const Output& output) { return !output.valid(); });
    if (grads.empty()) return absl::OkStatus();
    NamedTensors named;
    TROUPE_RETURN_IF_ERROR(ReadFeeds(gradient.feed(), &named));
    FeedMap feeds;
    for (auto& [name, tensor] : named) {
      TROUPE_ASSIGN_OR_RETURN(Output output, graph_->FindOutput(name));
      feeds.emplace_back(output, std::move(tensor));
    }
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> values,
                            session_->Run(feeds, grads, {}, options_));
    for (const Tensor& value : values) touched_ = touched_ + Touch(value);
    return absl::OkStatus();
  }

  /// 1 + 2 is 3 still.
  void CheckSession() {
    const absl::Status status = [&] {
      const auto number = [&](float value) {
        return graph_->AddNode(NodeSpec("Const", graph_->UniqueName("number"))
                                   .Attr("dtype", ElementType::kFloat)
                                   .Attr("value", Tensor::Scalar(value)));
      };
      TROUPE_ASSIGN_OR_RETURN(Node * one, number(1));
      TROUPE_ASSIGN_OR_RETURN(Node * two, number(2));
      TROUPE_ASSIGN_OR_RETURN(
          Node * sum,
          graph_->AddNode(
              NodeSpec("AddV2", graph_->UniqueName("sum")).Input(Output(one)).Input(Output(two))));
      TROUPE_ASSIGN_OR_RETURN(const std::vector<Tensor> three, session_->Run({Output(sum)}));
      TROUPE_ASSIGN_OR_RETURN(const float value, three[0].scalar<float>());
      return value == 3 ? absl::OkStatus() : absl::InternalError(StrCat("1 + 2 is ", value));
    }();
    if (!status.ok()) {
      outcome_.wrong = StrCat("the session is of no use afterwards: ", golden::StatusLine(status));
    }
  }

  const golden::Case& drawn_;
  RunOptions options_;
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<Session> session_;
  DrawnOutcome outcome_;
  volatile uint64_t touched_ = 0;
};

}  // namespace

DrawnOutcome RunDrawnCase(const golden::Case& drawn) {
  HostAllocator()->set_limit(kMemoryLimit);
  return DrawnRun(drawn).Run();
}

}  // namespace troupe::random_ops
