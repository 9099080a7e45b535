#include "examples/shared/fashion_data.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "examples/shared/options.h"

namespace fashion {

using examples::Die;

troupe::Tensor Dataset::Images(absl::Span<const int32_t> indices) const {
  troupe::Tensor images = troupe::Tensor::Uninitialized(
      troupe::ElementType::kFloat, {static_cast<int64_t>(indices.size()), kPixels});
  float* out = images.mutable_data<float>();
  for (int32_t index : indices) {
    const uint8_t* in = pixels.data() + static_cast<size_t>(index) * kPixels;
    for (int i = 0; i < kPixels; ++i) *out++ = static_cast<float>(in[i]) * (1.0f / 255.0f);
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

std::string Drawing(absl::Span<const uint8_t> pixels, int64_t width) {
  static const char kInk[] = " .:-=+*#%@";
  std::string drawing;
  for (int64_t y = 0; y < kSide; y += 2) {
    drawing += "  ";
    for (int64_t x = 0; x < width; ++x) {
      const int two_rows = pixels[y * width + x] + pixels[(y + 1) * width + x];
      drawing += kInk[two_rows * 9 / 510];
    }
    drawing += '\n';
  }
  return drawing;
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
troupe::Function DefineParse(const troupe::Scope& scope) {
  namespace ops = troupe::ops;
  using troupe::ElementType;
  return troupe::DefineFunction(
      scope, "Parse", {ElementType::kString},
      [](const troupe::Scope& s, absl::Span<const troupe::Output> args) {
        // Features without a default are required.
        const auto required = [](ElementType type) {
          return troupe::Tensor::Uninitialized(type, troupe::Shape({0}));
        };
        const troupe::OutputList parsed =
            ops::ParseExample(s, args[0], required(ElementType::kString), {}, {"pixels", "label"},
                              {required(ElementType::kString), required(ElementType::kInt64)}, {},
                              {troupe::Shape(), troupe::Shape()})
                .dense_values;
        const troupe::Output pixels = ops::DecodeRaw(s, parsed[0], ElementType::kUint8);
        return std::vector<troupe::Output>{
            ops::Mul(s, ops::Cast(s, pixels, ElementType::kFloat), 1.0f / 255.0f),
            ops::Cast(s, parsed[1], ElementType::kInt32)};
      });
}

}  // namespace

troupe::Dataset RecordBatches(const std::string& file, int64_t batch, int64_t seed) {
  const troupe::Scope library = troupe::Scope::NewRoot();
  const troupe::Function parse = DefineParse(library);
  examples::OrDie(library.status());
  return troupe::Dataset::Records({file})
      .Shuffle({.window = 10'000, .seed = static_cast<uint64_t>(seed)})
      .Repeat()
      .Batch(batch)
      .Map(library.graph(), parse)
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
