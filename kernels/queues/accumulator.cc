#include "kernels/queues/accumulator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "devices/exceptions.h"
#include "kernels/type_switch.h"

namespace troupe {

struct Accumulator::TakeCall : Call {
  TakeCall(KernelContext& ctx, KernelDone done, const Accumulator* from, int64_t n)
      : Call(ctx, done), accumulator(from), required(n) {}
  absl::Status Finish() override { return accumulator->PutOut(*ctx, std::move(sum)); }

  const Accumulator* accumulator;
  int64_t required;
  Sum sum;
};

absl::Status Accumulator::Apply(const KernelContext& ctx, int64_t local_step, bool has_shape) {
  std::unique_lock<std::mutex> one_at_a_time(adding_);
  Sum sum;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (local_step < step_) return absl::OkStatus();
    sum = std::exchange(sum_, {.count = sum_.count});
    sum_is_lent_ = true;
  }
  const absl::Status status = CatchExceptions([&] { return Add(ctx, has_shape, &sum); });
  Change([&] {
    sum_ = std::move(sum);
    sum_is_lent_ = false;
    if (status.ok()) ++sum_.count;
    one_at_a_time.unlock();
  });
  return status;
}

void Accumulator::TakeGradient(KernelContext& ctx, KernelDone done, int64_t required) {
  if (required < 1) {
    return done(InvalidArgument(DebugString(), ": the number of gradients required must be > 0, ",
                                "got ", required));
  }
  Submit(0, std::make_unique<TakeCall>(ctx, done, this, required));
}

void Accumulator::Serve() {
  Line& line = lines_[0];
  serving_ = &line;
  while (!line.empty()) {
    auto* call = static_cast<TakeCall*>(line.front().get());
    if (sum_is_lent_ || sum_.count < call->required) return;
    call->sum = std::exchange(sum_, {});
    ++step_;
    Complete(&line, absl::OkStatus());
  }
}

void Accumulator::SetGlobalStep(int64_t step) {
  std::lock_guard<std::mutex> lock(mutex_);
  step_ = step;
}

int64_t Accumulator::NumAccumulated() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return sum_.count;
}

namespace {

/// to[i] = to[i] + from[i].
absl::Status AddTo(ElementType type, const void* from, int64_t count, void* to) {
  return SwitchType<float, double, half>(type, [&]<typename T>() -> absl::Status {
    const T* in = static_cast<const T*>(from);
    T* out = static_cast<T*>(to);
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(static_cast<Wide>(out[i]) + static_cast<Wide>(in[i]));
    }
    return absl::OkStatus();
  });
}

/// values[i] = values[i] / by.
absl::Status Divide(ElementType type, int64_t by, int64_t count, void* values) {
  return SwitchType<float, double, half>(type, [&]<typename T>() -> absl::Status {
    T* out = static_cast<T*>(values);
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<T>(static_cast<Wide>(out[i]) / static_cast<Wide>(by));
    }
    return absl::OkStatus();
  });
}

std::string Describe(const char* what, const Accumulator& accumulator) {
  return StrCat(what, " '", accumulator.name(), "' of ",
                ElementTypeName(accumulator.options().type), " ",
                accumulator.options().shape.ToString());
}

class DenseAccumulator final : public Accumulator {
 public:
  DenseAccumulator(std::string name, AccumulatorOptions options)
      : Accumulator(std::move(name), std::move(options), false) {}
  std::string DebugString() const override { return Describe("conditional accumulator", *this); }

 private:
  absl::Status Add(const KernelContext& ctx, bool, Sum* sum) const override {
    const Tensor& gradient = ctx.input(2);
    if (ctx.num_inputs() != 3 || gradient.type() != options().type) {
      return InvalidArgument(DebugString(), " cannot take a gradient of type ",
                             ElementTypeName(gradient.type()));
    }
    if (!options().shape.IsCompatibleWith(gradient.shape()) ||
        (sum->count > 0 && gradient.shape() != sum->values.shape())) {
      return InvalidArgument(
          DebugString(), ": shape mismatch: expected ",
          sum->count > 0 ? sum->values.shape().ToString() : options().shape.ToString(), ", got ",
          gradient.shape().ToString());
    }
    if (sum->count == 0) {
      sum->values = gradient;
      return absl::OkStatus();
    }
    Tensor& values = sum->values;
    if (!values.unique()) {
      TROUPE_ASSIGN_OR_RETURN(values, values.Clone());
    }
    return AddTo(values.type(), gradient.raw_data(), values.num_elements(),
                 values.mutable_raw_data());
  }

  absl::Status PutOut(KernelContext& ctx, Sum sum) const override {
    Tensor& values = sum.values;
    if (options().mean && sum.count > 1) {
      if (!values.unique()) {
        TROUPE_ASSIGN_OR_RETURN(values, values.Clone());
      }
      TROUPE_RETURN_IF_ERROR(
          Divide(values.type(), sum.count, values.num_elements(), values.mutable_raw_data()));
    }
    ctx.set_output(0, std::move(values));
    return absl::OkStatus();
  }
};

class SparseAccumulator final : public Accumulator {
 public:
  SparseAccumulator(std::string name, AccumulatorOptions options)
      : Accumulator(std::move(name), std::move(options), true) {}
  std::string DebugString() const override {
    return Describe("sparse conditional accumulator", *this);
  }

 private:
  absl::Status Add(const KernelContext& ctx, bool has_shape, Sum* sum) const override {
    TROUPE_RETURN_IF_ERROR(Check(ctx, *sum, has_shape));
    const absl::Span<const int64_t> indices = ctx.input(2).unchecked_values<int64_t>();
    const Tensor& values = ctx.input(3);
    if (sum->count > 0) return Merge(indices, values, sum);
    sum->indices.assign(indices.begin(), indices.end());
    sum->counts.assign(indices.size(), 1);
    sum->values = values;
    return absl::OkStatus();
  }

  absl::Status Check(const KernelContext& ctx, const Sum& sum, bool has_shape) const {
    const auto wrong = [&](const auto&... what) {
      return InvalidArgument(DebugString(), ": ", what...);
    };
    if (ctx.num_inputs() != 5 || ctx.input(3).type() != options().type) {
      return wrong("cannot take a gradient of type ",
                   ElementTypeName(ctx.input(std::min(3, ctx.num_inputs() - 1)).type()));
    }
    const Tensor& indices = ctx.input(2);
    const Tensor& values = ctx.input(3);
    const Tensor& shape = ctx.input(4);
    if (indices.rank() != 1) {
      return wrong("indices must be a vector, got shape ", indices.shape().ToString());
    }
    if (values.rank() < 1 || values.dim(0) != indices.dim(0)) {
      return wrong("there are ", indices.dim(0), " indices, but values have shape ",
                   values.shape().ToString());
    }
    const PartialShape& expected = options().shape;
    int64_t limit = expected.rank() > 0 ? expected.dim(0) : -1;
    if (has_shape) {
      if (shape.rank() != 1 || shape.num_elements() < expected.rank()) {
        return wrong("the gradient's shape must be a vector of at least ",
                     std::max(0, expected.rank()), " sizes, got shape ", shape.shape().ToString());
      }
      const absl::Span<const int64_t> sizes = shape.unchecked_values<int64_t>();
      for (size_t i = 0; i < sizes.size(); ++i) {
        const int d = static_cast<int>(i);
        if (sizes[i] >= 0 && d < expected.rank() && expected.dim(d) >= 0 &&
            sizes[i] != expected.dim(d)) {
          return wrong("shape mismatch: expected size ", expected.dim(d), " of dimension ", d,
                       ", got ", sizes[i]);
        }
      }
      if (limit < 0 && !sizes.empty()) limit = sizes[0];
    }
    return CheckRows(indices, values, limit, sum);
  }

  absl::Status CheckRows(const Tensor& indices, const Tensor& values, int64_t limit,
                         const Sum& sum) const {
    const PartialShape& expected = options().shape;
    bool fits = expected.unknown_rank() || values.rank() == std::max(1, expected.rank());
    for (int d = 1; fits && d < expected.rank(); ++d) {
      fits = expected.dim(d) < 0 || expected.dim(d) == values.dim(d);
    }
    if (sum.count > 0) {
      fits = fits && values.rank() == sum.values.rank();
      for (int d = 1; fits && d < values.rank(); ++d) fits = values.dim(d) == sum.values.dim(d);
    }
    if (!fits) {
      return InvalidArgument(DebugString(), ": shape mismatch: values of shape ",
                             values.shape().ToString(), " cannot be added",
                             sum.count > 0 ? " to " + sum.values.shape().ToString() : "");
    }
    if (limit < 0) return absl::OkStatus();
    for (const int64_t index : indices.unchecked_values<int64_t>()) {
      if (index >= limit) {
        return InvalidArgument(DebugString(), ": index ", index, " exceeds the limit ", limit);
      }
    }
    return absl::OkStatus();
  }

  /// Walks along both lists of indices, the smaller one first, as if they were sorted.
  static absl::Status Merge(absl::Span<const int64_t> indices, const Tensor& values, Sum* sum) {
    struct Source {
      int64_t mine, other;  // Rows; -1: none.
    };
    std::vector<Source> sources;
    std::vector<int64_t> merged, counts;
    size_t i = 0, j = 0;
    const std::vector<int64_t>& old = sum->indices;
    while (i < old.size() || j < indices.size()) {
      const bool mine = i < old.size() && (j >= indices.size() || old[i] <= indices[j]);
      const bool other = j < indices.size() && (i >= old.size() || indices[j] <= old[i]);
      sources.push_back(
          {mine ? static_cast<int64_t>(i) : -1, other ? static_cast<int64_t>(j) : -1});
      merged.push_back(mine ? old[i] : indices[j]);
      counts.push_back((mine ? sum->counts[i] : 0) + (other ? 1 : 0));
      i += mine;
      j += other;
    }
    Shape shape = values.shape();
    std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
    sizes[0] = static_cast<int64_t>(merged.size());
    TROUPE_ASSIGN_OR_RETURN(shape, Shape::Create(sizes));
    TROUPE_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(values.type(), shape));
    const int64_t row = merged.empty() ? 0 : shape.num_elements() / sizes[0];
    const size_t bytes = static_cast<size_t>(row) * ElementSize(values.type());
    for (size_t k = 0; k < sources.size(); ++k) {
      char* to = static_cast<char*>(result.mutable_raw_data()) + k * bytes;
      const auto row_of = [&](const Tensor& tensor, int64_t r) {
        return static_cast<const char*>(tensor.raw_data()) + static_cast<size_t>(r) * bytes;
      };
      const Source& source = sources[k];
      const bool both = source.mine >= 0 && source.other >= 0;
      std::copy_n(
          source.mine >= 0 ? row_of(sum->values, source.mine) : row_of(values, source.other), bytes,
          to);
      if (both) TROUPE_RETURN_IF_ERROR(AddTo(result.type(), row_of(values, source.other), row, to));
    }
    sum->indices = std::move(merged);
    sum->counts = std::move(counts);
    sum->values = std::move(result);
    return absl::OkStatus();
  }

  absl::Status PutOut(KernelContext& ctx, Sum sum) const override {
    Tensor& values = sum.values;
    if (options().mean) {
      if (!values.unique()) {
        TROUPE_ASSIGN_OR_RETURN(values, values.Clone());
      }
      const int64_t rows = values.dim(0), row = rows == 0 ? 0 : values.num_elements() / rows;
      for (int64_t k = 0; k < rows; ++k) {
        char* at = static_cast<char*>(values.mutable_raw_data()) +
                   static_cast<size_t>(k * row) * ElementSize(values.type());
        TROUPE_RETURN_IF_ERROR(Divide(values.type(), sum.counts[k], row, at));
      }
    }
    std::vector<int64_t> shape(values.shape().dims().begin(), values.shape().dims().end());
    shape[0] = options().shape.rank() > 0 ? options().shape.dim(0) : -1;
    ctx.set_output(0, Tensor::Vector<int64_t>(absl::MakeConstSpan(sum.indices)));
    ctx.set_output(1, std::move(values));
    ctx.set_output(2, Tensor::Vector<int64_t>(absl::MakeConstSpan(shape)));
    return absl::OkStatus();
  }
};

}  // namespace

RefPtr<Accumulator> MakeDenseAccumulator(std::string name, AccumulatorOptions options) {
  return MakeRef<DenseAccumulator>(std::move(name), std::move(options));
}

RefPtr<Accumulator> MakeSparseAccumulator(std::string name, AccumulatorOptions options) {
  return MakeRef<SparseAccumulator>(std::move(name), std::move(options));
}

}  // namespace troupe
