// What a short operation on shared state costs whoever needs its result before it goes on: under a
// mutex, and as a message to a mailbox whose answer is awaited. The operations are those of the
// states that have a mutex (docs/architecture.md); one thread, and four that do nothing else.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "actors/mailbox.h"
#include "devices/tensor.h"

namespace troupe {
namespace {

/// A session's table of signatures: looks one of 16 up, and makes it the newest.
class Signatures {
 public:
  Signatures() {
    for (int i = 0; i < 16; ++i) {
      const auto it = table_.try_emplace("feed:0|fetch:" + std::to_string(i) + "|target").first;
      it->second.executable = std::make_shared<int>(i);
      it->second.place = by_use_.insert(by_use_.end(), &it->first);
      keys_.push_back(it->first);
    }
  }
  void Operate(size_t i) {
    Signature& found = table_.find(keys_[i % keys_.size()])->second;
    if (found.place != by_use_.begin()) {
      table_.at(*by_use_.front()).used = std::chrono::steady_clock::now();
      by_use_.splice(by_use_.begin(), by_use_, found.place);
    }
    benchmark::DoNotOptimize(std::shared_ptr<int>(found.executable));
  }

 private:
  struct Signature {
    std::shared_ptr<int> executable;
    std::list<const std::string*>::iterator place;
    std::chrono::steady_clock::time_point used;
  };
  std::unordered_map<std::string, Signature> table_;
  std::list<const std::string*> by_use_;
  std::vector<std::string> keys_;
};

/// A device's containers: looks one of 100 resources up.
class Resources {
 public:
  Resources() {
    for (int i = 0; i < 100; ++i) {
      names_.push_back("layer" + std::to_string(i) + "/weights");
      containers_["localhost"][names_.back()] = std::make_shared<int>(i);
    }
  }
  void Operate(size_t i) {
    const auto& container = containers_.find(std::string_view("localhost"))->second;
    benchmark::DoNotOptimize(
        std::shared_ptr<int>(container.find(std::string_view(names_[i % names_.size()]))->second));
  }

 private:
  using Container = std::map<std::string, std::shared_ptr<int>, std::less<>>;
  std::map<std::string, Container, std::less<>> containers_;
  std::vector<std::string> names_;
};

/// A rendezvous: a value comes, or is fetched.
class Edges {
 public:
  void Operate(size_t i) {
    const auto [it, is_new] = values_.try_emplace(i / 2 % 16, value_);
    if (!is_new) values_.erase(it);
  }

 private:
  const Tensor value_ = Tensor::Scalar<float>(1);
  std::unordered_map<size_t, Tensor> values_;
};

/// A node: an event of as many nanoseconds.
template <int kNanoseconds>
class Events {
 public:
  void Operate(size_t) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kNanoseconds);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
};

template <typename State>
class Locked {
 public:
  void Operate(size_t i) {
    std::lock_guard<std::mutex> lock(mutex_);
    state_.Operate(i);
  }

 private:
  std::mutex mutex_;
  State state_;
};

template <typename State>
class Asked {
 public:
  void Operate(size_t i) {
    Request request;
    request.operand = i;
    if (!mailbox_.Send(&request)) return request.done.wait(false, std::memory_order_acquire);
    state_.Operate(i);
    do {
      for (Message* message = mailbox_.TakeAll(); message != nullptr;) {
        auto* waiting = static_cast<Request*>(message);
        message = message->next;
        state_.Operate(waiting->operand);
        // Its sender may go on, and the request with it, as soon as it is done.
        std::atomic<bool>* done = &waiting->done;
        done->store(true, std::memory_order_release);
        done->notify_one();
      }
    } while (!mailbox_.TryRelease());
  }

 private:
  struct Request : Message {
    size_t operand = 0;
    std::atomic<bool> done{false};
  };
  Mailbox mailbox_;
  State state_;
};

template <typename Shared>
void Operate(benchmark::State& state) {
  static std::unique_ptr<Shared> shared;
  if (state.thread_index() == 0) shared = std::make_unique<Shared>();
  size_t i = static_cast<size_t>(state.thread_index());
  for (auto _ : state) shared->Operate(i++);
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) shared.reset();
}
#define TROUPE_BENCHMARK_STATE(State)                                                \
  BENCHMARK_TEMPLATE(Operate, Locked<State>)->Threads(1)->Threads(4)->UseRealTime(); \
  BENCHMARK_TEMPLATE(Operate, Asked<State>)->Threads(1)->Threads(4)->UseRealTime()
TROUPE_BENCHMARK_STATE(Signatures);
TROUPE_BENCHMARK_STATE(Resources);
TROUPE_BENCHMARK_STATE(Edges);
TROUPE_BENCHMARK_STATE(Events<1000>);
TROUPE_BENCHMARK_STATE(Events<10000>);

}  // namespace
}  // namespace troupe

BENCHMARK_MAIN();
