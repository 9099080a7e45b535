#include "net/shared_stream.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "devices/status_macros.h"
#include "net/wire.h"

namespace troupe {
namespace {

// Holds what a sender writes in a go (1 MiB) while the reader is at what came before. A power of 2.
constexpr uint64_t kRingBytes = 2 << 20;
constexpr size_t kMarkBytes = 32;
// Nobody can make the file shorter: whoever reads what is no more would be killed.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

using Count = std::atomic<uint64_t>;
static_assert(Count::is_always_lock_free, "it is shared between processes");

struct Ring {
  // Bytes since the beginning; each is written by one side.
  alignas(64) Count written;
  alignas(64) Count read;
  // Set by who waits, taken back by who gives it the socket's byte.
  alignas(64) std::atomic<uint32_t> reader_waits;
  alignas(64) std::atomic<uint32_t> writer_waits;
  alignas(4096) char bytes[kRingBytes];
};

/// Whether there is memory for what lies there. Without it the first access would be a signal: a
/// system that promises no more memory than it has (`vm.overcommit_memory` 2) may have none.
/// Kernels before 5.14 do not tell.
bool HasMemory(void* at, size_t bytes) {
  int error;
  do {
    error = madvise(at, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error == 0 || error == EINVAL;
}

/// One side's hold on a ring. What the other side says is checked each time; of one's own part only
/// the copy here is believed.
struct End {
  Ring* ring;
  uint64_t position = 0;

  /// Moves up to `size` bytes between `buffers` and the ring at the position.
  template <typename Move>
  size_t ForEach(const iovec* buffers, int count, uint64_t size, Move move) {
    const uint64_t begin = position;
    for (int i = 0; i < count; ++i) {
      char* at = static_cast<char*>(buffers[i].iov_base);
      uint64_t left = std::min<uint64_t>(buffers[i].iov_len, size - (position - begin));
      while (left > 0) {
        const uint64_t offset = position % kRingBytes;
        const uint64_t n = std::min(left, kRingBytes - offset);
        move(ring->bytes + offset, at, n);
        position += n;
        at += n;
        left -= n;
      }
    }
    return position - begin;
  }
};

}  // namespace

struct SharedMemory::Layout {
  char mark[kMarkBytes];
  Ring rings[2];  ///< From who created it, to who created it.
};

std::unique_ptr<SharedMemory> SharedMemory::Create() {
  std::unique_ptr<SharedMemory> memory(new SharedMemory);
  memory->file_ = memfd_create("troupe", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory->file_ < 0 || ftruncate(memory->file_, sizeof(Layout)) != 0 ||
      fcntl(memory->file_, F_ADD_SEALS, kSeals) != 0 || !memory->Map()) {
    return nullptr;
  }
  RAND_bytes(reinterpret_cast<unsigned char*>(memory->layout_->mark), kMarkBytes);
  return memory;
}

std::unique_ptr<SharedMemory> SharedMemory::Open(std::string_view offer) {
  WireReader reader(offer);
  int32_t process = 0, descriptor = 0;
  std::string_view mark;
  if (!reader.Number(&process) || !reader.Number(&descriptor) || !reader.Raw(kMarkBytes, &mark) ||
      !reader.done() || process <= 0 || descriptor < 0) {
    return nullptr;
  }
  const int path = open(StrCat("/proc/", process, "/fd/", descriptor).c_str(), O_PATH | O_CLOEXEC);
  if (path < 0) return nullptr;
  std::unique_ptr<SharedMemory> memory(new SharedMemory);
  struct stat file {};
  if (fstat(path, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
      file.st_nlink == 0 && file.st_size == sizeof(Layout)) {
    memory->file_ = open(StrCat("/proc/self/fd/", path).c_str(), O_RDWR | O_CLOEXEC);
  }
  close(path);
  const int seals = memory->file_ < 0 ? -1 : fcntl(memory->file_, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || !memory->Map() ||
      CRYPTO_memcmp(memory->layout_->mark, mark.data(), kMarkBytes) != 0) {
    return nullptr;
  }
  return memory;
}

bool SharedMemory::Map() {
  void* const at = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) return false;
  layout_ = static_cast<Layout*>(at);
  // All but the bytes of the rings, which the writer asks for.
  return HasMemory(layout_, offsetof(Layout, rings)) &&
         HasMemory(&layout_->rings[0], offsetof(Ring, bytes)) &&
         HasMemory(&layout_->rings[1], offsetof(Ring, bytes));
}

SharedMemory::~SharedMemory() {
  LetGoOfFile();
  if (layout_ != nullptr) munmap(layout_, sizeof(Layout));
}

std::string SharedMemory::Offer() const {
  std::string offer;
  WireWriter writer(&offer);
  writer.Number(static_cast<int32_t>(getpid()));
  writer.Number(static_cast<int32_t>(file_));
  writer.Raw({layout_->mark, kMarkBytes});
  return offer;
}

void SharedMemory::LetGoOfFile() {
  if (file_ >= 0) close(std::exchange(file_, -1));
}

class SharedStream final : public ByteStream {
 public:
  SharedStream(std::unique_ptr<ByteStream> socket, std::unique_ptr<SharedMemory> memory,
               bool creator)
      : socket_(std::move(socket)),
        memory_(std::move(memory)),
        out_{&memory_->layout_->rings[creator ? 0 : 1]},
        in_{&memory_->layout_->rings[creator ? 1 : 0]} {
    memory_->LetGoOfFile();
  }

  IoResult Handshake() override { return {}; }
  absl::Status CheckPeer(const std::string&) const override { return absl::OkStatus(); }

  IoResult Read(const iovec* buffers, int count) override {
    Ring* const ring = in_.ring;
    while (true) {
      if (const uint64_t there = ring->written - in_.position; there > 0) {
        if (there > kRingBytes) return Spoiled();
        const size_t bytes = in_.ForEach(
            buffers, count, there,
            [](const char* shared, char* at, uint64_t n) { std::memcpy(at, shared, n); });
        ring->read = in_.position;
        Wake(&ring->writer_waits);
        return {IoResult::State::kDone, bytes, {}};
      }
      ring->reader_waits = 1;
      if (ring->written != in_.position) continue;
      char woken[64];
      const iovec piece = {woken, sizeof(woken)};
      IoResult result = socket_->Read(&piece, 1);
      // What the peer has written before its end is still there.
      if (ring->written != in_.position) continue;
      if (result.state == IoResult::State::kDone) return {IoResult::State::kWantRead, 0, {}};
      return result;
    }
  }

  IoResult Write(const iovec* buffers, int count) override {
    Ring* const ring = out_.ring;
    if (out_.position == 0 && !HasMemory(ring->bytes, kRingBytes)) {
      return {IoResult::State::kFailed, 0,
              absl::ResourceExhaustedError("the system has no memory for what is shared")};
    }
    while (true) {
      const uint64_t used = out_.position - ring->read;
      if (used > kRingBytes) return Spoiled();
      if (used < kRingBytes) {
        const size_t bytes = out_.ForEach(
            buffers, count, kRingBytes - used,
            [](char* shared, const char* at, uint64_t n) { std::memcpy(shared, at, n); });
        ring->written = out_.position;
        Wake(&ring->reader_waits);
        return {IoResult::State::kDone, bytes, {}};
      }
      ring->writer_waits = 1;
      if (out_.position - ring->read == kRingBytes) return {IoResult::State::kWantRead, 0, {}};
    }
  }

  bool short_read_is_last() const override { return false; }

  /// The peer closes when it has read the last frame; until then it is to be woken.
  void CloseWrite() override {}

 private:
  /// If that fails, reading from the socket does.
  void Wake(std::atomic<uint32_t>* waits) {
    if (*waits == 0 || waits->exchange(0) == 0) return;
    char byte = 0;
    const iovec piece = {&byte, 1};
    (void)socket_->Write(&piece, 1);
  }

  static IoResult Spoiled() {
    return {IoResult::State::kFailed, 0,
            absl::InvalidArgumentError("the peer has spoiled the shared memory")};
  }

  const std::unique_ptr<ByteStream> socket_;
  const std::unique_ptr<SharedMemory> memory_;
  End out_;  ///< Of who writes.
  End in_;   ///< Of the thread that reads.
};

std::unique_ptr<ByteStream> MakeSharedStream(std::unique_ptr<ByteStream> socket,
                                             std::unique_ptr<SharedMemory> memory, bool creator) {
  return std::make_unique<SharedStream>(std::move(socket), std::move(memory), creator);
}

}  // namespace troupe
