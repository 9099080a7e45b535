// Threads of blocks, by turns on one thread of the host.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "devices/cpu/flush_denormals.h"
#include "tests/cuda_on_host/runtime.h"

namespace troupe::cuda::on_host {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStack = 128 << 10;

/// Where a stack has been left. ucontext begins on a new one; jumps, which unlike it leave the
/// signal mask alone and so call no kernel of the host's, go back and forth.
struct Place {
  ucontext_t beginning{};
  jmp_buf buffer;
  bool begun = true;
};
void Switch(Place* from, Place* to) {
  if (_setjmp(from->buffer) != 0) return;
  if (to->begun) _longjmp(to->buffer, 1);
  to->begun = true;
  setcontext(&to->beginning);
}

/// A stack on which threads of a block run, one after the other until one has to wait.
struct Fiber {
  Place place;
  std::unique_ptr<char[]> stack{new char[kStack]};
  int thread = 0;
};

/// A block that is being run.
class Block {
 public:
  Block(dim3 threads, bool falling, const std::function<void()>* body)
      : threads_(threads),
        size_(static_cast<int>(threads.x * threads.y * threads.z)),
        falling_(falling),
        body_(body),
        lanes_(static_cast<size_t>(size_ + kWarp)),
        alive_((size_ + kWarp - 1) / kWarp),
        at_warp_(alive_.size()) {
    for (int t = 0; t < size_; ++t) ++alive_[t / kWarp];
  }

  void Run() {
    current = this;
    blockDim = threads_;
    while (done_ < size_) {
      if (!ready_.empty()) {
        Resume(ready_.back());
      } else if (next_ < size_) {
        if (idle_.empty()) idle_.push_back(NewFiber());
        Fiber* const fiber = idle_.back();
        idle_.pop_back();
        makecontext(&fiber->place.beginning, &Block::Main, 0);
        fiber->place.begun = false;
        ready_.push_back(fiber);
      } else {
        std::fprintf(stderr, "CUDA on the host: threads of a block wait for others that do not\n");
        std::abort();
      }
    }
    current = nullptr;
  }

  void WaitForBlock() {
    at_block_.push_back(running_);
    Release();
    Wait();
  }
  void WaitForWarp() {
    const int warp = running_->thread / kWarp;
    at_warp_[warp].push_back(running_);
    Release();
    Wait();
  }
  int lane() const { return running_->thread % kWarp; }
  void* slot(int lane) { return &lanes_[running_->thread / kWarp * kWarp + lane]; }

  static thread_local Block* current;

 private:
  struct alignas(16) Slot {
    char bytes[16];
  };

  static Fiber* NewFiber() {
    static thread_local std::vector<std::unique_ptr<Fiber>> all;
    all.push_back(std::make_unique<Fiber>());
    Fiber* const fiber = all.back().get();
    getcontext(&fiber->place.beginning);
    fiber->place.beginning.uc_stack.ss_sp = fiber->stack.get();
    fiber->place.beginning.uc_stack.ss_size = kStack;
    return fiber;
  }

  static void Main() { current->RunThreads(); }

  void RunThreads() {
    Fiber* const self = running_;
    while (next_ < size_) {
      const int thread = falling_ ? size_ - 1 - next_ : next_;
      ++next_;
      self->thread = thread;
      SetIndex(thread);
      (*body_)();
      ++done_;
      --alive_[thread / kWarp];
      Release();
    }
    idle_.push_back(self);
    _longjmp(scheduler_.buffer, 1);
  }

  void SetIndex(int thread) {
    const auto t = static_cast<unsigned>(thread);
    threadIdx.x = t % threads_.x;
    threadIdx.y = t / threads_.x % threads_.y;
    threadIdx.z = t / threads_.x / threads_.y;
  }

  /// Ends waits for which all have come that are still alive.
  void Release() {
    const auto all_ready = [this](std::vector<Fiber*>* waiting) {
      ready_.insert(ready_.end(), waiting->begin(), waiting->end());
      waiting->clear();
    };
    if (static_cast<int>(at_block_.size()) == size_ - done_) all_ready(&at_block_);
    for (size_t warp = 0; warp < at_warp_.size(); ++warp) {
      if (static_cast<int>(at_warp_[warp].size()) == alive_[warp]) all_ready(&at_warp_[warp]);
    }
  }

  void Resume(Fiber* fiber) {
    ready_.pop_back();
    running_ = fiber;
    if (fiber->thread >= 0) SetIndex(fiber->thread);
    Switch(&scheduler_, &fiber->place);
  }

  void Wait() {
    Fiber* const self = running_;
    Switch(&self->place, &scheduler_);
  }

  const dim3 threads_;
  const int size_;
  const bool falling_;
  const std::function<void()>* const body_;
  std::vector<Slot> lanes_;
  std::vector<int> alive_;  ///< Threads of each warp.
  std::vector<Fiber*> ready_, at_block_;
  std::vector<std::vector<Fiber*>> at_warp_;
  static thread_local std::vector<Fiber*> idle_;
  Fiber* running_ = nullptr;
  Place scheduler_;
  int next_ = 0, done_ = 0;
};

thread_local Block* Block::current = nullptr;
thread_local std::vector<Fiber*> Block::idle_;

}  // namespace

void RunBlocks(dim3 blocks, dim3 threads, uint64_t seed, const std::function<void()>& thread) {
  static const bool flushes = std::getenv("CUDA_ON_HOST_FLUSH") != nullptr;
  std::optional<ScopedFlushDenormals> flush;
  if (flushes) flush.emplace();
  std::mt19937_64 random(seed);
  std::vector<unsigned> order(size_t{blocks.x} * blocks.y * blocks.z);
  std::iota(order.begin(), order.end(), 0u);
  if (order.size() < 4096) std::shuffle(order.begin(), order.end(), random);
  gridDim = blocks;
  for (const unsigned block : order) {
    blockIdx.x = block % blocks.x;
    blockIdx.y = block / blocks.x % blocks.y;
    blockIdx.z = block / blocks.x / blocks.y;
    Block(threads, random() % 2 == 0, &thread).Run();
  }
}

void BlockBarrier() { Block::current->WaitForBlock(); }
void WarpBarrier() { Block::current->WaitForWarp(); }
void* LaneSlot(int lane) { return Block::current->slot(lane); }
int Lane() { return Block::current->lane(); }

}  // namespace troupe::cuda::on_host
