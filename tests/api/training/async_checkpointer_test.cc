#include "api/training/async_checkpointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <filesystem>
#include <future>

#include "api/troupe.h"
#include "graph/protos/meta_graph.pb.h"
#include "tests/devices/storage/scheme_disk.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using Fault = SimulatedDisk::Fault;

class AsyncTest : public ::testing::Test {
 protected:
  AsyncTest()
      : scheme_("slow" + std::to_string(counter_++)),
        disk_(SchemeDisk::Register(scheme_)),
        w_(s, ops::Const(s, Tensor::Vector<float>({0, 0, 0})), "w"),
        saver_(std::make_shared<Saver>(s, SaveableList(), SaverOptions{.asynchronous = true})),
        add_(w_.AssignAdd(s, Tensor::Vector<float>({1, 1, 1}))) {
    Node* const init = GlobalVariablesInitializer(s);
    EXPECT_TRUE(s.ok()) << s.status();
    session_ = *Session::Create(s.graph(), {.threads = 2});
    EXPECT_TRUE(session_->RunTargets({init}).ok());
  }
  std::string Path(const std::string& name) const { return scheme_ + "://run/" + name; }
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_TRUE(session_->RunTargets({add_}).ok());
  }
  float Saved(const std::string& prefix) {
    const auto tensor = LoadVariable(prefix, "w");
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return tensor.ok() ? tensor->unchecked_values<float>()[2] : -1;
  }

  inline static int counter_ = 0;
  const std::string scheme_;
  SchemeDisk* const disk_;
  Scope s = Scope::NewRoot();
  ModelVariable w_;
  std::shared_ptr<Saver> saver_;
  Node* const add_;
  std::unique_ptr<Session> session_;
};

TEST_F(AsyncTest, SavesTheValuesOfTheCall) {
  AsyncCheckpointer checkpointer(saver_);
  Train(3);
  disk_->Hold();
  const auto begun = checkpointer.Save(*session_, Path("model"), 3);
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_TRUE(*begun);
  Train(5);  // The disk has not even begun.
  EXPECT_EQ(checkpointer.last_saved(), "");
  disk_->LetGo();
  ASSERT_TRUE(checkpointer.Wait().ok());
  EXPECT_EQ(checkpointer.last_saved(), Path("model-3"));
  EXPECT_EQ(Saved(Path("model-3")), 3);
  EXPECT_EQ(*LatestCheckpoint(scheme_ + "://run"), Path("model-3"));
  EXPECT_EQ((*session_->Run({w_.value()}))[0].unchecked_values<float>()[0], 8);
}

// The system refuses a thread: the call says so, and nobody waits for the save.
TEST_F(AsyncTest, WithoutAThread) {
  AsyncCheckpointer checkpointer(saver_);
  pthread_attr_t before, huge;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 60), 0);
  ASSERT_EQ(pthread_setattr_default_np(&huge), 0);
  const absl::Status status = checkpointer.Save(*session_, Path("model"), 1).status();
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(checkpointer.Wait().ok());
  ASSERT_TRUE(checkpointer.Save(*session_, Path("model"), 2).ok());
  EXPECT_TRUE(checkpointer.Close().ok());
  EXPECT_EQ(checkpointer.last_saved(), Path("model-2"));
}

TEST_F(AsyncTest, ReferenceVariablesToo) {
  Scope r = Scope::NewRoot();
  const Output v = ops::VariableV2(r.WithOpName("v"), PartialShape({2}), ElementType::kFloat);
  Node* const init = ops::Assign(r, v, Tensor::Vector<float>({1, 1})).node;
  Node* const add = ops::AssignAdd(r, v, Tensor::Vector<float>({1, 1})).node;
  const auto saver = std::make_shared<Saver>(r, SaveableList(), SaverOptions{.asynchronous = true});
  ASSERT_TRUE(r.ok()) << r.status();
  const auto session = *Session::Create(r.graph(), {.threads = 2});
  ASSERT_TRUE(session->RunTargets({init}).ok());
  AsyncCheckpointer checkpointer(saver);
  disk_->Hold();
  ASSERT_TRUE(checkpointer.Save(*session, Path("model"), 1).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(session->RunTargets({add}).ok());
  disk_->LetGo();
  ASSERT_TRUE(checkpointer.Close().ok());
  EXPECT_EQ(LoadVariable(Path("model-1"), "v")->unchecked_values<float>()[0], 1);
}

TEST_F(AsyncTest, SkipsWhatComesTooSoon) {
  AsyncCheckpointer checkpointer(saver_, {.when_busy = AsyncCheckpointerOptions::WhenBusy::kSkip});
  disk_->Hold();
  ASSERT_TRUE(*checkpointer.Save(*session_, Path("model"), 1));
  const auto second = checkpointer.Save(*session_, Path("model"), 2);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE(*second);
  disk_->LetGo();
  ASSERT_TRUE(checkpointer.Wait().ok());
  EXPECT_TRUE(*checkpointer.Save(*session_, Path("model"), 3));
  ASSERT_TRUE(checkpointer.Close().ok());
  EXPECT_TRUE(*CheckpointExists(Path("model-3")));
  EXPECT_FALSE(*CheckpointExists(Path("model-2")));
}

TEST_F(AsyncTest, WaitsForTheOneBefore) {
  AsyncCheckpointer checkpointer(saver_);
  disk_->Hold();
  ASSERT_TRUE(*checkpointer.Save(*session_, Path("model"), 1));
  auto second = std::async(std::launch::async,
                           [&] { return checkpointer.Save(*session_, Path("model"), 2); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  disk_->LetGo();
  const auto begun = second.get();
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_TRUE(*begun);
  ASSERT_TRUE(checkpointer.Close().ok());
  EXPECT_TRUE(*CheckpointExists(Path("model-2")));
}

TEST_F(AsyncTest, AnErrorIsToldOnce) {
  std::vector<absl::Status> told;
  AsyncCheckpointer checkpointer(saver_, {.done = [&](const absl::StatusOr<std::string>& saved) {
                                   told.push_back(saved.status());
                                 }});
  ASSERT_TRUE(*checkpointer.Save(*session_, Path("model"), 1));
  ASSERT_TRUE(checkpointer.Wait().ok());
  // An error that is there before the step holds its tensors is given at once.
  disk_->Hold();
  ASSERT_TRUE(*checkpointer.Save(*session_, Path("model"), 2));
  disk_->SetFault(Fault::kDiskFull, 0);
  disk_->LetGo();
  absl::Status status;
  while (status.ok()) status = checkpointer.Save(*session_, Path("model"), 3).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("model-2")));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_TRUE(told[0].ok());
  EXPECT_FALSE(told[1].ok());
  disk_->SetFault(Fault::kNone, 0);
  ASSERT_TRUE(*checkpointer.Save(*session_, Path("model"), 4));
  EXPECT_TRUE(checkpointer.Wait().ok());
  EXPECT_EQ(*LatestCheckpoint(scheme_ + "://run"), Path("model-4"));
  disk_->Hold();
  ASSERT_TRUE(*checkpointer.Save(*session_, Path("model"), 5));
  disk_->SetFault(Fault::kReadOnly, 0);
  disk_->LetGo();
  EXPECT_FALSE(checkpointer.Close().ok());
  EXPECT_TRUE(checkpointer.Close().ok());
  EXPECT_EQ(checkpointer.Save(*session_, Path("model"), 6).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(*LatestCheckpoint(scheme_ + "://run"), Path("model-4"));
}

TEST_F(AsyncTest, ASessionThatEndsCancelsItsSave) {
  AsyncCheckpointer checkpointer(saver_);
  disk_->Hold();
  ASSERT_TRUE(*checkpointer.Save(*session_, Path("model"), 1));
  session_.reset();
  EXPECT_EQ(checkpointer.Wait().code(), absl::StatusCode::kCancelled);
  disk_->LetGo();
}

TEST_F(AsyncTest, NeedsASaverThatCan) {
  AsyncCheckpointer none(nullptr);
  EXPECT_EQ(none.Save(*session_, Path("m")).status().code(), absl::StatusCode::kInvalidArgument);
  AsyncCheckpointer plain(std::make_shared<Saver>(s, SaveableList()));
  EXPECT_EQ(plain.Save(*session_, Path("m")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  // Found again by its name.
  auto again = Saver::FromProto(*s.graph(), saver_->ToProto());
  AsyncCheckpointer found(std::shared_ptr<Saver>(*std::move(again)));
  EXPECT_TRUE(found.Save(*session_, Path("m")).ok());
  EXPECT_TRUE(found.Close().ok());
  EXPECT_FALSE(found.Save(*session_, Path("")).ok());
}

}  // namespace
}  // namespace troupe
