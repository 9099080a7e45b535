// Every registered op against the definition that TensorFlow has.

#include <fcntl.h>
#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "graph/op_registry.h"
#include "graph/protos/graph.pb.h"
#include "tests/source_dir.h"

namespace troupe {
namespace {

std::map<std::string, OpDef> Expected() {
  const int file = open(TROUPE_SOURCE_DIR "/tests/graph/testdata/opdefs.pbtxt.gz", O_RDONLY);
  EXPECT_GE(file, 0);
  OpList list;
  {
    google::protobuf::io::FileInputStream bytes(file);
    google::protobuf::io::GzipInputStream text(&bytes);
    google::protobuf::TextFormat::Parser parser;
    EXPECT_TRUE(parser.Parse(&text, &list));
  }
  close(file);
  std::ifstream more(TROUPE_SOURCE_DIR "/tests/graph/testdata/quantized_opdefs.pbtxt");
  const std::string text(std::istreambuf_iterator<char>(more), {});
  google::protobuf::TextFormat::Parser merger;
  EXPECT_TRUE(merger.MergeFromString(text, &list));
  std::map<std::string, OpDef> ops;
  for (OpDef& op : *list.mutable_op()) {
    std::string name = op.name();
    ops.emplace(std::move(name), std::move(op));
  }
  return ops;
}

void RemoveProse(OpDef* def) {
  def->clear_summary();
  def->clear_description();
  for (auto* args : {def->mutable_input_arg(), def->mutable_output_arg()}) {
    for (OpDef::ArgDef& arg : *args) {
      arg.clear_description();
      arg.clear_experimental_full_type();
    }
  }
  for (OpDef::AttrDef& attr : *def->mutable_attr()) attr.clear_description();
  if (def->has_deprecation()) def->mutable_deprecation()->clear_explanation();
}

TEST(OpDefs, EqualTensorFlows) {
  std::map<std::string, OpDef> expected = Expected();
  ASSERT_GT(expected.size(), 800u);
  // What the list of TensorFlow's ops lacks, and what TensorFlow does not have.
  const std::set<std::string> own = {"AskActor",
                                     "DatasetIterator",
                                     "DatasetIteratorInitialize",
                                     "DatasetIteratorNext",
                                     "DatasetIteratorRestore",
                                     "DatasetIteratorSave",
                                     "DisableCopyOnRead",
                                     "TellActor",
                                     "ToBool"};
  for (const std::string& name : OpRegistry::Global()->Names()) {
    auto registration = OpRegistry::Global()->LookUp(name);
    ASSERT_TRUE(registration.ok()) << registration.status();
    auto found = expected.find(name);
    EXPECT_EQ(found == expected.end(), own.contains(name))
        << name
        << (own.contains(name) ? " is TensorFlow's, too" : " is not among TensorFlow's ops");
    if (found == expected.end()) continue;
    OpDef ours = *(*registration)->def;
    RemoveProse(&ours);
    RemoveProse(&found->second);
    std::string differences;
    google::protobuf::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&differences);
    EXPECT_TRUE(differencer.Compare(found->second, ours)) << name << ": " << differences;
  }
  for (const std::string& name : own) {
    EXPECT_TRUE(OpRegistry::Global()->LookUp(name).ok()) << name << " is not registered";
  }
}

TEST(OpDefs, AreDocumented) {
  for (const std::string& name : OpRegistry::Global()->Names()) {
    auto registration = OpRegistry::Global()->LookUp(name);
    ASSERT_TRUE(registration.ok()) << registration.status();
    EXPECT_FALSE((*registration)->def->summary().empty()) << name;
  }
}

}  // namespace
}  // namespace troupe
