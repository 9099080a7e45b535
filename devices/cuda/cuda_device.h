/// NVIDIA cards, as devices of type "GPU". Part of libtroupe_cuda.so.
#ifndef TROUPE_DEVICES_CUDA_CUDA_DEVICE_H_
#define TROUPE_DEVICES_CUDA_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "devices/device.h"
#include "devices/device_registry.h"
#include "devices/memory_use.h"
#include "devices/pollable.h"

namespace troupe::cuda {

/// OK, or what the runtime says, with `what` was tried. ResourceExhausted: memory; Unavailable: the
/// card is lost, and with it all that the process has there; FailedPrecondition: no driver, or too
/// old a one; else Internal.
absl::Status CudaStatus(cudaError_t error, std::string_view what);

/// A stream of a card, with a thread that tells when work has finished. Thread-safe.
class CudaStream final : public Stream {
 public:
  static absl::StatusOr<std::unique_ptr<CudaStream>> Make(int card);
  ~CudaStream() override;

  RefPtr<DeviceEvent> Record() override;
  absl::Status WaitFor(const RefPtr<DeviceEvent>& event) override;
  bool Done() const override;
  void WhenDone(std::function<void(absl::Status)> done) override;
  void* native() const override { return stream_; }
  /// Calls the oldest of what `WhenDone` has been given if it is due; false if it is not.
  bool Poll();

 private:
  struct Waiting {
    RefPtr<DeviceEvent> event;
    std::function<void(absl::Status)> done;
  };

  CudaStream(int card, cudaStream_t stream);
  /// Waits for the oldest event, again and again.
  void Tell();
  /// Calls the oldest one, which is due, if that is still the one for `event`.
  bool CallOldest(const RefPtr<DeviceEvent>& event, cudaError_t reached);

  const int card_;
  const cudaStream_t stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  bool stopping_ = false;
  std::thread thread_;
};

/// Small blocks that devices of a card have freed, by their sizes: the driver takes longer for one
/// than its kernel.
struct KeptBlocks {
  /// Blocks of up to so many classes of so many bytes are kept,
  static constexpr size_t kClassBytes = 512, kSmallClasses = 512;
  /// and so many bytes of them.
  static constexpr int64_t kMost = 64 << 20;

  /// Those of a size; nullptr: it is none of these classes. The lock is held.
  std::vector<void*>* Like(int64_t size);

  std::mutex mutex;
  std::array<std::vector<void*>, kSmallClasses> blocks;
  int64_t bytes = 0;
};

/// Memory of a card, from the driver's pool, in the order of the compute stream, for one device:
/// what it has in use is counted and limited for itself. Blocks that are freed stay in the pool,
/// or in `kept`, for all devices of the card. Thread-safe.
class CudaAllocator final : public Allocator, public LiveBlocks {
 public:
  CudaAllocator(int card, cudaStream_t compute, int64_t capacity, KeptBlocks* kept);

  /// For another device, when nothing is in use.
  void Restart(int64_t limit);

  std::string_view name() const override { return name_; }
  MemorySpace space() const override { return MemorySpace::kDevice; }
  void* Allocate(size_t bytes) override;
  void Free(void* block, size_t bytes) override;
  AllocatorStats stats() const override;
  void set_limit(int64_t bytes) override;
  void Trim() override;
  /// How much the card has left: other processes use it, too.
  std::string Remark() const override;
  absl::Status Broken() const override;

 private:
  /// Of a block that was asked for.
  static size_t SizeOf(size_t bytes);
  int64_t LimitFor(int64_t wanted) const {
    return wanted > 0 ? std::min(wanted, capacity_) : capacity_;
  }

  const int card_;
  const cudaStream_t compute_;
  const int64_t capacity_;
  const std::string name_;
  KeptBlocks* const kept_;
  AllocatorStats stats_;  ///< Guarded by the lock of `kept_`, which every call needs.
};

/// Host memory that cards copy from and to without staging. Blocks that are freed are kept, by
/// their sizes. Thread-safe.
class PinnedAllocator final : public Allocator {
 public:
  /// The only instance, never destroyed.
  static PinnedAllocator* Get();
  /// The process uses a card.
  void AddCard(int card);

  std::string_view name() const override { return "pinned"; }
  MemorySpace space() const override { return MemorySpace::kPinned; }
  void* Allocate(size_t bytes) override;
  void Free(void* block, size_t bytes) override;
  AllocatorStats stats() const override;
  void set_limit(int64_t bytes) override;
  void Trim() override;

 private:
  /// Makes calls of this thread go to a card that the process uses, unless they do: those of a
  /// thread that has chosen none would open card 0.
  void UseSomeCard() const;

  mutable std::mutex mutex_;
  std::set<int> cards_;
  std::map<size_t, std::vector<void*>> free_;
  AllocatorStats stats_;
};

/// What a card has for all devices that are made of it. Never destroyed: tensors may outlive
/// sessions.
struct Card {
  std::unique_ptr<CudaStream> compute, upload, download;
  int64_t capacity = 0;  ///< Bytes that it had for the process when that began to use it.
  KeptBlocks kept;
  /// Of devices; those whose device and tensors have ended are used again.
  std::vector<std::shared_ptr<CudaAllocator>> memories;
};

class CudaDevice final : public Device, public Pollable {
 public:
  CudaDevice(DeviceAttributes attributes, int number, Card* card,
             std::shared_ptr<CudaAllocator> memory, std::shared_ptr<ComputePool> pool)
      : Device(std::move(attributes)),
        number_(number),
        card_(card),
        memory_(std::move(memory)),
        pool_(std::move(pool)) {}

  int number() const { return number_; }
  /// Makes the calls that this thread makes of CUDA go to the card.
  void Use() const { cudaSetDevice(number_); }
  /// What can be allocated in all: as its limit and the card allow.
  int64_t FreeMemory() const;

  Allocator* allocator(MemorySpace space) const override;
  MemorySpace memory_space() const override { return MemorySpace::kDevice; }
  Stream* stream(StreamUse use) const override;
  ComputePool* compute_pool() const override { return pool_.get(); }
  absl::Status Copy(const Tensor& from, const Tensor& to, Stream* stream) override;
  bool Poll() override;

 private:
  const int number_;
  Card* const card_;
  const std::shared_ptr<CudaAllocator> memory_;
  const std::shared_ptr<ComputePool> pool_;
};

class CudaFactory final : public DeviceFactory {
 public:
  absl::StatusOr<int> NumAvailable() override;
  absl::StatusOr<int64_t> FreeMemory(int number) override;
  absl::StatusOr<std::unique_ptr<Device>> Create(const DeviceName& name, int number,
                                                 int64_t memory_limit,
                                                 const std::shared_ptr<ComputePool>& pool) override;
  std::optional<DeviceFigures> Figures(const Device& device) const override;
  bool Connect(const Device& from, const Device& to) override;
  absl::StatusOr<int64_t> TotalMemory(int number) override;

 private:
  static absl::StatusOr<std::unique_ptr<Card>> OpenCard(int number);
  /// That of a new device; the lock is held.
  static std::shared_ptr<CudaAllocator> MemoryOf(Card* card, int number);

  std::mutex mutex_;
  std::map<int, Card*> cards_;
  std::map<std::pair<int, int>, bool> connected_;  ///< From, to.
};

}  // namespace troupe::cuda

#endif  // TROUPE_DEVICES_CUDA_CUDA_DEVICE_H_
