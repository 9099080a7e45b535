// An extension: a type of device with a memory and a time of its own, COP, and kernels for it. It
// is a thread that does what it is given one after the other; its memory is the host's, which
// nobody but the thread touches. A device of yours differs in what Queue and Memory talk to.
#include <troupe/api/extension.h>
#include <troupe/kernels/late_errors.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
using troupe::MemorySpace;
using troupe::Tensor;

constexpr int kDevices = 2;  ///< That the machine has.
constexpr int64_t kMemory = 256 << 20;

class Event final : public troupe::DeviceEvent {
 public:
  bool Reached() const override { return reached_.load(std::memory_order_acquire); }
  double SecondsSince(const troupe::DeviceEvent& earlier) const override {
    return std::chrono::duration<double>(at_ - static_cast<const Event&>(earlier).at_).count();
  }
  void Reach() {
    at_ = Clock::now();
    reached_.store(true, std::memory_order_release);
  }

 private:
  Clock::time_point at_;
  std::atomic<bool> reached_{false};
};

/// The only stream: kernels and copies in the order in which they were enqueued.
class Queue final : public troupe::Stream {
 public:
  Queue() : thread_([this] { Work(); }) { thread_.detach(); }

  void Enqueue(std::function<void()> task) {
    std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    ++pending_;
    more_.notify_one();
  }
  troupe::RefPtr<troupe::DeviceEvent> Record() override {
    auto event = troupe::MakeRef<Event>();
    Enqueue([event] { event->Reach(); });
    return event;
  }
  absl::Status WaitFor(const troupe::RefPtr<troupe::DeviceEvent>& event) override {
    Enqueue([event] {
      // Another device's event tells nobody; its own has been reached by now.
      while (!event->Reached()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
    return absl::OkStatus();
  }
  bool Done() const override { return pending_.load(std::memory_order_acquire) == 0; }
  void WhenDone(std::function<void(absl::Status)> done) override {
    Enqueue([done = std::move(done)] { done(absl::OkStatus()); });
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      more_.wait(lock, [this] { return !tasks_.empty(); });
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      pending_.fetch_sub(1, std::memory_order_release);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> tasks_;
  std::atomic<int64_t> pending_{0};
  std::thread thread_;
};

/// Blocks are given back in the order of the queue: what was enqueued may still use them.
class Memory final : public troupe::Allocator {
 public:
  explicit Memory(Queue* queue) : queue_(queue) {}
  std::string_view name() const override { return "coprocessor"; }
  MemorySpace space() const override { return MemorySpace::kDevice; }
  void* Allocate(size_t bytes) override {
    const size_t size = (bytes + kAlignment) / kAlignment * kAlignment;
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t in_use = stats_.bytes_in_use + static_cast<int64_t>(size);
    if (in_use > stats_.bytes_limit) return nullptr;
    void* const block = std::aligned_alloc(kAlignment, size);
    if (block == nullptr) return nullptr;
    ++stats_.num_allocs;
    stats_.bytes_in_use = in_use;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, static_cast<int64_t>(size));
    return block;
  }
  void Free(void* block, size_t bytes) override {
    queue_->Enqueue([block] { std::free(block); });
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_in_use -= static_cast<int64_t>((bytes + kAlignment) / kAlignment * kAlignment);
  }
  troupe::AllocatorStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }
  void set_limit(int64_t bytes) override {
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_limit = bytes > 0 ? std::min(bytes, kMemory) : kMemory;
  }

 private:
  Queue* const queue_;
  mutable std::mutex mutex_;
  troupe::AllocatorStats stats_{.bytes_limit = kMemory};
};

/// What the machine has. Never destroyed: tensors may outlive the sessions that made them.
struct Board {
  Queue queue;
  Memory memory{&queue};
};
Board& BoardNumber(int number) {
  static Board* const boards = new Board[kDevices];
  return boards[number];
}

class Coprocessor final : public troupe::Device {
 public:
  Coprocessor(troupe::DeviceAttributes attributes, Board* board)
      : Device(std::move(attributes)), board_(board) {}
  troupe::Allocator* allocator(MemorySpace space) const override {
    return space == MemorySpace::kDevice ? &board_->memory : troupe::HostAllocator();
  }
  MemorySpace memory_space() const override { return MemorySpace::kDevice; }
  troupe::Stream* stream(troupe::StreamUse) const override { return &board_->queue; }
  absl::Status Copy(const Tensor& from, const Tensor& to, troupe::Stream*) override {
    board_->queue.Enqueue([to = const_cast<void*>(to.raw_data()), from = from.raw_data(),
                           bytes = from.bytes()] { std::memcpy(to, from, bytes); });
    return absl::OkStatus();
  }

 private:
  Board* const board_;
};

class Factory final : public troupe::DeviceFactory {
 public:
  absl::StatusOr<int> NumAvailable() override { return kDevices; }
  absl::StatusOr<std::unique_ptr<troupe::Device>> Create(
      const troupe::DeviceName& name, int number, int64_t memory_limit,
      const std::shared_ptr<troupe::ComputePool>&) override {
    Board& board = BoardNumber(number);
    board.memory.set_limit(memory_limit);
    troupe::DeviceAttributes attributes;
    attributes.name = name.ToString();
    attributes.type = "COP";
    attributes.memory_limit = board.memory.stats().bytes_limit;
    attributes.incarnation = static_cast<uint64_t>(Clock::now().time_since_epoch().count()) | 1u;
    attributes.description = "coprocessor " + std::to_string(number);
    return std::make_unique<Coprocessor>(std::move(attributes), &board);
  }
};

/// What works on the device. Called on the host, it knows types, shapes and addresses, allocates,
/// and enqueues; nobody may hold tensors for it, as the queue's order protects their memory.
void Enqueue(troupe::KernelContext& context, std::function<void()> work) {
  static_cast<Queue*>(context.step().stream)->Enqueue(std::move(work));
}

absl::Status Square(troupe::KernelContext& context) {
  const auto* x = static_cast<const float*>(context.input(0).raw_data());
  TROUPE_ASSIGN_OR_RETURN(Tensor * y, context.ForwardOrAllocate(0, 0));
  Enqueue(context, [x, y = y->mutable_data<float>(), n = y->num_elements()] {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
  });
  return absl::OkStatus();
}

/// The elements of `index` are there only when the device has come so far: what is wrong with them
/// is a late error, which names the node all the same.
absl::Status Gather(troupe::KernelContext& context) {
  const Tensor &params = context.input(0), &indices = context.input(1);
  if (params.rank() == 0) return troupe::InvalidArgument("params must not be a scalar");
  std::vector<int64_t> dims(indices.shape().dims().begin(), indices.shape().dims().end());
  for (int d = 1; d < params.rank(); ++d) dims.push_back(params.dim(d));
  TROUPE_ASSIGN_OR_RETURN(const troupe::Shape shape, troupe::Shape::Create(dims));
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          context.AllocateOutput(0, troupe::ElementType::kFloat, shape));
  const int64_t rows = params.dim(0), n = indices.num_elements();
  Enqueue(context, [from = static_cast<const float*>(params.raw_data()),
                    index = static_cast<const int64_t*>(indices.raw_data()),
                    to = output->mutable_data<float>(), rows, n,
                    width = n == 0 ? 0 : output->num_elements() / n,
                    report = context.step().late_errors->reporter()] {
    for (int64_t i = 0; i < n; ++i) {
      if (index[i] < 0 || index[i] >= rows) {
        return report(troupe::InvalidArgument("index ", index[i], " is not in [0, ", rows, ")"));
      }
      std::copy_n(from + index[i] * width, width, to + i * width);
    }
  });
  return absl::OkStatus();
}

absl::Status Register(troupe::Extension& extension) {
  using troupe::ElementType;
  extension.DeviceType("COP", std::make_shared<Factory>());
  extension.Kernel(troupe::KernelSpec("Square").Device("COP").Types("T", {ElementType::kFloat}),
                   troupe::MakeKernel<Square>);
  extension.Kernel(troupe::KernelSpec("Gather")
                       .Device("COP")
                       .Types("Tparams", {ElementType::kFloat})
                       .Types("Tindices", {ElementType::kInt64}),
                   troupe::MakeKernel<Gather>);
  return absl::OkStatus();
}

}  // namespace

TROUPE_EXTENSION(Register)
