#include "examples/shared/fashion_data.h"

#include <algorithm>
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

Dataset ReadDataset(const std::string& folder, const std::string& part) {
  const absl::StatusOr<troupe::LabelledImages> read = troupe::ReadMnist(folder, part);
  if (absl::IsNotFound(read.status())) {
    Die(absl::NotFoundError(std::string(read.status().message()) +
                            ". Install Debian's package dataset-fashion-mnist, or name a folder "
                            "that has the files with --data"));
  }
  const troupe::LabelledImages data = examples::OrDie(read);
  if (data.images.dim(0) == 0 || data.images.dim(1) != kSide || data.images.dim(2) != kSide) {
    Die(absl::DataLossError(folder + ": " + part + " has images " + data.images.shape().ToString() +
                            ", not of 28 x 28 pixels"));
  }
  const auto pixels = data.images.unchecked_values<uint8_t>();
  const auto labels = data.labels.unchecked_values<int32_t>();
  if (*std::max_element(labels.begin(), labels.end()) >= kClasses) {
    Die(absl::DataLossError(folder + ": " + part + " has more than ten classes"));
  }
  return {.pixels = {pixels.begin(), pixels.end()}, .labels = {labels.begin(), labels.end()}};
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
