#include "api/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "api/troupe.h"
#include "devices/storage/event_file.h"
#include "devices/storage/local_file_system.h"
#include "graph/protos/meta_graph.pb.h"
#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Event> EventsOf(const std::string& path) {
  std::vector<Event> events;
  const auto files = NewLocalFileSystem();
  const auto reader = EventFileReader::Open(files.get(), path);
  EXPECT_TRUE(reader.ok()) << reader.status();
  Event event;
  while (reader.ok() && (*reader)->Next(&event).value_or(false)) events.push_back(event);
  return events;
}

Summary Parsed(const Tensor& tensor) {
  Summary summary;
  EXPECT_TRUE(summary.ParseFromString(*tensor.scalar<std::string>()));
  return summary;
}

// --- nodes ---------------------------------------------------------------------------------------

TEST(Summaries, AreNamedLikeTensorFlows) {
  const Scope s = Scope::NewRoot();
  const Scope layer = s.NewSubScope("layer");
  summary::Scalar(s, "loss", 1.0f);
  summary::Scalar(s, "loss", 2.0f);
  summary::Scalar(layer, "/learning rate", 3);
  summary::Scalar(layer, "x", 4.0, {.family = "family"});
  summary::Histogram(layer, "weights", {1.0f, 2.0f});
  summary::Image(s, "input", Tensor::Uninitialized(ElementType::kUint8, Shape({2, 1, 1, 1})), 2);
  summary::Audio(s, "sound", Tensor::Uninitialized(ElementType::kFloat, Shape({1, 4})), 8000.0f, 1);
  summary::Text(s, "notes", Tensor::Vector<std::string>({"a", "b"}));
  const Output apart = summary::Scalar(s, "apart", 5.0f, {.collections = {"mine", "others"}});
  const Output merged = summary::MergeAll(s);
  ASSERT_TRUE(s.ok()) << s.status();
  // What TensorFlow 2.21 calls them.
  for (const char* node : {"loss", "loss/tags", "loss_1", "layer/learning_rate", "layer/family/x",
                           "layer/family/x/tags", "layer/weights", "layer/weights/tag", "input",
                           "input/tag", "sound", "sound/tag", "notes", "notes/tag",
                           "notes/serialized_summary_metadata", "apart", "Merge/MergeSummary"}) {
    EXPECT_NE(s.graph()->FindNode(node), nullptr) << node;
  }
  EXPECT_THAT(s.graph()->Collection("mine"), ElementsAre(apart.name()));
  EXPECT_THAT(s.graph()->Collection("others"), ElementsAre(apart.name()));

  auto session = Session::Create(s.graph());
  auto values = (*session)->Run({merged});
  ASSERT_TRUE(values.ok()) << values.status();
  const Summary all = Parsed((*values)[0]);
  std::vector<std::string> tags;
  for (const Summary::Value& value : all.value()) tags.push_back(value.tag());
  EXPECT_THAT(
      tags, ElementsAre("loss", "loss_1", "layer/learning_rate", "family/layer/family/x",
                        "layer/weights", "input/image/0", "input/image/1", "sound/audio", "notes"));
  EXPECT_EQ(all.value(1).simple_value(), 2.0f);
  EXPECT_EQ(all.value(4).histo().num(), 2);
  EXPECT_EQ(all.value(8).metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(all.value(8).tensor().string_val(1), "b");
}

TEST(Summaries, OfNothingAreNone) {
  const Scope s = Scope::NewRoot();
  EXPECT_FALSE(summary::MergeAll(s).valid());
  EXPECT_FALSE(summary::MergeAll(s, "no such collection").valid());
  EXPECT_TRUE(s.ok());
}

TEST(Summaries, BadInputIsAnError) {
  const Scope s = Scope::NewRoot();
  EXPECT_FALSE(summary::Text(s, "notes", 1.0f).valid());
  EXPECT_TRUE(absl::IsInvalidArgument(s.status())) << s.status();
  EXPECT_THAT(std::string(s.status().message()), HasSubstr("'notes'"));

  const Scope strings = Scope::NewRoot();
  EXPECT_FALSE(summary::Scalar(strings, "loss", "text").valid());
  EXPECT_TRUE(absl::IsInvalidArgument(strings.status())) << strings.status();

  const Scope lost = Scope::NewRoot();
  lost.graph()->AddToCollection(collections::kSummaries, "no_such_node:0");
  EXPECT_FALSE(summary::MergeAll(lost).valid());
  EXPECT_THAT(std::string(lost.status().message()), HasSubstr("collection 'summaries'"));
}

// --- writers -------------------------------------------------------------------------------------

class Writing : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "troupe_summary_test";
};

TEST_F(Writing, WhatIsAddedIsWritten) {
  auto made = SummaryWriter::Create(folder_, {.suffix = ".mine"});
  ASSERT_TRUE(made.ok()) << made.status();
  SummaryWriter& writer = **made;
  EXPECT_EQ(writer.directory(), folder_);

  const Scope s = Scope::NewRoot();
  summary::Scalar(s, "loss", 0.5f);
  summary::Text(s, "notes", "hello");
  const Output merged = summary::MergeAll(s);
  auto session = Session::Create(s.graph());
  RunMetadata metadata;
  auto values = (*session)->Run(FeedMap{}, {merged}, {}, {.trace = true}, &metadata);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(writer.AddGraph(*s.graph()).ok());
  EXPECT_TRUE(writer.AddSummary((*values)[0], 1).ok());
  EXPECT_TRUE(writer.AddSummary(*(*values)[0].scalar<std::string>(), 2).ok());
  EXPECT_TRUE(writer.AddScalar("rate", 1.5, 3).ok());
  SessionLog stop;
  stop.set_status(SessionLog::STOP);
  EXPECT_TRUE(writer.AddSessionLog(stop, 4).ok());
  EXPECT_TRUE(writer.AddRunMetadata(metadata, "step_5", 5).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(writer.AddRunMetadata(metadata, "step_5", 6)));
  MetaGraphDef meta;
  meta.mutable_meta_info_def()->set_meta_graph_version("v");
  EXPECT_TRUE(writer.AddMetaGraph(meta).ok());
  ASSERT_TRUE(writer.Flush().ok());

  const std::vector<Event> events = EventsOf(writer.path());
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  GraphDef graph;
  EXPECT_TRUE(graph.ParseFromString(events[1].graph_def()));
  EXPECT_EQ(graph.node_size(), s.graph()->num_nodes() - 2);
  EXPECT_EQ(events[2].step(), 1);
  ASSERT_EQ(events[2].summary().value_size(), 2);
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 0.5f);
  EXPECT_TRUE(events[2].summary().value(1).has_metadata());
  EXPECT_FALSE(events[3].summary().value(1).has_metadata()) << "it has been said before";
  EXPECT_EQ(events[4].summary().value(0).simple_value(), 1.5f);
  EXPECT_EQ(events[5].session_log().status(), SessionLog::STOP);
  EXPECT_EQ(events[6].tagged_run_metadata().tag(), "step_5");
  EXPECT_EQ(events[6].tagged_run_metadata().run_metadata(), metadata.SerializeAsString());
  EXPECT_EQ(events[7].meta_graph_def(), meta.SerializeAsString());
  for (const Event& event : events) {
    EXPECT_NEAR(event.wall_time(), absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()), 100);
  }
}

TEST_F(Writing, GoesOnInAnotherFile) {
  auto writer = SummaryWriter::Create(folder_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::string first = (*writer)->path();
  EXPECT_TRUE((*writer)->Reopen().ok());
  EXPECT_EQ((*writer)->path(), first) << "it was open";
  EXPECT_TRUE((*writer)->AddScalar("a", 1, 1).ok());
  EXPECT_TRUE((*writer)->Close().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*writer)->AddScalar("a", 2, 2)));
  EXPECT_TRUE((*writer)->Reopen().ok());
  EXPECT_NE((*writer)->path(), first);
  EXPECT_TRUE((*writer)->AddScalar("a", 3, 3).ok());
  EXPECT_TRUE((*writer)->Close().ok());
  EXPECT_EQ(EventsOf(first).size(), 2u);
  EXPECT_EQ(EventsOf((*writer)->path()).size(), 2u);
}

TEST_F(Writing, OneWriterAFolder) {
  auto writer = SummaryWriter::ForDirectory(folder_);
  auto same = SummaryWriter::ForDirectory(folder_);
  auto other = SummaryWriter::ForDirectory(folder_ + "/sub");
  ASSERT_TRUE(writer.ok() && same.ok() && other.ok());
  EXPECT_EQ(*writer, *same);
  EXPECT_NE(*writer, *other);
  EXPECT_TRUE((*writer)->Close().ok());
  same = SummaryWriter::ForDirectory(folder_);
  ASSERT_TRUE(same.ok());
  EXPECT_TRUE((*same)->AddScalar("a", 1, 1).ok()) << "it is open again";
}

TEST_F(Writing, BadInputIsAnError) {
  auto writer = SummaryWriter::Create(folder_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->AddSummary("\xff\xff", 1)));
  EXPECT_TRUE(absl::IsInvalidArgument((*writer)->AddSummary(Tensor::Scalar(1.0f), 1)));
  EXPECT_TRUE(
      absl::IsInvalidArgument((*writer)->AddSummary(Tensor::Vector<std::string>({"", ""}), 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(SummaryWriter::Create(folder_, {.max_queue = 0}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(SummaryWriter::Create("nobodys://a").status()));
  EXPECT_FALSE(SummaryWriter::Create("/dev/null/folder").ok());
}

}  // namespace
}  // namespace troupe
