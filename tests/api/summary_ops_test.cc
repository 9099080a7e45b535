// Ops that write event files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "api/troupe.h"
#include "devices/storage/event_file.h"
#include "devices/storage/local_file_system.h"
#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WriterOps : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    writer_ = ops::SummaryWriter(s_, {.shared_name = "the_writer"});
    open_ = ops::CreateSummaryFileWriter(s_, writer_, folder_, 100, 100000, "ops");
    flush_ = ops::FlushSummaryWriter(s_, writer_);
    close_ = ops::CloseSummaryWriter(s_, writer_);
  }
  void TearDown() override {
    session_.reset();
    std::filesystem::remove_all(folder_);
  }
  absl::Status Run(Node* node) {
    EXPECT_TRUE(s_.ok()) << s_.status();
    if (session_ == nullptr) session_ = *Session::Create(s_.graph());
    return session_->RunTargets({node});
  }
  /// Of the only file there is, without the first one.
  std::vector<Event> Events() {
    std::vector<Event> events;
    const auto files = NewLocalFileSystem();
    const auto names = files->List(folder_);
    if (!names.ok() || names->size() != 1) {
      ADD_FAILURE() << "no file, or several";
      return events;
    }
    const auto reader = EventFileReader::Open(files.get(), folder_ + "/" + names->front());
    Event event;
    while (reader.ok() && (*reader)->Next(&event).value_or(false)) events.push_back(event);
    if (!events.empty()) events.erase(events.begin());
    return events;
  }

  const std::string folder_ = testing::TempDir() + "troupe_writer_ops_test";
  const Scope s_ = Scope::NewRoot();
  Output writer_;
  Node *open_ = nullptr, *flush_ = nullptr, *close_ = nullptr;
  std::unique_ptr<Session> session_;
};

TEST_F(WriterOps, WriteWhatSummaryOpsGive) {
  const Tensor images = Tensor::Uninitialized(ElementType::kFloat, Shape({2, 3, 3, 1}));
  std::fill_n(const_cast<float*>(images.unchecked_data<float>()), 18, 0.5f);
  const Tensor sounds = Tensor::Vector<float>({0.1f, 0.2f}).Reshaped(Shape({1, 2}));
  const Tensor red = Tensor::Vector<uint8_t>({255, 0, 0});
  const std::vector<Output> merged = {
      ops::ScalarSummary(s_, "scalar", 1.5f), ops::HistogramSummary(s_, "histogram", {1.0f, 2.0f}),
      ops::ImageSummary(s_, "image", images), ops::AudioSummaryV2(s_, "audio", sounds, 8000.0f),
      ops::TensorSummaryV2(s_, "tensor", {1, 2}, "")};
  const Output all = ops::MergeSummary(s_, merged);
  const std::vector<Node*> writes = {
      ops::WriteScalarSummary(s_, writer_, int64_t{1}, "scalar", 1.5f),
      ops::WriteHistogramSummary(s_, writer_, int64_t{2}, "histogram", {1.0f, 2.0f}),
      ops::WriteImageSummary(s_, writer_, int64_t{3}, "image", images, red),
      ops::WriteAudioSummary(s_, writer_, int64_t{4}, "audio", sounds, 8000.0f),
      ops::WriteSummary(s_, writer_, int64_t{5}, {1, 2}, "tensor", ""),
      ops::WriteRawProtoSummary(s_, writer_, int64_t{6}, all)};
  ASSERT_TRUE(Run(open_).ok());
  ASSERT_TRUE(Run(open_).ok()) << "it stays open";
  for (Node* write : writes) ASSERT_TRUE(Run(write).ok()) << write->op();
  ASSERT_TRUE(Run(flush_).ok());

  const auto expected = session_->Run({all});
  ASSERT_TRUE(expected.ok()) << expected.status();
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 6u);
  Summary collected;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(events[i].step(), i + 1);
    collected.MergeFrom(events[i].summary());
  }
  Summary wanted;
  ASSERT_TRUE(wanted.ParseFromString(*(*expected)[0].scalar<std::string>()));
  // The op that makes a message says that there is no metadata, the one that writes says nothing.
  wanted.mutable_value(wanted.value_size() - 1)->clear_metadata();
  EXPECT_EQ(collected.DebugString(), wanted.DebugString());
  EXPECT_EQ(events[5].summary().SerializeAsString(), *(*expected)[0].scalar<std::string>());
}

TEST_F(WriterOps, WriteGraphsAndEvents) {
  GraphDef graph;
  s_.graph()->ToGraphDef(&graph);
  Event event;
  event.set_step(77);
  event.set_wall_time(3.5);
  event.mutable_session_log()->set_msg("hello");
  Node* write_graph = ops::WriteGraphSummary(s_, writer_, int64_t{3}, graph.SerializeAsString());
  Node* import = ops::ImportEvent(s_, writer_, event.SerializeAsString());
  ASSERT_TRUE(Run(open_).ok());
  ASSERT_TRUE(Run(write_graph).ok());
  ASSERT_TRUE(Run(import).ok());
  ASSERT_TRUE(Run(close_).ok());
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].graph_def(), graph.SerializeAsString());
  EXPECT_EQ(events[1].SerializeAsString(), event.SerializeAsString());
  EXPECT_TRUE(absl::IsNotFound(Run(flush_))) << "it is closed";
  EXPECT_TRUE(absl::IsNotFound(Run(close_)));
}

TEST_F(WriterOps, FlushAfterSoMany) {
  Node* open = ops::CreateSummaryFileWriter(s_, writer_, folder_, 2, 100000, "");
  Node* write = ops::WriteScalarSummary(s_, writer_, int64_t{1}, "a", 1);
  ASSERT_TRUE(Run(open).ok());
  for (const size_t seen : {0, 0, 3, 3}) {
    ASSERT_TRUE(Run(write).ok());
    EXPECT_EQ(Events().size(), seen);
  }
}

TEST_F(WriterOps, BadInputIsAnError) {
  const auto scalar = [&](const Input& step, const Input& tag, const Input& value) {
    return ops::WriteScalarSummary(s_, writer_, step, tag, value);
  };
  const std::vector<Output> none;
  Node* unopened = scalar(int64_t{1}, "a", 1);
  EXPECT_TRUE(absl::IsNotFound(Run(unopened)));
  ASSERT_TRUE(Run(open_).ok());
  const Tensor vector = Tensor::Vector<int64_t>({1, 2});
  const Tensor empty = Tensor::Uninitialized(ElementType::kFloat, Shape({0}));
  const Tensor tags = Tensor::Vector<std::string>({"a", "b"});
  for (Node* bad :
       {scalar(vector, "a", 1), scalar(int64_t{1}, tags, 1), scalar(int64_t{1}, "a", empty),
        ops::WriteHistogramSummary(s_, writer_, int64_t{1}, "a", NAN),
        ops::WriteImageSummary(s_, writer_, int64_t{1}, "a", {1.0f}, Tensor::Vector<uint8_t>({0})),
        ops::WriteAudioSummary(s_, writer_, int64_t{1}, "a", {1.0f}, 1.0f)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Run(bad))) << bad->name();
  }
  for (Node* bad : {ops::ImportEvent(s_, writer_, "\xff\xff"),
                    ops::WriteGraphSummary(s_, writer_, int64_t{1}, "\xff\xff"),
                    ops::WriteRawProtoSummary(s_, writer_, int64_t{1}, "\xff\xff")}) {
    EXPECT_TRUE(absl::IsDataLoss(Run(bad))) << bad->op();
  }
  Node* nowhere = ops::CreateSummaryFileWriter(s_, ops::SummaryWriter(s_), "/dev/null/a", 1, 1, "");
  EXPECT_FALSE(Run(nowhere).ok());
  const Output queue = ops::FIFOQueueV2(s_, {ElementType::kFloat}, {.shared_name = "a_queue"});
  const absl::Status other = Run(ops::WriteScalarSummary(s_, queue, int64_t{1}, "a", 1));
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  EXPECT_THAT(std::string(other.message()), HasSubstr("not to a SummaryWriter"));
}

}  // namespace
}  // namespace troupe
