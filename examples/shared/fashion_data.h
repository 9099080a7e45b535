// Fashion-MNIST: 70,000 images of clothes in ten classes.

#ifndef TROUPE_EXAMPLES_SHARED_FASHION_DATA_H_
#define TROUPE_EXAMPLES_SHARED_FASHION_DATA_H_

#include <troupe/troupe.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fashion {

inline constexpr int kSide = 28;
inline constexpr int kPixels = kSide * kSide;
inline constexpr int kClasses = 10;
inline constexpr const char* kClassNames[kClasses] = {
    "T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"};

/// Images and their labels as they lie in the files: a byte a pixel, a byte a label.
struct Dataset {
  std::vector<uint8_t> pixels;
  std::vector<uint8_t> labels;
  int64_t size() const { return static_cast<int64_t>(labels.size()); }

  /// Images as float [n, 784] in [0, 1].
  troupe::Tensor Images(absl::Span<const int32_t> indices) const;
  /// Labels as int32 [n].
  troupe::Tensor Labels(absl::Span<const int32_t> indices) const;
};

/// Of a folder with the four files, as Debian's package dataset-fashion-mnist installs them; `part`
/// is "train" or "t10k". Ends the program if they cannot be read.
Dataset ReadDataset(const std::string& folder, const std::string& part);

/// Pixels [kSide, width] in characters, an indented line for two rows.
std::string Drawing(absl::Span<const uint8_t> pixels, int64_t width);

/// Writes a record file of Examples: "pixels", the bytes of an image, and "label".
void WriteRecords(const Dataset& data, const std::string& file);
/// Batches of what `WriteRecords` has written, in another order every epoch: images as float
/// [batch, 784] and labels as int32 [batch].
troupe::Dataset RecordBatches(const std::string& file, int64_t batch, int64_t seed);

/// Gives batches of a fresh shuffle every epoch.
class Batches {
 public:
  Batches(const Dataset& data, int64_t batch, int64_t seed);
  absl::Span<const int32_t> Next();

 private:
  const Dataset& data_;
  std::vector<int32_t> order_;
  std::mt19937_64 random_;
  int64_t batch_;
  int64_t next_;
};

}  // namespace fashion

#endif  // TROUPE_EXAMPLES_SHARED_FASHION_DATA_H_
