#include "devices/cuda/cuda_device.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe::cuda {

namespace {

/// Freed blocks that are kept.
constexpr int64_t kMaxPinnedCached = int64_t{1} << 30;

std::string Version(int number) { return StrCat(number / 1000, ".", number % 1000 / 10); }

/// `error`, taken from the thread, whose next launch would report it otherwise.
cudaError_t Taken(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

class CudaEvent final : public DeviceEvent {
 public:
  /// Waits for the stream if there can be no event: nobody is told too early.
  explicit CudaEvent(cudaStream_t stream) {
    if (Taken(cudaEventCreateWithFlags(&event_, cudaEventBlockingSync)) != cudaSuccess) {
      event_ = nullptr;
    } else if (Taken(cudaEventRecord(event_, stream)) != cudaSuccess) {
      Taken(cudaEventDestroy(std::exchange(event_, nullptr)));
    }
    if (event_ == nullptr) result_ = Taken(cudaStreamSynchronize(stream));
  }
  bool Reached() const override { return Query() != cudaErrorNotReady; }
  cudaError_t Query() const { return event_ == nullptr ? result_ : Taken(cudaEventQuery(event_)); }
  double SecondsSince(const DeviceEvent& earlier) const override {
    const cudaEvent_t begin = static_cast<const CudaEvent&>(earlier).event_;
    float milliseconds = 0;
    if (begin == nullptr || event_ == nullptr ||
        Taken(cudaEventElapsedTime(&milliseconds, begin, event_)) != cudaSuccess) {
      return 0;
    }
    return 1e-3 * milliseconds;
  }
  cudaError_t Wait() const { return event_ == nullptr ? result_ : cudaEventSynchronize(event_); }
  cudaError_t HoldUp(cudaStream_t stream) const {
    return event_ == nullptr ? result_ : cudaStreamWaitEvent(stream, event_, 0);
  }

 protected:
  ~CudaEvent() override {
    if (event_ != nullptr) Taken(cudaEventDestroy(event_));
  }

 private:
  cudaEvent_t event_ = nullptr;
  cudaError_t result_ = cudaSuccess;  ///< Of the stream's work, if there is no event.
};

/// Pinned blocks are of these sizes, eight between a power of two and the next.
size_t PinnedSize(size_t bytes) {
  const size_t size = std::max(bytes, Allocator::kAlignment);
  const size_t step = std::max(Allocator::kAlignment, std::bit_floor(size) / 8);
  return (size + step - 1) / step * step;
}

cudaError_t Query(cudaStream_t stream) { return Taken(cudaStreamQuery(stream)); }

/// Makes calls of this thread go to a card.
void Use(int card) { Taken(cudaSetDevice(card)); }

/// What the driver's pool has of a card without using it: `cudaMemGetInfo` counts it as taken.
int64_t IdleInPool(int card) {
  cudaMemPool_t pool = nullptr;
  uint64_t reserved = 0, used = 0;
  const auto ask = [&pool](cudaMemPoolAttr attribute, uint64_t* bytes) {
    return Taken(cudaMemPoolGetAttribute(pool, attribute, bytes)) == cudaSuccess;
  };
  const bool told = Taken(cudaDeviceGetDefaultMemPool(&pool, card)) == cudaSuccess &&
                    ask(cudaMemPoolAttrReservedMemCurrent, &reserved) &&
                    ask(cudaMemPoolAttrUsedMemCurrent, &used);
  return told && used < reserved ? static_cast<int64_t>(reserved - used) : 0;
}

/// What the process could have of a card, beside what it uses.
absl::StatusOr<int64_t> FreeMemoryOf(int card) {
  const std::string which = StrCat("card ", card);
  size_t free = 0, total = 0;
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(card), which));
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &total), which));
  return static_cast<int64_t>(free) + IdleInPool(card);
}

}  // namespace

absl::Status CudaStatus(cudaError_t error, std::string_view what) {
  if (Taken(error) == cudaSuccess) return absl::OkStatus();
  const std::string message = StrCat(what, ": ", cudaGetErrorString(error));
  switch (error) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(message);
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorStubLibrary:
      return absl::FailedPreconditionError(message);
    case cudaErrorDevicesUnavailable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorECCUncorrectable:
    case cudaErrorMisalignedAddress:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorExternalDevice:
    case cudaErrorMpsClientTerminated:
    case cudaErrorUnknown:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

// --- streams -------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Make(int card) {
  Use(card);
  cudaStream_t stream = nullptr;
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                    StrCat("making a stream of card ", card)));
  return std::unique_ptr<CudaStream>(new CudaStream(card, stream));
}

CudaStream::CudaStream(int card, cudaStream_t stream) : card_(card), stream_(stream) {
  const ScopedBlockSignals blocked;
  thread_ = std::thread([this] { Tell(); });
  pthread_setname_np(thread_.native_handle(), "troupe-cuda");
}

CudaStream::~CudaStream() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
  cudaStreamDestroy(stream_);
}

RefPtr<DeviceEvent> CudaStream::Record() {
  Use(card_);
  return MakeRef<CudaEvent>(stream_);
}

absl::Status CudaStream::WaitFor(const RefPtr<DeviceEvent>& event) {
  Use(card_);
  if (const auto* own = dynamic_cast<const CudaEvent*>(event.get())) {
    return CudaStatus(own->HoldUp(stream_), "waiting for an event");
  }
  // Between types values go by way of the host. This thread could only wait, for who knows how
  // long.
  return absl::UnimplementedError("a card cannot wait for an event of another type of device");
}

bool CudaStream::Done() const {
  Use(card_);
  return Query(stream_) != cudaErrorNotReady;
}

void CudaStream::WhenDone(std::function<void(absl::Status)> done) {
  Use(card_);
  const cudaError_t now = Query(stream_);
  if (now != cudaErrorNotReady) return done(CudaStatus(now, "the work of a stream"));
  Waiting waiting{Record(), std::move(done)};
  std::lock_guard<std::mutex> lock(mutex_);
  waiting_.push_back(std::move(waiting));
  changed_.notify_one();
}

void CudaStream::Tell() {
  Use(card_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const RefPtr<DeviceEvent> oldest = waiting_.front().event;
    lock.unlock();
    CallOldest(oldest, static_cast<const CudaEvent&>(*oldest).Wait());
    lock.lock();
  }
}

bool CudaStream::CallOldest(const RefPtr<DeviceEvent>& event, cudaError_t reached) {
  std::unique_lock<std::mutex> lock(mutex_);
  // Somebody else may have been quicker.
  if (waiting_.empty() || waiting_.front().event.get() != event.get()) return false;
  const Waiting oldest = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  KeepGoing([&] { oldest.done(CudaStatus(reached, "the work of a stream")); });
  return true;
}

bool CudaStream::Poll() {
  RefPtr<DeviceEvent> oldest;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.empty()) return false;
    oldest = waiting_.front().event;
  }
  const cudaError_t now = static_cast<const CudaEvent&>(*oldest).Query();
  return now != cudaErrorNotReady && CallOldest(oldest, now);
}

// --- memory --------------------------------------------------------------------------------------

/// For memory checkers: every block is the driver's own, of exactly the bytes that were asked for.
bool ExactBlocks() {
  static const bool exact = [] {
    const char* const value = std::getenv("TROUPE_CUDA_EXACT_BLOCKS");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return exact;
}

std::vector<void*>* KeptBlocks::Like(int64_t size) {
  if (ExactBlocks()) return nullptr;
  const auto number = static_cast<size_t>(size) / kClassBytes;
  const bool small = static_cast<size_t>(size) <= kSmallClasses * kClassBytes;
  return small ? &blocks[number - 1] : nullptr;
}

CudaAllocator::CudaAllocator(int card, cudaStream_t compute, int64_t capacity, KeptBlocks* kept)
    : card_(card),
      compute_(compute),
      capacity_(capacity),
      name_(StrCat("GPU ", card)),
      kept_(kept) {
  stats_.bytes_limit = capacity;
}

void CudaAllocator::Restart(int64_t limit) {
  std::lock_guard<std::mutex> lock(kept_->mutex);
  stats_ = {};
  stats_.bytes_limit = LimitFor(limit);
}

size_t CudaAllocator::SizeOf(size_t bytes) {
  if (ExactBlocks()) return std::max<size_t>(bytes, 1);
  constexpr size_t kStep = KeptBlocks::kClassBytes;
  const size_t small = std::max<size_t>((bytes + kStep - 1) / kStep, 1);
  return small <= KeptBlocks::kSmallClasses ? small * kStep : bytes;
}

void* CudaAllocator::Allocate(size_t bytes) {
  if (bytes > size_t{1} << 46) return nullptr;
  const auto size = static_cast<int64_t>(SizeOf(bytes));
  void* block = nullptr;
  {
    std::lock_guard<std::mutex> lock(kept_->mutex);
    if (size > stats_.bytes_limit - stats_.bytes_in_use) return nullptr;
    if (std::vector<void*>* kept = kept_->Like(size); kept != nullptr) {
      // What is enqueued from now on is later than what still uses it.
      if (!kept->empty()) {
        block = kept->back();
        kept->pop_back();
        kept_->bytes -= size;
      } else {
        kept->reserve(kept->capacity() + 1);  // `Free` needs no memory.
      }
    }
    ++stats_.num_allocs;
    stats_.bytes_in_use += size;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, size);
  }
  for (bool again = false; block == nullptr; again = true) {
    Use(card_);
    if (Taken(cudaMallocAsync(&block, static_cast<size_t>(size), compute_)) == cudaSuccess) break;
    block = nullptr;
    if (again) break;
    Trim();
  }
  if (block != nullptr) {
    Add(block, static_cast<size_t>(size));
    return block;
  }
  std::lock_guard<std::mutex> lock(kept_->mutex);
  stats_.bytes_in_use -= size;
  return nullptr;
}

void CudaAllocator::Free(void* block, size_t bytes) {
  const auto size = static_cast<int64_t>(SizeOf(bytes));
  Remove(block);
  {
    std::lock_guard<std::mutex> lock(kept_->mutex);
    stats_.bytes_in_use -= size;
    std::vector<void*>* const kept = kept_->Like(size);
    if (kept != nullptr && kept_->bytes + size <= KeptBlocks::kMost) {
      kept->push_back(block);
      kept_->bytes += size;
      return;
    }
  }
  Use(card_);
  Taken(cudaFreeAsync(block, compute_));
}

AllocatorStats CudaAllocator::stats() const {
  std::lock_guard<std::mutex> lock(kept_->mutex);
  AllocatorStats stats = stats_;
  stats.bytes_cached = kept_->bytes;
  return stats;
}

void CudaAllocator::set_limit(int64_t bytes) {
  std::lock_guard<std::mutex> lock(kept_->mutex);
  stats_.bytes_limit = LimitFor(bytes);
}

std::string CudaAllocator::Remark() const {
  Use(card_);
  size_t free = 0, total = 0;
  if (Taken(cudaMemGetInfo(&free, &total)) != cudaSuccess) return "";
  return StrCat("the card has ", free, " of its ", total, " bytes left for all processes");
}

absl::Status CudaAllocator::Broken() const {
  Use(card_);
  const cudaError_t error = Query(compute_);
  return error == cudaErrorNotReady ? absl::OkStatus() : CudaStatus(error, StrCat("card ", card_));
}

void CudaAllocator::Trim() {
  Use(card_);
  {
    std::lock_guard<std::mutex> lock(kept_->mutex);
    for (std::vector<void*>& blocks : kept_->blocks) {
      for (void* block : blocks) Taken(cudaFreeAsync(block, compute_));
      blocks.clear();
    }
    kept_->bytes = 0;
  }
  // Blocks whose turn has not come would stay in the pool.
  Taken(cudaStreamSynchronize(compute_));
  cudaMemPool_t pool;
  if (Taken(cudaDeviceGetDefaultMemPool(&pool, card_)) == cudaSuccess) {
    Taken(cudaMemPoolTrimTo(pool, 0));
  }
}

PinnedAllocator* PinnedAllocator::Get() {
  static auto* const allocator = new PinnedAllocator;
  return allocator;
}

void PinnedAllocator::AddCard(int card) {
  std::lock_guard<std::mutex> lock(mutex_);
  cards_.insert(card);
}

void PinnedAllocator::UseSomeCard() const {
  std::lock_guard<std::mutex> lock(mutex_);
  int card = 0;
  if (Taken(cudaGetDevice(&card)) == cudaSuccess && cards_.count(card) != 0) return;
  if (!cards_.empty()) Use(*cards_.begin());
}

void* PinnedAllocator::Allocate(size_t bytes) {
  if (bytes > size_t{1} << 46) return nullptr;
  const size_t size = PinnedSize(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t in_use = stats_.bytes_in_use + static_cast<int64_t>(size);
    if (stats_.bytes_limit > 0 && in_use > stats_.bytes_limit) return nullptr;
    std::vector<void*>& free = free_[size];
    if (free.empty()) free.reserve(free.capacity() + 1);  // `Free` needs no memory.
    ++stats_.num_allocs;
    stats_.bytes_in_use = in_use;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, static_cast<int64_t>(size));
    if (!free.empty()) {
      void* const block = free.back();
      free.pop_back();
      stats_.bytes_cached -= static_cast<int64_t>(size);
      return block;
    }
  }
  UseSomeCard();
  void* block = nullptr;
  if (Taken(cudaHostAlloc(&block, size, cudaHostAllocPortable)) == cudaSuccess) return block;
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.bytes_in_use -= static_cast<int64_t>(size);
  return nullptr;
}

void PinnedAllocator::Free(void* block, size_t bytes) {
  const size_t size = PinnedSize(bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_in_use -= static_cast<int64_t>(size);
    if (stats_.bytes_cached + static_cast<int64_t>(size) <= kMaxPinnedCached) {
      free_[size].push_back(block);
      stats_.bytes_cached += static_cast<int64_t>(size);
      return;
    }
  }
  UseSomeCard();
  Taken(cudaFreeHost(block));
}

AllocatorStats PinnedAllocator::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void PinnedAllocator::set_limit(int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  stats_.bytes_limit = bytes;
}

void PinnedAllocator::Trim() {
  UseSomeCard();
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) Taken(cudaFreeHost(block));
    blocks.clear();
  }
  stats_.bytes_cached = 0;
}

// --- devices -------------------------------------------------------------------------------------

Allocator* CudaDevice::allocator(MemorySpace space) const {
  switch (space) {
    case MemorySpace::kDevice:
      return memory_.get();
    case MemorySpace::kPinned:
      return PinnedAllocator::Get();
    case MemorySpace::kHost:
      break;
  }
  return HostAllocator();
}

Stream* CudaDevice::stream(StreamUse use) const {
  switch (use) {
    case StreamUse::kUpload:
      return card_->upload.get();
    case StreamUse::kDownload:
      return card_->download.get();
    case StreamUse::kCompute:
      break;
  }
  return card_->compute.get();
}

bool CudaDevice::Poll() {
  Use();
  Card* const card = card_;  // Whoever is told may end the device.
  const bool computed = card->compute->Poll();
  return card->download->Poll() || computed;
}

int64_t CudaDevice::FreeMemory() const {
  const absl::StatusOr<int64_t> card = FreeMemoryOf(number_);
  if (!card.ok()) return 0;
  const AllocatorStats stats = memory_->stats();
  return std::min(stats.bytes_limit - stats.bytes_in_use, *card + stats.bytes_cached);
}

absl::Status CudaDevice::Copy(const Tensor& from, const Tensor& to, Stream* stream) {
  if (from.bytes() == 0) return absl::OkStatus();
  Use();
  return CudaStatus(cudaMemcpyAsync(const_cast<void*>(to.raw_data()), from.raw_data(), from.bytes(),
                                    cudaMemcpyDefault, static_cast<cudaStream_t>(stream->native())),
                    StrCat("copying ", from.bytes(), " bytes on ", name()));
}

absl::StatusOr<int> CudaFactory::NumAvailable() {
  int cards = 0;
  const cudaError_t error = Taken(cudaGetDeviceCount(&cards));
  if (error == cudaSuccess) return cards;
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) {
    return absl::FailedPreconditionError(
        "there is no NVIDIA driver on this machine: install one, or ask for no GPU");
  }
  if (error == cudaErrorInsufficientDriver) {
    return absl::FailedPreconditionError(
        StrCat("the NVIDIA driver of this machine knows CUDA up to ", Version(driver), ", and ",
               Version(runtime), " is needed: install a newer driver"));
  }
  return CudaStatus(error, "looking for NVIDIA cards");
}

absl::StatusOr<int64_t> CudaFactory::FreeMemory(int number) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t free, FreeMemoryOf(number));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = cards_.find(number);
  if (found == cards_.end() || found->second == nullptr) return free;
  // All devices keep freed blocks together.
  return free + found->second->memories.front()->stats().bytes_cached;
}

absl::StatusOr<std::unique_ptr<Card>> CudaFactory::OpenCard(int number) {
  auto card = std::make_unique<Card>();
  const std::string which = StrCat("card ", number);
  TROUPE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(number), StrCat("using ", which)));
  for (auto* stream : {&card->compute, &card->upload, &card->download}) {
    TROUPE_ASSIGN_OR_RETURN(*stream, CudaStream::Make(number));
  }
  TROUPE_ASSIGN_OR_RETURN(card->capacity, FreeMemoryOf(number));
  cudaMemPool_t pool;
  if (Taken(cudaDeviceGetDefaultMemPool(&pool, number)) == cudaSuccess) {
    uint64_t keep = UINT64_MAX;  // What is freed is kept: the driver would ask the system for it.
    Taken(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  PinnedAllocator::Get()->AddCard(number);
  return card;
}

std::shared_ptr<CudaAllocator> CudaFactory::MemoryOf(Card* card, int number) {
  for (const std::shared_ptr<CudaAllocator>& memory : card->memories) {
    if (memory.use_count() == 1 && memory->stats().bytes_in_use == 0) return memory;
  }
  card->memories.push_back(std::make_shared<CudaAllocator>(
      number, static_cast<cudaStream_t>(card->compute->native()), card->capacity, &card->kept));
  return card->memories.back();
}

absl::StatusOr<std::unique_ptr<Device>> CudaFactory::Create(
    const DeviceName& name, int number, int64_t memory_limit,
    const std::shared_ptr<ComputePool>& pool) {
  std::lock_guard<std::mutex> lock(mutex_);
  cudaDeviceProp properties{};
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, number), StrCat("card ", number)));
  Card*& card = cards_[number];
  if (card == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Card> opened, OpenCard(number));
    card = opened.release();
  }
  std::shared_ptr<CudaAllocator> memory = MemoryOf(card, number);
  TROUPE_RETURN_IF_ERROR(memory->Broken());
  memory->Restart(memory_limit);
  DeviceAttributes attributes;
  attributes.name = name.ToString();
  attributes.type = "GPU";
  attributes.memory_limit = memory->stats().bytes_limit;
  attributes.incarnation = (uint64_t{std::random_device()()} << 32 | std::random_device()()) | 1u;
  attributes.description = StrCat(properties.name, ", compute capability ", properties.major, ".",
                                  properties.minor, ", ", properties.totalGlobalMem >> 20, " MiB");
  return std::make_unique<CudaDevice>(std::move(attributes), number, card, std::move(memory), pool);
}

absl::StatusOr<int64_t> CudaFactory::TotalMemory(int number) {
  cudaDeviceProp properties{};
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, number), StrCat("card ", number)));
  return static_cast<int64_t>(properties.totalGlobalMem);
}

std::optional<DeviceFigures> CudaFactory::Figures(const Device& device) const {
  const int card = static_cast<const CudaDevice&>(device).number();
  const auto ask = [card](cudaDeviceAttr attribute) {
    int value = 0;
    Taken(cudaDeviceGetAttribute(&value, attribute, card));
    return static_cast<double>(value);
  };
  // What a card promises; kernels come to about so much of it.
  constexpr double kShare = 0.6;
  constexpr double kFlopsPerClock = 2 * 128;  // Of a multiprocessor, in single precision.
  DeviceFigures figures;
  const double clock_mhz = 1e-3 * ask(cudaDevAttrClockRate);
  figures.flops_per_us = kShare * kFlopsPerClock * clock_mhz * ask(cudaDevAttrMultiProcessorCount);
  // Two transfers a clock.
  figures.bytes_per_us = kShare * 2 * 1e-3 * ask(cudaDevAttrMemoryClockRate) *
                         ask(cudaDevAttrGlobalMemoryBusWidth) / 8;
  // What a launch and a copy cost the host, and PCI Express 4.0 of 16 lanes, from memory that is
  // not pinned.
  figures.node_us = 4;
  figures.transfer_us = 15;
  figures.transfer_bytes_per_us = 1e4;
  return figures;
}

bool CudaFactory::Connect(const Device& from, const Device& to) {
  const int source = static_cast<const CudaDevice&>(from).number();
  const int target = static_cast<const CudaDevice&>(to).number();
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [known, asked_now] = connected_.try_emplace({source, target});
  if (!asked_now) return known->second;
  int can = 0;
  cudaMemPool_t pool = nullptr;
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = target;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  known->second = cudaDeviceCanAccessPeer(&can, target, source) == cudaSuccess && can != 0 &&
                  cudaDeviceGetDefaultMemPool(&pool, source) == cudaSuccess &&
                  cudaMemPoolSetAccess(pool, &access, 1) == cudaSuccess;
  if (!known->second) cudaGetLastError();  // It would be the next caller's otherwise.
  return known->second;
}

}  // namespace troupe::cuda
