// Rows of the table in docs/gpu.md, on a card or any other device.
//
//     gpu_benchmark [--device TYPE] [--small] --list
//     gpu_benchmark [--device TYPE] [--small] ROW
//     gpu_benchmark [--device TYPE] [--small] --profile ROW
//
// The second one measures. Each line of the standard input is a number of seconds to run for; each
// is answered by one line of JSON. scripts/gpu-bench tells it and PyTorch in turn. The third one
// traces a step and prints, by op, how often it was enqueued and how long the card took for it.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/runtime.h"
#include "api/program/command_line.h"
#include "devices/device.h"
#include "graph/protos/config.pb.h"
#include "tests/benchmarks/gpu_graphs.h"

namespace troupe::benchmarks {
namespace {

struct Row {
  std::string name;
  std::function<Work(const Scope&)> build;
  bool tf32 = false;  ///< Products of floats by TF32.
};

/// Of ResNet-50: the first one, those with filters of 3x3, and one with filters of a pixel.
constexpr ConvSizes kConvolutions[] = {
    {32, 224, 3, 7, 64, 2},   {32, 56, 64, 3, 64, 1},   {32, 56, 64, 1, 256, 1},
    {32, 28, 128, 3, 128, 1}, {32, 14, 256, 3, 256, 1}, {32, 7, 512, 3, 512, 1},
};

/// `small`: sizes with which a processor is through in no time, to see that everything runs.
std::vector<Row> Rows(bool small) {
  const auto size = [small](int64_t usual, int64_t least) { return small ? least : usual; };
  constexpr ElementType kFloat = ElementType::kFloat, kHalf = ElementType::kBfloat16;
  std::vector<Row> rows;
  const auto add = [&](std::string name, std::function<Work(const Scope&)> build,
                       bool tf32 = false) {
    rows.push_back({std::move(name), std::move(build), tf32});
  };
  add("node", [=](const Scope& s) { return Nodes(s, static_cast<int>(size(1000, 100))); });
  add("chain", [=](const Scope& s) { return Chain(s, static_cast<int>(size(1000, 100))); });
  add("matmul_bf16", [=](const Scope& s) { return Products(s, size(8192, 64), kHalf); });
  add(
      "matmul_tf32", [=](const Scope& s) { return Products(s, size(4096, 64), kFloat); }, true);
  add("matmul_f32", [=](const Scope& s) { return Products(s, size(4096, 64), kFloat); });
  for (ConvSizes z : kConvolutions) {
    const std::string shape = StrCat(z.side, "x", z.side, "x", z.inputs, "_", z.size, "x", z.size,
                                     "x", z.outputs, "_s", z.stride);
    if (small) z = {2, 8, std::min<int64_t>(z.inputs, 4), z.size, 4, z.stride};
    for (const char* kind : {"forward", "data", "filter"}) {
      if (z.inputs == 3 && kind == std::string("data")) continue;  // Nobody wants it.
      add(StrCat("conv_", kind, "_bf16_", shape),
          [=](const Scope& s) { return Convolutions(s, kind, z, kHalf); });
      add(StrCat("conv_", kind, "_f32_", shape),
          [=](const Scope& s) { return Convolutions(s, kind, z, kFloat); });
    }
  }
  for (const char* kind : {"neg", "add", "sum", "row_sum", "column_sum"}) {
    add(StrCat("bandwidth_", kind),
        [=](const Scope& s) { return Bandwidth(s, kind, size(8192, 256)); });
  }
  add("feed", [=](const Scope& s) { return Feed(s, size(16 << 20, 1 << 16)); });
  add("fetch", [=](const Scope& s) { return Fetch(s, size(16 << 20, 1 << 16)); });
  add("train_cnn", [=](const Scope& s) { return TrainCnn(s, size(100, 4)); });
  add(
      "train_resnet50_f32",
      [=](const Scope& s) {
        return TrainResNet50(s, size(128, 2), size(224, 32), size(64, 4), kFloat);
      },
      true);
  add(
      "train_resnet50_bf16",
      [=](const Scope& s) {
        return TrainResNet50(s, size(128, 2), size(224, 32), size(64, 4), kHalf);
      },
      true);
  for (const bool block : {false, true}) {
    add(block ? "train_lstm_block" : "train_lstm", [=](const Scope& s) {
      return TrainLstm(s, size(50, 3), size(50, 2), size(128, 8), block);
    });
  }
  add(
      "train_transformer",
      [=](const Scope& s) {
        return TrainTransformer(s, size(8, 1), size(512, 8), size(1024, 32), size(16, 4));
      },
      true);
  return rows;
}

int Fail(const std::string& row, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s\n", row.c_str(), status.ToString().c_str());
  return 1;
}

/// The most memory that the session's last device has had in use; 0: it is the host.
int64_t PeakBytes(const Session& session) {
  const Device& device = *session.runtime()->devices().back()->device;
  if (device.memory_space() != MemorySpace::kDevice) return 0;
  return device.allocator(MemorySpace::kDevice)->stats().peak_bytes_in_use;
}

absl::Status Answer(const std::function<absl::Status()>& step, double seconds, int per,
                    const Session& session) {
  using Clock = std::chrono::steady_clock;
  const auto after = [](double s) {
    return Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
  };
  const Clock::time_point warm = after(0.1 * seconds);
  for (int i = 0; i < 2 || Clock::now() < warm; ++i) TROUPE_RETURN_IF_ERROR(step());
  std::vector<double> micros;
  const Clock::time_point end = after(seconds);
  Clock::time_point before = Clock::now();
  do {
    TROUPE_RETURN_IF_ERROR(step());
    const Clock::time_point now = Clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(now - before).count() / per);
    before = now;
  } while (before < end);
  std::sort(micros.begin(), micros.end());
  std::printf("{\"runs\": %zu, \"min_us\": %.4f, \"median_us\": %.4f, \"peak_bytes\": %" PRId64
              "}\n",
              micros.size(), micros[0], micros[micros.size() / 2], PeakBytes(session));
  std::fflush(stdout);
  return absl::OkStatus();
}

/// Of a step that is traced, by op: what the device's stream took, or, of a device that is the
/// host, what the calls took.
absl::Status Profile(const Work& work, Session* session) {
  for (int i = 0; i < 3; ++i) {
    TROUPE_RETURN_IF_ERROR(session->Run(work.feeds, work.fetches, work.targets).status());
  }
  RunOptions options;
  options.trace = true;
  RunMetadata metadata;
  TROUPE_RETURN_IF_ERROR(
      session->Run(work.feeds, work.fetches, work.targets, options, &metadata).status());
  const bool on_host =
      session->runtime()->devices().back()->device->memory_space() != MemorySpace::kDevice;
  struct Total {
    int64_t count = 0, ns = 0;
  };
  std::map<std::string, Total> totals;
  Total all;
  for (const DeviceStepStats& device : metadata.step_stats().dev_stats()) {
    if (!on_host && !device.device().ends_with("/stream:all")) continue;
    for (const NodeExecStats& node : device.node_stats()) {
      const std::string& label = node.timeline_label();  // NAME = OP
      for (Total* total : {&totals[label.substr(label.rfind(' ') + 1)], &all}) {
        ++total->count;
        total->ns += node.op_end_rel_nanos();
      }
    }
  }
  std::vector<std::pair<std::string, Total>> rows(totals.begin(), totals.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.ns > b.second.ns; });
  rows.insert(rows.begin(), {"all", all});
  for (const auto& [op, total] : rows) {
    std::printf("%12.1f us %6" PRId64 "  %s\n", static_cast<double>(total.ns) / 1e3, total.count,
                op.c_str());
  }
  return absl::OkStatus();
}

int Measure(const Row& row, const std::string& type, bool profile) {
  if (row.tf32) setenv("TROUPE_TF32", "1", 1);  // Read at the first product.
  Scope root = Scope::NewRoot();
  const Scope card = root.WithDevice("/device:" + type + ":0");
  const Work work = row.build(card);
  Node* const init = GlobalVariablesInitializer(root);
  if (!root.ok()) return Fail(row.name, root.status());
  SessionOptions options;
  options.devices[type] = {};
  options.optimize = work.optimize;
  options.allow_soft_placement = true;  // Arrays of tensors, in the LSTM, are on the host.
  const auto session = Session::Create(root.graph(), options);
  if (!session.ok()) return Fail(row.name, session.status());
  if (absl::Status status = (*session)->RunTargets({init}); !status.ok()) {
    return Fail(row.name, status);
  }
  if (profile) {
    const absl::Status status = Profile(work, session->get());
    return status.ok() ? 0 : Fail(row.name, status);
  }
  const auto step = [&] {
    return (*session)->Run(work.feeds, work.fetches, work.targets).status();
  };
  for (std::string line; std::getline(std::cin, line);) {
    const absl::Status status = Answer(step, std::atof(line.c_str()), work.per, **session);
    if (!status.ok()) return Fail(row.name, status);
  }
  return 0;
}

int Main(int argc, char** argv) {
  CommandLine line("gpu_benchmark", "Measures kernels and training steps on a device.");
  std::string type = "GPU", name;
  bool small = false, list = false, profile = false;
  line.add_option("ROW", name, "What is measured")->type_name("");
  AddValue(&line, "--device TYPE", &type, "Of the device");
  line.add_flag("--small", small, "Small sizes, to see that everything runs");
  line.add_flag("--list", list, "Prints the rows");
  line.add_flag("--profile", profile, "Prints what a step's time goes to");
  if (const std::optional<int> status = line.Read(argc, argv)) return *status;
  for (const Row& row : Rows(small)) {
    if (list) std::printf("%s\n", row.name.c_str());
    if (!list && row.name == name) return Measure(row, type, profile);
  }
  if (list) return 0;
  std::fprintf(stderr, "there is no row \"%s\"; --list names them\n", name.c_str());
  return 2;
}

}  // namespace
}  // namespace troupe::benchmarks

int main(int argc, char** argv) { return troupe::benchmarks::Main(argc, argv); }
