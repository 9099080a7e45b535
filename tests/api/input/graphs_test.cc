// The graphs of pipelines are TensorFlow's, node by node: scripts/golden/record_input.py.

#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "graph/attr_reader.h"
#include "tests/api/input/pipeline.h"

namespace troupe {
namespace {

/// What a scenario adds, as lines by what they are about.
using Lines = std::map<std::string, std::string>;

std::map<std::string, Lines> ReadRecorded() {
  std::ifstream file("tests/api/input/testdata/graphs.txt");
  std::map<std::string, Lines> scenarios;
  std::string line;
  Lines* lines = nullptr;
  while (std::getline(file, line)) {
    if (line.starts_with("= ")) {
      lines = &scenarios[line.substr(2)];
      continue;
    }
    std::istringstream words(line);
    std::string first, second;
    words >> first >> second;
    // Of the collections the second word is the name.
    const bool node = second.front() >= 'A' && second.front() <= 'Z';
    (*lines)[node ? first : StrCat(first, " ", second)] = line;
  }
  return scenarios;
}

std::string ShapeText(const PartialShape& shape) {
  return StrCat("[", absl::StrJoin(shape.dims(), ","), "]");
}

/// An attribute as the recorder writes it; empty if the node has none of that name.
std::string AttrText(const Node* node, const std::string& name) {
  const AttrReader attrs = node->attrs();
  if (name == "shapes") {
    const auto shapes = attrs.Get<std::vector<PartialShape>>(name);
    if (!shapes.ok()) return "";
    std::vector<std::string> texts;
    for (const PartialShape& shape : *shapes) texts.push_back(ShapeText(shape));
    return StrCat("[", absl::StrJoin(texts, ","), "]");
  }
  if (name == "component_types") {
    const auto types = attrs.Get<std::vector<ElementType>>(name);
    if (!types.ok()) return "";
    std::vector<std::string> texts;
    for (const ElementType type : *types) {
      texts.push_back(type == ElementType::kFloat ? "float32" : std::string(ElementTypeName(type)));
    }
    return StrCat("[", absl::StrJoin(texts, ","), "]");
  }
  if (name == "shared_name") {
    const auto text = attrs.Get<std::string>(name);
    return text.ok() ? *text : "";
  }
  const auto number = attrs.Get<int64_t>(name);
  return number.ok() ? StrCat(*number) : "";
}

std::string ValueText(const Tensor& value) {
  switch (value.type()) {
    case ElementType::kString:
      return absl::StrReplaceAll(value.unchecked_scalar<std::string>(), {{" ", "_"}});
    case ElementType::kInt32:
      return StrCat(value.unchecked_scalar<int32_t>());
    case ElementType::kInt64:
      return StrCat(value.unchecked_scalar<int64_t>());
    case ElementType::kBool:
      return value.unchecked_scalar<bool>() ? "True" : "False";
    default:
      return "";
  }
}

std::string NodeText(const Node* node) {
  std::vector<std::string> inputs;
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Edge* const edge = node->in_data_edge(i);
    inputs.push_back(edge->src_output == 0 ? edge->src->name()
                                           : StrCat(edge->src->name(), ":", edge->src_output));
  }
  for (const Edge* edge : node->in_edges()) {
    if (edge->control() && !edge->src->IsSource()) inputs.push_back("^" + edge->src->name());
  }
  std::string line = StrCat(node->name(), " ", node->op(), " (", absl::StrJoin(inputs, ","), ")");
  for (const char* attr : {"capacity", "component_types", "limit", "min_after_dequeue",
                           "num_partitions", "seed", "seed2", "shapes", "shared_name"}) {
    if (node->attrs().Has(attr)) line += StrCat(" ", attr, "=", AttrText(node, attr));
  }
  if (node->op() == "Const") {
    const auto value = node->attrs().Get<Tensor>("value");
    if (value.ok() && value->rank() == 0 && value->type() != ElementType::kFloat) {
      line += StrCat(" value=", ValueText(*value));
    }
  }
  return line;
}

Lines Describe(const Graph& graph) {
  Lines lines;
  for (const Node* node : graph.nodes()) {
    if (!node->IsSource() && !node->IsSink()) lines[node->name()] = NodeText(node);
  }
  for (const std::string& text : graph.Collection(collections::kQueueRunners)) {
    QueueRunnerDef def;
    EXPECT_TRUE(def.ParseFromString(text));
    lines[StrCat("runner ", def.queue_name())] =
        StrCat("runner ", def.queue_name(), " ", absl::StrJoin(def.enqueue_op_name(), ","), " ",
               def.close_op_name(), " ", def.cancel_op_name());
  }
  for (const std::string& name : graph.Collection(collections::kSummaries)) {
    lines[StrCat("summary ", name)] = StrCat("summary ", name);
  }
  for (const std::string& name : graph.Collection(collections::kLocalVariables)) {
    lines[StrCat("local ", name)] = StrCat("local ", name);
  }
  return lines;
}

using Build = std::function<void(const Scope&)>;

Output Named(const Scope& s, const char* name, const Tensor& value) {
  return Const(s.WithOpName(name), value);
}
Output Zeros(const Scope& s, const char* name, ElementType type, const Shape& shape) {
  Tensor zeros = Tensor::Uninitialized(type, shape);
  std::memset(zeros.mutable_raw_data(), 0, zeros.bytes());
  return Named(s, name, zeros);
}
InputList Element(const Scope& s) {
  const Output x = Named(s, "x", Tensor::Vector<float>({1, 2}));
  return {x, Named(s, "y", Tensor::Scalar<int64_t>(3))};
}
InputList Rows(const Scope& s) {
  const Output images = Zeros(s, "images", ElementType::kFloat, {6, 2});
  return {images, Zeros(s, "labels", ElementType::kInt32, {6})};
}
Output Fed(const Scope& s, const char* name, ElementType type, const PartialShape& shape) {
  return ops::Placeholder(s.WithOpName(name), type, {.shape = shape});
}

// clang-format off
const std::map<std::string, Build> kScenarios = {
    {"strings", [](const Scope& s) {
       StringInputProducer(s, Strings({"a", "b", "c"}),
                           {.num_epochs = 2, .seed = 7, .capacity = 16, .shared_name = "files"});
     }},
    {"strings in order", [](const Scope& s) {
       StringInputProducer(s, Strings({"a", "b"}), {.shuffle = false});
     }},
    {"range", [](const Scope& s) {
       RangeInputProducer(s.WithOpName("numbers"), 10, {.num_epochs = 1, .shuffle = false});
     }},
    {"slices", [](const Scope& s) { SliceInputProducer(s, Rows(s), {.num_epochs = 3, .seed = 5}); }},
    {"rows", [](const Scope& s) {
       InputProducer(s, Zeros(s, "images", ElementType::kFloat, {6, 2}),
                     {.shuffle = false, .summary_name = "full"});
     }},
    {"named rows", [](const Scope& s) {
       InputProducer(s.WithOpName("source"), Zeros(s, "images", ElementType::kFloat, {6}), {.seed = 1});
     }},
    {"epochs", [](const Scope& s) { LimitEpochs(s, Named(s, "x", Tensor::Scalar<int32_t>(1)), 4); }},
    {"batch", [](const Scope& s) { Batch(s, Element(s), 4, {.num_threads = 3, .capacity = 20}); }},
    {"smaller batch", [](const Scope& s) {
       const InputList element = Element(s);
       Batch(s.WithOpName("examples"), element, 4,
             {.allow_smaller_final_batch = true, .shared_name = "q"});
     }},
    {"batch of many", [](const Scope& s) { Batch(s, Rows(s), 4, {.enqueue_many = true}); }},
    {"padded batch", [](const Scope& s) {
       Batch(s, {Fed(s, "words", ElementType::kString, PartialShape({-1}))}, 4, {.dynamic_pad = true});
     }},
    {"shapes", [](const Scope& s) {
       Batch(s, {Fed(s, "x", ElementType::kFloat, PartialShape())}, 4, {.shapes = {PartialShape({5})}});
     }},
    {"join", [](const Scope& s) {
       const Output a = Zeros(s, "a", ElementType::kFloat, {2}), b = Zeros(s, "b", ElementType::kFloat, {2});
       BatchJoin(s, {{a}, {b}}, 5, {.capacity = 7});
     }},
    {"shuffle", [](const Scope& s) {
       ShuffleBatch(s, Element(s), 4,
                    {.capacity = 50, .min_after_dequeue = 30, .seed = 9, .num_threads = 2});
     }},
    {"shuffle join", [](const Scope& s) {
       const Output a = Zeros(s, "a", ElementType::kFloat, {3, 2}), b = Zeros(s, "b", ElementType::kFloat, {3, 2});
       ShuffleBatchJoin(s, {{a}, {b}}, 5,
                        {.capacity = 9, .min_after_dequeue = 2, .seed = 3, .enqueue_many = true,
                         .allow_smaller_final_batch = true});
     }},
    {"some", [](const Scope& s) {
       const InputList rows = Rows(s);
       MaybeBatch(s, rows, Fed(s, "keep", ElementType::kBool, PartialShape({6})), 2,
                  {.enqueue_many = true});
     }},
    {"shared seed", [](const Scope& s) {
       s.SetGraphSeed(17);
       ShuffleBatch(s, Element(s), 4,
                    {.capacity = 50, .min_after_dequeue = 30, .shared_name = "shuffled"});
     }},
};
// clang-format on

/// A variable's own nodes have other names here; sizes and shapes are nodes, not yet constants.
bool MayDiffer(const std::string& name) {
  return absl::StrContains(name, "/epochs") || absl::StrContains(name, "/ResourceCountUpTo") ||
         name.ends_with("/Size") || name.ends_with("/Shape");
}

TEST(Graphs, AreTensorFlows) {
  const std::map<std::string, Lines> recorded = ReadRecorded();
  ASSERT_EQ(recorded.size(), kScenarios.size());
  for (const auto& [name, build] : kScenarios) {
    SCOPED_TRACE(name);
    ASSERT_EQ(recorded.count(name), 1u);
    const Scope s = Scope::NewRoot();
    build(s);
    ASSERT_TRUE(s.ok()) << s.status();
    const Lines& theirs = recorded.at(name);
    const Lines ours = Describe(*s.graph());
    std::string used;
    for (const auto& [key, line] : theirs) used += line.substr(line.find('(') + 1) + " ";
    for (const auto& [key, line] : ours) {
      if (MayDiffer(key)) continue;
      const auto found = theirs.find(key);
      EXPECT_EQ(found == theirs.end() ? "" : found->second, line);
    }
    for (const auto& [key, line] : theirs) {
      if (ours.count(key) > 0 || MayDiffer(key)) continue;
      const bool unused = absl::StrContains(line, " Const ") &&
                          !absl::StrContains(used, key + ")") &&
                          !absl::StrContains(used, key + ",");
      EXPECT_TRUE(unused) << "missing: " << line;
    }
  }
}

}  // namespace
}  // namespace troupe
