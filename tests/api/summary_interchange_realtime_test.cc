// TensorFlow and TensorBoard read our event files. Skipped where Python has no tensorflow: the
// Python that the environment variable TROUPE_PEERS_PYTHON names, or python3.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "api/program/child_process.h"
#include "api/troupe.h"
#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

std::string RunPython(std::vector<std::string> arguments) {
  const char* const python = std::getenv("TROUPE_PEERS_PYTHON");
  ChildProcess::Options options;
  options.arguments = {"/usr/bin/env", python != nullptr ? python : "python3"};
  options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
  options.output = options.errors = true;
  auto process = ChildProcess::Start(options);
  return process.ok() ? process->Rest() : "";
}

TEST(SummaryInterchange, TensorFlowReadsOurEvents) {
  const std::string found = RunPython(
      {"-c", "import importlib.util as u; print('yes' if u.find_spec('tensorflow') else 'no')"});
  if (found != "yes\n") {
    GTEST_SKIP() << "Python has no tensorflow: set TROUPE_PEERS_PYTHON to one that has";
  }
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
