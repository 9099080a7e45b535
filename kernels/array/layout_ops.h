/// The ops that only move elements, or slices by index, for every type of device: what they take,
/// what they refuse and the shapes that they make. The moving itself is `layout_engine.h`'s and
/// `indexing_engine.h`'s.
#ifndef TROUPE_KERNELS_ARRAY_LAYOUT_OPS_H_
#define TROUPE_KERNELS_ARRAY_LAYOUT_OPS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

/// Kernels by the names of their ops: functions of the context, and of an attribute, or factories.
namespace troupe::layout {

absl::Status Concat(KernelContext& ctx);
absl::Status ConcatV2(KernelContext& ctx);
absl::Status Pack(KernelContext& ctx, int64_t axis);
absl::Status ParallelConcat(KernelContext& ctx, const PartialShape& shape);
absl::Status Split(KernelContext& ctx);
absl::Status SplitV(KernelContext& ctx);
absl::Status Unpack(KernelContext& ctx, int64_t axis);

absl::Status Slice(KernelContext& ctx);
absl::StatusOr<std::unique_ptr<Kernel>> StridedSlice(KernelConstruction& construction);
absl::StatusOr<std::unique_ptr<Kernel>> StridedSliceGrad(KernelConstruction& construction);
absl::StatusOr<std::unique_ptr<Kernel>> TensorStridedSliceUpdate(KernelConstruction& construction);

absl::Status BroadcastTo(KernelContext& ctx);
absl::Status MirrorPad(KernelContext& ctx, const std::string& mode);
absl::Status MirrorPadGrad(KernelContext& ctx, const std::string& mode);
absl::Status Pad(KernelContext& ctx);      ///< PadV2, too.
absl::Status Reverse(KernelContext& ctx);  ///< The dimensions are on the host.
absl::Status ReverseSequence(KernelContext& ctx, int64_t seq_dim, int64_t batch_dim);
absl::Status ReverseV2(KernelContext& ctx);
absl::Status Roll(KernelContext& ctx);  ///< Shifts and axes are on the host.
absl::Status Tile(KernelContext& ctx);
absl::Status Transpose(KernelContext& ctx);

absl::Status BatchToSpace(KernelContext& ctx, int64_t block_size);
absl::Status BatchToSpaceND(KernelContext& ctx);
absl::Status DepthToSpace(KernelContext& ctx, int64_t block_size, const std::string& data_format);
absl::Status SpaceToBatch(KernelContext& ctx, int64_t block_size);
absl::Status SpaceToBatchND(KernelContext& ctx);
absl::Status SpaceToDepth(KernelContext& ctx, int64_t block_size, const std::string& data_format);

absl::Status Bitcast(KernelContext& ctx, ElementType type, ElementType to);
absl::Status Empty(KernelContext& ctx, ElementType dtype, bool init);
absl::Status Fill(KernelContext& ctx);  ///< The value is on the host.
absl::StatusOr<std::unique_ptr<Kernel>> OnesLike(KernelConstruction& construction);
absl::Status ZerosLike(KernelContext& ctx);

absl::Status Diag(KernelContext& ctx);
absl::Status DiagPart(KernelContext& ctx);
absl::Status MatrixBandPart(KernelContext& ctx);
absl::Status MatrixDiag(KernelContext& ctx);
absl::Status MatrixDiagV2(KernelContext& ctx);
absl::Status MatrixDiagV3(KernelContext& ctx, const std::string& align);
absl::Status MatrixDiagPart(KernelContext& ctx);
absl::Status MatrixDiagPartV2(KernelContext& ctx);
absl::Status MatrixDiagPartV3(KernelContext& ctx, const std::string& align);
absl::Status MatrixSetDiag(KernelContext& ctx);
absl::Status MatrixSetDiagV2(KernelContext& ctx);
absl::Status MatrixSetDiagV3(KernelContext& ctx, const std::string& align);

absl::Status DynamicPartition(KernelContext& ctx);
absl::Status DynamicStitch(KernelContext& ctx);
absl::Status Gather(KernelContext& ctx);
absl::Status GatherV2(KernelContext& ctx, int64_t batch_dims);
absl::StatusOr<std::unique_ptr<Kernel>> GatherNd(KernelConstruction& construction);
absl::Status OneHot(KernelContext& ctx, int64_t axis);
absl::StatusOr<std::unique_ptr<Kernel>> RandomShuffle(KernelConstruction& construction);
absl::StatusOr<std::unique_ptr<Kernel>> ScatterNd(KernelConstruction& construction);
absl::Status SparseToDense(KernelContext& ctx, bool validate_indices);
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterAdd(KernelConstruction& construction);
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterMax(KernelConstruction& construction);
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterMin(KernelConstruction& construction);
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterSub(KernelConstruction& construction);
absl::StatusOr<std::unique_ptr<Kernel>> TensorScatterUpdate(KernelConstruction& construction);

}  // namespace troupe::layout

#endif  // TROUPE_KERNELS_ARRAY_LAYOUT_OPS_H_
