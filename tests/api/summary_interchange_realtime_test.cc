// TensorFlow and TensorBoard read our event files. Skipped where Python has no tensorflow: the
// Python that the environment variable TROUPE_PEERS_PYTHON names, or python3.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "api/troupe.h"
#include "graph/protos/summary.pb.h"
#include "tests/api/program/run_python.h"

namespace troupe {
namespace {

TEST(SummaryInterchange, TensorFlowReadsOurEvents) {
  if (!PythonHasTensorFlow()) GTEST_SKIP() << kNoTensorFlow;
  const std::string folder = testing::TempDir() + "troupe_summary_interchange_test";
  std::filesystem::remove_all(folder);

  const Scope s = Scope::NewRoot();
  summary::Scalar(s, "loss", 0.25);
  summary::Histogram(s, "weights", {-1.0f, 0.0f, 2.5f});
  const Tensor photo = *Tensor::FromValues<uint8_t>({0, 1, 2, 3, 4, 5}, Shape({1, 1, 2, 3}));
  summary::Image(s, "photo", photo, 1);
  summary::Audio(s, "sound", *Tensor::FromValues<float>({0.5f, -0.25f}, Shape({1, 2})), 8000.0f, 1);
  summary::Text(s, "notes", Tensor::Vector<std::string>({"one", "two"}));
  const Output merged = summary::MergeAll(s);
  auto session = Session::Create(s.graph());
  ASSERT_TRUE(session.ok()) << session.status();
  auto writer = SummaryWriter::Create(folder);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddGraph(*s.graph()).ok());
  SessionLog start;
  start.set_status(SessionLog::START);
  ASSERT_TRUE((*writer)->AddSessionLog(start, 0).ok());
  RunMetadata metadata;
  for (int step = 1; step <= 2; ++step) {
    metadata.Clear();
    auto values = (*session)->Run(FeedMap{}, {merged}, {}, {.trace = true}, &metadata);
    ASSERT_TRUE(values.ok()) << values.status();
    ASSERT_TRUE((*writer)->AddSummary((*values)[0], step).ok());
  }
  ASSERT_TRUE((*writer)->AddRunMetadata(metadata, "step_2", 2).ok());
  ASSERT_TRUE((*writer)->Close().ok());

  const std::string output = RunPython({"tests/api/read_summaries.py", folder});
  EXPECT_TRUE(output.ends_with("all read\n")) << output;
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe
