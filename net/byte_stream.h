/// A connected socket, plain or under TLS, of which one reads and to which one writes what can be
/// read or written at once.
#ifndef TROUPE_NET_BYTE_STREAM_H_
#define TROUPE_NET_BYTE_STREAM_H_

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace troupe {

/// How an attempt went.
struct IoResult {
  enum class State {
    kDone,       ///< `bytes` were moved (or the step is done).
    kWantRead,   ///< Try again when the socket can be read.
    kWantWrite,  ///< Try again when it can be written.
    kEnd,        ///< The peer has closed its side.
    kFailed,     ///< `status` says why.
  };
  State state = State::kDone;
  size_t bytes = 0;
  absl::Status status;
};

/// Non-blocking. One thread may read while another writes; a write that was to be tried again must
/// be tried with the same bytes, or more, at its front. Does not own the socket.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// Must be done before anything else.
  virtual IoResult Handshake() = 0;
  /// PermissionDenied if the peer shows a certificate, and that does not name `task`, or a client.
  virtual absl::Status CheckPeer(const std::string& task) const = 0;
  virtual IoResult Read(const iovec* buffers, int count) = 0;
  virtual IoResult Write(const iovec* buffers, int count) = 0;
  /// A read that fills less than it could has found all there was.
  virtual bool short_read_is_last() const = 0;
  /// Nothing more will be written.
  virtual void CloseWrite() = 0;
};

/// TCP as it is.
std::unique_ptr<ByteStream> MakePlainStream(int socket);

}  // namespace troupe

#endif  // TROUPE_NET_BYTE_STREAM_H_
