// Sessions that go on with the random numbers of others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "api/troupe.h"

namespace troupe {
namespace {

/// Random numbers of all kinds: `drawn` is a vector of them.
struct Random {
  explicit Random(int64_t seed = 1) {
    const Tensor four = Tensor::Vector<int32_t>({4});
    const Function function = DefineFunction(
        s, "Noise", {ElementType::kInt32}, [&](const Scope& body, absl::Span<const Output> args) {
          return std::vector<Output>{ops::RandomUniform(
              body.WithOpName("inside"), args[0], ElementType::kFloat, {.seed = seed, .seed2 = 2})};
        });
    const Output uniform = ops::RandomUniform(s.WithOpName("uniform"), four, ElementType::kFloat,
                                              {.seed = seed, .seed2 = 3});
    const Output shuffled =
        ops::RandomShuffle(s.WithOpName("shuffled"), uniform, {.seed = seed, .seed2 = 4});
    const Output unseeded =
        ops::TruncatedNormal(s.WithOpName("unseeded"), four, ElementType::kFloat);
    const Output sampled =
        ops::LogUniformCandidateSampler(s.WithOpName("sampled"),
                                        *Tensor::FromValues<int64_t>({1}, Shape({1, 1})), 1, 4,
                                        true, 100, {.seed = seed, .seed2 = 5})
            .sampled_candidates;
    drawn = ops::ConcatV2(s,
                          {shuffled, unseeded, Call(s, function, {four})[0],
                           ops::Cast(s, sampled, ElementType::kFloat)},
                          0);
  }
  std::vector<float> Draw(Session& session) const {
    const auto values = session.Run({drawn});
    EXPECT_TRUE(values.ok()) << values.status();
    if (!values.ok()) return {};
    const auto span = (*values)[0].unchecked_values<float>();
    return {span.begin(), span.end()};
  }

  Scope s = Scope::NewRoot();
  Output drawn;
};

TEST(KernelStates, AnotherSessionGoesOn) {
  const Random first, second;
  ASSERT_TRUE(first.s.ok()) << first.s.status();
  auto session = Session::Create(first.s.graph()), other = Session::Create(second.s.graph());
  ASSERT_TRUE(session.ok() && other.ok());
  for (int i = 0; i < 3; ++i) first.Draw(**session);
  const auto states = (*session)->SaveKernelStates();
  ASSERT_TRUE(states.ok()) << states.status();
  EXPECT_EQ(states->size(), 5u);
  for (const char* node : {"uniform", "shuffled", "unseeded", "sampled"}) {
    EXPECT_EQ(states->count(node), 1u) << node;
  }
  ASSERT_TRUE((*other)->RestoreKernelStates(*states).ok());
  EXPECT_EQ(*(*other)->SaveKernelStates(), *states) << "also before it has drawn any";
  const std::vector<float> wanted = first.Draw(**session);
  EXPECT_EQ(second.Draw(**other), wanted);
  // Back again, with kernels that are there.
  ASSERT_TRUE((*other)->RestoreKernelStates(*states).ok());
  EXPECT_EQ(second.Draw(**other), wanted);
  EXPECT_NE(second.Draw(**other), wanted);
}

TEST(KernelStates, OfOtherSeedsBeginAnew) {
  const Random first(1), second(9), same(9);
  auto session = Session::Create(first.s.graph());
  first.Draw(**session);
  auto other = Session::Create(second.s.graph()), untouched = Session::Create(same.s.graph());
  ASSERT_TRUE((*other)->RestoreKernelStates(*(*session)->SaveKernelStates()).ok());
  const std::vector<float> got = second.Draw(**other), wanted = same.Draw(**untouched);
  for (const int i : {0, 1, 2, 3, 8, 9, 10, 11, 12}) EXPECT_EQ(got[i], wanted[i]) << i;
}

TEST(KernelStates, StrangersDoNoHarm) {
  const Random model;
  auto session = Session::Create(model.s.graph());
  ASSERT_TRUE((*session)
                  ->RestoreKernelStates({{"", "x"},
                                         {"@", "x"},
                                         {"@Noise\n", "x"},
                                         {"no_such_node", "x"},
                                         {"uniform", "too short"},
                                         {"ConcatV2", "x"}})
                  .ok());
  EXPECT_EQ(model.Draw(**session).size(), 16u);
}

}  // namespace
}  // namespace troupe
