// Samplers with given or learned frequencies. The expected classes are TensorFlow's (2.21, CPU).
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernel_registry.h"
#include "kernels/kernel_state.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

using absl::StatusCode;

Tensor TrueClasses() { return Tensor::FromValues<int64_t>({1, 3}, Shape({2, 1})).value(); }

OpTest& Sampler(OpTest& op, int sampled, bool unique) {
  return op.Attr("num_true", 1)
      .Attr("num_sampled", sampled)
      .Attr("unique", unique)
      .Attr("seed", 11)
      .Attr("seed2", 12)
      .Input(TrueClasses());
}

/// `weights`: of the attribute `unigrams`, the type of which OpTest has no function for; in a file.
class VocabularyFile {
 public:
  explicit VocabularyFile(const std::string& lines) : name_(::testing::TempDir() + "vocabulary") {
    std::ofstream(name_) << lines;
  }
  ~VocabularyFile() { std::remove(name_.c_str()); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

TEST(FixedUnigramCandidateSampler, GivesTensorFlowsClasses) {
  const VocabularyFile file("a,1\nb,x,2\n\nc,3.0\r\n4");
  OpTest op("FixedUnigramCandidateSampler");
  Sampler(op, 4, false).Attr("range_max", 5).Attr("vocab_file", file.name());
  op.Attr("num_reserved_ids", 1).Attr("distortion", 0.75);
  const Tensor true_count =
      Tensor::FromValues<float>({0.5134968161582947f, 1.1705195903778076f}, Shape({2, 1})).value();
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), Tensor::Vector<int64_t>({2, 4, 4, 1}));
  ExpectNear(op.output(1), true_count);
  ExpectNear(op.output(2), Tensor::Vector<float>({0.8635952472686768f, 1.4523882865905762f,
                                                  1.4523882865905762f, 0.5134968161582947f}));
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), Tensor::Vector<int64_t>({2, 1, 1, 3}));
}

TEST(FixedUnigramCandidateSampler, ShardsShareTheClasses) {
  const VocabularyFile file("1\n2\n3\n4\n5\n");
  OpTest op("FixedUnigramCandidateSampler");
  Sampler(op, 1000, false).Attr("range_max", 2).Attr("vocab_file", file.name());
  op.Attr("num_shards", 2).Attr("shard", 1);
  op.ClearInputs().Input(Tensor::FromValues<int64_t>({0, 1}, Shape({2, 1})).value());
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectNear(op.output(1),
             Tensor::FromValues<float>({1000 * 2 / 6.0f, 1000 * 4 / 6.0f}, Shape({2, 1})).value());
}

TEST(FixedUnigramCandidateSampler, BadAttributes) {
  const VocabularyFile file("1\n0\n0\n"), words("1\nword\n");
  const auto run = [](const std::string& name, int range, int64_t reserved, int sampled = 1) {
    OpTest op("FixedUnigramCandidateSampler");
    Sampler(op, sampled, true).Attr("range_max", range).Attr("vocab_file", name);
    op.Attr("num_reserved_ids", reserved).ClearInputs();
    op.Input(Tensor::FromValues<int64_t>({}, Shape({0, 1})).value());
    return op.Run().code();
  };
  // Both files have one name: the second one's lines are there.
  EXPECT_EQ(run(words.name(), 2, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(run("", 2, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(run("/there/is/no/such/file", 2, 0), StatusCode::kNotFound);
  const VocabularyFile zeros("1\n0\n0\n");
  EXPECT_EQ(run(zeros.name(), 3, 0), StatusCode::kOk);
  EXPECT_EQ(run(zeros.name(), 4, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(run(zeros.name(), 3, int64_t{1} << 60), StatusCode::kInvalidArgument);
  // Classes that are never drawn cannot be among different ones.
  EXPECT_EQ(run(zeros.name(), 3, 0, 2), StatusCode::kInvalidArgument);
}

TEST(LearnedUnigramCandidateSampler, GivesTensorFlowsClasses) {
  for (const char* name :
       {"LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"}) {
    SCOPED_TRACE(name);
    OpTest op(name);
    Sampler(op, 4, false).Attr("range_max", 5);
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectEqual(op.output(0), Tensor::Vector<int64_t>({4, 3, 0, 4}));
    ExpectNear(op.output(2), Tensor::Vector<float>({0.8f, 0.8f, 0.8f, 0.8f}));
    // Classes 1 and 3 were true once.
    ASSERT_EQ(op.Run(), absl::OkStatus());
    ExpectEqual(op.output(0), Tensor::Vector<int64_t>({4, 0, 4, 2}));
    ExpectNear(op.output(1),
               Tensor::FromValues<float>({8 / 7.0f, 8 / 7.0f}, Shape({2, 1})).value());
    ExpectNear(op.output(2), Tensor::Vector<float>({4 / 7.0f, 4 / 7.0f, 4 / 7.0f, 4 / 7.0f}));
  }
}

TEST(LearnedUnigramCandidateSampler, LargeRangesTakeNoMemory) {
  OpTest op("LearnedUnigramCandidateSampler");
  Sampler(op, 10, true).Attr("range_max", int64_t{(1u << 31) - 2});
  ASSERT_EQ(op.Run(), absl::OkStatus());
  const auto values = op.output(0).unchecked_values<int64_t>();
  EXPECT_EQ(std::set<int64_t>(values.begin(), values.end()).size(), 10u);
  OpTest too_large("LearnedUnigramCandidateSampler");
  Sampler(too_large, 10, true).Attr("range_max", int64_t{1} << 31);
  EXPECT_EQ(too_large.Run().code(), StatusCode::kInvalidArgument);
}

TEST(LearnedUnigramCandidateSampler, CountsAreSavedWithTheStream) {
  NodeDef node;
  node.set_name("sampler");
  node.set_op("LearnedUnigramCandidateSampler");
  (*node.mutable_attr())["num_true"].set_i(1);
  (*node.mutable_attr())["num_sampled"].set_i(4);
  (*node.mutable_attr())["range_max"].set_i(5);
  (*node.mutable_attr())["unique"].set_b(false);
  KernelConstruction construction(&node, nullptr, nullptr, {}, {});
  const auto registered = KernelRegistry::Global()->Find("CPU", node);
  ASSERT_TRUE(registered.ok());
  const auto kernel = (*registered)->factory(construction);
  ASSERT_TRUE(kernel.ok());
  auto* resumable = dynamic_cast<ResumableKernel*>(kernel->get());
  ASSERT_NE(resumable, nullptr);
  const std::string fresh = resumable->SaveState();
  const auto with_counts = [&](std::initializer_list<int64_t> numbers) {
    return fresh + std::string(reinterpret_cast<const char*>(numbers.begin()),
                               numbers.size() * sizeof(int64_t));
  };
  const std::string counted = with_counts({1, 5, 3, 2});
  ASSERT_EQ(resumable->RestoreState(counted), absl::OkStatus());
  EXPECT_EQ(resumable->SaveState(), counted);
  for (const std::string& bad : {fresh + "x", fresh.substr(1), std::string(), with_counts({1}),
                                 with_counts({5, 1}), with_counts({-1, 1}), with_counts({1, 0})}) {
    EXPECT_EQ(resumable->RestoreState(bad).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(resumable->SaveState(), counted);
  }
  ASSERT_EQ(resumable->RestoreState(fresh), absl::OkStatus());
  EXPECT_EQ(resumable->SaveState(), fresh);
}

TEST(AllCandidateSampler, GivesAllOnce) {
  OpTest op("AllCandidateSampler");
  Sampler(op, 4, true);
  ASSERT_EQ(op.Run(), absl::OkStatus());
  ExpectEqual(op.output(0), Tensor::Vector<int64_t>({0, 1, 2, 3}));
  ExpectEqual(op.output(1), Tensor::FromValues<float>({1, 1}, Shape({2, 1})).value());
  ExpectEqual(op.output(2), Tensor::Vector<float>({1, 1, 1, 1}));
  OpTest out_of_range("AllCandidateSampler");
  Sampler(out_of_range, 3, true);
  EXPECT_EQ(out_of_range.Run().code(), StatusCode::kInvalidArgument);
  OpTest huge("AllCandidateSampler");
  Sampler(huge, 4, true).Attr("num_sampled", int64_t{1} << 60);
  EXPECT_EQ(huge.Run().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace troupe::testing
