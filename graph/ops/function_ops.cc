// Calls of functions, functional control flow, and the ends of functions and transfers.
#include <algorithm>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

/// The shapes that whoever made the node knows; nothing is known of the others.
absl::Status ShapesByAttribute(InferenceContext* c, bool like_inputs) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes,
                          c->attrs().Get<std::vector<PartialShape>>("output_shapes"));
  if (!shapes.empty()) {
    if (static_cast<int>(shapes.size()) != c->num_outputs()) {
      return InvalidArgument("attribute output_shapes has ", shapes.size(),
                             " shapes, but there are ", c->num_outputs(), " outputs");
    }
    for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, shapes[i]);
  } else if (like_inputs) {
    for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->input(i));
  }
  if (like_inputs) {
    for (int i = 0; i < c->num_outputs(); ++i) c->set_output_handle(i, c->input_handle(i));
  }
  return absl::OkStatus();
}

absl::Status BranchShape(InferenceContext* c) {
  return ShapesByAttribute(c, /*like_inputs=*/false);
}

absl::Status WhileShape(InferenceContext* c) { return ShapesByAttribute(c, /*like_inputs=*/true); }

/// The gradients of a function's arguments are like the arguments.
absl::Status SymbolicGradientShape(InferenceContext* c) {
  if (c->num_inputs() < c->num_outputs()) {
    return InvalidArgument("there are ", c->num_outputs(), " gradients of arguments, but only ",
                           c->num_inputs(), " inputs");
  }
  for (int i = 0; i < c->num_outputs(); ++i) {
    const HandleShapes& handle = c->input_handle(i);
    c->set_output(i, handle.size() == 1 ? handle[0].second : c->input(i));
  }
  return absl::OkStatus();
}

absl::Status ArgShape(InferenceContext* c) {
  std::vector<PartialShape> shapes;
  if (c->attrs().Get("_output_shapes", &shapes).ok() && shapes.size() == 1) {
    c->set_output(0, shapes[0]);
  }
  return absl::OkStatus();
}

OpDefBuilder CallOp(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("args: Tin -> output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("f: func")
      .Attr("config: string = ''")
      .Attr("config_proto: string = ''")
      .Attr("executor_type: string = ''")
      .SetShapeFn(UnknownShape)
      .Doc(doc);
  return op;
}

OpDefBuilder IfOp(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("cond: Tcond, input: Tin -> output: Tout")
      .Attr("Tcond: type")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("then_branch: func")
      .Attr("else_branch: func")
      .Attr("output_shapes: list(shape) = []")
      .SetShapeFn(BranchShape)
      .Doc(doc);
  return op;
}

OpDefBuilder CaseOp(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("branch_index: int32, input: Tin -> output: Tout")
      .Attr("Tin: list(type) >= 0")
      .Attr("Tout: list(type) >= 0")
      .Attr("branches: list(func) >= 1")
      .Attr("output_shapes: list(shape) = []")
      .SetShapeFn(BranchShape)
      .Doc(doc);
  return op;
}

OpDefBuilder WhileOp(const char* name, const char* doc) {
  OpDefBuilder op(name);
  op.Signature("input: T -> output: T")
      .Attr("T: list(type) >= 0")
      .Attr("cond: func")
      .Attr("body: func")
      .Attr("output_shapes: list(shape) = []")
      .Attr("parallel_iterations: int = 10")
      .SetShapeFn(WhileShape)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kCalls[] = {
    CallOp(
        "PartitionedCall",
        "Calls the function `f` on `args`; `output` are its results. The function has no effects."),
    CallOp("StatefulPartitionedCall",
           "Calls the function `f`, which may have effects, on `args`; `output` are its results.")
        .SetIsStateful()
        .SetIsDistributedCommunication(),
    IfOp("If",
         "Calls `then_branch` or `else_branch` on `input`. A scalar `cond` is true unless it is "
         "zero, or an empty string; any other tensor is true if it has elements.")
        .SetIsStateful(),
    IfOp("StatelessIf",
         "Calls `then_branch` or `else_branch`, which have no effects, on `input`, as If does."),
    CaseOp("Case",
           "Calls number `branch_index` of `branches` on `input`; the last one if there is no such "
           "number.")
        .SetIsStateful(),
    CaseOp("StatelessCase",
           "Calls one of `branches`, which have no effects, on `input`, as Case does."),
    WhileOp("While",
            "As long as `cond` of the values gives true, replaces them by the results of `body`; "
            "the values are at first `input`, and in the end `output`.")
        .SetIsStateful(),
    WhileOp("StatelessWhile", "A loop whose functions have no effects, as While."),
};

}  // namespace

REGISTER_OP("_Arg")
    .Signature("-> output: T")
    .Attr("T: type")
    .Attr("index: int >= 0")
    .SetIsStateful()
    .SetShapeFn(ArgShape)
    .Doc("Argument number `index` of a function: stands for what the call gives.");

REGISTER_OP("_Retval")
    .Signature("input: T")
    .Attr("T: type")
    .Attr("index: int >= 0")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Result number `index` of a function.");

REGISTER_OP("RemoteCall")
    .Signature("target: string, args: Tin -> output: Tout")
    .Attr("Tin: list(type) >= 1")
    .Attr("Tout: list(type) >= 1")
    .Attr("f: func")
    .SetIsStateful()
    .SetShapeFn(UnknownShape)
    .Doc("Calls the function `f` on `args` on the device that the scalar `target` names.");

REGISTER_OP("SymbolicGradient")
    .Signature("input: Tin -> output: Tout")
    .Attr("Tin: list(type) >= 1")
    .Attr("Tout: list(type) >= 1")
    .Attr("f: func")
    .SetShapeFn(SymbolicGradientShape)
    .Doc(
        "Computes the gradients of function `f`: `input` are its arguments, then the gradients of "
        "its results; `output` are the gradients of its arguments.");

REGISTER_OP("For")
    .Signature("start: int32, limit: int32, delta: int32, input: T -> output: T")
    .Attr("T: list(type) >= 0")
    .Attr("body: func")
    .SetShapeFn(UnknownShape)
    .Doc(
        "For i from `start` in steps of `delta` while it has not reached `limit` replaces the "
        "values, "
        "at first `input`, by the results of `body` of i and the values; they are in the end "
        "`output`.");

REGISTER_OP("ToBool")
    .Signature("input: T -> output: bool")
    .Attr("T: type")
    .SetShapeFn(ScalarShape)
    .Doc(
        "The scalar truth of `input`: of a scalar, that it is not zero or an empty string; of any "
        "other tensor, that it has elements.");

namespace {

/// The parties of a transfer.
OpDefBuilder& Parties(OpDefBuilder& op) {
  return op.Attr("tensor_name: string")
      .Attr("send_device: string")
      .Attr("send_device_incarnation: int")
      .Attr("recv_device: string")
      .Attr("client_terminated: bool = false")
      .SetIsStateful();
}

OpDefBuilder Send(const char* name, const char* doc) {
  OpDefBuilder op(name);
  Parties(op.Signature("tensor: T").Attr("T: type")).SetShapeFn(NoOutputs).Doc(doc);
  return op;
}

OpDefBuilder Recv(const char* name, const char* doc) {
  OpDefBuilder op(name);
  Parties(op.Signature("-> tensor: tensor_type").Attr("tensor_type: type"))
      .SetIsDistributedCommunication()
      .SetShapeFn(UnknownShape)
      .Doc(doc);
  return op;
}

[[maybe_unused]] const bool kTransfersRegistered = [] {
  OpRegistry* registry = OpRegistry::Global();
  registry->Register(
      Send("_Send", "Sends `tensor` to the _Recv of the same step with the same names."));
  registry->Register(Recv(
      "_Recv", "Waits for the tensor that the _Send of the same step with the same names sends."));
  registry->Register(Send("_HostSend", "As _Send, from host memory."));
  registry->Register(Recv("_HostRecv", "As _Recv, to host memory."));
  return true;
}();

}  // namespace
}  // namespace troupe
