#include "examples/shared/fashion_data.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "examples/shared/options.h"

namespace fashion {

using examples::Die;

namespace {

void ToFloats(const uint8_t* pixels, float* image) {
  for (int i = 0; i < kPixels; ++i) image[i] = static_cast<float>(pixels[i]) * (1.0f / 255.0f);
}

}  // namespace

troupe::Tensor Dataset::Images(absl::Span<const int32_t> indices) const {
  troupe::Tensor images = troupe::Tensor::Uninitialized(
      troupe::ElementType::kFloat, {static_cast<int64_t>(indices.size()), kPixels});
  float* out = images.mutable_data<float>();
  for (size_t i = 0; i < indices.size(); ++i) {
    ToFloats(pixels.data() + static_cast<size_t>(indices[i]) * kPixels, out + i * kPixels);
  }
  return images;
}

troupe::Tensor Dataset::Labels(absl::Span<const int32_t> indices) const {
  troupe::Tensor result = troupe::Tensor::Uninitialized(troupe::ElementType::kInt32,
                                                        {static_cast<int64_t>(indices.size())});
  int32_t* out = result.mutable_data<int32_t>();
  for (int32_t index : indices) *out++ = labels[index];
  return result;
}

namespace {

/// Reads a gzipped IDX file (http://yann.lecun.com/exdb/mnist): big-endian sizes, then bytes.
std::vector<uint8_t> ReadIdx(const std::string& file, std::vector<int64_t> expected_tail) {
  gzFile in = gzopen(file.c_str(), "rb");
  if (in == nullptr) {
    Die(absl::NotFoundError(
        "cannot read " + file + ": " + std::strerror(errno) +
        ". Install Debian's package dataset-fashion-mnist, or name a folder that "
        "has the files with --data"));
  }
  auto read = [&](void* to, unsigned n) {
    if (gzread(in, to, n) != static_cast<int>(n)) Die(absl::DataLossError(file + " is cut short"));
  };
  uint8_t magic[4];
  read(magic, 4);
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] != expected_tail.size() + 1) {
    Die(absl::DataLossError(file + " is not the IDX file that was expected"));
  }
  uint64_t total = 1;
  for (size_t d = 0; d <= expected_tail.size(); ++d) {
    uint8_t b[4];
    read(b, 4);
    const uint64_t size = uint64_t{b[0]} << 24 | b[1] << 16 | b[2] << 8 | b[3];
    if (d > 0 && size != static_cast<uint64_t>(expected_tail[d - 1])) {
      Die(absl::DataLossError(file + " has images of another size"));
    }
    total *= size;
  }
  if (total > (1u << 30)) Die(absl::DataLossError(file + " claims more than a gigabyte"));
  std::vector<uint8_t> bytes(total);
  read(bytes.data(), static_cast<unsigned>(total));
  gzclose(in);
  return bytes;
}

}  // namespace

Dataset ReadDataset(const std::string& folder, const std::string& part) {
  Dataset data;
  data.pixels = ReadIdx(folder + "/" + part + "-images-idx3-ubyte.gz", {kSide, kSide});
  data.labels = ReadIdx(folder + "/" + part + "-labels-idx1-ubyte.gz", {});
  if (data.pixels.size() != data.labels.size() * kPixels || data.labels.empty()) {
    Die(absl::DataLossError("images and labels of " + part + " do not match"));
  }
  return data;
}

void WriteRecords(const Dataset& data, const std::string& file) {
  const auto writer = examples::OrDie(troupe::RecordWriter::Create(file));
  for (int64_t i = 0; i < data.size(); ++i) {
    const std::string_view pixels(reinterpret_cast<const char*>(&data.pixels[i * kPixels]),
                                  kPixels);
    examples::OrDie(writer->Write(
        troupe::ExampleBuilder().Add("pixels", pixels).Add("label", data.labels[i]).Serialize()));
  }
  examples::OrDie(writer->Close());
}

namespace {

/// Records [batch] -> (images, labels).
absl::StatusOr<troupe::Tensors> ParseRecords(const troupe::Tensors& batch) {
  const auto records = batch[0].data<std::string>();
  if (!records.ok()) return records.status();
  const int64_t size = batch[0].num_elements();
  troupe::Tensors result = {
      troupe::Tensor::Uninitialized(troupe::ElementType::kFloat, {size, kPixels}),
      troupe::Tensor::Uninitialized(troupe::ElementType::kInt32, {size})};
  float* images = result[0].mutable_data<float>();
  int32_t* labels = result[1].mutable_data<int32_t>();
  for (int64_t i = 0; i < size; ++i) {
    const auto example = troupe::ExampleReader::Parse((*records)[i]);
    if (!example.ok()) return example.status();
    const auto pixels = example->Strings("pixels");
    const auto label = example->Ints("label");
    if (!pixels.ok()) return pixels.status();
    if (!label.ok()) return label.status();
    if (pixels->size() != 1 || (*pixels)[0].size() != kPixels || label->size() != 1) {
      return absl::InvalidArgumentError("an Example that is no image with a label");
    }
    ToFloats(reinterpret_cast<const uint8_t*>((*pixels)[0].data()), images + i * kPixels);
    labels[i] = static_cast<int32_t>((*label)[0]);
  }
  return result;
}

}  // namespace

troupe::Dataset RecordBatches(const std::string& file, int64_t batch, int64_t seed) {
  return troupe::Dataset::Records({file})
      .Shuffle({.window = 10'000, .seed = static_cast<uint64_t>(seed)})
      .Repeat()
      .Batch(batch)
      .Map(ParseRecords)
      .Prefetch();
}

Batches::Batches(const Dataset& data, int64_t batch, int64_t seed)
    : data_(data), order_(data.size()), random_(static_cast<uint64_t>(seed)) {
  std::iota(order_.begin(), order_.end(), 0);
  batch_ = std::min(batch, data.size());
  next_ = data.size();
}

absl::Span<const int32_t> Batches::Next() {
  if (next_ + batch_ > data_.size()) {
    std::shuffle(order_.begin(), order_.end(), random_);
    next_ = 0;
  }
  next_ += batch_;
  return absl::MakeConstSpan(order_).subspan(next_ - batch_, batch_);
}

}  // namespace fashion
