/// A graph whose functions work on devices of their own, and leave a trace there.
#ifndef TROUPE_TESTS_ACTORS_SESSION_SPREAD_FUNCTIONS_H_
#define TROUPE_TESTS_ACTORS_SESSION_SPREAD_FUNCTIONS_H_

#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "graph/graph_def.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

/// Functions `Put` (on `device`) and `PutHere` (where they are called) add 1 to a number and put it
/// into a queue. "call", "if", "while" (from x to y), "recursive" (x times) come to call `Put`;
/// "remote" calls `PutHere` on `device`, "nested" does so from within a function, "dynamic" on the
/// device that "target" is fed, "lost" on one that does not exist. "size_0", "size_1" ... count
/// what is in the queues of `devices`.
inline GraphDef SpreadFunctions(const std::string& device,
                                const std::vector<std::string>& devices) {
  const std::string type = "attr { key: 'T' value { type: DT_INT32 } } ";
  const std::string queue_types =
      "attr { key: 'component_types' value { list { type: DT_INT32 } } } "
      "attr { key: 'shared_name' value { s: 'spread' } } ";
  auto node = [](const std::string& name, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& attrs,
                 const std::string& on = "") {
    std::string text = StrCat("{ name: '", name, "' op: '", op, "' device: '", on, "' ");
    for (const std::string& input : inputs) text += StrCat("input: '", input, "' ");
    return text + attrs + "} ";
  };
  auto body = [&](const std::string& name, const std::string& op,
                  const std::vector<std::string>& inputs, const std::string& attrs,
                  const std::string& on = "") {
    return "node_def " + node(name, op, inputs, attrs, on);
  };
  auto types = [](const std::string& attr, int n) {
    std::string text = StrCat("attr { key: '", attr, "' value { list { ");
    for (int i = 0; i < n; ++i) text += "type: DT_INT32 ";
    return text + "} } } ";
  };
  auto func = [](const std::string& attr, const std::string& name) {
    return StrCat("attr { key: '", attr, "' value { func { name: '", name, "' } } } ");
  };
  auto number = [](int value) {
    return StrCat(
        "attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { "
        "tensor { dtype: DT_INT32 tensor_shape {} int_val: ",
        value, " } } } ");
  };
  auto name = [](const std::string& value) {
    return StrCat(
        "attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { "
        "tensor { dtype: DT_STRING tensor_shape {} string_val: '",
        value, "' } } } ");
  };
  auto function = [](const std::string& called, const std::vector<std::string>& args,
                     const std::string& nodes, const std::vector<std::string>& results,
                     const std::string& result_type = "DT_INT32") {
    std::string text = StrCat("function { signature { name: '", called, "' is_stateful: true ");
    for (const std::string& arg : args) {
      text += StrCat("input_arg { name: '", arg, "' type: DT_INT32 } ");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      text += StrCat("output_arg { name: 'r", i, "' type: ", result_type, " } ");
    }
    text += "} " + nodes;
    for (size_t i = 0; i < results.size(); ++i) {
      text += StrCat("ret { key: 'r", i, "' value: '", results[i], "' } ");
    }
    return text + "}\n";
  };
  auto put = [&](const std::string& on) {
    return body("q", "FIFOQueueV2", {}, queue_types, on) +
           body("e", "QueueEnqueueV2", {"q:handle:0", "x"},
                "attr { key: 'Tcomponents' value { list { type: DT_INT32 } } } ", on) +
           body("one", "Const", {}, number(1), on) +
           body("a", "Add", {"x", "one:output:0"}, type, on);
  };
  const std::string unary = types("Tin", 1) + types("Tout", 1);
  const std::string branches = "attr { key: 'Tcond' value { type: DT_BOOL } } " + unary;
  std::string text = "library { ";
  text += function("Put", {"x"}, put(device), {"a:z:0"});
  text += function("PutHere", {"x"}, put(""), {"a:z:0"});
  text += function("Pass", {"x"}, "", {"x"});
  text += function("Nested", {"x"},
                   body("t", "Const", {}, name(device)) +
                       body("r", "RemoteCall", {"t:output:0", "x"}, unary + func("f", "PutHere")),
                   {"r:output:0"});
  text +=
      function("LessThan", {"i", "n"}, body("l", "Less", {"i", "n"}, type), {"l:z:0"}, "DT_BOOL");
  text += function("Count", {"i", "n"},
                   body("p", "StatefulPartitionedCall", {"i"}, unary + func("f", "Put")),
                   {"p:output:0", "n"});
  // Times(n) = n <= 0 ? n : Times(n - 1), and a Put each.
  text += function("Times", {"n"},
                   body("zero", "Const", {}, number(0)) +
                       body("go", "Less", {"zero:output:0", "n"}, type) +
                       body("r", "If", {"go:z:0", "n"},
                            branches + func("then_branch", "More") + func("else_branch", "Pass")),
                   {"r:output:0"});
  text += function(
      "More", {"n"},
      body("p", "StatefulPartitionedCall", {"n"}, unary + func("f", "Put")) +
          body("two", "Const", {}, number(2)) +
          body("less", "Sub", {"p:output:0", "two:output:0"}, type) +
          body("rest", "StatefulPartitionedCall", {"less:z:0"}, unary + func("f", "Times")),
      {"rest:output:0"});
  text += "}\n";
  auto add = [&](const std::string& what, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& attrs,
                 const std::string& on = "") {
    text += "node " + node(what, op, inputs, attrs, on);
  };
  const std::string here = devices.front();
  const std::string integer = "attr { key: 'dtype' value { type: DT_INT32 } } ";
  add("x", "Placeholder", {}, integer);
  add("y", "Placeholder", {}, integer);
  add("p", "Placeholder", {}, "attr { key: 'dtype' value { type: DT_BOOL } } ");
  add("target", "Placeholder", {}, "attr { key: 'dtype' value { type: DT_STRING } } ");
  add("there", "Const", {}, name(device));
  add("nowhere", "Const", {}, name("/device:CPU:99"));
  add("call", "StatefulPartitionedCall", {"x"}, unary + func("f", "Put"), here);
  add("if", "If", {"p", "x"}, branches + func("then_branch", "Put") + func("else_branch", "Pass"),
      here);
  add("while", "While", {"x", "y"},
      types("T", 2) + func("cond", "LessThan") + func("body", "Count"), here);
  add("recursive", "StatefulPartitionedCall", {"x"}, unary + func("f", "Times"), here);
  add("remote", "RemoteCall", {"there", "x"}, unary + func("f", "PutHere"), here);
  add("nested", "StatefulPartitionedCall", {"x"}, unary + func("f", "Nested"), here);
  add("dynamic", "RemoteCall", {"target", "x"}, unary + func("f", "PutHere"), here);
  add("lost", "RemoteCall", {"nowhere", "x"}, unary + func("f", "PutHere"), here);
  for (size_t i = 0; i < devices.size(); ++i) {
    add(StrCat("queue_", i), "FIFOQueueV2", {}, queue_types, devices[i]);
    add(StrCat("size_", i), "QueueSizeV2", {StrCat("queue_", i)}, "", devices[i]);
  }
  GraphDef def;
  const absl::Status status = ParseGraphDef(text, &def);
  if (!status.ok()) def.Clear();
  return def;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_SESSION_SPREAD_FUNCTIONS_H_
