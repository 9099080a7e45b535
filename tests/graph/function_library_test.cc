#include "graph/function_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

/// A function that calls `by_name` by their names, and `by_attr` by an attribute.
void Add(const std::string& name, const std::vector<std::string>& by_name,
         const std::vector<std::string>& by_attr, FunctionDefLibrary* library,
         const std::string& device = "") {
  FunctionDef* function = library->add_function();
  function->mutable_signature()->set_name(name);
  for (const std::string& callee : by_name) function->add_node_def()->set_op(callee);
  for (const std::string& callee : by_attr) {
    NodeDef* node = function->add_node_def();
    node->set_op("PartitionedCall");
    (*node->mutable_attr())["f"].mutable_func()->set_name(callee);
    node->set_device(device);
  }
}

std::vector<std::string> Names(const FunctionDefLibrary& library) {
  std::vector<std::string> names;
  for (const FunctionDef& function : library.function()) {
    names.push_back(function.signature().name());
  }
  return names;
}

TEST(FunctionLibraryTest, KnowsWhoCallsItself) {
  FunctionDefLibrary def;
  Add("Before", {"Ping"}, {}, &def);
  Add("Ping", {}, {"Pong", "After"}, &def);
  Add("Pong", {"Middle"}, {}, &def);
  Add("Middle", {}, {"Ping", "Other"}, &def);
  Add("Other", {"OtherToo"}, {}, &def);
  Add("OtherToo", {"Other"}, {"After"}, &def, "/cpu:1");
  Add("After", {"Self", "Nobody"}, {}, &def);
  Add("Self", {"Self"}, {}, &def);
  Add("ByGradient", {}, {}, &def);
  Add("Gradient", {}, {"ByGradient"}, &def);
  GradientDef* gradient = def.add_gradient();
  gradient->set_function_name("ByGradient");
  gradient->set_gradient_func("Gradient");
  const FunctionLibrary library(def, *OpRegistry::Global());
  std::vector<std::string> recursive, devices;
  for (const std::string& name : Names(def)) {
    if (library.CallsItself(name)) recursive.push_back(name);
    if (library.AsksForDevices(name)) devices.push_back(name);
  }
  EXPECT_THAT(recursive, ElementsAre("Ping", "Pong", "Middle", "Other", "OtherToo", "Self",
                                     "ByGradient", "Gradient"));
  EXPECT_THAT(devices, ElementsAre("Before", "Ping", "Pong", "Middle", "Other", "OtherToo"));
  EXPECT_FALSE(library.CallsItself("Nobody"));
}

TEST(FunctionLibraryTest, CopiesWhatIsReached) {
  FunctionDefLibrary def;
  Add("A", {"B"}, {"X"}, &def);
  Add("B", {"C"}, {}, &def);
  Add("C", {"D"}, {}, &def);
  Add("D", {}, {}, &def);
  Add("X", {"Y"}, {}, &def);
  Add("Y", {"A"}, {}, &def);
  const FunctionLibrary library(def, *OpRegistry::Global());
  FunctionLibrary::Nodes nodes;
  nodes.Add()->set_op("A");
  EXPECT_THAT(Names(library.Reachable(nodes)), UnorderedElementsAre("A", "B", "C", "D", "X", "Y"));
  const auto nothing = [](const NodeDef&) { return false; };
  EXPECT_THAT(Names(library.Reachable(nodes, nothing)), ElementsAre("A", "B", "C", "D"));
  const FunctionDefLibrary near = library.Reachable(nodes, nothing, 2);
  ASSERT_THAT(Names(near), ElementsAre("A", "B", "C"));
  EXPECT_EQ(near.function(1).node_def_size(), 1);
  EXPECT_EQ(near.function(2).node_def_size(), 0) << "only the signature";
}

}  // namespace
}  // namespace troupe
