/// A stream between two processes of one machine and one user through memory that both map.
#ifndef TROUPE_NET_SHARED_STREAM_H_
#define TROUPE_NET_SHARED_STREAM_H_

#include <memory>
#include <string>
#include <string_view>

#include "net/byte_stream.h"

namespace troupe {

/// A file without a name, of a fixed size, mapped: a ring of bytes for each direction. It is gone
/// when both processes are.
class SharedMemory {
 public:
  /// nullptr if the system does not allow it.
  static std::unique_ptr<SharedMemory> Create();
  /// That of another process, by its `Offer`. nullptr if it cannot be opened, or is not what
  /// `Create` makes, of this user's: the offer is a peer's word, and nothing of what it names is
  /// read, or opened in earnest, before that has been checked.
  static std::unique_ptr<SharedMemory> Open(std::string_view offer);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Where another process finds it, as long as the file is held here, and how it knows it again:
  /// process (4 bytes), descriptor (4), a mark that was drawn (32).
  std::string Offer() const;

 private:
  friend class SharedStream;
  struct Layout;
  SharedMemory() = default;
  /// False if it fails.
  bool Map();
  /// Once the other process has opened it.
  void LetGoOfFile();

  int file_ = -1;
  Layout* layout_ = nullptr;
};

/// Bytes go through the memory, in order; `socket`, over which nothing else goes any more, has one
/// byte for whoever has to wait, and its end is the stream's. `creator`: the memory was created
/// here, and opened there.
std::unique_ptr<ByteStream> MakeSharedStream(std::unique_ptr<ByteStream> socket,
                                             std::unique_ptr<SharedMemory> memory, bool creator);

}  // namespace troupe

#endif  // TROUPE_NET_SHARED_STREAM_H_
