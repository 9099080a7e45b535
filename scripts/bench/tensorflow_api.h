// TensorFlow's C API, loaded at run time, for the programs of scripts/bench-peers: the few
// functions that they need are declared here.

#ifndef TROUPE_SCRIPTS_BENCH_TENSORFLOW_API_H_
#define TROUPE_SCRIPTS_BENCH_TENSORFLOW_API_H_

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// --- what is used of tensorflow/c/c_api.h --------------------------------------------------------

struct TF_Status;
struct TF_Graph;
struct TF_ImportGraphDefOptions;
struct TF_SessionOptions;
struct TF_Session;
struct TF_Operation;
struct TF_Tensor;
struct TF_Server;
struct TF_DeviceList;
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
  void (*SetTarget)(TF_SessionOptions*, const char*);
  TF_Server* (*NewServer)(const void* server_def, size_t, TF_Status*);
  void (*ServerStart)(TF_Server*, TF_Status*);
  const char* (*ServerTarget)(TF_Server*);
  TF_DeviceList* (*SessionListDevices)(TF_Session*, TF_Status*);
  int (*DeviceListCount)(const TF_DeviceList*);
  void (*DeleteDeviceList)(TF_DeviceList*);
};

[[noreturn]] inline void Die(const std::string& message) {
  std::cerr << "tensorflow: " << message << std::endl;
  _exit(1);  // The library's threads may be at work: no destructors.
}

inline Api Load(const char* library) {
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
  find("TF_SetTarget", &api.SetTarget);
  find("TF_NewServer", &api.NewServer);
  find("TF_ServerStart", &api.ServerStart);
  find("TF_ServerTarget", &api.ServerTarget);
  find("TF_SessionListDevices", &api.SessionListDevices);
  find("TF_DeviceListCount", &api.DeviceListCount);
  find("TF_DeleteDeviceList", &api.DeleteDeviceList);
  return api;
}

// --- helpers -------------------------------------------------------------------------------------

inline std::string ReadFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) Die("cannot read " + name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<char>(value | 128));
  out->push_back(static_cast<char>(value));
}
inline void AppendInt(std::string* out, int field, int64_t value) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3);
  AppendVarint(out, static_cast<uint64_t>(value));
}
inline void AppendMessage(std::string* out, int field, const std::string& message) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | 2);
  AppendVarint(out, message.size());
  *out += message;
}

/// A serialized ConfigProto. `threads` 0: as many as TensorFlow takes by itself.
inline std::string Config(int threads, bool caller_runs, bool optimize, int cpu_devices = 1) {
  std::string config;
  if (cpu_devices > 1) {
    std::string entry;
    AppendMessage(&entry, 1, "CPU");
    AppendInt(&entry, 2, cpu_devices);
    AppendMessage(&config, 1, entry);  // device_count
  }
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
inline TF_Tensor* ReadNpy(const Api& api, const std::string& name) {
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

#endif  // TROUPE_SCRIPTS_BENCH_TENSORFLOW_API_H_
