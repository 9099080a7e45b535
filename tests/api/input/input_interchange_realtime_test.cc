// TensorFlow reads our record files and Examples. Skipped where Python has no tensorflow: the
// Python that the environment variable TROUPE_PEERS_PYTHON names, or python3.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/examples.h"
#include "devices/storage/record_writer.h"
#include "tests/api/program/run_python.h"

namespace troupe {
namespace {

constexpr char kRead[] = R"(
import os, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import tensorflow as tf
for compression in ["", "ZLIB", "GZIP"]:
    data = tf.data.TFRecordDataset(sys.argv[1] + "/r" + compression, compression)
    features = {"x": tf.io.FixedLenFeature([2], tf.float32), "n": tf.io.VarLenFeature(tf.int64),
                "s": tf.io.FixedLenFeature([], tf.string)}
    for i, record in enumerate(data.take(100)):
        parsed = tf.io.parse_single_example(record, features)
        assert parsed["x"].numpy().tolist() == [i, i / 2], parsed
        assert parsed["n"].values.numpy().tolist() == list(range(i % 5)), parsed
        assert parsed["s"].numpy() == b"\xff%d" % i, parsed
    assert i == 99
    context, lists = tf.io.parse_single_sequence_example(
        next(iter(data.skip(100))), {"n": tf.io.FixedLenFeature([], tf.int64)},
        {"w": tf.io.VarLenFeature(tf.string)})
    assert context["n"].numpy() == 2
    assert tf.sparse.to_dense(lists["w"]).numpy().tolist() == [[b"a", b""], [b"b", b"c"]], lists
print("read")
)";

TEST(Interchange, TensorFlowReadsOurExamples) {
  if (!PythonHasTensorFlow()) GTEST_SKIP() << kNoTensorFlow;
  const std::string folder = testing::TempDir() + "troupe_input_interchange_test";
  std::filesystem::create_directories(folder);
  const std::pair<std::string, FileCompression> kinds[] = {{"", FileCompression::kNone},
                                                           {"ZLIB", FileCompression::kZlib},
                                                           {"GZIP", FileCompression::kGzip}};
  for (const auto& [name, compression] : kinds) {
    const auto writer =
        RecordWriter::Create(absl::StrCat(folder, "/r", name), {.compression = compression});
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (int i = 0; i < 100; ++i) {
      std::vector<int> numbers;
      for (int n = 0; n < i % 5; ++n) numbers.push_back(n);
      const std::string example = ExampleBuilder()
                                      .Add("x", {static_cast<float>(i), static_cast<float>(i) / 2})
                                      .Add("n", numbers)
                                      .Add("s", "\xff" + std::to_string(i))
                                      .Serialize();
      ASSERT_TRUE((*writer)->Write(example).ok());
    }
    SequenceExampleBuilder sequence;
    sequence.AddContext("n", 2).AddStep("w", "a").AddStep("w", {"b", "c"});
    ASSERT_TRUE((*writer)->Write(sequence.Serialize()).ok());
    ASSERT_TRUE((*writer)->Close().ok());
  }
  // TensorFlow may say something before.
  EXPECT_THAT(RunPython({"-c", kRead, folder}), testing::EndsWith("read\n"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe
