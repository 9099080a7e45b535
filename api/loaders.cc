#include "api/loaders.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "devices/status_macros.h"
#include "devices/storage/compressed_file.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"

namespace troupe {
namespace {

absl::Status Damaged(const std::string& path, std::string_view what) {
  return absl::DataLossError(StrCat(path, ": ", what));
}

// --- IDX -----------------------------------------------------------------------------------------

/// The element type that the third byte of the file names.
absl::StatusOr<ElementType> IdxType(const std::string& path, unsigned char code) {
  switch (code) {
    case 0x08:
      return ElementType::kUint8;
    case 0x09:
      return ElementType::kInt8;
    case 0x0b:
      return ElementType::kInt16;
    case 0x0c:
      return ElementType::kInt32;
    case 0x0d:
      return ElementType::kFloat;
    case 0x0e:
      return ElementType::kDouble;
    default:
      return Damaged(path, StrCat("is no IDX file: it has elements of the unknown type ", code));
  }
}

/// The bytes of a file that may be compressed.
struct IdxFile {
  std::unique_ptr<ByteSource> source;
  uint64_t most_bytes = 0;  ///< No more can be in it.
};

absl::StatusOr<IdxFile> OpenIdx(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const RandomAccessFile> file,
                          files->OpenForReading(path));
  TROUPE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::array<char, 2> magic = {};
  TROUPE_RETURN_IF_ERROR(file->Read(0, absl::MakeSpan(magic)).status());
  IdxFile idx{.source = nullptr, .most_bytes = size};
  if (magic == std::array<char, 2>{'\x1f', '\x8b'}) {
    constexpr uint64_t kDeflateRatio = 1032;  // zlib's, at its best
    idx.most_bytes *= kDeflateRatio;
    TROUPE_ASSIGN_OR_RETURN(idx.source, NewInflatingSource(file, path, ZlibFormat::kGzip));
  } else {
    idx.source = NewFileSource(file, 0);
  }
  return idx;
}

absl::Status ReadAll(ByteSource* source, const std::string& path, absl::Span<char> to) {
  TROUPE_ASSIGN_OR_RETURN(const size_t n, source->Read(to));
  return n == to.size() ? absl::OkStatus() : Damaged(path, "the file is cut off");
}

}  // namespace

absl::StatusOr<Tensor> ReadIdx(const std::string& path, uint64_t max_bytes) {
  TROUPE_ASSIGN_OR_RETURN(const IdxFile idx, OpenIdx(path));
  std::array<unsigned char, 4> word = {};
  const auto next = [&] {
    return ReadAll(idx.source.get(), path, {reinterpret_cast<char*>(word.data()), word.size()});
  };
  TROUPE_RETURN_IF_ERROR(next());
  if (word[0] != 0 || word[1] != 0) return Damaged(path, "is no IDX file");
  TROUPE_ASSIGN_OR_RETURN(const ElementType type, IdxType(path, word[2]));
  std::vector<int64_t> dims(word[3]);
  int64_t elements = 1;
  for (int64_t& dim : dims) {
    TROUPE_RETURN_IF_ERROR(next());
    dim = int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3];
    elements = elements < 0 ? elements : MultiplyWithoutOverflow(elements, dim);
  }
  const auto width = static_cast<int64_t>(ElementSize(type));
  const int64_t bytes = elements < 0 ? -1 : MultiplyWithoutOverflow(elements, width);
  if (bytes < 0 || static_cast<uint64_t>(bytes) > idx.most_bytes) {
    return Damaged(path, "it says that it has more elements than can be in it");
  }
  if (static_cast<uint64_t>(bytes) > max_bytes) {
    return absl::ResourceExhaustedError(StrCat(
        path, ": it has ", bytes, " bytes of elements; at most ", max_bytes, " are allowed"));
  }
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  char* const data = static_cast<char*>(tensor.mutable_raw_data());
  TROUPE_RETURN_IF_ERROR(ReadAll(idx.source.get(), path, {data, static_cast<size_t>(bytes)}));
  char more;
  TROUPE_ASSIGN_OR_RETURN(const size_t rest, idx.source->Read({&more, 1}));
  if (rest > 0) return Damaged(path, "something follows its last element");
  // The highest byte is first.
  for (int64_t i = 0; width > 1 && i < bytes; i += width) std::reverse(data + i, data + i + width);
  return tensor;
}

namespace {

/// NAME, or NAME.gz if only that is there.
absl::StatusOr<Tensor> ReadIdxOrGzip(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
  const absl::Status there = files->Exists(path);
  return ReadIdx(absl::IsNotFound(there) ? path + ".gz" : path);
}

}  // namespace

absl::StatusOr<LabelledImages> ReadMnist(const std::string& folder, const std::string& part) {
  const std::string path = JoinPath(folder, part);
  TROUPE_ASSIGN_OR_RETURN(const Tensor pixels, ReadIdxOrGzip(path + "-images-idx3-ubyte"));
  TROUPE_ASSIGN_OR_RETURN(const Tensor classes, ReadIdxOrGzip(path + "-labels-idx1-ubyte"));
  const Shape& shape = pixels.shape();
  if (pixels.type() != ElementType::kUint8 || shape.rank() != 3 ||
      classes.type() != ElementType::kUint8 || classes.rank() != 1 ||
      classes.dim(0) != shape.dim(0)) {
    return InvalidArgument(path, ": ", ElementTypeName(pixels.type()), " ", shape.ToString(),
                           " and ", ElementTypeName(classes.type()), " ",
                           classes.shape().ToString(), " are no images and their labels");
  }
  LabelledImages result;
  result.images = pixels.Reshaped(Shape({shape.dim(0), shape.dim(1), shape.dim(2), 1}));
  result.labels = Tensor::Uninitialized(ElementType::kInt32, classes.shape());
  const auto from = classes.unchecked_values<uint8_t>();
  std::copy(from.begin(), from.end(), result.labels.mutable_data<int32_t>());
  return result;
}

// --- CIFAR ---------------------------------------------------------------------------------------

absl::StatusOr<LabelledImages> ReadCifar(absl::Span<const std::string> paths, CifarLabels labels) {
  constexpr int64_t kSide = 32, kChannels = 3, kPixels = kSide * kSide;
  const int64_t label_bytes = labels == CifarLabels::kCifar10 ? 1 : 2;
  const int64_t label_at = labels == CifarLabels::kCifar100Fine ? 1 : 0;
  const int num_classes = labels == CifarLabels::kCifar10        ? 10
                          : labels == CifarLabels::kCifar100Fine ? 100
                                                                 : 20;
  const int64_t image_bytes = label_bytes + kPixels * kChannels;
  std::vector<std::string> contents;
  int64_t images = 0;
  for (const std::string& path : paths) {
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
    TROUPE_ASSIGN_OR_RETURN(contents.emplace_back(), ReadWholeFile(files, path));
    const auto size = static_cast<int64_t>(contents.back().size());
    if (size % image_bytes != 0) {
      return Damaged(path, StrCat("its ", size, " bytes are no whole number of images of ",
                                  image_bytes, " bytes"));
    }
    images += size / image_bytes;
  }
  LabelledImages result;
  TROUPE_ASSIGN_OR_RETURN(
      result.images,
      Tensor::Allocate(ElementType::kUint8, Shape({images, kSide, kSide, kChannels})));
  result.labels = Tensor::Uninitialized(ElementType::kInt32, Shape({images}));
  uint8_t* pixels = result.images.mutable_data<uint8_t>();
  int32_t* label = result.labels.mutable_data<int32_t>();
  for (size_t f = 0; f < contents.size(); ++f) {
    for (size_t at = 0; at < contents[f].size(); at += image_bytes) {
      const auto* image = reinterpret_cast<const uint8_t*>(contents[f].data()) + at;
      if (image[label_at] >= num_classes) {
        return Damaged(paths[f], StrCat("the image at byte ", at, " is of class ", image[label_at],
                                        ", of ", num_classes));
      }
      *label++ = image[label_at];
      // Channel after channel in the file, pixel after pixel in the tensor.
      for (int64_t p = 0; p < kPixels; ++p) {
        for (int64_t c = 0; c < kChannels; ++c) *pixels++ = image[label_bytes + c * kPixels + p];
      }
    }
  }
  return result;
}

// --- folders -------------------------------------------------------------------------------------

namespace {

bool HasExtension(const std::string& name, const std::vector<std::string>& extensions) {
  return std::any_of(extensions.begin(), extensions.end(), [&](const std::string& extension) {
    return absl::EndsWithIgnoreCase(name, extension);
  });
}

}  // namespace

absl::StatusOr<ImageFiles> ListImageFolder(const std::string& folder,
                                           const std::vector<std::string>& extensions) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(folder));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(folder));
  ImageFiles images;
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    TROUPE_ASSIGN_OR_RETURN(const FileStat stat, files->Stat(path));
    if (!stat.is_directory) continue;
    const auto label = static_cast<int32_t>(images.classes.size());
    images.classes.push_back(name);
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> inside, files->List(path));
    for (const std::string& image : inside) {
      if (!HasExtension(image, extensions)) continue;
      paths.push_back(JoinPath(path, image));
      labels.push_back(label);
    }
  }
  if (paths.empty()) {
    return absl::NotFoundError(StrCat(folder, ": no sub-folder has an image in it"));
  }
  images.paths = Tensor::Vector<std::string>(absl::MakeConstSpan(paths));
  images.labels = Tensor::Vector<int32_t>(absl::MakeConstSpan(labels));
  return images;
}

absl::StatusOr<Tensor> ReadFiles(const Tensor& paths, uint64_t max_bytes) {
  TROUPE_ASSIGN_OR_RETURN(const absl::Span<const std::string> names, paths.values<std::string>());
  std::vector<std::string> contents;
  for (const std::string& path : names) {
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(path));
    TROUPE_ASSIGN_OR_RETURN(contents.emplace_back(), ReadWholeFile(files, path, max_bytes));
  }
  Tensor bytes = Tensor::Uninitialized(ElementType::kString, paths.shape());
  std::move(contents.begin(), contents.end(), bytes.mutable_data<std::string>());
  return bytes;
}

}  // namespace troupe
