// AllCandidateSampler, FixedUnigramCandidateSampler, LearnedUnigramCandidateSampler,
// ThreadUnsafeUnigramCandidateSampler.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "graph/message_file.h"
#include "kernels/common/registration.h"
#include "kernels/random/candidate_sampler.h"
#include "kernels/random/draws.h"

namespace troupe {
namespace {

// ---- Given frequencies.

/// Draws from a table by the alias method of Walker (Knuth, "Seminumerical Algorithms", 3.4.1).
class AliasTable {
 public:
  explicit AliasTable(const std::vector<float>& weights) : columns_(weights.size()) {
    const double n = static_cast<double>(weights.size());
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> shares(weights.size());
    std::vector<int32_t> above, below;
    for (size_t i = 0; i < weights.size(); ++i) {
      shares[i] = weights[i] * n / sum;
      (shares[i] < 1 ? below : above).push_back(static_cast<int32_t>(i));
    }
    while (!above.empty() && !below.empty()) {
      const int32_t low = below.back(), high = above.back();
      below.pop_back();
      above.pop_back();
      columns_[low] = {static_cast<float>(shares[low]), high};
      shares[high] -= 1 - shares[low];
      (shares[high] < 1 ? below : above).push_back(high);
    }
    // What is left has shares of 1 but for rounding.
    for (const auto* left : {&above, &below}) {
      for (const int32_t i : *left) columns_[i] = {1, i};
    }
  }

  int64_t Draw(PhiloxWords& words) const {
    const float at = UniformFloat(words);
    const uint32_t i = UniformBelow32(words, static_cast<uint32_t>(columns_.size()));
    return at < columns_[i].share ? i : columns_[i].alias;
  }

 private:
  struct Column {
    float share;    ///< Of the column's own number.
    int32_t alias;  ///< Has the rest.
  };
  std::vector<Column> columns_;
};

absl::StatusOr<std::vector<float>> ReadWeights(const std::string& file) {
  TROUPE_ASSIGN_OR_RETURN(std::string bytes, ReadFileBytes(file));
  bytes.erase(std::remove(bytes.begin(), bytes.end(), '\r'), bytes.end());
  std::vector<float> weights;
  for (const absl::string_view line : absl::StrSplit(bytes, '\n', absl::SkipEmpty())) {
    // The last column; those before it are the word.
    const absl::string_view last = line.substr(line.rfind(',') + 1);
    if (!absl::SimpleAtof(last, &weights.emplace_back())) {
      return InvalidArgument("a line of ", file, " does not end with a number: ", line);
    }
  }
  return weights;
}

/// Classes with frequencies from an attribute or a file, after some that are never drawn. Of all of
/// them only every `num_shards`th is this sampler's.
class FixedUnigramClasses {
 public:
  FixedUnigramClasses(KernelConstruction& construction, absl::Status* status)
      : range_(construction.Attr<int64_t>("range_max")), table_({}) {
    *status = Load(construction);
    if (status->ok()) table_ = AliasTable(weights_);
  }

  int64_t range() const { return range_; }
  int64_t Draw(PhiloxWords& words) const { return table_.Draw(words); }
  float Probability(int64_t value) const { return weights_[value] / total_; }

 private:
  absl::Status Load(KernelConstruction& construction) {
    const std::string file = construction.Attr<std::string>("vocab_file");
    std::vector<float> weights = construction.Attr<std::vector<float>>("unigrams");
    if (file.empty() == weights.empty()) {
      return InvalidArgument("either vocab_file or unigrams must be given, got ",
                             file.empty() ? "neither" : "both");
    }
    const int64_t shards = construction.Attr<int64_t>("num_shards");
    const int64_t shard = construction.Attr<int64_t>("shard");
    const int64_t reserved = construction.Attr<int64_t>("num_reserved_ids");
    if (shards < 1 || shard < 0) {
      return InvalidArgument("num_shards must be positive and shard not negative, got ", shards,
                             " and ", shard);
    }
    if (!file.empty()) {
      TROUPE_ASSIGN_OR_RETURN(weights, ReadWeights(file));
    }
    const int64_t mine =
        shard < shards && reserved > shard ? (reserved - shard - 1) / shards + 1 : 0;
    if (mine > range_) {
      return InvalidArgument(mine, " reserved classes are more than range_max = ", range_);
    }
    weights_.resize(mine);
    const float distortion = construction.Attr<float>("distortion");
    // TensorFlow counts on from the reserved classes of this shard, not from those of all.
    int64_t word = mine;
    for (const float weight : weights) {
      if (word++ % shards != shard) continue;
      weights_.push_back(std::pow(weight, distortion));
      total_ += weights_.back();
    }
    const int64_t found = static_cast<int64_t>(weights_.size());
    if (found != range_ || found > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("range_max is ", range_, ", but there are ", found, " classes");
    }
    const int64_t sampled = construction.Attr<int64_t>("num_sampled");
    const int64_t never = std::count(weights_.begin(), weights_.end(), 0.0f);
    if (construction.Attr<bool>("unique") && sampled <= found && sampled > found - never) {
      return InvalidArgument("there are no ", sampled, " different classes to draw: of ", found,
                             " classes ", never, " have the frequency 0");
    }
    return absl::OkStatus();
  }

  int64_t range_;
  std::vector<float> weights_;
  float total_ = 0;
  AliasTable table_;
};

// ---- Frequencies that are learned.

/// Each class as likely as it was often true, and once more. Memory is for the classes that were
/// true. Not thread-safe.
class UnigramClasses {
 public:
  UnigramClasses(KernelConstruction& construction, absl::Status* status)
      : range_(construction.Attr<int64_t>("range_max")), total_(range_) {
    if (range_ >= kMaxTotal) {
      *status = InvalidArgument("range_max must be less than ", kMaxTotal, ", got ", range_);
    }
  }

  int64_t range() const { return range_; }
  int64_t Draw(PhiloxWords& words) const {
    int64_t at = UniformBelow32(words, static_cast<uint32_t>(total_));
    int64_t node = 1;
    for (int level = levels(); level > 0; --level) {
      node *= 2;
      const int64_t left = Weight(node, level - 1);
      if (at < left) continue;
      at -= left;
      ++node;
    }
    return node - (int64_t{1} << levels());
  }
  float Probability(int64_t value) const {
    return static_cast<float>(Weight((int64_t{1} << levels()) + value, 0)) /
           static_cast<float>(total_);
  }

  /// `value` was true `times` times more. The weights stay within 31 bits.
  void Count(int64_t value, int64_t times) {
    times = std::min(times, kMaxTotal - total_);
    if (times <= 0) return;
    total_ += times;
    for (int64_t node = (int64_t{1} << levels()) + value; node > 0; node /= 2) {
      counts_[node] += times;
    }
  }

  /// Pairs: a class, and how often it was true.
  std::vector<std::pair<int64_t, int64_t>> Counts() const {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    const int64_t first = int64_t{1} << levels();
    for (const auto& [node, count] : counts_) {
      if (node >= first) pairs.emplace_back(node - first, count);
    }
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  }
  void Clear() {
    counts_.clear();
    total_ = range_;
  }

 private:
  static constexpr int64_t kMaxTotal = std::numeric_limits<int32_t>::max();

  int levels() const { return std::bit_width(static_cast<uint64_t>(range_ - 1)); }
  /// Of the classes below a node, `level` levels above them.
  int64_t Weight(int64_t node, int level) const {
    const int64_t first = (node - (int64_t{1} << (levels() - level))) << level;
    const int64_t classes = std::clamp<int64_t>(range_ - first, 0, int64_t{1} << level);
    const auto found = counts_.find(node);
    return classes + (found == counts_.end() ? 0 : found->second);
  }

  int64_t range_, total_;
  /// A binary tree above the classes: node n has the children 2n and 2n + 1, and what is counted
  /// below it. Those that are not here have nothing.
  absl::flat_hash_map<int64_t, int64_t> counts_;
};

/// Its state are the stream's, and the counts. Steps that overlap take turns.
class UnigramSampler final : public CandidateSampler<UnigramClasses> {
 public:
  using CandidateSampler::CandidateSampler;

  absl::Status Compute(KernelContext& ctx) override {
    std::lock_guard<std::mutex> lock(mutex_);
    TROUPE_RETURN_IF_ERROR(CandidateSampler::Compute(ctx));
    for (const int64_t value : ctx.input(0).unchecked_values<int64_t>()) classes().Count(value, 1);
    return absl::OkStatus();
  }

  std::string SaveState() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    std::string state = CandidateSampler::SaveState();
    const auto append = [&](int64_t number) {
      state.append(reinterpret_cast<const char*>(&number), sizeof(number));
    };
    append(static_cast<int64_t>(state.size()));
    for (const auto& [value, count] : classes().Counts()) {
      append(value);
      append(count);
    }
    return state;
  }

  absl::Status RestoreState(std::string_view state) override {
    const size_t of_stream = CandidateSampler::SaveState().size();
    const std::vector<int64_t> numbers = Numbers(state, of_stream);
    bool good = numbers.size() % 2 == 1 && numbers[0] == static_cast<int64_t>(of_stream);
    for (size_t i = 1; good && i < numbers.size(); i += 2) {
      good = numbers[i] >= 0 && numbers[i] < classes().range() && numbers[i + 1] > 0;
    }
    if (!good)
      return InvalidArgument("what was saved are no counts of ", classes().range(), " classes");
    TROUPE_RETURN_IF_ERROR(CandidateSampler::RestoreState(state.substr(0, of_stream)));
    std::lock_guard<std::mutex> lock(mutex_);
    classes().Clear();
    for (size_t i = 1; i < numbers.size(); i += 2) classes().Count(numbers[i], numbers[i + 1]);
    return absl::OkStatus();
  }

 private:
  /// The numbers in `state` from `begin` on; none if it does not hold whole ones.
  static std::vector<int64_t> Numbers(std::string_view state, size_t begin) {
    if (state.size() < begin || (state.size() - begin) % sizeof(int64_t) != 0) return {};
    std::vector<int64_t> numbers((state.size() - begin) / sizeof(int64_t));
    std::memcpy(numbers.data(), state.data() + begin, numbers.size() * sizeof(int64_t));
    return numbers;
  }

  mutable std::mutex mutex_;
};

// ---- All classes.

absl::Status AllCandidates(KernelContext& ctx, int64_t num_true, int64_t num_sampled) {
  const Tensor& true_classes = ctx.input(0);
  if (true_classes.rank() != 2 || true_classes.dim(1) != num_true) {
    return InvalidArgument("true_classes must be a matrix of num_true = ", num_true,
                           " columns, got shape ", true_classes.shape().ToString());
  }
  for (const int64_t value : true_classes.unchecked_values<int64_t>()) {
    if (value < 0 || value >= num_sampled) {
      return InvalidArgument("true_classes must be in the range [0, ", num_sampled, "), got ",
                             value);
    }
  }
  const Shape vector({num_sampled});
  TROUPE_ASSIGN_OR_RETURN(Tensor * sampled, ctx.AllocateOutput(0, ElementType::kInt64, vector));
  TROUPE_ASSIGN_OR_RETURN(Tensor * true_count,
                          ctx.AllocateOutput(1, ElementType::kFloat, true_classes.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * sampled_count,
                          ctx.AllocateOutput(2, ElementType::kFloat, vector));
  std::iota(sampled->mutable_data<int64_t>(), sampled->mutable_data<int64_t>() + num_sampled, 0);
  std::fill_n(true_count->mutable_data<float>(), true_count->num_elements(), 1.0f);
  std::fill_n(sampled_count->mutable_data<float>(), num_sampled, 1.0f);
  return absl::OkStatus();
}

REGISTER_KERNEL(KernelSpec("AllCandidateSampler"),
                (MakeAttrKernel<AllCandidates, "num_true", "num_sampled">));
REGISTER_KERNEL(KernelSpec("FixedUnigramCandidateSampler"),
                MakeKernel<CandidateSampler<FixedUnigramClasses>>);
REGISTER_KERNELS(KernelSpec("LearnedUnigramCandidateSampler"), MakeKernel<UnigramSampler>,
                 "ThreadUnsafeUnigramCandidateSampler");

}  // namespace
}  // namespace troupe
