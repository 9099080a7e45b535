#include "tests/devices/simulated/simulated_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "devices/memory_use.h"
#include "devices/status_macros.h"

namespace troupe::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMemory = size_t{1} << 30;  // Of addresses.
constexpr int kDevices = 8;
constexpr unsigned char kFresh = 0x5b, kFreed = 0xa5, kGuard = 0xc7;
constexpr size_t kPage = 4096;

std::atomic<int64_t> num_tasks{0}, num_waits{0}, num_copies{0};
std::atomic<bool> cannot_tell{false};

class SimulatedEvent final : public DeviceEvent {
 public:
  bool Reached() const override { return reached_.load(std::memory_order_acquire); }
  double SecondsSince(const DeviceEvent& earlier) const override {
    const auto& other = static_cast<const SimulatedEvent&>(earlier);
    return std::chrono::duration<double>(at_ - other.at_).count();
  }
  void Reach() {
    at_ = Clock::now();
    reached_.store(true, std::memory_order_release);
  }

 private:
  Clock::time_point at_;
  std::atomic<bool> reached_{false};
};

/// What has been enqueued: work, or an event to be waited for.
struct Task {
  std::function<void()> work;
  RefPtr<DeviceEvent> event;
  bool CanRun() const { return !event || event->Reached(); }
};

class Machine;

class QueueStream final : public SimulatedStream {
 public:
  explicit QueueStream(Machine* machine) : machine_(machine) {}
  RefPtr<DeviceEvent> Record() override;
  absl::Status WaitFor(const RefPtr<DeviceEvent>& event) override;
  bool Done() const override;
  void WhenDone(std::function<void(absl::Status)> done) override {
    num_waits.fetch_add(1, std::memory_order_relaxed);
    if (cannot_tell) throw std::bad_alloc();
    Enqueue([done = std::move(done)] { done(absl::OkStatus()); });
  }
  void Enqueue(std::function<void()> work) override;

 private:
  friend class Machine;
  Machine* const machine_;
  std::deque<Task> tasks_;
  bool running_ = false;
};

/// The memory, the streams and their thread. Outlives the device: others may hold buffers. Never
/// destroyed, but used again.
class Machine final : public Allocator, public LiveBlocks {
 public:
  static constexpr int kStreams = 3;

  Machine() {
    const int file = memfd_create("simulated_device", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, kMemory) != 0) std::abort();
    const uintptr_t hint = UnlikelyAddress();
    outside_ = Map(hint, file, PROT_NONE);
    inside_ = Map(hint + (uintptr_t{1} << 44), file, PROT_READ | PROT_WRITE);
    close(file);
    free_[0] = kMemory;
    std::thread([this] { Run(); }).detach();
  }

  void Use(const SimulatedOptions& options, int64_t limit) {
    std::lock_guard<std::mutex> lock(mutex_);
    random_.seed(options.seed);
    max_delay_us_ = options.max_delay_us;
    stopped_ = options.stopped;
    cannot_tell = options.cannot_tell;
    memory_ = options.memory;
    set_limit_locked(limit);
  }
  void Go() {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = false;
    changed_.notify_all();
  }
  QueueStream* stream(StreamUse use) { return &streams_[static_cast<size_t>(use)]; }
  void* Reach(const void* address) const {
    const char* at = static_cast<const char*>(address);
    return at >= outside_ && at < outside_ + kMemory ? inside_ + (at - outside_) : nullptr;
  }

  // --- memory: the first place that is large enough. A block ends where a page does, but for its
  // alignment, and behind it is a page that nobody may touch ---

  std::string_view name() const override { return "simulated device"; }
  MemorySpace space() const override { return MemorySpace::kDevice; }
  void* Allocate(size_t bytes) override {
    if (bytes > kMemory) return nullptr;
    const size_t size = Rounded(bytes), space = Space(bytes);
    std::unique_lock<std::mutex> lock(memory_mutex_);
    if (limit_ > 0 && stats_.bytes_in_use + static_cast<int64_t>(size) > limit_) return nullptr;
    const auto place = std::find_if(free_.begin(), free_.end(),
                                    [space](const auto& free) { return free.second >= space; });
    if (place == free_.end()) return nullptr;
    const size_t begin = place->first, rest = place->second - space;
    free_.erase(place);
    if (rest > 0) free_[begin + space] = rest;
    ++stats_.num_allocs;
    stats_.bytes_in_use += static_cast<int64_t>(size);
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, static_cast<int64_t>(bytes));
    const size_t end = begin + space - kPage;
    char* const block = outside_ + (end - size);
    Add(block, size);
    lock.unlock();
    // Enqueued before whatever uses the block.
    stream(StreamUse::kCompute)->Enqueue([this, bytes, size, end] {
      std::memset(inside_ + end - size, kFresh, bytes);
      std::memset(inside_ + end - size + bytes, kGuard, size - bytes);
      if (mprotect(inside_ + end, kPage, PROT_NONE) != 0) std::abort();
    });
    return block;
  }
  void Free(void* block, size_t bytes) override {
    const size_t size = Rounded(bytes), space = Space(bytes);
    const size_t end = static_cast<size_t>(static_cast<char*>(block) - outside_) + size;
    const size_t offset = end + kPage - space;
    Remove(block);
    // Enqueued before the block can be had again: what is still to run on it comes first.
    stream(StreamUse::kCompute)->Enqueue([this, bytes, size, end] {
      char* const at = inside_ + (end - size);
      const auto is_guard = [](char byte) { return byte == static_cast<char>(kGuard); };
      if (!std::all_of(at + bytes, at + size, is_guard)) {
        std::fprintf(stderr, "simulated device: written beyond a block of %zu bytes\n", bytes);
        std::abort();
      }
      if (mprotect(inside_ + end, kPage, PROT_READ | PROT_WRITE) != 0) std::abort();
      std::memset(at, kFreed, size);
    });
    std::lock_guard<std::mutex> lock(memory_mutex_);
    stats_.bytes_in_use -= static_cast<int64_t>(size);
    auto next = free_.emplace(offset, space).first;
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        free_.erase(next);
        next = before;
      }
    }
    const auto after = std::next(next);
    if (after != free_.end() && next->first + next->second == after->first) {
      next->second += after->second;
      free_.erase(after);
    }
  }
  AllocatorStats stats() const override {
    std::lock_guard<std::mutex> lock(memory_mutex_);
    AllocatorStats stats = stats_;
    stats.bytes_limit = limit_;
    return stats;
  }
  void set_limit(int64_t bytes) override { set_limit_locked(bytes); }

 private:
  friend class QueueStream;

  /// For tests/cuda_on_host, which looks for addresses in a kernel's arguments. There, a small
  /// number beside what is left of an address is none of these. Where flags beside it are one after
  /// all, they stay: the second mapping differs in bits 44 and above only.
  static uintptr_t UnlikelyAddress() {
    static std::atomic<uintptr_t> next{0x2a5a'8000'0000};
    return next.fetch_add(uintptr_t{1} << 32);
  }
  static char* Map(uintptr_t hint, int file, int protection) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a hint for mmap.
    void* const wanted = reinterpret_cast<void*>(hint);
    void* const mapped = mmap(wanted, kMemory, protection, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) std::abort();
    return static_cast<char*>(mapped);
  }
  static size_t Rounded(size_t bytes) {
    return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  /// What a block takes, with the page behind it.
  static size_t Space(size_t bytes) { return (Rounded(bytes) + kPage - 1) / kPage * kPage + kPage; }
  void set_limit_locked(int64_t bytes) {
    std::lock_guard<std::mutex> lock(memory_mutex_);
    limit_ = bytes > 0 ? std::min(bytes, memory_) : memory_;
  }

  /// One of the streams that have something to run; nullptr: none has.
  QueueStream* Pick() {
    std::array<QueueStream*, kStreams> ready;
    size_t n = 0;
    for (QueueStream& stream : streams_) {
      if (!stream.tasks_.empty() && stream.tasks_.front().CanRun()) ready[n++] = &stream;
    }
    return n == 0 ? nullptr : ready[random_() % n];
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      QueueStream* const stream = stopped_ ? nullptr : Pick();
      if (stream == nullptr) {
        // Another device's event tells nobody.
        changed_.wait_for(lock, std::chrono::microseconds(blocked() ? 50 : 1000000));
        continue;
      }
      Task task = std::move(stream->tasks_.front());
      stream->tasks_.pop_front();
      stream->running_ = true;
      const bool slow = max_delay_us_ > 0 && random_() % 8 == 0;
      const auto delay = std::chrono::microseconds(slow ? random_() % max_delay_us_ : 0);
      lock.unlock();
      if (slow) std::this_thread::sleep_for(delay);  // Work that takes long is what is simulated.
      if (task.work) task.work();
      task = Task();
      num_tasks.fetch_add(1, std::memory_order_relaxed);
      lock.lock();
      stream->running_ = false;
    }
  }
  bool blocked() const {
    return !stopped_ && std::any_of(streams_.begin(), streams_.end(),
                                    [](const QueueStream& s) { return !s.tasks_.empty(); });
  }

  char* outside_ = nullptr;
  char* inside_ = nullptr;
  mutable std::mutex memory_mutex_;
  std::map<size_t, size_t> free_;  ///< Offset to size.
  AllocatorStats stats_;
  int64_t limit_ = 0, memory_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::array<QueueStream, kStreams> streams_{QueueStream(this), QueueStream(this),
                                             QueueStream(this)};
  std::mt19937_64 random_;
  uint64_t max_delay_us_ = 0;
  bool stopped_ = false;
};

RefPtr<DeviceEvent> QueueStream::Record() {
  RefPtr<SimulatedEvent> event = MakeRef<SimulatedEvent>();
  Enqueue([event] { event->Reach(); });
  return event;
}

absl::Status QueueStream::WaitFor(const RefPtr<DeviceEvent>& event) {
  std::lock_guard<std::mutex> lock(machine_->mutex_);
  tasks_.push_back({nullptr, event});
  machine_->changed_.notify_all();
  return absl::OkStatus();
}

bool QueueStream::Done() const {
  std::lock_guard<std::mutex> lock(machine_->mutex_);
  return tasks_.empty() && !running_;
}

void QueueStream::Enqueue(std::function<void()> work) {
  std::lock_guard<std::mutex> lock(machine_->mutex_);
  tasks_.push_back({std::move(work), nullptr});
  machine_->changed_.notify_all();
}

/// What devices copy from and to without staging. Overwritten when it is freed: whoever frees it
/// before a copy has been made gives the copy something else.
class PinnedMemory final : public Allocator {
 public:
  std::string_view name() const override { return "simulated pinned memory"; }
  MemorySpace space() const override { return MemorySpace::kPinned; }
  void* Allocate(size_t bytes) override {
    void* const block = HostAllocator()->Allocate(bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    if (block == nullptr) return nullptr;
    ++stats_.num_allocs;
    stats_.bytes_in_use += static_cast<int64_t>(bytes);
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    return block;
  }
  void Free(void* block, size_t bytes) override {
    std::memset(block, kFreed, bytes);
    HostAllocator()->Free(block, bytes);
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_in_use -= static_cast<int64_t>(bytes);
  }
  AllocatorStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }
  void set_limit(int64_t) override {}

 private:
  mutable std::mutex mutex_;
  AllocatorStats stats_;
};

Allocator* Pinned() {
  static auto* const memory = new PinnedMemory;
  return memory;
}

/// All machines there are, and those that no device uses.
struct Machines {
  std::mutex mutex;
  std::vector<Machine*> all, resting;
  SimulatedOptions options;
};

Machines& AllMachines() {
  static auto* machines = new Machines;
  return *machines;
}

class SimulatedDevice final : public Device {
 public:
  SimulatedDevice(DeviceAttributes attributes, Machine* machine)
      : Device(std::move(attributes)), machine_(machine) {}
  ~SimulatedDevice() override {
    machine_->Go();
    std::lock_guard<std::mutex> lock(AllMachines().mutex);
    AllMachines().resting.push_back(machine_);
  }
  Allocator* allocator(MemorySpace space) const override {
    if (space == MemorySpace::kPinned) return Pinned();
    return space == MemorySpace::kDevice ? machine_ : HostAllocator();
  }
  MemorySpace memory_space() const override { return MemorySpace::kDevice; }
  Stream* stream(StreamUse use) const override { return machine_->stream(use); }
  absl::Status Copy(const Tensor& from, const Tensor& to, Stream* stream) override {
    const auto at = [](const Tensor& tensor) {
      void* const address = const_cast<void*>(tensor.raw_data());
      return tensor.space() == MemorySpace::kDevice ? Reach(address) : address;
    };
    num_copies.fetch_add(1, std::memory_order_relaxed);
    static_cast<SimulatedStream*>(stream)->Enqueue(
        [to = at(to), from = at(from), bytes = from.bytes()] { std::memcpy(to, from, bytes); });
    return absl::OkStatus();
  }

 private:
  Machine* const machine_;
};

class SimulatedFactory final : public DeviceFactory {
 public:
  absl::StatusOr<int> NumAvailable() override { return kDevices; }
  absl::StatusOr<std::unique_ptr<Device>> Create(const DeviceName& name, int, int64_t memory_limit,
                                                 const std::shared_ptr<ComputePool>&) override {
    Machines& machines = AllMachines();
    std::lock_guard<std::mutex> lock(machines.mutex);
    if (machines.resting.empty()) {
      machines.all.push_back(new Machine);
      machines.resting.push_back(machines.all.back());
    }
    Machine* const machine = machines.resting.back();
    machines.resting.pop_back();
    machine->Use(machines.options, memory_limit);
    machines.options.seed += 0x9e3779b97f4a7c15u;
    DeviceAttributes attributes;
    attributes.name = name.ToString();
    attributes.type = "SIM";
    attributes.memory_limit = machine->stats().bytes_limit;
    attributes.incarnation = std::random_device()() | 1u;
    attributes.description = "simulated accelerator";
    return std::make_unique<SimulatedDevice>(std::move(attributes), machine);
  }
  bool Connect(const Device& from, const Device& to) override {
    return std::abs(from.parsed_name().index.value() - to.parsed_name().index.value()) == 1;
  }
  std::optional<DeviceFigures> Figures(const Device&) const override {
    std::lock_guard<std::mutex> lock(AllMachines().mutex);
    return AllMachines().options.figures;
  }
};

}  // namespace

std::shared_ptr<DeviceFactory> SimulatedDevices(const SimulatedOptions& options) {
  std::lock_guard<std::mutex> lock(AllMachines().mutex);
  AllMachines().options = options;
  return std::make_shared<SimulatedFactory>();
}

void UseSimulatedDevices(const SimulatedOptions& options) {
  if (!DeviceRegistry::Global()->Register("SIM", SimulatedDevices(options)).ok()) std::abort();
}

void StartSimulatedDevices() {
  std::lock_guard<std::mutex> lock(AllMachines().mutex);
  for (Machine* machine : AllMachines().all) machine->Go();
}

void* Reach(const void* address) {
  std::lock_guard<std::mutex> lock(AllMachines().mutex);
  for (Machine* machine : AllMachines().all) {
    if (void* inside = machine->Reach(address)) return inside;
  }
  return nullptr;
}

int64_t NumSimulatedTasks() { return num_tasks.load(std::memory_order_relaxed); }
int64_t NumSimulatedWaits() { return num_waits.load(std::memory_order_relaxed); }
int64_t NumSimulatedCopies() { return num_copies.load(std::memory_order_relaxed); }

}  // namespace troupe::testing
