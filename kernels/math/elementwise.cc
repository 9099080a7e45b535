#include "kernels/math/elementwise.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "devices/cpu/compute_pool.h"
#include "devices/status_macros.h"
#include "kernels/common/broadcast.h"

namespace troupe {
namespace {

const char* At(const void* data, int64_t bytes) { return static_cast<const char*>(data) + bytes; }
char* At(void* data, int64_t bytes) { return static_cast<char*>(data) + bytes; }

// A matrix and a short row: as much of the matrix as fits goes with a repeated row, so that the
// function is called on long arrays.
constexpr int64_t kTileBytes = 2048;

// Elements that a second thread that is awake takes over without loss: after a kernel that ran on
// two threads half of them lie in its cache.
constexpr int64_t kShared = 4096;

// ctx.ParallelFor for elements that do not depend on each other. Less than a piece is shared with a
// worker only if one is awake.
template <typename Body>
void ForElements(KernelContext& ctx, int64_t n, int64_t grain, const Body& body) {
  const ComputePool* pool = ctx.step().pool;
  if (n <= grain && n >= 2 * kShared && pool != nullptr && pool->has_awake_worker()) {
    grain = (n / 2 + 63) / 64 * 64;
  }
  ctx.ParallelFor(n, grain, body);
}

}  // namespace

absl::Status UnaryKernel::Compute(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  const void* in = input.raw_data();
  const int64_t n = input.num_elements();
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.ForwardOrAllocate(0, 0, output_type_, input.shape()));
  void* out = output->mutable_raw_data();
  if (n < 2 * kShared) {
    fn_(in, out, n);
    return absl::OkStatus();
  }
  const int64_t in_size = ElementSize(input.type()), out_size = ElementSize(output_type_);
  ForElements(ctx, n, grain_, [&](int64_t begin, int64_t end) {
    fn_(At(in, begin * in_size), At(out, begin * out_size), end - begin);
  });
  return absl::OkStatus();
}

absl::Status SameSizeKernel::Compute(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  if (same_shape_ ? !(a.shape() == b.shape()) : a.num_elements() != b.num_elements()) [[unlikely]] {
    return InvalidArgument("the inputs must have the same ", same_shape_ ? "shape" : "size",
                           ", got ", a.shape().ToString(), " and ", b.shape().ToString());
  }
  const void* x = a.raw_data();
  const void* y = b.raw_data();
  const int64_t n = a.num_elements();
  const int64_t size = ElementSize(a.type());
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.ForwardEitherOrAllocate(0, 1, 0, a.type(), a.shape()));
  void* out = output->mutable_raw_data();
  ForElements(ctx, n, grain_, [&](int64_t begin, int64_t end) {
    fn_(At(x, begin * size), At(y, begin * size), At(out, begin * size), end - begin);
  });
  return absl::OkStatus();
}

absl::Status BinaryStatus(BinaryError error, uint32_t failed) {
  if (failed == 0) return absl::OkStatus();
  switch (error) {
    case BinaryError::kNone:
    case BinaryError::kDivisionByZero:
      return absl::InvalidArgumentError("Integer division by zero");
    case BinaryError::kTruncatedDivisionByZero:
      return absl::InternalError("Integer division by zero");
    case BinaryError::kNegativePower:
      return absl::InvalidArgumentError("Integers to negative integer powers are not allowed");
  }
  return absl::OkStatus();
}

absl::Status BinaryKernel::Compute(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  const Shape* shape;
  simd::BinaryFn fn;
  int64_t step_a = 1, step_b = 1;
  if (a.shape() == b.shape()) {
    shape = &a.shape();
    fn = fns_.aa;
  } else if (b.num_elements() == 1 && b.rank() <= a.rank()) {
    shape = &a.shape();
    fn = fns_.as;
    step_b = 0;
  } else if (a.num_elements() == 1 && a.rank() <= b.rank()) {
    shape = &b.shape();
    fn = fns_.sa;
    step_a = 0;
  } else {
    return Broadcast(ctx);
  }
  const void* x = a.raw_data();
  const void* y = b.raw_data();
  const int64_t n = shape->num_elements();
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.ForwardEitherOrAllocate(0, 1, 0, output_type_, *shape));
  void* out = output->mutable_raw_data();
  if (n < 2 * kShared) {
    const uint32_t failed = fn(x, y, out, n);
    if (failed != 0) [[unlikely]]
      return BinaryStatus(error_, failed);
    return absl::OkStatus();
  }
  const int64_t size = ElementSize(input_type_), out_size = ElementSize(output_type_);
  std::atomic<uint32_t> failed = 0;
  ForElements(ctx, n, grain_, [&](int64_t begin, int64_t end) {
    const uint32_t result = fn(At(x, begin * size * step_a), At(y, begin * size * step_b),
                               At(out, begin * out_size), end - begin);
    if (result != 0) failed.store(result, std::memory_order_relaxed);
  });
  return BinaryStatus(error_, failed.load(std::memory_order_relaxed));
}

absl::Status BinaryKernel::Broadcast(KernelContext& ctx) {
  const Tensor& a = ctx.input(0);
  const Tensor& b = ctx.input(1);
  absl::StatusOr<Shape> shape = BroadcastShapes(a.shape(), b.shape());
  if (!shape.ok()) {
    if (unequal_shapes_ < 0) return shape.status();
    return ctx.SetScalar(0, unequal_shapes_ != 0);
  }
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.ForwardEitherOrAllocate(0, 1, 0, output_type_, *shape));
  return BinaryStatus(
      error_, BroadcastBinary(ctx, fns_, grain_, a, a.shape(), b, b.shape(), *shape, output));
}

uint32_t BroadcastBinary(KernelContext& ctx, const simd::BinaryFns& fns, int64_t grain,
                         const Tensor& a, const Shape& a_shape, const Tensor& b,
                         const Shape& b_shape, const Shape& out_shape, Tensor* output) {
  const BroadcastWalk walk(out_shape, {&a_shape, &b_shape});
  if (walk.num_runs() == 0) return 0;
  const int64_t size = ElementSize(a.type()), out_size = ElementSize(output->type());
  const char* x = At(a.raw_data(), 0);
  const char* y = At(b.raw_data(), 0);
  char* out = At(output->mutable_raw_data(), 0);
  const int64_t step_a = walk.run_step(0), step_b = walk.run_step(1);
  const simd::BinaryFn fn = step_a == 0 ? fns.sa : step_b == 0 ? fns.as : fns.aa;
  const int64_t length = walk.run_length();
  std::atomic<uint32_t> failed = 0;
  auto note = [&failed](uint32_t result) {
    if (result != 0) [[unlikely]]
      failed.store(result, std::memory_order_relaxed);
  };

  if (walk.num_runs() == 1) {
    ForElements(ctx, length, grain, [&](int64_t begin, int64_t end) {
      note(fn(x + begin * size * step_a, y + begin * size * step_b, out + begin * out_size,
              end - begin));
    });
    return failed.load(std::memory_order_relaxed);
  }

  if (walk.outer().size() == 1 && step_a == 1 && step_b == 1 && IsPlain(a.type()) &&
      length * size * 2 <= kTileBytes) {
    const int64_t rows = walk.num_runs();
    const bool row_is_b = walk.outer()[0].strides[1] == 0;
    const int64_t tile_rows = std::min(rows, kTileBytes / (length * size));
    alignas(64) char tile[kTileBytes];
    for (int64_t r = 0; r < tile_rows; ++r) {
      std::memcpy(tile + r * length * size, row_is_b ? y : x, length * size);
    }
    const int64_t row_grain = std::max<int64_t>(1, grain / (tile_rows * length)) * tile_rows;
    const int64_t tiles = (rows + tile_rows - 1) / tile_rows;
    ForElements(ctx, tiles * tile_rows * length, row_grain * length,
                [&](int64_t first, int64_t last) {
                  const int64_t begin = first / (tile_rows * length) * tile_rows;
                  const int64_t end = std::min(rows, last / (tile_rows * length) * tile_rows);
                  for (int64_t r = begin; r < end; r += tile_rows) {
                    const int64_t at = r * length, n = std::min(tile_rows, end - r) * length;
                    note(row_is_b ? fns.aa(x + at * size, tile, out + at * out_size, n)
                                  : fns.aa(tile, y + at * size, out + at * out_size, n));
                  }
                });
    return failed.load(std::memory_order_relaxed);
  }

  const int64_t run_grain = std::max<int64_t>(1, grain / length);
  ctx.ParallelFor(walk.num_runs(), run_grain, [&](int64_t begin, int64_t end) {
    walk.ForEach(begin, end, [&](int64_t at, const BroadcastWalk::Offsets& offsets) {
      note(fn(x + offsets[0] * size, y + offsets[1] * size, out + at * out_size, length));
    });
  });
  return failed.load(std::memory_order_relaxed);
}

}  // namespace troupe
