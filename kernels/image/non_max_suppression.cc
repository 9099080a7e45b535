// NonMaxSuppression, V2 to V5, NonMaxSuppressionWithOverlaps, CombinedNonMaxSuppression.
#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <type_traits>
#include <vector>

#include "devices/half.h"
#include "kernels/common/registration.h"
#include "kernels/image/box_overlap.h"
#include "kernels/image/suppression.h"
#include "kernels/kernel.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

/// T rounds what is compared.
template <typename T>
struct SuppressionRules {
  int64_t max_count;
  T overlap_threshold, score_threshold;
  /// Above 0: what overlaps is not left out, but its score is multiplied by
  /// exp(-overlap^2 / (2 sigma)) (Bodla et al., "Soft-NMS", ICCV 2017).
  T soft_sigma = T(0.0f);
};

template <typename T>
struct Picked {
  std::vector<int32_t> boxes;
  std::vector<T> scores;
};

/// Picks among `count` boxes with the scores scores[i * step]. overlap(i, j): that of two of them.
template <typename T, typename OverlapOf>
Picked<T> PickBy(const OverlapOf& overlap_of, int64_t count, const T* scores, int64_t step,
                 const SuppressionRules<T>& rules) {
  struct Candidate {
    int32_t box;
    T score;
    size_t compared;  // with so many of those that were picked
    bool operator<(const Candidate& other) const {
      return score < other.score || (score == other.score && box > other.box);
    }
  };
  std::vector<Candidate> candidates;
  for (int64_t i = 0; i < count; ++i) {
    const T score = scores[i * step];
    if (score > rules.score_threshold) candidates.push_back({static_cast<int32_t>(i), score, 0});
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
  const bool soft = rules.soft_sigma > T(0.0f);
  Picked<T> picked;
  while (static_cast<int64_t>(picked.boxes.size()) < rules.max_count && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    const T score = next.score;
    bool left_out = false;
    // Boxes with similar scores are likely to overlap, so the last ones come first.
    for (size_t j = picked.boxes.size(); j > next.compared && !left_out; --j) {
      const T overlap = T(overlap_of(next.box, picked.boxes[j - 1]));
      if (!soft) {
        left_out = overlap > rules.overlap_threshold;
        continue;
      }
      const float factor = std::exp(-0.5f / static_cast<float>(rules.soft_sigma) *
                                    static_cast<float>(overlap) * static_cast<float>(overlap));
      next.score = T(static_cast<float>(next.score) * factor);
      left_out = !(next.score > rules.score_threshold);
    }
    if (left_out) continue;
    if (next.score == score) {
      picked.boxes.push_back(next.box);
      picked.scores.push_back(score);
    } else {
      next.compared = picked.boxes.size();
      queue.push(next);
    }
  }
  return picked;
}

template <typename T>
Picked<T> Pick(const std::vector<Corners>& boxes, const T* scores, int64_t step,
               const SuppressionRules<T>& rules) {
  const auto overlap_of = [&](int32_t a, int32_t b) {
    return Corners::Overlap(boxes[a], boxes[b]);
  };
  return PickBy(overlap_of, static_cast<int64_t>(boxes.size()), scores, step, rules);
}

template <typename T>
std::vector<Corners> AllCorners(const T* boxes, int64_t count, int64_t stride) {
  std::vector<Corners> corners(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) corners[i] = Corners::Of(boxes + i * stride);
  return corners;
}

class SuppressionKernel final : public Kernel {
 public:
  SuppressionKernel(KernelConstruction& c, absl::Status*)
      : has_count_(c.num_outputs() > 1),
        has_scores_(c.num_outputs() > 2),
        pad_(c.Attr<bool>("pad_to_max_output_size")),
        overlap_threshold_(c.Attr<float>("iou_threshold")) {}

  absl::Status Compute(KernelContext& ctx) override {
    return SwitchType<float, half>(ctx.input(0).type(),
                                   [&]<typename T>() { return Suppress<T>(ctx); });
  }

 private:
  template <typename T>
  absl::Status Suppress(KernelContext& ctx) const {
    const float least_score =
        std::is_same_v<T, half> ? -65504.0f : std::numeric_limits<float>::lowest();
    TROUPE_ASSIGN_OR_RETURN(const SuppressionLimits limits,
                            ReadSuppressionLimits(ctx, {0, overlap_threshold_, least_score}));
    const SuppressionRules<T> rules{limits.max_count, T(limits.overlap_threshold),
                                    T(limits.score_threshold), T(limits.soft_sigma)};
    const Tensor &boxes = ctx.input(0), &scores = ctx.input(1);
    const Picked<T> picked =
        Pick(AllCorners(boxes.unchecked_data<T>(), boxes.dim(0), 4), scores.unchecked_data<T>(),
             /*step=*/1, rules);
    const auto count = static_cast<int64_t>(picked.boxes.size());
    const Shape shape({pad_ ? rules.max_count : count});
    TROUPE_RETURN_IF_ERROR(Give(ctx, 0, shape, picked.boxes));
    if (has_scores_) TROUPE_RETURN_IF_ERROR(Give(ctx, 1, shape, picked.scores));
    return has_count_ ? ctx.SetScalar(has_scores_ ? 2 : 1, static_cast<int32_t>(count))
                      : absl::OkStatus();
  }

  /// Zeros follow the values.
  template <typename T>
  static absl::Status Give(KernelContext& ctx, int i, const Shape& shape,
                           const std::vector<T>& values) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i, kElementType<T>, shape));
    T* end = std::copy(values.begin(), values.end(), out->mutable_data<T>());
    std::fill(end, out->mutable_data<T>() + out->num_elements(), T());
    return absl::OkStatus();
  }

  const bool has_count_, has_scores_, pad_;
  const float overlap_threshold_;
};

REGISTER_KERNEL(KernelSpec("NonMaxSuppression"), MakeKernel<SuppressionKernel>);
REGISTER_KERNELS(
    KernelSpec("NonMaxSuppressionV2").Types("T", {ElementType::kFloat, ElementType::kHalf}),
    MakeKernel<SuppressionKernel>, "NonMaxSuppressionV3", "NonMaxSuppressionV4",
    "NonMaxSuppressionV5");

absl::Status SuppressByOverlaps(KernelContext& ctx) {
  const Tensor& overlaps = ctx.input(0);
  const Tensor& scores = ctx.input(1);
  if (overlaps.rank() != 2 || overlaps.dim(0) != overlaps.dim(1) || scores.rank() != 1 ||
      scores.dim(0) != overlaps.dim(0)) {
    return InvalidArgument("`overlaps` must be [n, n] and `scores` [n], got shapes ",
                           overlaps.shape().ToString(), " and ", scores.shape().ToString());
  }
  SuppressionRules<float> rules{};
  TROUPE_ASSIGN_OR_RETURN(rules.max_count, ReadCount(ctx.input(2), "max_output_size", 0));
  TROUPE_ASSIGN_OR_RETURN(rules.overlap_threshold,
                          ReadThreshold(ctx.input(3), "overlap_threshold"));
  TROUPE_ASSIGN_OR_RETURN(rules.score_threshold, ReadThreshold(ctx.input(4), "score_threshold"));
  const int64_t n = scores.dim(0);
  const float* matrix = overlaps.unchecked_data<float>();
  const auto overlap_of = [&](int64_t a, int64_t b) { return matrix[a * n + b]; };
  const std::vector<int32_t> picked =
      PickBy(overlap_of, n, scores.unchecked_data<float>(), /*step=*/1, rules).boxes;
  const Shape shape({static_cast<int64_t>(picked.size())});
  TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ElementType::kInt32, shape));
  std::copy(picked.begin(), picked.end(), out->mutable_data<int32_t>());
  return absl::OkStatus();
}
REGISTER_KERNEL(KernelSpec("NonMaxSuppressionWithOverlaps"), MakeKernel<SuppressByOverlaps>);

class CombinedKernel final : public Kernel {
 public:
  CombinedKernel(KernelConstruction& c, absl::Status*)
      : pad_per_class_(c.Attr<bool>("pad_per_class")), clip_boxes_(c.Attr<bool>("clip_boxes")) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& boxes = ctx.input(0);
    const Tensor& scores = ctx.input(1);
    if (boxes.rank() != 4 || scores.rank() != 3 || boxes.dim(3) != 4 ||
        boxes.dim(0) != scores.dim(0) || boxes.dim(1) != scores.dim(1) ||
        (boxes.dim(2) != 1 && boxes.dim(2) != scores.dim(2))) {
      return InvalidArgument(
          "`boxes` must be [batch, n, 1 or classes, 4] and `scores` [batch, n, classes], got "
          "shapes ",
          boxes.shape().ToString(), " and ", scores.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(const int64_t per_class,
                            ReadCount(ctx.input(2), "max_output_size_per_class", 1));
    TROUPE_ASSIGN_OR_RETURN(int64_t total, ReadCount(ctx.input(3), "max_total_size", 1));
    SuppressionRules<float> rules{per_class, 0, 0};
    TROUPE_ASSIGN_OR_RETURN(rules.overlap_threshold, ReadThreshold(ctx.input(4), "iou_threshold"));
    TROUPE_RETURN_IF_ERROR(CheckOverlap(rules.overlap_threshold));
    TROUPE_ASSIGN_OR_RETURN(rules.score_threshold, ReadThreshold(ctx.input(5), "score_threshold"));
    const int64_t batch = boxes.dim(0), classes = scores.dim(2);
    if (pad_per_class_) total = std::min(total, per_class * classes);

    Outputs out;
    TROUPE_ASSIGN_OR_RETURN(out.boxes,
                            ctx.AllocateOutput(0, ElementType::kFloat, Shape({batch, total, 4})));
    TROUPE_ASSIGN_OR_RETURN(out.scores,
                            ctx.AllocateOutput(1, ElementType::kFloat, Shape({batch, total})));
    TROUPE_ASSIGN_OR_RETURN(out.classes,
                            ctx.AllocateOutput(2, ElementType::kFloat, Shape({batch, total})));
    TROUPE_ASSIGN_OR_RETURN(out.counts, ctx.AllocateOutput(3, ElementType::kInt32, Shape({batch})));
    std::vector<std::vector<Detection>> found(static_cast<size_t>(batch * classes));
    ctx.ParallelFor(batch * classes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        found[i] = Detect(boxes, scores, rules, i / classes, i % classes);
      }
    });
    for (int64_t i = 0; i < batch; ++i) {
      Give(boxes, i, absl::MakeConstSpan(found).subspan(i * classes, classes), total, out);
    }
    return absl::OkStatus();
  }

 private:
  struct Detection {
    int64_t box;  // counted over all images and classes
    float score;
    int64_t label;
  };
  struct Outputs {
    Tensor *boxes, *scores, *classes, *counts;
  };

  static std::vector<Detection> Detect(const Tensor& boxes, const Tensor& scores,
                                       const SuppressionRules<float>& rules, int64_t image,
                                       int64_t label) {
    const int64_t n = boxes.dim(1), kinds = boxes.dim(2), classes = scores.dim(2);
    const int64_t first = image * n * kinds + (kinds > 1 ? label : 0);
    const Picked<float> picked =
        Pick(AllCorners(boxes.unchecked_data<float>() + first * 4, n, kinds * 4),
             scores.unchecked_data<float>() + image * n * classes + label, classes, rules);
    std::vector<Detection> result;
    for (size_t i = 0; i < picked.boxes.size(); ++i) {
      result.push_back({first + picked.boxes[i] * kinds, picked.scores[i], label});
    }
    return result;
  }

  /// The best of all classes of an image.
  void Give(const Tensor& boxes, int64_t image, absl::Span<const std::vector<Detection>> found,
            int64_t total, const Outputs& out) const {
    std::vector<Detection> all;
    for (const auto& of_class : found) all.insert(all.end(), of_class.begin(), of_class.end());
    std::stable_sort(all.begin(), all.end(),
                     [](const Detection& a, const Detection& b) { return a.score > b.score; });
    const int64_t count = std::min<int64_t>(total, static_cast<int64_t>(all.size()));
    float* to_boxes = out.boxes->mutable_data<float>() + image * total * 4;
    float* to_scores = out.scores->mutable_data<float>() + image * total;
    float* to_classes = out.classes->mutable_data<float>() + image * total;
    std::fill_n(to_boxes, total * 4, 0.0f);
    std::fill_n(to_scores, total, 0.0f);
    std::fill_n(to_classes, total, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const float* box = boxes.unchecked_data<float>() + all[i].box * 4;
      for (int k = 0; k < 4; ++k) {
        to_boxes[4 * i + k] = clip_boxes_ ? std::max(std::min(box[k], 1.0f), 0.0f) : box[k];
      }
      to_scores[i] = all[i].score;
      to_classes[i] = static_cast<float>(all[i].label);
    }
    out.counts->mutable_data<int32_t>()[image] = static_cast<int32_t>(count);
  }

  const bool pad_per_class_, clip_boxes_;
};
REGISTER_KERNEL(KernelSpec("CombinedNonMaxSuppression"), MakeKernel<CombinedKernel>);

}  // namespace
}  // namespace troupe
