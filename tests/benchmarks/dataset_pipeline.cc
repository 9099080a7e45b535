// Elements a second through datasets: records that are parsed, shuffled and batched, lines of text,
// rows of CSV. A program of scripts/bench-peers; scripts/bench/dataset_peer.py does the same with
// tf.data, on the same files.
//
//   dataset_pipeline write FOLDER                                       makes the files
//   dataset_pipeline records|raw|text|csv FOLDER [--threads N] [--seconds S] [--stats]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
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
  return ReplaceFile(files, folder + "/rows.csv", rows);
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

absl::StatusOr<Dataset> Make(const std::string& what, const std::string& folder, int threads) {
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
  // The thread that calls Next is one of them.
  TROUPE_ASSIGN_OR_RETURN(const auto iterator,
                          dataset.MakeIterator({.threads = std::max(1, threads - 1)}));
  std::vector<double> micros;
  Tensors batch;
  const auto some = [&]() -> absl::Status {
    for (int i = 0; i < kBatches; ++i) {
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
  std::sort(micros.begin(), micros.end());
  if (stats) std::cerr << iterator->StatsText();
  std::printf("{\"threads\": %d, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f}\n", threads,
              micros.size(), micros.front(), micros[micros.size() / 2]);
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
      ->check(CLI::IsMember({"write", "records", "raw", "text", "csv"}));
  line.add_option("FOLDER", folder)->required();
  AddValue(&line, "--threads N", &threads, "Threads, the consumer included")
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
