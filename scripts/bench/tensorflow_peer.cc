// TensorFlow through its C API, timed as `troupe bench` times Troupe: the peer of
// scripts/bench-peers.
//
//   tensorflow_peer LIBRARY GRAPH [--init NODE]... [--feed NAME=FILE.npy]... [--fetch NAME]...
//                   [--target NODE]... [--threads N] [--caller-runs] [--no-optimize]
//                   (--seconds S | --steps N | --slices)
//
// LIBRARY is the libtensorflow_cc.so.2 of the pip package; the few functions that are needed are
// declared here. A run is timed at the caller. --slices: each line of the standard input is a
// number of seconds to run for; each is answered by one line of JSON. --caller-runs: nodes run on
// the calling thread (TensorFlow's inter_op_parallelism_threads = -1) instead of a pool of N
// threads.

#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

// --- what is used of tensorflow/c/c_api.h --------------------------------------------------------

struct TF_Status;
struct TF_Graph;
struct TF_ImportGraphDefOptions;
struct TF_SessionOptions;
struct TF_Session;
struct TF_Operation;
struct TF_Tensor;
struct TF_Buffer {
  const void* data;
  size_t length;
  void (*deallocator)(void* data, size_t length);
};
struct TF_Output {
  TF_Operation* operation;
  int index;
};

struct Api {
  TF_Status* (*NewStatus)();
  int (*GetCode)(const TF_Status*);
  const char* (*Message)(const TF_Status*);
  TF_Graph* (*NewGraph)();
  TF_ImportGraphDefOptions* (*NewImportGraphDefOptions)();
  void (*GraphImportGraphDef)(TF_Graph*, const TF_Buffer*, const TF_ImportGraphDefOptions*,
                              TF_Status*);
  TF_SessionOptions* (*NewSessionOptions)();
  void (*SetConfig)(TF_SessionOptions*, const void*, size_t, TF_Status*);
  TF_Session* (*NewSession)(TF_Graph*, const TF_SessionOptions*, TF_Status*);
  TF_Operation* (*GraphOperationByName)(TF_Graph*, const char*);
  TF_Tensor* (*AllocateTensor)(int type, const int64_t* dims, int num_dims, size_t bytes);
  void* (*TensorData)(const TF_Tensor*);
  void (*DeleteTensor)(TF_Tensor*);
  void (*SessionRun)(TF_Session*, const TF_Buffer* options, const TF_Output*, TF_Tensor* const*,
                     int, const TF_Output*, TF_Tensor**, int, const TF_Operation* const*, int,
                     TF_Buffer* metadata, TF_Status*);
};

[[noreturn]] void Die(const std::string& message) {
  std::cerr << "tensorflow_peer: " << message << "\n";
  std::exit(1);
}

Api Load(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) Die(dlerror());
  Api api;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(handle, name));
    if (*function == nullptr) Die(std::string(library) + " has no " + name);
  };
  find("TF_NewStatus", &api.NewStatus);
  find("TF_GetCode", &api.GetCode);
  find("TF_Message", &api.Message);
  find("TF_NewGraph", &api.NewGraph);
  find("TF_NewImportGraphDefOptions", &api.NewImportGraphDefOptions);
  find("TF_GraphImportGraphDef", &api.GraphImportGraphDef);
  find("TF_NewSessionOptions", &api.NewSessionOptions);
  find("TF_SetConfig", &api.SetConfig);
  find("TF_NewSession", &api.NewSession);
  find("TF_GraphOperationByName", &api.GraphOperationByName);
  find("TF_AllocateTensor", &api.AllocateTensor);
  find("TF_TensorData", &api.TensorData);
  find("TF_DeleteTensor", &api.DeleteTensor);
  find("TF_SessionRun", &api.SessionRun);
  return api;
}

// --- helpers -------------------------------------------------------------------------------------

std::string ReadFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) Die("cannot read " + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<char>(value | 128));
  out->push_back(static_cast<char>(value));
}
void AppendInt(std::string* out, int field, int64_t value) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3);
  AppendVarint(out, static_cast<uint64_t>(value));
}
void AppendMessage(std::string* out, int field, const std::string& message) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | 2);
  AppendVarint(out, message.size());
  *out += message;
}

/// A serialized ConfigProto.
std::string Config(int threads, bool caller_runs, bool optimize) {
  std::string config;
  AppendInt(&config, 2, threads);                     // intra_op_parallelism_threads
  AppendInt(&config, 5, caller_runs ? -1 : threads);  // inter_op_parallelism_threads
  if (!optimize) {
    std::string optimizer, rewriter, graph;
    AppendInt(&optimizer, 3, -1);  // opt_level: L0
    AppendInt(&rewriter, 19, 1);   // disable_meta_optimizer
    AppendMessage(&graph, 3, optimizer);
    AppendMessage(&graph, 10, rewriter);
    AppendMessage(&config, 10, graph);  // graph_options
  }
  return config;
}

/// Reads a .npy file in C order, little-endian.
TF_Tensor* ReadNpy(const Api& api, const std::string& name) {
  const std::string file = ReadFile(name);
  if (file.size() < 10 || file.compare(0, 6, "\x93NUMPY") != 0) Die(name + " is no .npy file");
  const auto* bytes = reinterpret_cast<const unsigned char*>(file.data());
  const size_t offset = file[6] == 1 ? 10 : 12;
  const size_t size = bytes[8] + 256u * bytes[9];
  const std::string header = file.substr(offset, size);
  int type = 0;
  for (const auto& [code, number] :
       {std::pair("<f4", 1), {"<f8", 2}, {"<i4", 3}, {"<i8", 9}, {"|b1", 10}}) {
    if (header.find(code) != std::string::npos) type = number;
  }
  if (type == 0 || header.find("'fortran_order': False") == std::string::npos) {
    Die(name + ": not an array that this program reads: " + header);
  }
  std::vector<int64_t> dims;
  std::stringstream list(header.substr(header.find("'shape': (") + 10));
  for (std::string dim; std::getline(list, dim, ',') && dim.find_first_of("0123456789") < 2;) {
    dims.push_back(std::stoll(dim));
    if (dim.find(')') != std::string::npos) break;
  }
  const size_t data = file.size() - offset - size;
  TF_Tensor* tensor = api.AllocateTensor(type, dims.data(), static_cast<int>(dims.size()), data);
  std::memcpy(api.TensorData(tensor), file.data() + offset + size, data);
  return tensor;
}

/// Milliseconds since the kernel started this process.
double MillisecondsSinceStart() {
  const std::string text = ReadFile("/proc/self/stat");
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double started = std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return 1e3 *
         (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started);
}

long PeakResidentKb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  if (argc < 3) Die("usage: tensorflow_peer LIBRARY GRAPH [options]");
  std::vector<std::string> init, feeds, fetches, targets;
  int threads = 1;
  bool optimize = true, caller_runs = false, slices = false;
  double seconds = 2;
  int64_t steps = 0;
  for (int i = 3; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) Die(option + " needs a value");
      return argv[++i];
    };
    if (option == "--init")
      init.push_back(value());
    else if (option == "--feed")
      feeds.push_back(value());
    else if (option == "--fetch")
      fetches.push_back(value());
    else if (option == "--target")
      targets.push_back(value());
    else if (option == "--threads")
      threads = std::stoi(value());
    else if (option == "--seconds")
      seconds = std::stod(value());
    else if (option == "--steps")
      steps = std::stoll(value());
    else if (option == "--slices")
      slices = true;
    else if (option == "--no-optimize")
      optimize = false;
    else if (option == "--caller-runs")
      caller_runs = true;
    else
      Die("unknown option " + option);
  }

  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
  const Api api = Load(argv[1]);
  TF_Status* status = api.NewStatus();
  const auto check = [&](const char* what) {
    if (api.GetCode(status) != 0) Die(std::string(what) + ": " + api.Message(status));
  };
  TF_Graph* graph = api.NewGraph();
  {
    const std::string file = ReadFile(argv[2]);
    const TF_Buffer buffer = {file.data(), file.size(), nullptr};
    api.GraphImportGraphDef(graph, &buffer, api.NewImportGraphDefOptions(), status);
    check("import");
  }
  TF_SessionOptions* options = api.NewSessionOptions();
  const std::string config = Config(threads, caller_runs, optimize);
  api.SetConfig(options, config.data(), config.size(), status);
  check("config");
  TF_Session* session = api.NewSession(graph, options, status);
  check("session");

  const auto operation = [&](const std::string& name) {
    TF_Operation* found = api.GraphOperationByName(graph, name.substr(0, name.find(':')).c_str());
    if (found == nullptr) Die("no node " + name);
    return found;
  };
  const auto output = [&](const std::string& name) {
    const size_t colon = name.find(':');
    return TF_Output{operation(name),
                     colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1))};
  };
  for (const std::string& name : init) {
    const TF_Operation* target = operation(name);
    api.SessionRun(session, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &target, 1, nullptr,
                   status);
    check("init");
  }
  std::vector<TF_Output> feed_outputs, fetch_outputs;
  std::vector<TF_Tensor*> feed_tensors, values(fetches.size());
  std::vector<const TF_Operation*> target_operations;
  for (const std::string& feed : feeds) {
    const size_t equals = feed.find('=');
    feed_outputs.push_back(output(feed.substr(0, equals)));
    feed_tensors.push_back(ReadNpy(api, feed.substr(equals + 1)));
  }
  for (const std::string& fetch : fetches) fetch_outputs.push_back(output(fetch));
  for (const std::string& target : targets) target_operations.push_back(operation(target));

  const auto run = [&] {
    api.SessionRun(session, nullptr, feed_outputs.data(), feed_tensors.data(),
                   static_cast<int>(feeds.size()), fetch_outputs.data(), values.data(),
                   static_cast<int>(fetches.size()), target_operations.data(),
                   static_cast<int>(targets.size()), nullptr, status);
    if (api.GetCode(status) != 0) check("run");
    for (TF_Tensor* value : values) api.DeleteTensor(value);
  };
  run();
  const double startup_ms = MillisecondsSinceStart();

  const auto slice = [&](double length, int64_t count) {
    const auto duration =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(length));
    const Clock::time_point warm = Clock::now() + duration / 10;
    if (count == 0) {
      for (int i = 0; i < 5 || Clock::now() < warm; ++i) run();
    }
    std::vector<double> micros;
    const Clock::time_point end = Clock::now() + duration;
    Clock::time_point before = Clock::now();
    do {
      run();
      const Clock::time_point after = Clock::now();
      micros.push_back(std::chrono::duration<double, std::micro>(after - before).count());
      before = after;
    } while (count > 0 ? static_cast<int64_t>(micros.size()) < count - 1 : before < end);
    std::sort(micros.begin(), micros.end());
    const size_t n = micros.size();
    std::printf(
        "{\"threads\": %d, \"runs\": %zu, \"min_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f, "
        "\"startup_ms\": %.1f, \"resident_kb\": %ld}\n",
        threads, n, micros[0], micros[n / 2], micros[std::min(n - 1, n * 99 / 100)], startup_ms,
        PeakResidentKb());
    std::fflush(stdout);
  };
  if (slices) {
    for (std::string line; std::getline(std::cin, line);) slice(std::stod(line), 0);
  } else {
    slice(seconds, steps);
  }
  // No clean-up: the threads of the library may still be at work.
  std::fflush(stdout);
  _exit(0);
}
