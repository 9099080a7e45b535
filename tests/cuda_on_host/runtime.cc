// The functions of CUDA's runtime that Troupe calls, on simulated devices.
//
// Environment: CUDA_ON_HOST_CARDS, how many cards there are (2); CUDA_ON_HOST_DRIVER, the version
// that the driver knows (that of the toolkit; 0: there is none); CUDA_ON_HOST_LOST_AFTER, a card is
// lost after so many launches; CUDA_ON_HOST_FLUSH, if it is set kernels take denormal numbers for
// 0, as the CPU's do, and no card; CUDA_ON_HOST_TAKEN, a file in which processes that share the
// cards note how much of their memory is taken; CUDA_ON_HOST_EXCLUSIVE, another
// process has all cards for itself; CUDA_ON_HOST_NO_EVENTS, none can be made;
// CUDA_ON_HOST_SEED.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/cuda_on_host/runtime.h"
#include "tests/devices/simulated/simulated_device.h"

using troupe::RefPtr;
using troupe::StreamUse;
using troupe::cuda::on_host::EnqueueWork;
using troupe::cuda::on_host::RunBlocks;
using troupe::testing::Reach;
using troupe::testing::SimulatedStream;

// What the handles of the runtime point to.
struct CUstream_st {
  int card;
  SimulatedStream* stream;
};
struct CUevent_st {
  int card = -1;
  RefPtr<troupe::DeviceEvent> event;
};
struct CUmemPoolHandle_st {
  int card = 0;
  bool keeps = false;              ///< What is freed stays reserved.
  int64_t reserved = 0, used = 0;  ///< Bytes.
};

namespace {

int64_t Setting(const char* name, int64_t usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::atoll(text);
}

constexpr int64_t kCardBytes = 64 << 20;

/// The bytes that all processes have taken of each card: in a file that is `kNotes` bytes long.
std::atomic<int64_t>* Taken(int card) {
  constexpr size_t kNotes = 4096;
  static auto* const notes = [] {
    const char* const file = std::getenv("CUDA_ON_HOST_TAKEN");
    const int opened = file == nullptr ? -1 : open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file != nullptr && (opened < 0 || ftruncate(opened, kNotes) != 0)) std::abort();
    const int flags = file == nullptr ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* const mapped = mmap(nullptr, kNotes, PROT_READ | PROT_WRITE, flags, opened, 0);
    if (mapped == MAP_FAILED) std::abort();
    if (opened >= 0) close(opened);
    return static_cast<std::atomic<int64_t>*>(mapped);
  }();
  return notes + card;
}

struct Card {
  std::unique_ptr<troupe::Device> device;
  int num_streams = 0;
  std::map<void*, size_t> sizes;  ///< Of blocks.
  CUmemPoolHandle_st pool;
};

struct Cards {
  std::mutex mutex;
  std::map<int, Card> cards;
  std::shared_ptr<troupe::DeviceFactory> factory =
      troupe::testing::SimulatedDevices({.seed = Seed()});
  std::atomic<int64_t> launches{0};
  const int64_t lost_after = Setting("CUDA_ON_HOST_LOST_AFTER", INT64_MAX);

  static uint64_t Seed() { return static_cast<uint64_t>(Setting("CUDA_ON_HOST_SEED", 1)); }
};

Cards& AllCards() {
  static auto* const cards = new Cards;
  return *cards;
}

int NumCards() { return static_cast<int>(Setting("CUDA_ON_HOST_CARDS", 2)); }
int Driver() { return static_cast<int>(Setting("CUDA_ON_HOST_DRIVER", CUDART_VERSION)); }
bool Lost() { return AllCards().launches.load() > AllCards().lost_after; }

/// Whether somebody has chosen the card: what comes to another one would make a context there.
std::atomic<bool>* Opened(int card) {
  static std::array<std::atomic<bool>, 64> opened;
  return &opened.at(static_cast<size_t>(card));
}

thread_local int current_card = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t Result(cudaError_t error) {
  if (error == cudaSuccess && Lost()) error = cudaErrorLaunchFailure;
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// Of what needs the context of this thread's card.
cudaError_t InContext(cudaError_t error) {
  return Result(Opened(current_card)->load() ? error : cudaErrorDeviceUninitialized);
}

/// The card's device; the lock is held.
Card* Find(int number) {
  Card& card = AllCards().cards[number];
  if (card.device == nullptr) {
    card.device = *AllCards().factory->Create({"localhost", 0, 0, "CARD", number}, number, 0, {});
    card.pool.card = number;
  }
  return &card;
}

/// Has the pool use `bytes` more or less; false: it cannot get them.
bool ChangeUse(CUmemPoolHandle_st* pool, int64_t bytes) {
  const int64_t missing = pool->used + bytes - pool->reserved;
  if (missing > 0) {
    if (Taken(pool->card)->fetch_add(missing) + missing > kCardBytes) {
      Taken(pool->card)->fetch_sub(missing);
      return false;
    }
    pool->reserved += missing;
  }
  pool->used += bytes;
  return true;
}

/// Gives the card what the pool does not use.
void Release(CUmemPoolHandle_st* pool) {
  Taken(pool->card)->fetch_sub(pool->reserved - pool->used);
  pool->reserved = pool->used;
}

void* Reached(const void* address) {
  void* const inside = Reach(address);
  return inside != nullptr ? inside : const_cast<void*>(address);
}

cudaError_t Launched(dim3 blocks, dim3 threads, size_t argument_bytes, cudaStream_t stream,
                     std::function<void()> thread) {
  const uint64_t per_block = uint64_t{threads.x} * threads.y * threads.z;
  if (per_block == 0 || per_block > 1024 || threads.z > 64 || blocks.x == 0 || blocks.y == 0 ||
      blocks.z == 0 || blocks.x > INT32_MAX || blocks.y > 65535 || blocks.z > 65535) {
    return Result(cudaErrorInvalidConfiguration);
  }
  if (argument_bytes > 4096) return Result(cudaErrorInvalidValue);
  const int64_t number = AllCards().launches.fetch_add(1);
  if (current_card != stream->card) return Result(cudaErrorInvalidResourceHandle);
  stream->stream->Enqueue([=, thread = std::move(thread)] {
    if (!Lost()) RunBlocks(blocks, threads, static_cast<uint64_t>(number), thread);
  });
  return Result(cudaSuccess);
}

}  // namespace

namespace troupe::cuda::on_host {

cudaError_t Enqueue(dim3 blocks, dim3 threads, size_t argument_bytes, cudaStream_t stream,
                    std::function<void()> thread) {
  const cudaError_t error = Launched(blocks, threads, argument_bytes, stream, std::move(thread));
  // Who launches asks for the thread's last error, whatever left it.
  const cudaError_t last = cudaGetLastError();
  return error != cudaSuccess ? error : last;
}

cudaError_t EnqueueWork(cudaStream_t stream, std::function<void()> work) {
  stream->stream->Enqueue([work = std::move(work)] {
    if (!Lost()) work();
  });
  return InContext(cudaSuccess);
}

void ReachAll(void* data, size_t bytes) {
  char* const at = static_cast<char*>(data);
  for (size_t i = 0; i + sizeof(void*) <= bytes; i += sizeof(void*)) {
    void* address = nullptr;
    std::memcpy(&address, at + i, sizeof(address));
    if (void* const inside = Reach(address)) std::memcpy(at + i, &inside, sizeof(inside));
  }
}

}  // namespace troupe::cuda::on_host

extern "C" {

#undef dlopen
void* dlopen(const char*, int) noexcept;
void* cuda_on_host_dlopen(const char* name, int flags) noexcept {
  const std::string_view wanted = name;
  if (!wanted.starts_with("libcublasLt.") && !wanted.starts_with("libcudnn")) {
    return dlopen(name, flags);
  }
  Dl_info self;
  return dladdr(reinterpret_cast<void*>(&AllCards), &self) == 0 ? nullptr
                                                                : dlopen(self.dli_fname, RTLD_NOW);
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (Driver() == 0) return Result(cudaErrorInsufficientDriver);
  if (Driver() < CUDART_VERSION / 1000 * 1000) return Result(cudaErrorInsufficientDriver);
  if (NumCards() == 0) return Result(cudaErrorNoDevice);
  *count = NumCards();
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = Driver();
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= NumCards()) return Result(cudaErrorInvalidDevice);
  current_card = device;
  Opened(device)->store(true);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_card;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= NumCards()) return Result(cudaErrorInvalidDevice);
  *properties = cudaDeviceProp{};
  std::strcpy(properties->name, "CUDA on the host");
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = kCardBytes;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = 4;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = 9;
      return cudaSuccess;
    // A small card of today: placed by these figures, what asks for no device stays on the host
    // more often than not.
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
      *value = 1'000'000;
      return cudaSuccess;
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 128;
      return cudaSuccess;
    default:
      return Result(cudaErrorInvalidValue);
  }
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorDevicesUnavailable:
      return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorNotSupported:
      return "operation not supported";
    default:
      return "an error of CUDA on the host";
  }
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  std::lock_guard<std::mutex> lock(AllCards().mutex);
  Card* const card = Find(current_card);
  if (card->num_streams == 3) return Result(cudaErrorNotSupported);
  if (Setting("CUDA_ON_HOST_EXCLUSIVE", 0) != 0) return Result(cudaErrorDevicesUnavailable);
  // The first one is that of the compute stream, in whose order blocks are freed.
  constexpr StreamUse kUses[] = {StreamUse::kCompute, StreamUse::kUpload, StreamUse::kDownload};
  *stream = new CUstream_st{current_card, static_cast<SimulatedStream*>(
                                              card->device->stream(kUses[card->num_streams++]))};
  return Result(cudaSuccess);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return InContext(Lost() || stream->stream->Done() ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  while (!stream->stream->Done()) std::this_thread::yield();
  return InContext(cudaSuccess);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->event && !stream->stream->WaitFor(event->event).ok()) return cudaErrorUnknown;
  return InContext(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (Setting("CUDA_ON_HOST_NO_EVENTS", 0) != 0) return Result(cudaErrorMemoryAllocation);
  *event = new CUevent_st;
  return InContext(cudaSuccess);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (current_card != stream->card) return Result(cudaErrorInvalidResourceHandle);
  event->event = stream->stream->Record();
  return Result(cudaSuccess);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const bool reached = Lost() || !event->event || event->event->Reached();
  return InContext(reached ? cudaSuccess : cudaErrorNotReady);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  while (event->event && !event->event->Reached()) std::this_thread::yield();
  return InContext(cudaSuccess);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start->event || !end->event) return Result(cudaErrorInvalidResourceHandle);
  if (!start->event->Reached() || !end->event->Reached()) return Result(cudaErrorNotReady);
  *milliseconds = static_cast<float>(1e3 * end->event->SecondsSince(*start->event));
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int card) {
  std::lock_guard<std::mutex> lock(AllCards().mutex);
  *pool = &Find(card)->pool;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  if (attribute != cudaMemPoolAttrReleaseThreshold) return Result(cudaErrorInvalidValue);
  std::lock_guard<std::mutex> lock(AllCards().mutex);
  pool->keeps = *static_cast<uint64_t*>(value) > 0;
  return cudaSuccess;
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  std::lock_guard<std::mutex> lock(AllCards().mutex);
  int64_t bytes = 0;
  switch (attribute) {
    case cudaMemPoolAttrReservedMemCurrent:
      bytes = pool->reserved;
      break;
    case cudaMemPoolAttrUsedMemCurrent:
      bytes = pool->used;
      break;
    default:
      return Result(cudaErrorInvalidValue);
  }
  *static_cast<uint64_t*>(value) = static_cast<uint64_t>(bytes);
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) {
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer;
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  std::lock_guard<std::mutex> lock(AllCards().mutex);
  Release(pool);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = kCardBytes;
  *free = static_cast<size_t>(std::max<int64_t>(0, kCardBytes - *Taken(current_card)));
  return InContext(cudaSuccess);
}
cudaError_t cudaMallocAsync(void** block, size_t bytes, cudaStream_t stream) {
  if (Lost()) return Result(cudaSuccess);
  std::lock_guard<std::mutex> lock(AllCards().mutex);
  Card* const card = Find(stream->card);
  const auto size = static_cast<int64_t>(bytes);
  *block = nullptr;
  if (!ChangeUse(&card->pool, size)) return Result(cudaErrorMemoryAllocation);
  *block = card->device->allocator(troupe::MemorySpace::kDevice)->Allocate(bytes);
  if (*block == nullptr) {
    ChangeUse(&card->pool, -size);
    return Result(cudaErrorMemoryAllocation);
  }
  card->sizes[*block] = bytes;
  return InContext(cudaSuccess);
}
cudaError_t cudaFreeAsync(void* block, cudaStream_t stream) {
  std::lock_guard<std::mutex> lock(AllCards().mutex);
  Card* const card = Find(stream->card);
  const auto found = card->sizes.find(block);
  if (found == card->sizes.end()) return Result(cudaErrorInvalidValue);
  const size_t bytes = found->second;
  card->sizes.erase(found);
  ChangeUse(&card->pool, -static_cast<int64_t>(bytes));
  if (!card->pool.keeps) Release(&card->pool);
  card->device->allocator(troupe::MemorySpace::kDevice)->Free(block, bytes);
  return InContext(cudaSuccess);
}
cudaError_t cudaHostAlloc(void** block, size_t bytes, unsigned) {
  *block = nullptr;
  if (const cudaError_t error = InContext(cudaSuccess); error != cudaSuccess) return error;
  *block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  return Result(*block == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}
cudaError_t cudaFreeHost(void* block) {
  std::free(block);
  return InContext(cudaSuccess);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return EnqueueWork(
      stream, [to = Reached(to), from = Reached(from), bytes] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return EnqueueWork(stream, [to = Reached(to), value, bytes] { std::memset(to, value, bytes); });
}

}  // extern "C"
