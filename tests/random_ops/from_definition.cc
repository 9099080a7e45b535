// Random cases of one op alone.
#include <algorithm>

#include "devices/status_macros.h"
#include "devices/tensor_proto.h"
#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "kernels/argument_spaces.h"
#include "kernels/kernel_registry.h"
#include "tests/random_ops/drawn_case.h"
#include "tests/random_ops/random_values.h"

namespace troupe::random_ops {
namespace {

const OpDef* Definition(const std::string& op) {
  const absl::StatusOr<const OpRegistration*> found = OpRegistry::Global()->LookUp(op);
  return found.ok() ? (*found)->def.get() : nullptr;
}

/// The ops whose first output is a handle of this kind.
const std::vector<std::string>& Makers(DataType type, bool reference) {
  static const auto* const makers = [] {
    auto* all = new std::map<std::pair<DataType, bool>, std::vector<std::string>>;
    for (const std::string& op : OpRegistry::Global()->Names()) {
      const OpDef* definition = Definition(op);
      if (definition == nullptr || definition->output_arg_size() == 0) continue;
      const OpDef::ArgDef& output = definition->output_arg(0);
      const DataType handle = output.type();
      if (handle != DT_RESOURCE && handle != DT_VARIANT && !output.is_ref()) continue;
      (*all)[{handle, output.is_ref()}].push_back(op);
      // Those that need nothing else are what most graphs have.
      if (definition->input_arg_size() > 0) continue;
      for (int i = 0; i < 9; ++i) (*all)[{handle, output.is_ref()}].push_back(op);
    }
    return all;
  }();
  static const std::vector<std::string> none;
  const auto found = makers->find({type, reference});
  return found == makers->end() ? none : found->second;
}

class GraphMaker {
 public:
  explicit GraphMaker(RandomSource* random) : random_(random) {
    // All inputs of a node are often of one shape.
    for (Shape& shape : shapes_) shape = RandomShape(random);
    AddFunction();
  }

  void AddTested(const std::string& op) {
    const std::string name = AddNode(op, 0);
    const OpDef& definition = *Definition(op);
    golden::Step step;
    int port = 0;
    for (const OpDef::ArgDef& output : definition.output_arg()) {
      // How many a list has is for the session to say: the first is fetched.
      const bool handle = output.type() == DT_RESOURCE || output.type() == DT_VARIANT;
      if (!handle) step.add_fetch(StrCat(name, ":", port));
      ++port;
    }
    step.add_target(name);
    *step.mutable_feed() = {feeds_.begin(), feeds_.end()};
    *case_.add_step() = step;
    if (random_->Chance(30)) *case_.add_step() = step;
    if (random_->Chance(15) && !numbers_.empty() && step.fetch_size() > 0) {
      golden::GradientCheck* gradient = case_.add_gradient();
      gradient->add_y(step.fetch(0));
      for (const std::string& number : numbers_) gradient->add_x(number);
      *gradient->mutable_feed() = step.feed();
    }
  }

  golden::Case Take() {
    graph_.mutable_versions()->set_producer(random_->Chance(80) ? 1087 : 8);
    case_.set_graph(graph_.SerializeAsString());
    return std::move(case_);
  }

 private:
  /// Twice(x) = x + x, for attributes that name a function.
  void AddFunction() {
    FunctionDef* function = graph_.mutable_library()->add_function();
    OpDef* signature = function->mutable_signature();
    signature->set_name("Twice");
    for (OpDef::ArgDef* argument : {signature->add_input_arg(), signature->add_output_arg()}) {
      argument->set_type(DT_FLOAT);
    }
    signature->mutable_input_arg(0)->set_name("x");
    signature->mutable_output_arg(0)->set_name("y");
    NodeDef* sum = function->add_node_def();
    sum->set_name("sum");
    sum->set_op("AddV2");
    sum->add_input("x");
    sum->add_input("x");
    (*sum->mutable_attr())["T"].set_type(DT_FLOAT);
    (*function->mutable_ret())["y"] = "sum:z:0";
  }

  NodeDef* NewNode(const std::string& op) {
    NodeDef* node = graph_.add_node();
    node->set_name(StrCat("n", graph_.node_size()));
    node->set_op(op);
    return node;
  }

  std::string AddNode(const std::string& op, int depth) {
    const OpDef& definition = *Definition(op);
    NodeDef node;
    node.set_op(op);
    auto& attrs = *node.mutable_attr();
    for (const OpDef::AttrDef& attr : definition.attr()) {
      attrs[attr.name()] = RandomAttr(random_, attr);
    }
    ChooseServedTypes(op, &node);
    for (const OpDef::ArgDef& input : definition.input_arg()) {
      if (!input.number_attr().empty() && attrs[input.number_attr()].i() > 8) {
        if (random_->Chance(90)) attrs[input.number_attr()].set_i(2);
      }
    }
    std::vector<std::string> control;
    for (const OpDef::ArgDef& input : definition.input_arg()) {
      for (const DataType type : Types(input, attrs)) {
        node.add_input(AddInput(type, input.is_ref(), depth, &control));
      }
    }
    if (node.input_size() > 0 && random_->Chance(1)) node.mutable_input()->RemoveLast();
    if (random_->Chance(1) && !attrs.empty()) attrs.erase(random_->Pick(definition.attr()).name());
    for (const std::string& name : control) node.add_input(StrCat("^", name));
    node.set_name(StrCat("n", graph_.node_size() + 1));
    *graph_.add_node() = node;
    return node.name();
  }

  /// The types of one of the op's kernels, mostly.
  void ChooseServedTypes(const std::string& op, NodeDef* node) {
    std::vector<const KernelRegistration*> kernels = KernelRegistry::Global()->ForOp(op);
    std::erase_if(kernels, [](const auto* kernel) {
      return kernel->spec.device_type != "CPU" && kernel->spec.device_type != kAnyDeviceType;
    });
    if (kernels.empty() || random_->Chance(10)) return;
    for (const auto& [attr, types] : random_->Pick(kernels)->spec.constraints) {
      if (types.empty()) continue;
      AttrValue& value = (*node->mutable_attr())[attr];
      const bool served =
          std::count(types.begin(), types.end(), static_cast<ElementType>(value.type())) > 0;
      if (value.value_case() == AttrValue::kType && !served) {
        value.set_type(static_cast<DataType>(random_->Pick(types)));
      }
    }
  }

  static std::vector<DataType> Types(const OpDef::ArgDef& input,
                                     const google::protobuf::Map<std::string, AttrValue>& attrs) {
    std::vector<DataType> types;
    if (!input.type_list_attr().empty()) {
      const auto list = attrs.find(input.type_list_attr());
      if (list == attrs.end()) return types;
      for (const int type : list->second.list().type())
        types.push_back(static_cast<DataType>(type));
      return types;
    }
    DataType type = input.type();
    if (const auto attr = attrs.find(input.type_attr()); attr != attrs.end()) {
      type = attr->second.type();
    }
    int64_t count = 1;
    if (const auto attr = attrs.find(input.number_attr()); attr != attrs.end()) {
      count = std::clamp<int64_t>(attr->second.i(), 0, 8);
    }
    types.assign(static_cast<size_t>(count), type);
    return types;
  }

  /// The name of a tensor.
  std::string AddInput(DataType type, bool reference, int depth,
                       std::vector<std::string>* control) {
    const ElementType element = static_cast<ElementType>(type);
    const bool handle = !HasValues(element) || (reference && type == DT_STRING);
    const std::vector<std::string>& makers = Makers(type, reference);
    if (handle && depth < 2 && !makers.empty()) return AddNode(random_->Pick(makers), depth + 1);
    if (reference) return AddVariable(type, control);
    return AddValue(type);
  }

  std::string AddVariable(DataType type, std::vector<std::string>* control) {
    const Shape shape = SomeShape();
    NodeDef* variable = NewNode("VariableV2");
    const std::string name = variable->name();
    (*variable->mutable_attr())["dtype"].set_type(type);
    shape.ToProto((*variable->mutable_attr())["shape"].mutable_shape());
    if (!HasValues(static_cast<ElementType>(type)) || random_->Chance(10)) return name;
    const std::string value = AddConst(type, shape);
    NodeDef* assign = NewNode("Assign");
    assign->add_input(name);
    assign->add_input(value);
    (*assign->mutable_attr())["T"].set_type(type);
    control->push_back(assign->name());
    return name;
  }

  Shape SomeShape() {
    const int64_t draw = random_->Below(100);
    if (draw < 50) return shapes_[0];
    if (draw < 60) return shapes_[1];
    if (draw < 75) return Shape();
    if (draw < 90) return Shape({random_->Below(6)});
    return RandomShape(random_);
  }

  std::string AddConst(DataType type, const Shape& shape) {
    const Tensor value = RandomTensor(random_, static_cast<ElementType>(type), shape);
    NodeDef* node = NewNode("Const");
    (*node->mutable_attr())["dtype"].set_type(type);
    TensorProto* proto = (*node->mutable_attr())["value"].mutable_tensor();
    TensorToProto(value, proto);
    // Claims more than it holds.
    if (random_->Chance(1)) *proto->mutable_tensor_shape() = RandomShapeProto(random_);
    return node->name();
  }

  /// A constant, which shape inference sees, or a value that is fed.
  std::string AddValue(DataType type) {
    const ElementType element = static_cast<ElementType>(type);
    const Shape shape = SomeShape();
    if (HasValues(element) && random_->Chance(50)) {
      const std::string name = AddConst(type, shape);
      if (IsFloating(element)) numbers_.push_back(name);
      return name;
    }
    NodeDef* node = NewNode("Placeholder");
    (*node->mutable_attr())["dtype"].set_type(type);
    TensorShapeProto* claimed = (*node->mutable_attr())["shape"].mutable_shape();
    claimed->set_unknown_rank(true);
    if (!HasValues(element)) return node->name();
    if (random_->Chance(20)) {
      claimed->Clear();
      shape.ToProto(claimed);
    }
    golden::NamedTensor feed;
    feed.set_name(node->name());
    TensorProto proto;
    TensorToProto(RandomTensor(random_, element, shape), &proto);
    feed.set_tensor(proto.SerializeAsString());
    feeds_.push_back(feed);
    if (IsFloating(element)) numbers_.push_back(node->name());
    return node->name();
  }

  RandomSource* random_;
  Shape shapes_[2];
  GraphDef graph_;
  golden::Case case_;
  std::vector<golden::NamedTensor> feeds_;
  std::vector<std::string> numbers_;  ///< Tensors of floating types.
};

}  // namespace

golden::Case CaseFromDefinition(const std::string& op, RandomSource* random) {
  GraphMaker maker(random);
  maker.AddTested(op);
  return maker.Take();
}

}  // namespace troupe::random_ops
