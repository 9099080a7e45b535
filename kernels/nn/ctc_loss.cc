// CTCLoss (Graves, Fernandez, Gomez, Schmidhuber, "Connectionist Temporal Classification", 2006).
#include <algorithm>
#include <vector>

#include "kernels/common/registration.h"
#include "kernels/nn/ctc.h"
#include "kernels/type_switch.h"

namespace troupe {

absl::StatusOr<CtcShape> ReadCtcShape(const Tensor& inputs, const Tensor& lengths) {
  if (inputs.rank() != 3) {
    return InvalidArgument("inputs must be [time, batch, classes], got shape ",
                           inputs.shape().ToString());
  }
  if (inputs.num_elements() == 0) {
    return InvalidArgument("inputs must have elements, got shape ", inputs.shape().ToString());
  }
  if (lengths.rank() != 1 || lengths.dim(0) != inputs.dim(1)) {
    return InvalidArgument("sequence_length must be a vector of one element for each of the ",
                           inputs.dim(1), " sequences, got shape ", lengths.shape().ToString());
  }
  return CtcShape{inputs.dim(0), inputs.dim(1), inputs.dim(2)};
}

namespace {

// The labels of one sequence.
struct Labels {
  std::vector<int64_t> values;
  bool is_ignored = false;  // longer than the sequence
};

class CtcLossKernel final : public Kernel {
 public:
  CtcLossKernel(KernelConstruction& construction, absl::Status* status) {
    *status = construction.GetAttr("preprocess_collapse_repeated", &collapse_);
    if (status->ok()) *status = construction.GetAttr("ctc_merge_repeated", &merge_);
    if (status->ok()) {
      *status = construction.GetAttr("ignore_longer_outputs_than_inputs", &ignore_longer_);
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& inputs = ctx.input(0);
    TROUPE_ASSIGN_OR_RETURN(const CtcShape s, ReadCtcShape(inputs, ctx.input(3)));
    const int32_t* lengths = ctx.input(3).unchecked_data<int32_t>();
    for (int64_t b = 0; b < s.batch; ++b) {
      if (lengths[b] < 0 || lengths[b] > s.time) {
        return InvalidArgument("sequence_length(", b, ") must be in [0, ", s.time, "], got ",
                               lengths[b]);
      }
    }
    TROUPE_ASSIGN_OR_RETURN(const std::vector<Labels> labels, ReadLabels(ctx, s, lengths));
    TROUPE_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, inputs.type(), Shape({s.batch})));
    TROUPE_ASSIGN_OR_RETURN(Tensor * gradient,
                            ctx.AllocateOutput(1, inputs.type(), inputs.shape()));
    return SwitchType<float, double>(inputs.type(), [&]<typename T>() {
      const double ns = 50.0 * static_cast<double>(s.time * s.classes);
      ctx.ParallelFor(s.batch, KernelContext::GrainFor(ns), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          loss->mutable_data<T>()[b] = Sequence(
              s, b, lengths[b], labels[b], inputs.unchecked_data<T>(), gradient->mutable_data<T>());
        }
      });
      return absl::OkStatus();
    });
  }

 private:
  // The labels of each sequence, from a sparse matrix.
  absl::StatusOr<std::vector<Labels>> ReadLabels(const KernelContext& ctx, const CtcShape& s,
                                                 const int32_t* lengths) const {
    const Tensor &indices = ctx.input(1), &values = ctx.input(2);
    if (indices.rank() != 2 || indices.dim(1) != 2 || values.rank() != 1 ||
        values.dim(0) != indices.dim(0)) {
      return InvalidArgument("labels_indices must be [labels, 2] and labels_values [labels], got ",
                             indices.shape().ToString(), " and ", values.shape().ToString());
    }
    const int64_t* at = indices.unchecked_data<int64_t>();
    const int32_t* value = values.unchecked_data<int32_t>();
    std::vector<std::vector<int64_t>> raw(s.batch);
    for (int64_t i = 0; i < values.dim(0); ++i, at += 2) {
      if (at[0] < 0 || at[0] >= s.batch || at[1] < 0) {
        return InvalidArgument("labels_indices[", i, "] = [", at[0], ",", at[1],
                               "] is out of bounds for ", s.batch, " sequences");
      }
      if (i > 0 && (at[-2] > at[0] || (at[-2] == at[0] && at[-1] >= at[1]))) {
        return InvalidArgument("labels_indices[", i, "] = [", at[0], ",", at[1],
                               "] is repeated or out of order");
      }
      raw[at[0]].push_back(value[i]);
    }
    std::vector<Labels> labels(s.batch);
    for (int64_t b = 0; b < s.batch; ++b) {
      if (raw[b].empty()) return InvalidArgument("there are no labels for sequence ", b);
      labels[b].is_ignored = static_cast<int64_t>(raw[b].size()) > lengths[b];
      if (labels[b].is_ignored && !ignore_longer_) {
        return InvalidArgument("sequence ", b, " of ", lengths[b], " steps has no room for its ",
                               raw[b].size(), " labels; ignore_longer_outputs_than_inputs=true ",
                               "would leave it out");
      }
      TROUPE_ASSIGN_OR_RETURN(labels[b].values, Preprocess(raw[b], b, s.classes - 1));
    }
    return labels;
  }

  // The first class that is no label, the blank one or none at all, ends the labels.
  absl::StatusOr<std::vector<int64_t>> Preprocess(const std::vector<int64_t>& raw, int64_t b,
                                                  int64_t blank) const {
    std::vector<int64_t> labels;
    bool has_ended = false;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (i > 0 && collapse_ && raw[i] == raw[i - 1]) continue;
      if (raw[i] < 0) return InvalidArgument("label ", raw[i], " of sequence ", b, " is negative");
      if (raw[i] >= blank) {
        has_ended = true;
      } else if (has_ended) {
        return InvalidArgument("label ", raw[i], " of sequence ", b,
                               " stands behind one that ends the labels (at least ", blank, ")");
      } else {
        labels.push_back(raw[i]);
      }
    }
    return labels;
  }

  template <typename T>
  static void Softmax(const T* logits, int64_t n, T* out) {
    const T most = *std::max_element(logits, logits + n);
    T sum = 0;
    for (int64_t c = 0; c < n; ++c) sum += out[c] = std::exp(logits[c] - most);
    for (int64_t c = 0; c < n; ++c) out[c] /= sum;
  }

  // The loss of sequence b; fills its part of the gradient.
  template <typename T>
  T Sequence(const CtcShape& s, int64_t b, int64_t length, const Labels& labels, const T* inputs,
             T* gradient) const {
    const auto row = [&](int64_t t) { return (t * s.batch + b) * s.classes; };
    for (int64_t t = 0; t < s.time; ++t) {
      std::fill_n(gradient + row(t), s.classes, T(0));
    }
    if (labels.is_ignored || length == 0) return 0;
    // Blanks stand before, between and behind the labels.
    const int64_t blank = s.classes - 1;
    std::vector<int64_t> path = {blank};
    for (const int64_t label : labels.values) path.insert(path.end(), {label, blank});
    const auto states = static_cast<int64_t>(path.size());
    // The gradient's place holds the probabilities of the classes at first.
    for (int64_t t = 0; t < length; ++t) {
      Softmax(inputs + row(t), s.classes, gradient + row(t));
    }
    const auto log_probability = [&](int64_t u, int64_t t) {
      return std::log(gradient[row(t) + path[u]]);
    };
    // Whether a path goes from state u to itself, and past a blank to u + 2.
    const auto stays = [&](int64_t u) { return merge_ || path[u] == blank; };
    const auto skips = [&](int64_t u) {
      return u + 2 < states && path[u] != blank && !(merge_ && path[u] == path[u + 2]);
    };

    std::vector<T> alpha(states * length, kLogZero<T>), beta(alpha);
    alpha[0] = log_probability(0, 0);
    if (states > 1) alpha[1] = log_probability(1, 0);
    for (int64_t t = 1; t < length; ++t) {
      const T* before = alpha.data() + (t - 1) * states;
      for (int64_t u = 0; u < std::min(states, 2 * (t + 1)); ++u) {
        T sum = stays(u) ? before[u] : kLogZero<T>;
        if (u > 0) sum = LogSumExp(sum, before[u - 1]);
        if (u > 1 && skips(u - 2)) sum = LogSumExp(sum, before[u - 2]);
        alpha[t * states + u] = sum + log_probability(u, t);
      }
    }
    // The last blank and the last label end a path. Without any label this is the blank of the last
    // but one step, as in TensorFlow, which counts the paths through it twice.
    const int64_t size = states * length;
    for (int64_t i = std::max<int64_t>(0, size - 2); i < size; ++i) beta[i] = 0;
    for (int64_t t = length - 2; t >= 0; --t) {
      const T* after = beta.data() + (t + 1) * states;
      for (int64_t u = 0; u < states; ++u) {
        T& sum = beta[t * states + u];
        if (stays(u)) sum = LogSumExp(sum, after[u] + log_probability(u, t + 1));
        if (u + 1 < states) sum = LogSumExp(sum, after[u + 1] + log_probability(u + 1, t + 1));
        if (skips(u)) sum = LogSumExp(sum, after[u + 2] + log_probability(u + 2, t + 1));
      }
    }
    T total = kLogZero<T>;
    for (int64_t u = 0; u < states; ++u) total = LogSumExp(total, alpha[u] + beta[u]);

    std::vector<T> of_class(s.classes);
    for (int64_t t = 0; t < length; ++t) {
      std::fill(of_class.begin(), of_class.end(), kLogZero<T>);
      for (int64_t u = 0; u < states; ++u) {
        T& sum = of_class[path[u]];
        sum = LogSumExp(sum, alpha[t * states + u] + beta[t * states + u]);
      }
      for (int64_t c = 0; c < s.classes; ++c) {
        // Without any path there is nothing that it could be drawn to.
        if (total == kLogZero<T>) break;
        gradient[row(t) + c] -= std::exp(static_cast<float>(of_class[c] - total));
      }
    }
    return -total;
  }

  bool collapse_ = false, merge_ = true, ignore_longer_ = false;
};

REGISTER_KERNEL(KernelSpec("CTCLoss").Types("T", {ElementType::kFloat, ElementType::kDouble}),
                MakeKernel<CtcLossKernel>);

}  // namespace
}  // namespace troupe
