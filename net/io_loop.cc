#include "net/io_loop.h"

#include <pthread.h>

#include "devices/exceptions.h"

namespace troupe {

IoLoop::IoLoop(std::chrono::microseconds spin)
    : context_(1), work_(boost::asio::make_work_guard(context_)) {
  thread_ = std::thread([this, spin] { Run(spin); });
  pthread_setname_np(thread_.native_handle(), "troupe-io");
}

IoLoop::~IoLoop() = default;

void IoLoop::Run(std::chrono::microseconds spin) {
  // A handler that throws is over; connections have failed by then.
  while (!context_.stopped()) KeepGoing([&] { RunHandlers(spin); });
}

void IoLoop::RunHandlers(std::chrono::microseconds spin) {
  using Clock = std::chrono::steady_clock;
  if (spin.count() == 0) {
    context_.run();
    return;
  }
  while (!context_.stopped()) {
    Clock::time_point last = Clock::now();
    while (Clock::now() - last < spin) {
      if (context_.poll() > 0) last = Clock::now();
      if (context_.stopped()) return;
    }
    context_.run_one();
  }
}

void IoLoop::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  work_.reset();
  thread_.join();
}

}  // namespace troupe
