// Elements a second through datasets: records that are parsed, shuffled and batched, lines of text,
// rows of CSV, JPEG files that are decoded and varied. A program of scripts/bench-peers;
// scripts/bench/dataset_peer.py does the same with tf.data and torchvision, on the same files.
//
//   dataset_pipeline write FOLDER                                       makes the files
//   dataset_pipeline records|raw|text|csv|jpeg FOLDER [--threads N] [--seconds S] [--stats]

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "api/program/command_line.h"
#include "api/troupe.h"
#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/record_writer.h"
#include "devices/storage/whole_file.h"
#include "graph/protos/example.pb.h"

namespace {

using namespace troupe;  // NOLINT: a short program
using Clock = std::chrono::steady_clock;

constexpr int kElements = 50'000;  // In a file.
constexpr int kBatch = 100;
constexpr int kBatches = 200;  // That are timed together: less would be what was prefetched.
// JPEG files, each of them larger than 50 KB.
constexpr int kPhotos = 64;
constexpr int32_t kPhotoRows = 375, kPhotoColumns = 500;
constexpr int32_t kResized = 256, kCrop = 224;
constexpr int kPhotoBatch = 32, kPhotoBatches = 8;

std::string PhotoPath(const std::string& folder, int i) { return StrCat(folder, "/", i, ".jpg"); }

/// Pictures with smooth colors, edges and the grain of a film.
absl::Status WritePhotos(FileSystem* files, const std::string& folder) {
  const Scope s = Scope::NewRoot();
  const Output pixels = ops::Placeholder(s, ElementType::kUint8);
  const Output jpeg = ops::EncodeJpeg(s, pixels, {.quality = 90});
  TROUPE_ASSIGN_OR_RETURN(const auto session, Session::Create(s.graph(), {.threads = 1}));
  std::mt19937 random(1);
  for (int i = 0; i < kPhotos; ++i) {
    std::vector<uint8_t> values;
    const double slope = 0.01 + 0.001 * i;
    for (int32_t y = 0; y < kPhotoRows; ++y) {
      for (int32_t x = 0; x < kPhotoColumns; ++x) {
        const double grain = static_cast<double>(random() % 33) - 16;
        const double edge = (x / 40 + y / 30) % 3 == 0 ? 40 : 0;
        for (int c = 0; c < 3; ++c) {
          const double smooth = 110 + 60 * std::sin(slope * (x + 2 * c * y));
          values.push_back(static_cast<uint8_t>(smooth + edge + grain));
        }
      }
    }
    TROUPE_ASSIGN_OR_RETURN(const Tensor image, Tensor::FromValues<uint8_t>(
                                                    values, Shape({kPhotoRows, kPhotoColumns, 3})));
    TROUPE_ASSIGN_OR_RETURN(const Tensors encoded, session->Run({{pixels, image}}, {jpeg}));
    TROUPE_RETURN_IF_ERROR(
        ReplaceFile(files, PhotoPath(folder, i), *encoded[0].scalar<std::string>()));
  }
  return absl::OkStatus();
}

absl::Status Write(const std::string& folder) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem * files, FileSystems().Find(folder));
  TROUPE_RETURN_IF_ERROR(files->CreateDirectories(folder));
  TROUPE_ASSIGN_OR_RETURN(const auto records,
                          RecordWriter::Create(files, folder + "/examples.tfrecord"));
  std::string lines, rows;
  for (int i = 0; i < kElements; ++i) {
    Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    std::string image(784, '\0');
    for (size_t k = 0; k < image.size(); ++k) image[k] = static_cast<char>(i * 31 + k * 7);
    features["image"].mutable_bytes_list()->add_value(image);
    features["label"].mutable_int64_list()->add_value(i % 10);
    TROUPE_RETURN_IF_ERROR(records->Write(example.SerializeAsString()));
    lines += StrCat("the line number ", i, " of a text that is no longer than most lines are\n");
    rows += StrCat(i, ",", i * 0.25, ",", 1.0 / (i + 1), ",name", i % 100, ",", -i, "\n");
  }
  TROUPE_RETURN_IF_ERROR(records->Close());
  TROUPE_RETURN_IF_ERROR(ReplaceFile(files, folder + "/lines.txt", lines));
  TROUPE_RETURN_IF_ERROR(ReplaceFile(files, folder + "/rows.csv", rows));
  return WritePhotos(files, folder);
}

/// ParseExampleV2 of two features that every example has.
Function Parse(const Scope& s) {
  return DefineFunction(
      s, "Parse", {ElementType::kString}, [](const Scope& body, absl::Span<const Output> args) {
        const Output none = ops::Const(body, Tensor::Vector<std::string>({}));
        const Output keys = ops::Const(body, Tensor::Vector<std::string>({"image", "label"}));
        const std::vector<Output> defaults = {ops::Const(body, Tensor::Vector<std::string>({})),
                                              ops::Const(body, Tensor::Vector<int64_t>({}))};
        Node* const parsed = body.AddNode("ParseExampleV2", [&](ScopedSpec& spec) {
          spec.Input(args[0]).Input(none).Input(none).Input(keys).Input(none);
          spec.Input(absl::MakeConstSpan(defaults));
          spec.Attr("num_sparse", int64_t{0});
          spec.Attr("sparse_types", std::vector<ElementType>());
          spec.Attr("ragged_value_types", std::vector<ElementType>());
          spec.Attr("ragged_split_types", std::vector<ElementType>());
          spec.Attr("dense_shapes", std::vector<PartialShape>(2, PartialShape(Shape())));
        });
        if (parsed == nullptr) return std::vector<Output>();
        return std::vector<Output>{Output(parsed, 0), Output(parsed, 1)};
      });
}

/// (path, corner [3], flipped dimensions) -> float [kCrop, kCrop, 3] of mean 0 and deviation 1.
Function Vary(const Scope& s) {
  return DefineFunction(
      s, "Vary", {ElementType::kString, ElementType::kInt32, ElementType::kInt32},
      [](const Scope& body, absl::Span<const Output> args) {
        const Output image = ops::DecodeJpeg(body, ops::ReadFile(body, args[0]), {.channels = 3});
        const Output resized = ops::Squeeze(
            body, ops::ResizeBilinear(body, ops::ExpandDims(body, image, 0), {kResized, kResized},
                                      {.half_pixel_centers = true}));
        const Output crop = ops::Slice(body, resized, args[1], {kCrop, kCrop, 3});
        const Output turned = ops::ReverseV2(body, crop, args[2]);
        const Output centered = ops::Sub(body, turned, {123.68f, 116.78f, 103.94f});
        return std::vector<Output>{ops::Mul(body, centered, {1 / 58.4f, 1 / 57.1f, 1 / 57.4f})};
      });
}

absl::StatusOr<Dataset> MakeOfPhotos(const std::string& folder, int threads) {
  std::vector<std::string> paths;
  for (int i = 0; i < kPhotos; ++i) paths.push_back(PhotoPath(folder, i));
  const Scope s = Scope::NewRoot();
  const Function vary = Vary(s);
  TROUPE_RETURN_IF_ERROR(s.status());
  const Dataset chosen =
      Dataset::FromTensors({Tensor::Vector<std::string>(paths)})
          .Shuffle({.window = kPhotos, .seed = 1})
          .Repeat()
          .Enumerate()
          .Map([](const Tensors& element) -> absl::StatusOr<Tensors> {
            std::mt19937_64 random(static_cast<uint64_t>(*element[0].scalar<int64_t>()));
            const auto at = [&random] {
              return static_cast<int32_t>(random() % (kResized - kCrop + 1));
            };
            return Tensors{
                element[1], Tensor::Vector<int32_t>({at(), at(), 0}),
                random() % 2 == 0 ? Tensor::Vector<int32_t>({1}) : Tensor::Vector<int32_t>({})};
          });
  if (threads == 1) return chosen.Map(s.graph(), vary).Batch(kPhotoBatch);
  return chosen.Map(s.graph(), vary, {.parallel = kAuto}).Batch(kPhotoBatch).Prefetch(2);
}

absl::StatusOr<Dataset> Make(const std::string& what, const std::string& folder, int threads) {
  if (what == "jpeg") return MakeOfPhotos(folder, threads);
  const std::string examples = folder + "/examples.tfrecord";
  // Few: what is ready must not be what is timed.
  const auto ahead = [threads](const Dataset& dataset) {
    return threads > 1 ? dataset.Prefetch(16) : dataset;
  };
  if (what == "text") {
    return ahead(Dataset::TextLines({folder + "/lines.txt"}).Repeat().Batch(kBatch));
  }
  if (what == "csv") {
    DatasetCsvOptions columns;
    columns.columns = {Tensor::Scalar<int32_t>(0), Tensor::Scalar<float>(0),
                       Tensor::Scalar<float>(0), Tensor::Scalar(""), Tensor::Scalar<int64_t>(0)};
    return ahead(Dataset::Csv({folder + "/rows.csv"}, columns).Repeat().Batch(kBatch));
  }
  const Dataset shuffled =
      Dataset::Records({examples}).Shuffle({.window = 10'000, .seed = 1}).Repeat().Batch(kBatch);
  if (what == "raw") return ahead(shuffled);
  const Scope s = Scope::NewRoot();
  const Function parse = Parse(s);
  TROUPE_RETURN_IF_ERROR(s.status());
  if (threads == 1) return shuffled.Map(s.graph(), parse);
  return shuffled.Map(s.graph(), parse, {.parallel = kAuto});
}

absl::Status Measure(const std::string& what, const std::string& folder, int threads,
                     double seconds, bool stats) {
  TROUPE_ASSIGN_OR_RETURN(const Dataset dataset, Make(what, folder, threads));
  // The thread that calls Next only takes what is ready, as that of tf.data.
  TROUPE_ASSIGN_OR_RETURN(const auto iterator, dataset.MakeIterator({.threads = threads}));
  std::vector<double> micros;
  Tensors batch;
  const auto some = [&]() -> absl::Status {
    for (int i = 0; i < (what == "jpeg" ? kPhotoBatches : kBatches); ++i) {
      TROUPE_ASSIGN_OR_RETURN(const bool more, iterator->Next(&batch));
      if (!more) return absl::InternalError("the dataset has ended");
    }
    return absl::OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(some());
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    const Clock::time_point before = Clock::now();
    TROUPE_RETURN_IF_ERROR(some());
    micros.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  } while (Clock::now() < end);
  // What was read ahead is there at once: of a slice it is the mean that counts.
  const double mean =
      std::accumulate(micros.begin(), micros.end(), 0.0) / static_cast<double>(micros.size());
  std::sort(micros.begin(), micros.end());
  if (stats) std::cerr << iterator->StatsText();
  std::printf("{\"threads\": %d, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f}\n", threads,
              micros.size(), mean, micros[micros.size() / 2]);
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  std::string what, folder;
  int64_t threads = 1;
  double seconds = 1;
  bool stats = false;
  CommandLine line("dataset_pipeline", "Times datasets.");
  line.add_option("WHAT", what)
      ->required()
      ->check(CLI::IsMember({"write", "records", "raw", "text", "csv", "jpeg"}));
  line.add_option("FOLDER", folder)->required();
  AddValue(&line, "--threads N", &threads, "Threads that work; one: the consumer alone")
      ->check(WholeNumber(1, 1000));
  AddValue(&line, "--seconds S", &seconds, "Time to run for")->check(Number(0, 1e6));
  line.add_flag("--stats", stats, "Print the statistics of the stages");
  if (const std::optional<int> over = line.Read(argc, argv)) return *over;
  const absl::Status status =
      what == "write" ? Write(folder)
                      : Measure(what, folder, static_cast<int>(threads), seconds, stats);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
