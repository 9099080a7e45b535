/// Histograms as TensorBoard shows them.
#ifndef TROUPE_KERNELS_SUMMARY_HISTOGRAM_H_
#define TROUPE_KERNELS_SUMMARY_HISTOGRAM_H_

#include <vector>

namespace troupe {

class HistogramProto;

/// Counts numbers in ranges: from 1e-12 to 1e20 each range is a tenth longer than the one before,
/// one range is beyond and one around zero, and the same for negative numbers. The limits are
/// TensorFlow's, to the last bit. Thread-compatible.
class Histogram {
 public:
  Histogram();
  /// `value` is not NaN.
  void Add(double value);
  /// With runs of empty ranges as one.
  void ToProto(HistogramProto* proto) const;

 private:
  std::vector<double> counts_;  ///< One for each limit: numbers below it, and not below the last.
  double min_, max_, num_ = 0, sum_ = 0, sum_squares_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_SUMMARY_HISTOGRAM_H_
