#include "kernels/summary/histogram.h"

#include <algorithm>
#include <limits>

#include "graph/protos/summary.pb.h"

namespace troupe {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

/// Upper limits of the ranges, ascending.
const std::vector<double>& Limits() {
  static const auto& limits = *new std::vector<double>([] {
    std::vector<double> positive;
    for (double limit = 1.0e-12; limit < 1.0e20; limit *= 1.1) positive.push_back(limit);
    positive.push_back(kLargest);
    std::vector<double> all;
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) all.push_back(-*limit);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }());
  return limits;
}

}  // namespace

Histogram::Histogram() : counts_(Limits().size()), min_(kLargest), max_(-kLargest) {}

void Histogram::Add(double value) {
  const auto above = std::upper_bound(Limits().begin(), Limits().end() - 1, value);
  counts_[above - Limits().begin()] += 1;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  num_ += 1;
  sum_ += value;
  sum_squares_ += value * value;
}

void Histogram::ToProto(HistogramProto* proto) const {
  proto->set_min(min_);
  proto->set_max(max_);
  proto->set_num(num_);
  proto->set_sum(sum_);
  proto->set_sum_squares(sum_squares_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    // The last one of a run of empty ranges stands for all of them.
    if (counts_[i] == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0) continue;
    proto->add_bucket_limit(Limits()[i]);
    proto->add_bucket(counts_[i]);
  }
}

}  // namespace troupe
