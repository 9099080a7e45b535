#include "net/io_loop.h"

#include <pthread.h>

#include "devices/cpu/block_signals.h"
#include "devices/exceptions.h"

namespace troupe {

IoLoop::IoLoop() : context_(1), work_(boost::asio::make_work_guard(context_)) {
  // A handler that throws is over; connections have failed by then.
  const ScopedBlockSignals blocked;
  thread_ = std::thread([this] {
    while (!context_.stopped()) KeepGoing([this] { context_.run(); });
  });
  pthread_setname_np(thread_.native_handle(), "troupe-io");
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
