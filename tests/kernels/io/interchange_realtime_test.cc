// Readers and parsers beside TensorFlow's, on files of both. Skipped where Python has no
// tensorflow: the Python that the environment variable TROUPE_PEERS_PYTHON names, or python3.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "api/troupe.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/record_reader.h"
#include "devices/storage/record_writer.h"
#include "devices/tensor_proto.h"
#include "graph/protos/example.pb.h"
#include "graph/protos/tensor.pb.h"
#include "tests/api/program/run_python.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe {
namespace {

constexpr int kExamples = 200;

std::string RandomExample(std::mt19937* random) {
  Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  const auto below = [&](int end) { return static_cast<int>((*random)() % end); };
  const auto number = [&] { return static_cast<float>(below(1000)) / 8; };
  for (int i = 0; i < 3; ++i) features["fixed"].mutable_float_list()->add_value(number());
  features["sparse"].mutable_int64_list();
  for (int i = below(4); i > 0; --i) {
    features["sparse"].mutable_int64_list()->add_value(
        static_cast<int64_t>(uint64_t{(*random)()} << below(33)));
  }
  for (int i = below(4); i > 0; --i) {
    features["ragged"].mutable_bytes_list()->add_value(std::string(below(5), '\xf0'));
  }
  if (below(2) == 0) features["default"].mutable_int64_list()->add_value(below(100));
  for (int i = 2 * below(3); i > 0; --i) {
    features["padded"].mutable_float_list()->add_value(number());
  }
  if (below(3) == 0) features["other"];
  return example.SerializeAsString();
}

/// The keys of the records in a file, and what is parsed of them.
std::vector<Tensor> Parsed(const std::string& file, const std::string& compression) {
  const Scope s = Scope::NewRoot();
  const Output queue = ops::FIFOQueueV2(s, {ElementType::kString});
  Node* const put = ops::QueueEnqueueV2(s, queue, {ops::Const(s, Tensor::Scalar(file))});
  const Output reader =
      ops::TFRecordReaderV2(s, {.compression_type = compression == "NONE" ? "" : compression});
  const auto records = ops::ReaderReadUpToV2(s, reader, queue, int64_t{kExamples});
  const auto strings = [](std::vector<std::string> values) {
    return Tensor::Vector<std::string>(values);
  };
  const auto parsed = ops::ParseExampleV2(
      s, records.values, strings({}), strings({"sparse"}), strings({"fixed", "default", "padded"}),
      strings({"ragged"}),
      {Tensor::Vector<float>({}), Tensor::Scalar<int64_t>(-1), Tensor::Scalar(0.5f)}, 1,
      {ElementType::kInt64}, {ElementType::kString}, {ElementType::kInt32},
      {PartialShape({3}), PartialShape({}), PartialShape({-1, 2})});
  std::vector<Output> outputs = {records.keys};
  for (const auto& group : {parsed.sparse_indices, parsed.sparse_values, parsed.sparse_shapes,
                            parsed.dense_values, parsed.ragged_values, parsed.ragged_row_splits}) {
    outputs.insert(outputs.end(), group.begin(), group.end());
  }
  EXPECT_TRUE(s.ok()) << s.status();
  const auto session = *Session::Create(s.graph(), {.threads = 2});
  EXPECT_TRUE(session->RunTargets({put}).ok());
  auto values = session->Run(outputs);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.value_or(std::vector<Tensor>());
}

TEST(Interchange, RecordsAndExamplesAreTheSameToBoth) {
  if (!PythonHasTensorFlow()) GTEST_SKIP() << kNoTensorFlow;
  const std::string folder = ::testing::TempDir() + "troupe_example_interchange_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  FileSystem* const files = *FileSystems().Find(folder);
  std::mt19937 random(1);
  for (const char* compression : {"NONE", "ZLIB", "GZIP"}) {
    const auto writer = *RecordWriter::Create(files, StrCat(folder, "/ours.", compression),
                                              {*ParseFileCompression(compression)});
    for (int i = 0; i < kExamples; ++i) {
      ASSERT_TRUE(writer->Write(RandomExample(&random)).ok());
    }
    ASSERT_TRUE(writer->Close().ok());
  }
  const std::string output = RunPython({"tests/kernels/io/examples_peer.py", folder});
  ASSERT_TRUE(output.ends_with("done\n")) << output;
  for (const char* compression : {"NONE", "ZLIB", "GZIP"}) {
    for (const char* whose : {"ours", "theirs"}) {
      const std::string file = StrCat(folder, "/", whose, ".", compression);
      SCOPED_TRACE(file);
      const auto reader = *RecordReader::Open(files, file + ".parsed");
      std::string bytes;
      for (const Tensor& tensor : Parsed(file, compression)) {
        const absl::StatusOr<bool> next = reader->Next(&bytes);
        ASSERT_TRUE(next.ok() && *next) << next.status();
        TensorProto proto;
        ASSERT_TRUE(proto.ParseFromString(bytes));
        testing::ExpectEqual(tensor, *TensorFromProto(proto));
      }
      EXPECT_FALSE(*reader->Next(&bytes));
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe
