#include "kernels/reduce/reduce.h"

#include <algorithm>
#include <cstring>

#include "devices/status_macros.h"

namespace troupe {
namespace {

// Walks over the combinations of several dimensions.
struct Walk {
  absl::InlinedVector<int64_t, 4> sizes, strides;
  int64_t count = 1;
  void Add(int64_t size, int64_t stride) {
    sizes.push_back(size);
    strides.push_back(stride);
    count = Multiply(count, size);
  }
  int64_t Offset(int64_t i) const {
    if (sizes.empty()) return 0;
    int64_t offset = 0;
    for (size_t d = sizes.size() - 1; d > 0; --d) {
      offset += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return offset + i * strides[0];
  }
};

// Splits the dimensions: kept ones and reduced ones outside the innermost part, and that part.
struct Plan {
  Walk kept, reduced;
  int64_t rows = 1;  // Reduced elements of the innermost part ...
  int64_t cols = 1;  // ... for each of so many neighbouring outputs (1: the rows are contiguous).
  bool by_cols = false;
};

Plan MakePlan(const ReduceDims& all) {
  const auto& dims = all.dims();
  Plan plan;
  int last = static_cast<int>(dims.size());
  int64_t stride = 1;
  if (last > 0 && !dims[last - 1].reduced) {
    plan.by_cols = true;
    plan.cols = stride = dims[--last].size;
  }
  if (last > 0) {  // Neighbours differ, so this one is reduced.
    plan.rows = dims[--last].size;
    stride = Multiply(stride, plan.rows);
  }
  absl::InlinedVector<int64_t, 8> strides(last);
  for (int d = last - 1; d >= 0; --d) {
    strides[d] = stride;
    stride = Multiply(stride, dims[d].size);
  }
  for (int d = 0; d < last; ++d) {
    (dims[d].reduced ? plan.reduced : plan.kept).Add(dims[d].size, strides[d]);
  }
  return plan;
}

constexpr int64_t kPieceElements = 32768;  // What is added up in one piece at least.
constexpr int64_t kPieceRows = 256;

struct Reducer {
  KernelContext& ctx;
  const ReduceLoops& loops;
  const Plan& plan;
  const char* in;
  char* acc;
  int64_t size, acc_size;

  // Outputs [begin, end) of the kept combinations, whole.
  void Outputs(int64_t begin, int64_t end) {
    if (!plan.by_cols && plan.reduced.sizes.empty()) {  // Its rows lie one after the other.
      loops.rows(in + begin * plan.rows * size, end - begin, plan.rows, acc + begin * acc_size);
      return;
    }
    alignas(16) char value[16];
    for (int64_t o = begin; o < end; ++o) {
      const char* base = in + plan.kept.Offset(o) * size;
      char* to = acc + o * plan.cols * acc_size;
      if (plan.by_cols) {
        Identity(to, plan.cols);
        for (int64_t q = 0; q < plan.reduced.count; ++q) {
          loops.cols(base + plan.reduced.Offset(q) * size, plan.rows, plan.cols, plan.cols, to);
        }
      } else {
        loops.rows(base, 1, plan.reduced.count == 0 ? 0 : plan.rows, to);
        for (int64_t q = 1; q < plan.reduced.count; ++q) {
          loops.rows(base + plan.reduced.Offset(q) * size, 1, plan.rows, value);
          loops.join(value, 1, 1, 1, to);
        }
      }
    }
  }

  // The identity is what a row of nothing gives.
  void Identity(char* to, int64_t n) {
    if (n == 0) return;
    loops.rows(nullptr, 1, 0, to);
    int64_t done = 1;
    while (done < n) {  // Doubles what is there.
      const int64_t more = std::min(done, n - done);
      std::memcpy(to + done * acc_size, to, more * acc_size);
      done += more;
    }
  }

  absl::Status Run() {
    const double per_output = static_cast<double>(plan.reduced.count) *
                              static_cast<double>(plan.rows) * static_cast<double>(plan.cols);
    const int64_t grain = KernelContext::GrainFor(loops.cost * per_output);
    const bool few = plan.kept.count < 8 && plan.reduced.count == 1;
    if (few && per_output > kPieceElements) {
      if (plan.by_cols && plan.rows <= kPieceRows) return SplitCols();
      return SplitRows();
    }
    ctx.ParallelFor(plan.kept.count, grain,
                    [&](int64_t begin, int64_t end) { Outputs(begin, end); });
    return absl::OkStatus();
  }

  // Few but long rows: pieces of them, joined in order.
  absl::Status SplitRows() {
    const int64_t piece =
        plan.by_cols ? std::max(kPieceRows, kPieceElements / plan.cols) : kPieceElements;
    const int64_t pieces = (plan.rows + piece - 1) / piece;
    TROUPE_ASSIGN_OR_RETURN(
        Tensor temp, ctx.AllocateTemp(loops.acc_type, Shape({plan.kept.count, pieces, plan.cols})));
    char* partial = static_cast<char*>(temp.mutable_raw_data());
    ctx.ParallelFor(plan.kept.count * pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % pieces * piece, rows = std::min(piece, plan.rows - row);
        const char* from = in + (plan.kept.Offset(i / pieces) + row * plan.cols) * size;
        char* to = partial + i * plan.cols * acc_size;
        if (plan.by_cols) {
          Identity(to, plan.cols);
          loops.cols(from, rows, plan.cols, plan.cols, to);
        } else {
          loops.rows(from, 1, rows, to);
        }
      }
    });
    for (int64_t o = 0; o < plan.kept.count; ++o) {
      char* to = acc + o * plan.cols * acc_size;
      Identity(to, plan.cols);
      loops.join(partial + o * pieces * plan.cols * acc_size, pieces, plan.cols, plan.cols, to);
    }
    return absl::OkStatus();
  }

  // Many columns of few rows: blocks of columns.
  absl::Status SplitCols() {
    const int64_t block = std::max<int64_t>(64, kPieceElements / plan.rows);
    for (int64_t o = 0; o < plan.kept.count; ++o) {
      const char* from = in + plan.kept.Offset(o) * size;
      char* to = acc + o * plan.cols * acc_size;
      ctx.ParallelFor(plan.cols, block, [&](int64_t begin, int64_t end) {
        Identity(to + begin * acc_size, end - begin);
        loops.cols(from + begin * size, plan.rows, plan.cols, end - begin, to + begin * acc_size);
      });
    }
    return absl::OkStatus();
  }
};

}  // namespace

absl::Status ReduceAccumulators(KernelContext& ctx, const ReduceLoops& loops, ElementType type,
                                const void* in, const ReduceDims& dims, void* acc) {
  const Plan plan = MakePlan(dims);
  Reducer reducer{ctx,
                  loops,
                  plan,
                  static_cast<const char*>(in),
                  static_cast<char*>(acc),
                  static_cast<int64_t>(ElementSize(type)),
                  static_cast<int64_t>(ElementSize(loops.acc_type))};
  return reducer.Run();
}

absl::Status Reduce(KernelContext& ctx, const ReduceLoops& loops, ElementType type, const void* in,
                    const ReduceDims& dims, void* out) {
  const int64_t n = dims.num_kept();
  if (n == 0) return absl::OkStatus();
  if (loops.acc_type == type) {
    TROUPE_RETURN_IF_ERROR(ReduceAccumulators(ctx, loops, type, in, dims, out));
    if (loops.finish != nullptr) loops.finish(out, out, n, dims.num_reduced());
    return absl::OkStatus();
  }
  constexpr int64_t kSmall = 64;
  alignas(16) char small[kSmall * 16];
  Tensor temp;
  void* acc = small;
  if (n > kSmall) {
    TROUPE_ASSIGN_OR_RETURN(temp, ctx.AllocateTemp(loops.acc_type, Shape({n})));
    acc = temp.mutable_raw_data();
  }
  TROUPE_RETURN_IF_ERROR(ReduceAccumulators(ctx, loops, type, in, dims, acc));
  loops.finish(acc, out, n, dims.num_reduced());
  return absl::OkStatus();
}

}  // namespace troupe
