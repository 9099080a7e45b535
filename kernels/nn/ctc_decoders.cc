// CTCGreedyDecoder and CTCBeamSearchDecoder (Graves, "Sequence Transduction with Recurrent Neural
// Networks", 2012, section 2.6).
#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernels/common/registration.h"
#include "kernels/nn/ctc.h"
#include "kernels/type_switch.h"

namespace troupe {
namespace {

using Path = std::vector<int64_t>;

absl::StatusOr<CtcShape> CheckInputs(const KernelContext& ctx) {
  const Shape &inputs = ctx.input(0).shape(), &given = ctx.input(1).shape();
  if (inputs.rank() == 3 && given.rank() == 1 && given.dim(0) != inputs.dim(1)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "sequence_length has ", given.dim(0), " elements for ", inputs.dim(1), " sequences"));
  }
  TROUPE_ASSIGN_OR_RETURN(const CtcShape s, ReadCtcShape(ctx.input(0), ctx.input(1)));
  const int32_t* lengths = ctx.input(1).unchecked_data<int32_t>();
  for (int64_t b = 0; b < s.batch; ++b) {
    if (lengths[b] > s.time) {
      return absl::FailedPreconditionError(absl::StrCat("sequence_length(", b, ") is ", lengths[b],
                                                        ", more than the ", s.time, " steps"));
    }
  }
  return s;
}

// Makes outputs `at`, `at` + step and `at` + 2 step a sparse matrix of a row for each path.
absl::Status PutPaths(KernelContext& ctx, int at, int step, const std::vector<Path>& paths) {
  int64_t count = 0, longest = 0;
  for (const Path& path : paths) {
    count += static_cast<int64_t>(path.size());
    longest = std::max(longest, static_cast<int64_t>(path.size()));
  }
  const ElementType type = ElementType::kInt64;
  TROUPE_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(at, type, Shape({count, 2})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(at + step, type, Shape({count})));
  TROUPE_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(at + 2 * step, type, Shape({2})));
  int64_t* index = indices->mutable_data<int64_t>();
  int64_t* value = values->mutable_data<int64_t>();
  for (size_t b = 0; b < paths.size(); ++b) {
    for (size_t i = 0; i < paths[b].size(); ++i) {
      *index++ = static_cast<int64_t>(b);
      *index++ = static_cast<int64_t>(i);
      *value++ = paths[b][i];
    }
  }
  shape->mutable_data<int64_t>()[0] = static_cast<int64_t>(paths.size());
  shape->mutable_data<int64_t>()[1] = longest;
  return absl::OkStatus();
}

absl::Status GreedyDecoder(KernelContext& ctx, bool merge_repeated, int64_t blank) {
  TROUPE_ASSIGN_OR_RETURN(const CtcShape s, CheckInputs(ctx));
  if (blank < -s.classes || blank >= s.classes) {
    return InvalidArgument("blank_index must be in [", -s.classes, ", ", s.classes, "), got ",
                           blank);
  }
  if (blank < 0) blank += s.classes;
  const ElementType type = ctx.input(0).type();
  TROUPE_ASSIGN_OR_RETURN(Tensor * log_probability,
                          ctx.AllocateOutput(3, type, Shape({s.batch, 1})));
  std::vector<Path> paths(s.batch);
  const auto decode = [&]<typename T>() {
    const T* inputs = ctx.input(0).unchecked_data<T>();
    T* log_p = log_probability->mutable_data<T>();
    const int32_t* lengths = ctx.input(1).unchecked_data<int32_t>();
    ctx.ParallelFor(s.batch, KernelContext::GrainFor(static_cast<double>(s.time * s.classes)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t b = begin; b < end; ++b) {
                        log_p[b] = 0;
                        int64_t last = -1;
                        for (int64_t t = 0; t < lengths[b]; ++t) {
                          const T* row = inputs + (t * s.batch + b) * s.classes;
                          const int64_t best = std::max_element(row, row + s.classes) - row;
                          log_p[b] -= row[best];
                          if (best != blank && !(merge_repeated && best == last))
                            paths[b].push_back(best);
                          last = best;
                        }
                      }
                    });
    return absl::OkStatus();
  };
  TROUPE_RETURN_IF_ERROR((SwitchType<float, double>(type, decode)));
  return PutPaths(ctx, 0, 1, paths);
}

// The logarithms of the probabilities of a sequence of labels so far: that it ends with a blank,
// with its last label, with either.
template <typename T>
struct Likelihood {
  T total = kLogZero<T>, blank = kLogZero<T>, label = kLogZero<T>;
};

// A sequence of labels: that of its parent and one more.
template <typename T>
struct Candidate {
  Candidate* parent = nullptr;  // nullptr: no labels
  int64_t label = -1;
  Likelihood<T> before, now;  // the last step and this one
  absl::flat_hash_map<int64_t, Candidate*> longer;

  bool in_beam() const { return now.total != kLogZero<T>; }
};

// The search for the likeliest sequences of one input. The last class is the blank one.
template <typename T>
class BeamSearch {
 public:
  BeamSearch(int64_t width, int64_t classes) : width_(width), labels_(classes - 1) {
    Candidate<T>& root = all_.emplace_back();
    root.now.total = root.now.blank = 0;
    beam_.push_back(&root);
  }

  void Step(const T* logits) {
    const T norm = LogNorm(logits, labels_ + 1);
    std::vector<Candidate<T>*> old;
    std::swap(old, beam_);
    for (Candidate<T>* c : old) c->before = c->now;
    for (Candidate<T>* c : old) {
      if (c->parent != nullptr) {
        // A label again follows itself only after a blank.
        if (c->parent->in_beam()) {
          c->now.label = LogSumExp(c->now.label, Grown(*c->parent, c->label));
        }
        c->now.label += logits[c->label] - norm;
      }
      c->now.blank = c->before.total + logits[labels_] - norm;
      c->now.total = LogSumExp(c->now.blank, c->now.label);
      Push(c);
    }
    for (Candidate<T>* c : old) {
      if (!IsGoodEnough(c->before.total)) continue;
      for (int64_t label = 0; label < labels_; ++label) {
        Grow(c, label, logits[label] - norm);
      }
    }
  }

  // The n best, best first; n must not be more than there are.
  std::vector<const Candidate<T>*> Best(size_t n) const {
    std::vector<const Candidate<T>*> best(beam_.begin(), beam_.end());
    std::partial_sort(best.begin(), best.begin() + static_cast<int64_t>(n), best.end(),
                      [](const auto* a, const auto* b) { return a->now.total > b->now.total; });
    best.resize(n);
    return best;
  }
  size_t size() const { return beam_.size(); }

 private:
  // Of what `label` is one more than, in the step before.
  static T Grown(const Candidate<T>& shorter, int64_t label) {
    return label == shorter.label ? shorter.before.blank : shorter.before.total;
  }

  void Grow(Candidate<T>* shorter, int64_t label, T log_probability) {
    const auto found = shorter->longer.find(label);
    Candidate<T>* child = found == shorter->longer.end() ? nullptr : found->second;
    if (child != nullptr && child->in_beam()) return;
    Likelihood<T> now;
    now.label = now.total = log_probability + Grown(*shorter, label);
    if (!IsGoodEnough(now.total)) return;
    if (child == nullptr) {
      child = &all_.emplace_back();
      child->parent = shorter;
      child->label = label;
      shorter->longer[label] = child;
    }
    if (static_cast<int64_t>(beam_.size()) == width_) {
      std::pop_heap(beam_.begin(), beam_.end(), IsLikelier);
      beam_.back()->now = {};
      beam_.pop_back();
    }
    child->now = now;
    Push(child);
  }

  bool IsGoodEnough(T total) const {
    return total > kLogZero<T> &&
           (static_cast<int64_t>(beam_.size()) < width_ || total > beam_.front()->now.total);
  }

  static bool IsLikelier(const Candidate<T>* a, const Candidate<T>* b) {
    return a->now.total > b->now.total;
  }
  void Push(Candidate<T>* c) {
    beam_.push_back(c);
    std::push_heap(beam_.begin(), beam_.end(), IsLikelier);
  }

  const int64_t width_, labels_;
  std::deque<Candidate<T>> all_;     // stay where they are
  std::vector<Candidate<T>*> beam_;  // a heap, the least likely first
};

template <typename T>
Path LabelsOf(const Candidate<T>* c, bool merge_repeated) {
  Path path;
  int64_t last = -1;
  for (; c->parent != nullptr; c = c->parent) {
    if (!merge_repeated || c->label != last) path.push_back(c->label);
    last = c->label;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

absl::Status BeamSearchDecoder(KernelContext& ctx, int64_t beam_width, bool merge_repeated) {
  TROUPE_ASSIGN_OR_RETURN(const CtcShape s, CheckInputs(ctx));
  const int top_paths = (ctx.num_outputs() - 1) / 3;
  if (top_paths > beam_width) {
    return InvalidArgument("top_paths is ", top_paths, ", more than the beam's width ", beam_width);
  }
  const ElementType type = ctx.input(0).type();
  TROUPE_ASSIGN_OR_RETURN(Tensor * log_probability,
                          ctx.AllocateOutput(3 * top_paths, type, Shape({s.batch, top_paths})));
  std::vector<std::vector<Path>> paths(top_paths, std::vector<Path>(s.batch));
  std::vector<size_t> found(s.batch);
  const auto decode = [&]<typename T>() {
    const T* inputs = ctx.input(0).unchecked_data<T>();
    const int32_t* lengths = ctx.input(1).unchecked_data<int32_t>();
    ctx.ParallelFor(s.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        BeamSearch<T> search(beam_width, s.classes);
        for (int64_t t = 0; t < lengths[b]; ++t) {
          search.Step(inputs + (t * s.batch + b) * s.classes);
        }
        found[b] = search.size();
        if (found[b] < static_cast<size_t>(top_paths)) continue;
        const auto best = search.Best(top_paths);
        for (int i = 0; i < top_paths; ++i) {
          paths[i][b] = LabelsOf(best[i], merge_repeated);
          log_probability->mutable_data<T>()[b * top_paths + i] = best[i]->now.total;
        }
      }
    });
    return absl::OkStatus();
  };
  TROUPE_RETURN_IF_ERROR((SwitchType<float, double>(type, decode)));
  for (int64_t b = 0; b < s.batch; ++b) {
    if (found[b] >= static_cast<size_t>(top_paths)) continue;
    return InvalidArgument("sequence ", b, " has ", found[b], " paths only, ", top_paths,
                           " were asked for");
  }
  for (int i = 0; i < top_paths; ++i) {
    TROUPE_RETURN_IF_ERROR(PutPaths(ctx, i, top_paths, paths[i]));
  }
  return absl::OkStatus();
}

KernelSpec Spec(const char* op) {
  return KernelSpec(op).Types("T", {ElementType::kFloat, ElementType::kDouble});
}

REGISTER_KERNEL(Spec("CTCGreedyDecoder"),
                (MakeAttrKernel<GreedyDecoder, "merge_repeated", "blank_index">));
REGISTER_KERNEL(Spec("CTCBeamSearchDecoder"),
                (MakeAttrKernel<BeamSearchDecoder, "beam_width", "merge_repeated">));

}  // namespace
}  // namespace troupe
