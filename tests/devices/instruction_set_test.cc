#include "devices/cpu/instruction_set.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using Set = InstructionSet;

const uint32_t kAll = RequiredFeatures(Set::kV4);

Set Choose(uint32_t features, std::string_view wanted = "") {
  const absl::StatusOr<Set> set = ChooseInstructionSet(features, wanted);
  EXPECT_EQ(set.status(), absl::OkStatus());
  return set.value_or(Set::kV2);
}

TEST(InstructionSetTest, TheBestThatRuns) {
  EXPECT_EQ(Choose(kAll), Set::kV4);
  EXPECT_EQ(Choose(RequiredFeatures(Set::kV3)), Set::kV3);
  EXPECT_EQ(Choose(RequiredFeatures(Set::kV2)), Set::kV2);
}

TEST(InstructionSetTest, ALevelNeedsEachOfItsFeatures) {
  using enum CpuFeature::Bit;
  for (uint32_t bit : {kAvx, kAvx2, kBmi, kBmi2, kF16c, kFma, kLzcnt, kMovbe, kSystemSavesYmm}) {
    EXPECT_EQ(Choose(kAll & ~bit), Set::kV2) << bit;
    EXPECT_EQ(ChooseInstructionSet(kAll & ~bit, "v3").status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
  for (uint32_t bit : {kAvx512f, kAvx512bw, kAvx512cd, kAvx512dq, kAvx512vl, kSystemSavesZmm}) {
    EXPECT_EQ(Choose(kAll & ~bit), Set::kV3) << bit;
  }
  for (uint32_t bit : {kCmpxchg16b, kLahf, kPopcnt, kSse3, kSsse3, kSse41, kSse42}) {
    EXPECT_FALSE(ChooseInstructionSet(kAll & ~bit, "").ok()) << bit;
  }
}

TEST(InstructionSetTest, TheOneThatIsAskedFor) {
  EXPECT_EQ(Choose(kAll, "v2"), Set::kV2);
  EXPECT_EQ(Choose(kAll, "v3"), Set::kV3);
  EXPECT_EQ(Choose(kAll, "v4"), Set::kV4);
  EXPECT_EQ(Choose(RequiredFeatures(Set::kV3), "v2"), Set::kV2);
}

TEST(InstructionSetTest, RefusesWhatTheMachineLacks) {
  const absl::Status status =
      ChooseInstructionSet(RequiredFeatures(Set::kV4) & ~CpuFeature::kF16c, "v3").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("lacks f16c;"));
}

TEST(InstructionSetTest, RefusesUnknownNames) {
  for (const char* name : {"v1", "v5", "V3", "avx2", " "}) {
    const absl::Status status = ChooseInstructionSet(kAll, name).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("v2, v3 or v4"));
  }
}

#if defined(__x86_64__)
// The compiler's own look at the machine.
TEST(InstructionSetTest, SeesTheMachinesFeatures) {
  using enum CpuFeature::Bit;
  const uint32_t features = MachineFeatures();
  __builtin_cpu_init();
  const auto expect = [features](bool has, uint32_t bit) {
    EXPECT_EQ(has, (features & bit) != 0) << bit;
  };
  expect(__builtin_cpu_supports("popcnt"), kPopcnt);
  expect(__builtin_cpu_supports("sse3"), kSse3);
  expect(__builtin_cpu_supports("ssse3"), kSsse3);
  expect(__builtin_cpu_supports("sse4.1"), kSse41);
  expect(__builtin_cpu_supports("sse4.2"), kSse42);
  // The compiler's answer includes the operating system's part.
  const bool ymm = (features & kSystemSavesYmm) != 0, zmm = (features & kSystemSavesZmm) != 0;
  expect(__builtin_cpu_supports("avx"), ymm ? kAvx : kSystemSavesYmm);
  expect(__builtin_cpu_supports("avx2"), ymm ? kAvx2 : kSystemSavesYmm);
  expect(__builtin_cpu_supports("fma"), ymm ? kFma : kSystemSavesYmm);
  expect(__builtin_cpu_supports("avx512f"), zmm ? kAvx512f : kSystemSavesZmm);
  expect(__builtin_cpu_supports("avx512bw"), zmm ? kAvx512bw : kSystemSavesZmm);
  expect(__builtin_cpu_supports("avx512cd"), zmm ? kAvx512cd : kSystemSavesZmm);
  expect(__builtin_cpu_supports("avx512dq"), zmm ? kAvx512dq : kSystemSavesZmm);
  expect(__builtin_cpu_supports("avx512vl"), zmm ? kAvx512vl : kSystemSavesZmm);
  expect(__builtin_cpu_supports("bmi"), kBmi);
  expect(__builtin_cpu_supports("bmi2"), kBmi2);
}
#endif

}  // namespace
}  // namespace troupe
