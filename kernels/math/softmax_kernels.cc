// Softmax, LogSoftmax, and the cross-entropy losses.
#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/common/broadcast.h"
#include "kernels/kernel_registry.h"
#include "kernels/math/cross_entropy_shape.h"
#include "kernels/simd/dispatch.h"

namespace troupe {
namespace {

// The functions for a type: half and bfloat16 are widened to float, a piece of rows at a time.
struct RowType {
  explicit RowType(ElementType type) : size(ElementSize(type)) {
    const simd::Table& table = simd::Functions();
    const bool narrow = type == ElementType::kHalf || type == ElementType::kBfloat16;
    fns = table.rows[narrow ? simd::kF32 : simd::TypeOf(type)];
    if (narrow) {
      widen = table.cast[simd::CastTypeOf(type)][simd::kCastF32];
      round = table.cast[simd::kCastF32][simd::CastTypeOf(type)];
    }
  }
  simd::RowFns fns;
  simd::UnaryFn widen = nullptr, round = nullptr;
  int64_t size;
};

// Rows that are widened at once.
int64_t WideRows(int64_t cols) { return std::max<int64_t>(1, 2048 / cols); }

int64_t RowGrain(int64_t cols) {
  return KernelContext::GrainFor(1.5 * static_cast<double>(cols) + 10);
}

class SoftmaxKernel final : public Kernel {
 public:
  SoftmaxKernel(KernelConstruction& c, absl::Status*)
      : type_(c.input_type(0)), log_(c.op() == "LogSoftmax") {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() < 1) {
      return InvalidArgument("the logits must have at least 1 dimension, got a scalar");
    }
    const char* in = static_cast<const char*>(logits.raw_data());
    const int64_t n = logits.num_elements(), cols = logits.dim(logits.rank() - 1);
    TROUPE_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocate(0, 0));
    if (n == 0) return absl::OkStatus();
    char* out = static_cast<char*>(output->mutable_raw_data());
    ctx.ParallelFor(n / cols, RowGrain(cols), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * cols * type_.size;
      if (type_.widen == nullptr) {
        type_.fns.softmax(in + at, out + at, end - begin, cols, log_);
        return;
      }
      const int64_t step = WideRows(cols);
      std::vector<float> wide(step * cols);
      for (int64_t r = begin; r < end; r += step) {
        const int64_t rows = std::min(step, end - r), count = rows * cols;
        type_.widen(in + r * cols * type_.size, wide.data(), count);
        type_.fns.softmax(wide.data(), wide.data(), rows, cols, log_);
        type_.round(wide.data(), out + r * cols * type_.size, count);
      }
    });
    return absl::OkStatus();
  }

 private:
  RowType type_;
  bool log_;
};

class CrossEntropyKernel final : public Kernel {
 public:
  CrossEntropyKernel(KernelConstruction& c, absl::Status*) : type_(c.input_type(0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    const Tensor& labels = ctx.input(1);
    Shape shape = logits.shape();
    if (!(shape == labels.shape())) {
      TROUPE_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, labels.shape()));
    }
    if (shape.rank() != 2) {
      return InvalidArgument("logits and labels must have 2 dimensions, or be broadcast to 2; got ",
                             logits.shape().ToString(), " and ", labels.shape().ToString());
    }
    const int64_t rows = shape.dim(0), cols = shape.dim(1);
    const Operand x(logits, shape), y(labels, shape);
    TROUPE_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, logits.type(), Shape({rows})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * backprop, ctx.ForwardOrAllocate(0, 1, logits.type(), shape));
    char* losses = static_cast<char*>(loss->mutable_raw_data());
    char* out = static_cast<char*>(backprop->mutable_raw_data());
    if (cols == 0) {
      std::fill(losses, losses + loss->bytes(), 0);
      return absl::OkStatus();
    }
    ctx.ParallelFor(rows, RowGrain(2 * cols), [&](int64_t begin, int64_t end) {
      const int64_t size = type_.size;
      if (type_.widen == nullptr) {
        type_.fns.cross_entropy(x.Row(begin, size), x.row_stride, x.step, y.Row(begin, size),
                                y.row_stride, y.step, losses + begin * size,
                                out + begin * cols * size, end - begin, cols);
        return;
      }
      // Several rows at once unless they are broadcast.
      const bool whole = x.IsWhole(cols) && y.IsWhole(cols);
      const int64_t step = whole ? WideRows(cols) : 1;
      std::vector<float> wide(3 * step * cols), values(step);
      float* logits_rows = wide.data();
      float* labels_rows = logits_rows + step * cols;
      float* gradient = labels_rows + step * cols;
      for (int64_t r = begin; r < end; r += step) {
        const int64_t rows = std::min(step, end - r), count = rows * cols;
        type_.widen(x.Row(r, size), logits_rows, x.step == 0 ? 1 : count);
        type_.widen(y.Row(r, size), labels_rows, y.step == 0 ? 1 : count);
        type_.fns.cross_entropy(logits_rows, x.row_stride, x.step, labels_rows, y.row_stride,
                                y.step, values.data(), gradient, rows, cols);
        type_.round(values.data(), losses + r * size, rows);
        type_.round(gradient, out + r * cols * size, count);
      }
    });
    return absl::OkStatus();
  }

 private:
  // How an operand that is broadcast to the matrix is read.
  struct Operand {
    Operand(const Tensor& t, const Shape& matrix) : data(static_cast<const char*>(t.raw_data())) {
      const int64_t cols = t.rank() > 0 ? t.dim(t.rank() - 1) : 1;
      const int64_t rows = t.rank() > 1 ? t.dim(0) : 1;
      step = cols == 1 && matrix.dim(1) != 1 ? 0 : 1;
      row_stride = rows == 1 && matrix.dim(0) != 1 ? 0 : cols;
    }
    const char* Row(int64_t r, int64_t size) const { return data + r * row_stride * size; }
    bool IsWhole(int64_t cols) const { return row_stride == cols && step == 1; }
    const char* data;
    int64_t row_stride, step;
  };

  RowType type_;
};

class SparseCrossEntropyKernel final : public Kernel {
 public:
  SparseCrossEntropyKernel(KernelConstruction& c, absl::Status*) : type_(c.input_type(0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    const Tensor& labels = ctx.input(1);
    TROUPE_RETURN_IF_ERROR(CheckSparseCrossEntropy(logits.shape(), labels.shape()));
    const int64_t rows = logits.dim(0), cols = logits.dim(1);
    absl::InlinedVector<int64_t, 128> wide_labels;
    const int64_t* classes = Labels(labels, &wide_labels);
    for (int64_t r = 0; r < rows; ++r) {
      if (classes[r] < 0 || classes[r] >= cols) {
        return InvalidArgument("label ", r, " is ", classes[r], ", outside the valid range [0, ",
                               cols, ")");
      }
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, logits.type(), Shape({rows})));
    const char* in = static_cast<const char*>(logits.raw_data());
    TROUPE_ASSIGN_OR_RETURN(Tensor * backprop, ctx.ForwardOrAllocate(0, 1));
    char* losses = static_cast<char*>(loss->mutable_raw_data());
    char* out = static_cast<char*>(backprop->mutable_raw_data());
    ctx.ParallelFor(rows, RowGrain(cols), [&](int64_t begin, int64_t end) {
      const int64_t size = type_.size, at = begin * cols * size;
      if (type_.widen == nullptr) {
        type_.fns.sparse_cross_entropy(in + at, classes + begin, losses + begin * size, out + at,
                                       end - begin, cols);
        return;
      }
      const int64_t step = WideRows(cols);
      std::vector<float> wide(step * cols), values(step);
      for (int64_t r = begin; r < end; r += step) {
        const int64_t rows = std::min(step, end - r), count = rows * cols;
        type_.widen(in + r * cols * size, wide.data(), count);
        type_.fns.sparse_cross_entropy(wide.data(), classes + r, values.data(), wide.data(), rows,
                                       cols);
        type_.round(values.data(), losses + r * size, rows);
        type_.round(wide.data(), out + r * cols * size, count);
      }
    });
    return absl::OkStatus();
  }

 private:
  static const int64_t* Labels(const Tensor& labels, absl::InlinedVector<int64_t, 128>* wide) {
    if (labels.type() == ElementType::kInt64) return labels.unchecked_data<int64_t>();
    const int32_t* data = labels.unchecked_data<int32_t>();
    wide->assign(data, data + labels.num_elements());
    return wide->data();
  }

  RowType type_;
};

REGISTER_KERNEL(KernelSpec("Softmax").Types("T", FloatTypes()), MakeKernel<SoftmaxKernel>);
REGISTER_KERNEL(KernelSpec("LogSoftmax").Types("T", FloatTypes()), MakeKernel<SoftmaxKernel>);
REGISTER_KERNEL(KernelSpec("SoftmaxCrossEntropyWithLogits").Types("T", FloatTypes()),
                MakeKernel<CrossEntropyKernel>);
REGISTER_KERNEL(KernelSpec("SparseSoftmaxCrossEntropyWithLogits")
                    .Types("T", FloatTypes())
                    .Types("Tlabels", IndexTypes()),
                MakeKernel<SparseCrossEntropyKernel>);

}  // namespace
}  // namespace troupe
