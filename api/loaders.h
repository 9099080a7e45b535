/// Data sets in files of well-known forms, as tensors.
#ifndef TROUPE_API_LOADERS_H_
#define TROUPE_API_LOADERS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/export.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// An IDX file, as MNIST and data sets after its model have them (yann.lecun.com/exdb/mnist), plain
/// or compressed by gzip: a tensor of its type (uint8, int8, int16, int32, float or double) and
/// shape. DataLoss, which names the file, if it is damaged, cut off or longer than it says;
/// ResourceExhausted if it says that it has more than `max_bytes`.
absl::StatusOr<Tensor> ReadIdx(const std::string& path, uint64_t max_bytes = uint64_t{1} << 31);

/// Images with their classes.
struct LabelledImages {
  Tensor images;  ///< uint8 [n, height, width, channels]
  Tensor labels;  ///< int32 [n]
};

/// Two IDX files in a folder, PART-images-idx3-ubyte and PART-labels-idx1-ubyte, either with or
/// without .gz; `part` is "train" or "t10k". InvalidArgument if they do not belong together.
absl::StatusOr<LabelledImages> ReadMnist(const std::string& folder, const std::string& part);

/// Which labels a CIFAR file has: CIFAR-10's, or the 100 classes or the 20 groups of CIFAR-100.
enum class CifarLabels { kCifar10, kCifar100Fine, kCifar100Coarse };
/// Binary CIFAR files (www.cs.toronto.edu/~kriz/cifar.html), one after the other, of 32 x 32 pixels
/// with 3 channels. DataLoss names the file that is no whole number of images or has a class that
/// does not exist.
absl::StatusOr<LabelledImages> ReadCifar(absl::Span<const std::string> paths,
                                         CifarLabels labels = CifarLabels::kCifar10);

/// Files of images, not decoded.
struct ImageFiles {
  std::vector<std::string> classes;  ///< The folders' names, sorted; a label is an index of these.
  Tensor paths;                      ///< string [n]
  Tensor labels;                     ///< int32 [n]
};
/// The images in the sub-folders of `folder`, each of which is a class: files whose names end, in
/// upper or lower case, in one of `extensions`; by class, then by name. NotFound if there are none.
absl::StatusOr<ImageFiles> ListImageFolder(const std::string& folder,
                                           const std::vector<std::string>& extensions = {
                                               ".jpg", ".jpeg", ".png", ".gif", ".bmp"});
/// The bytes of files, string [n], in the order of `paths`; at most `max_bytes` a file.
absl::StatusOr<Tensor> ReadFiles(const Tensor& paths, uint64_t max_bytes = uint64_t{1} << 30);

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_LOADERS_H_
