// The messages are compatible with TensorFlow's: same fields, numbers, types and labels (a table
// extracted from TensorFlow), and text and wire forms survive a round trip.

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "api/troupe.h"  // beside all messages: a name that both define does not compile
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "graph/protos/checkpoint.pb.h"
#include "graph/protos/config.pb.h"
#include "graph/protos/example.pb.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/meta_graph.pb.h"
#include "graph/protos/stats.pb.h"
#include "graph/protos/summary.pb.h"
#include "gtest/gtest.h"
#include "tests/source_dir.h"

namespace troupe {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

// Type and label as the table spells them.
std::string TypeOf(const FieldDescriptor& field) {
  std::string name;
  if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
    name = field.message_type()->full_name();
  } else if (field.type() == FieldDescriptor::TYPE_ENUM) {
    name = field.enum_type()->full_name();
  } else {
    return field.type_name();
  }
  for (const std::string prefix : {"troupe.error.", "troupe.config.", "troupe."}) {
    if (name.compare(0, prefix.size(), prefix) == 0) return name.substr(prefix.size());
  }
  return name;
}

std::string LabelOf(const FieldDescriptor& field) {
  if (field.is_repeated()) return field.is_packed() ? "packed" : "repeated";
  if (field.real_containing_oneof() != nullptr) {
    return absl::StrCat("oneof ", field.real_containing_oneof()->name());
  }
  return field.has_presence() && field.message_type() == nullptr ? "presence" : "singular";
}

// Finds a message or an enum by the name that the table gives it.
template <typename Descriptor>
const Descriptor* Find(const Descriptor* (DescriptorPool::*find)(const std::string&) const,
                       const std::string& name) {
  for (const char* prefix : {"troupe.", "troupe.config.", "troupe.error."}) {
    const Descriptor* found = (DescriptorPool::generated_pool()->*find)(prefix + name);
    if (found != nullptr) return found;
  }
  return nullptr;
}

TEST(Protos, EveryFieldIsTensorFlows) {
  std::ifstream file(TROUPE_SOURCE_DIR "/tests/graph/testdata/tensorflow_fields.tsv");
  ASSERT_TRUE(file.is_open());
  int rows = 0;
  std::map<const google::protobuf::Descriptor*, int> fields;  // that the table lists
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> column = absl::StrSplit(line, '\t');
    ASSERT_EQ(column.size(), 5u) << line;
    ++rows;
    if (column[3] == "value") {
      const auto* type = Find(&DescriptorPool::FindEnumTypeByName, column[0]);
      ASSERT_NE(type, nullptr) << line;
      const auto* value = type->FindValueByName(column[1]);
      ASSERT_NE(value, nullptr) << line;
      EXPECT_EQ(absl::StrCat(value->number()), column[2]) << line;
      continue;
    }
    const auto* message = Find(&DescriptorPool::FindMessageTypeByName, column[0]);
    ASSERT_NE(message, nullptr) << line;
    ++fields[message];
    const auto* field = message->FindFieldByName(column[1]);
    ASSERT_NE(field, nullptr) << line;
    EXPECT_EQ(absl::StrCat(field->number()), column[2]) << line;
    EXPECT_EQ(TypeOf(*field), column[3]) << line;
    EXPECT_EQ(LabelOf(*field), column[4]) << line;
  }
  EXPECT_GT(rows, 1000);
  for (const auto& [message, count] : fields) {
    EXPECT_EQ(message->field_count(), count) << message->full_name();
  }
}

constexpr char kGraph[] = R"pb(
  node {
    name: "x"
    op: "Placeholder"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "shape"
      value {
        shape {
          dim { size: -1 }
          dim { size: 3 }
        }
      }
    }
  }
  node {
    name: "w"
    op: "Const"
    device: "/job:worker/task:1/device:CPU:0"
    attr {
      key: "dtype"
      value { type: DT_FLOAT }
    }
    attr {
      key: "value"
      value {
        tensor {
          dtype: DT_FLOAT
          tensor_shape {
            dim { size: 3 }
            dim { size: 1 }
          }
          float_val: [ 1, 2.5, -3 ]
        }
      }
    }
  }
  node {
    name: "y"
    op: "MatMul"
    input: "x"
    input: "w:0"
    input: "^init"
    attr {
      key: "T"
      value { type: DT_FLOAT }
    }
    attr {
      key: "transpose_a"
      value { b: false }
    }
    attr {
      key: "_class"
      value { list { s: "loc:@w" } }
    }
    attr {
      key: "_output_shapes"
      value { list { shape { unknown_rank: true } } }
    }
  }
  node {
    name: "call"
    op: "PartitionedCall"
    input: "y"
    attr {
      key: "f"
      value {
        func {
          name: "g"
          attr {
            key: "T"
            value { type: DT_INT64 }
          }
        }
      }
    }
  }
  library {
    function {
      signature {
        name: "g"
        input_arg { name: "a" type_attr: "T" }
        output_arg { name: "b" type: DT_HALF }
        attr {
          name: "T"
          type: "type"
          allowed_values { list { type: [ DT_INT64 ] } }
        }
      }
      node_def { name: "c" op: "Cast" input: "a" }
      ret { key: "b" value: "c:y:0" }
    }
    gradient { function_name: "g" gradient_func: "g_grad" }
  }
  versions { producer: 27 min_consumer: 12 bad_consumers: 13 }
)pb";

TEST(Protos, GraphSurvivesTextAndWire) {
  GraphDef graph;
  ASSERT_TRUE(TextFormat::ParseFromString(kGraph, &graph));
  ASSERT_EQ(graph.node_size(), 4);
  EXPECT_EQ(graph.node(0).attr().at("shape").shape().dim(0).size(), -1);
  EXPECT_EQ(graph.node(1).attr().at("value").tensor().float_val(1), 2.5f);
  EXPECT_EQ(graph.library().function(0).ret().at("b"), "c:y:0");

  GraphDef from_wire;
  ASSERT_TRUE(from_wire.ParseFromString(graph.SerializeAsString()));
  EXPECT_TRUE(MessageDifferencer::Equals(graph, from_wire));

  std::string text;
  ASSERT_TRUE(TextFormat::PrintToString(graph, &text));
  GraphDef from_text;
  ASSERT_TRUE(TextFormat::ParseFromString(text, &from_text));
  EXPECT_TRUE(MessageDifferencer::Equals(graph, from_text));
}

TEST(Protos, BytesAreTensorFlows) {
  // Serialized by TensorFlow: AttrValue(tensor=TensorProto(dtype=DT_INT64, tensor_shape=[2],
  // int64_val=[300, -1])).
  const std::string bytes(
      "\x42\x16\x08\x09\x12\x04\x12\x02\x08\x02\x52\x0c\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff"
      "\x01",
      24);
  AttrValue value;
  ASSERT_TRUE(value.ParseFromString(bytes));
  EXPECT_EQ(value.tensor().dtype(), DT_INT64);
  EXPECT_EQ(value.tensor().int64_val(0), 300);
  EXPECT_EQ(value.tensor().int64_val(1), -1);
  EXPECT_EQ(value.SerializeAsString(), bytes);
}

TEST(Protos, UnknownFieldsAreKept) {
  GraphDef graph;
  ASSERT_TRUE(TextFormat::ParseFromString(kGraph, &graph));
  const std::string bytes = graph.SerializeAsString() + std::string(
                                                            "\xfa\x3e\x03"
                                                            "new",
                                                            6);
  GraphDef read;
  ASSERT_TRUE(read.ParseFromString(bytes));
  EXPECT_EQ(read.SerializeAsString().size(), bytes.size());
}

TEST(Protos, TruncatedBytesAreRefused) {
  GraphDef graph;
  ASSERT_TRUE(TextFormat::ParseFromString(kGraph, &graph));
  const std::string bytes = graph.SerializeAsString();
  EXPECT_FALSE(graph.ParseFromString(bytes.substr(0, bytes.size() - 1)));
}

TEST(Protos, ConfigReadsTensorFlowsText) {
  config::ConfigProto config;
  ASSERT_TRUE(TextFormat::ParseFromString(
      R"pb(
        device_count { key: "CPU" value: 2 }
        intra_op_parallelism_threads: 1
        inter_op_parallelism_threads: 2
        graph_options {
          optimizer_options { opt_level: L0 do_constant_folding: false }
          rewrite_options { disable_meta_optimizer: true constant_folding: OFF }
        }
        gpu_options { per_process_gpu_memory_fraction: 0.5 visible_device_list: "0" }
        cluster_def {
          job {
            name: "ps"
            tasks { key: 0 value: "localhost:2222" }
          }
        }
        allow_soft_placement: true
      )pb",
      &config));
  EXPECT_EQ(config.device_count().at("CPU"), 2);
  EXPECT_EQ(config.graph_options().optimizer_options().opt_level(), config::OptimizerOptions::L0);
  EXPECT_EQ(config.cluster_def().job(0).tasks().at(0), "localhost:2222");
}

}  // namespace
}  // namespace troupe
