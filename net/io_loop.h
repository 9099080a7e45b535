/// The I/O thread. Includes Asio: for the sources of the transport only.
#ifndef TROUPE_NET_IO_LOOP_H_
#define TROUPE_NET_IO_LOOP_H_

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <thread>
#include <utility>

#include "net/byte_stream.h"

namespace troupe {

/// Asio's context and the one thread that runs it. It outlives the sockets that hold a reference to
/// it. Thread-safe.
class IoLoop {
 public:
  IoLoop();
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  boost::asio::io_context& context() { return context_; }
  bool OnThread() const { return std::this_thread::get_id() == thread_.get_id(); }

  /// Calls `function` on the thread, later. False, and it never will be, if the loop has stopped.
  template <typename F>
  bool Post(F function) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return false;
    boost::asio::post(context_, std::move(function));
    return true;
  }
  /// Lets the thread finish what is under way (every operation must have been cancelled), and joins
  /// it. Once; not on the thread.
  void Stop();

 private:
  std::mutex mutex_;
  bool stopped_ = false;
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

/// Calls `done(bool ok)` on the loop's thread when `socket` can be read or written, as `result`
/// wants; false if the socket was closed or the wait cancelled.
template <typename F>
void WaitFor(boost::asio::ip::tcp::socket* socket, const IoResult& result, F done) {
  using Socket = boost::asio::ip::tcp::socket;
  socket->async_wait(
      result.state == IoResult::State::kWantWrite ? Socket::wait_write : Socket::wait_read,
      [done = std::move(done)](const boost::system::error_code& error) mutable { done(!error); });
}

}  // namespace troupe

#endif  // TROUPE_NET_IO_LOOP_H_
