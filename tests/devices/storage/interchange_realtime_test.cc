// TensorFlow reads what we write. Skipped where Python has no tensorflow: the Python that the
// environment variable TROUPE_PEERS_PYTHON names, or python3.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "devices/status_macros.h"
#include "devices/storage/bundle_writer.h"
#include "devices/storage/checkpoint_state.h"
#include "devices/storage/event_file.h"
#include "devices/storage/local_file_system.h"
#include "devices/storage/merge_bundles.h"
#include "devices/storage/record_writer.h"
#include "devices/tensor_proto.h"
#include "graph/protos/summary.pb.h"
#include "graph/protos/tensor.pb.h"
#include "gtest/gtest.h"
#include "tests/api/program/run_python.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

class Interchange : public testing::Test {
 protected:
  void SetUp() override {
    if (!PythonHasTensorFlow()) GTEST_SKIP() << kNoTensorFlow;
    std::filesystem::remove_all(folder_);
    ASSERT_TRUE(files_->CreateDirectories(folder_).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string In(const std::string& name) { return folder_ + "/" + name; }

  void WriteExpected(const std::map<std::string, TensorsByName>& checkpoints) {
    const auto writer = RecordWriter::Create(files_.get(), In("expected.tfrecord"));
    for (const auto& [prefix, tensors] : checkpoints) {
      for (const auto& [name, tensor] : tensors) {
        NamedTensorProto named;
        named.set_name(StrCat(prefix, ":", name));
        TensorToProto(tensor, named.mutable_tensor());
        ASSERT_TRUE((*writer)->Write(named.SerializeAsString()).ok());
      }
    }
    ASSERT_TRUE((*writer)->Close().ok());
  }

  const std::unique_ptr<FileSystem> files_ = NewLocalFileSystem();
  const std::string folder_ = testing::TempDir() + "troupe_interchange_test";
};

TEST_F(Interchange, TensorFlowReadsOurFiles) {
  std::map<std::string, TensorsByName> checkpoints;
  checkpoints["plain"] = EveryType();
  // Many tensors, so that the table has several blocks; written twice: the second time beside the
  // first.
  for (int i = 0; i < 500; ++i) {
    checkpoints["many"][StrCat("scope_", i % 7, "/a_variable_with_a_long_name_", i)] =
        Tensor::Scalar(static_cast<float>(i));
  }
  for (const char* prefix : {"plain", "many", "many"}) {
    ASSERT_TRUE(WriteBundle(files_.get(), In(prefix), checkpoints[prefix]).ok());
  }
  // Partitioned and sharded; TensorFlow puts no strings together.
  const Tensor rows = RandomTensor(ElementType::kFloat, Shape({10, 4}), 1);
  std::vector<std::string> parts;
  for (const int64_t begin : {0, 2, 6}) {
    const int64_t count = begin == 0 ? 2 : 4;
    parts.push_back(In(StrCat("parts/part-", begin)));
    const auto writer = BundleWriter::Create(files_.get(), parts.back());
    ASSERT_TRUE(writer.ok()) << writer.status();
    const TensorSlice both({{begin, count}, {0, TensorSlice::kAll}});
    ASSERT_TRUE(
        (*writer)->AddSlice("rows", rows.shape(), both, rows.Slice(begin, begin + count)).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  ASSERT_TRUE(MergeBundles(files_.get(), parts, In("merged")).ok());
  checkpoints["merged"] = {{"rows", rows}};
  WriteExpected(checkpoints);

  const std::map<std::string, FileCompression> kCompressions = {{"", FileCompression::kNone},
                                                                {"ZLIB", FileCompression::kZlib},
                                                                {"GZIP", FileCompression::kGzip}};
  for (const auto& [name, compression] : kCompressions) {
    const auto writer = RecordWriter::Create(files_.get(), In("records" + name), {compression});
    for (const std::string& record :
         {std::string(), std::string("one"), std::string(100000, 'x'), std::string("\0\xff", 2)}) {
      ASSERT_TRUE((*writer)->Write(record).ok());
      ASSERT_TRUE((*writer)->Flush().ok());
    }
    ASSERT_TRUE((*writer)->Close().ok());
  }

  const auto events =
      EventFileWriter::Create(files_.get(), folder_, absl::FromUnixMillis(1700000000500), "host");
  Event event;
  event.set_step(3);
  Summary::Value* value = event.mutable_summary()->add_value();
  value->set_tag("loss");
  value->set_simple_value(0.25F);
  ASSERT_TRUE((*events)->Write(event).ok());
  ASSERT_TRUE((*events)->Close().ok());

  CheckpointHistory history;
  history.latest = In("merged");
  history.all = {In("plain"), In("merged")};
  history.timestamps = {1700000000.25, 1700000001.5};
  CheckpointStateOptions options;
  options.relative_paths = true;
  ASSERT_TRUE(WriteCheckpointState(files_.get(), folder_, history, options).ok());

  const std::string output = RunPython({"tests/devices/storage/read_with_tensorflow.py", folder_});
  EXPECT_TRUE(output.ends_with("8 files agree\n")) << output;
}

}  // namespace
}  // namespace troupe
