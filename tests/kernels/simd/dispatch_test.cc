// Run again under each TROUPE_ISA by tests/CMakeLists.txt.
#include "kernels/simd/dispatch.h"

#include <cstdlib>
#include <string>

#include "actors/runtime.h"
#include "gtest/gtest.h"
#include "kernels/simd/batch_norm.h"
#include "kernels/simd/conv.h"
#include "kernels/simd/depthwise.h"
#include "kernels/simd/gemm.h"
#include "kernels/simd/lrn.h"
#include "kernels/simd/lstm.h"
#include "kernels/simd/pool.h"
#include "kernels/simd/random.h"
#include "kernels/simd/select.h"
#include "kernels/simd/updates.h"
#include "kernels/simd/volume_pool.h"

namespace troupe {
namespace {

#if defined(__x86_64__)
template <typename F>
F Variant(F v2, F v3, F v4) {
  const InstructionSet set = ActiveInstructionSet();
  return set == InstructionSet::kV2 ? v2 : set == InstructionSet::kV3 ? v3 : v4;
}

TEST(DispatchTest, EveryKernelFollowsTheOneChoice) {
  using GemmFunction = decltype(GemmFunctions<float>::tile);
  EXPECT_EQ(Gemm<float>().tile, Variant<GemmFunction>(v2::GemmTile, v3::GemmTile, v4::GemmTile));
  EXPECT_EQ(NarrowConv().image, Variant(v2::ConvTable, v3::ConvTable, v4::ConvTable)().image);
  EXPECT_EQ(Depthwise().run,
            Variant(v2::DepthwiseTable, v3::DepthwiseTable, v4::DepthwiseTable)().run);
  EXPECT_EQ(Pool().max_rows, Variant(v2::PoolTable, v3::PoolTable, v4::PoolTable)().max_rows);
  using TableOf = BatchNormFunctions (*)(simd::Type);
  const TableOf batch_norm =
      Variant<TableOf>(v2::BatchNormTable, v3::BatchNormTable, v4::BatchNormTable);
  for (simd::Type type : {simd::kF32, simd::kF16, simd::kBF16}) {
    EXPECT_EQ(BatchNorm(type).sum, batch_norm(type).sum);
  }
  EXPECT_EQ(Lrn().forward, Variant(v2::LrnTable, v3::LrnTable, v4::LrnTable)().forward);
  EXPECT_EQ(Lstm().gate, Variant(v2::LstmTable, v3::LstmTable, v4::LstmTable)().gate);
  EXPECT_EQ(VolumePool(simd::kF16).max,
            Variant(v2::VolumePoolTable, v3::VolumePoolTable, v4::VolumePoolTable)(simd::kF16).max);
  EXPECT_EQ(Random().normal, Variant(v2::RandomNormal, v3::RandomNormal, v4::RandomNormal));
  using Select32 = SelectFunction<uint32_t>;
  EXPECT_EQ(SelectElements<uint32_t>(), Variant<Select32>(v2::Select, v3::Select, v4::Select));
  UpdateFunctions<float> updates;
  using Fill = void (*)(UpdateFunctions<float>*);
  Variant<Fill>(v2::FillUpdates, v3::FillUpdates, v4::FillUpdates)(&updates);
  EXPECT_EQ(Updates<float>().add, updates.add);
  EXPECT_EQ(&simd::Functions(), simd::FunctionsFor(ActiveInstructionSet()));
}

TEST(DispatchTest, TheEnvironmentNamesTheChoice) {
  const char* wanted = std::getenv("TROUPE_ISA");
  const absl::Status status = ChosenInstructionSet().status();
  EXPECT_EQ(Runtime::Create({}).status(), status);
  if (wanted == nullptr) {
    EXPECT_EQ(status, absl::OkStatus());
  } else if (std::string(wanted) == "v9") {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  } else if (status.ok()) {
    EXPECT_EQ(InstructionSetName(ActiveInstructionSet()), wanted);
  } else {  // this machine lacks it
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  }
}
#endif

}  // namespace
}  // namespace troupe
