#include "net/shared_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "devices/status_macros.h"
#include "net/wire.h"
#include "tests/how_many.h"
#include "tests/net/mutate.h"

namespace troupe {
namespace {

using State = IoResult::State;

std::string OfferOf(int descriptor, const std::string& mark) {
  std::string offer;
  WireWriter writer(&offer);
  writer.Number(static_cast<int32_t>(getpid()));
  writer.Number(static_cast<int32_t>(descriptor));
  writer.Raw(mark);
  return offer;
}

int DescriptorOf(const std::string& offer) {
  int32_t descriptor = -1;
  std::memcpy(&descriptor, offer.data() + 4, sizeof(descriptor));
  return descriptor;
}

/// Two ends in this process, and the memory once more, as somebody who means harm has it.
struct Pair {
  Pair() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    auto created = SharedMemory::Create();
    const std::string offer = created->Offer();
    auto opened = SharedMemory::Open(offer);
    EXPECT_NE(opened, nullptr);
    struct stat file {};
    EXPECT_EQ(::fstat(DescriptorOf(offer), &file), 0);
    bytes = static_cast<size_t>(file.st_size);
    memory = static_cast<char*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, DescriptorOf(offer), 0));
    ends[0] = MakeSharedStream(MakePlainStream(sockets[0]), std::move(created), true);
    ends[1] = MakeSharedStream(MakePlainStream(sockets[1]), std::move(opened), false);
  }
  ~Pair() {
    ::munmap(memory, bytes);
    for (int socket : sockets) ::close(socket);
  }
  IoResult Write(int end, std::string bytes) {
    const iovec piece = {bytes.data(), bytes.size()};
    return ends[end]->Write(&piece, 1);
  }
  IoResult Read(int end, std::string* bytes, size_t most = 1 << 20) {
    bytes->resize(most);
    const iovec piece = {bytes->data(), most};
    IoResult result = ends[end]->Read(&piece, 1);
    bytes->resize(result.bytes);
    return result;
  }

  int sockets[2] = {-1, -1};
  std::unique_ptr<ByteStream> ends[2];
  char* memory = nullptr;
  size_t bytes = 0;
};

/// False if the socket's byte does not come.
bool AwaitByte(int socket) {
  pollfd wanted = {socket, POLLIN, 0};
  return ::poll(&wanted, 1, 10000) == 1;
}

// Nobody is woken without need, and nobody waits for ever, however fast each side is.
TEST(SharedStream, CarriesBytesBothWaysInOrder) {
  Pair pair;
  const int64_t total = (kSlowBuild ? 8 : 100) << 20;
  const auto at = [](int64_t i, int end) { return static_cast<char>((i * 31 + i / 4099 + end)); };
  std::vector<std::thread> threads;
  for (int end = 0; end < 2; ++end) {
    // As in a lane: the reader empties the socket, so that its writer asks again then.
    threads.emplace_back([&, end] {
      std::mt19937 random(static_cast<unsigned>(end));
      int64_t written = 0, read = 0;
      std::vector<char> out(300000), in(300000);
      while (written < total || read < total) {
        bool moved = false;
        if (written < total) {
          iovec pieces[2];
          size_t size = 0;
          for (iovec& piece : pieces) {
            const auto n = std::min<int64_t>(random() % 150000, total - written - size);
            piece = {out.data() + size, static_cast<size_t>(n)};
            size += static_cast<size_t>(n);
          }
          for (size_t i = 0; i < size; ++i) out[i] = at(written + static_cast<int64_t>(i), end);
          if (size > 0) {
            const IoResult result = pair.ends[end]->Write(pieces, 2);
            ASSERT_TRUE(result.state == State::kDone || result.state == State::kWantRead);
            moved |= result.bytes > 0;
            written += static_cast<int64_t>(result.bytes);
          }
        }
        if (read < total) {
          const iovec pieces[2] = {{in.data(), random() % 150000}, {in.data() + 150000, 150000}};
          const IoResult result = pair.ends[end]->Read(pieces, 2);
          ASSERT_TRUE(result.state == State::kDone || result.state == State::kWantRead);
          moved |= result.bytes > 0;
          for (size_t i = 0; i < result.bytes; ++i) {
            const char* got = i < pieces[0].iov_len ? &in[i] : &in[150000 + i - pieces[0].iov_len];
            ASSERT_EQ(*got, at(read + static_cast<int64_t>(i), 1 - end)) << read << " + " << i;
          }
          read += static_cast<int64_t>(result.bytes);
        }
        if (!moved && (written < total || read < total)) {
          ASSERT_TRUE(AwaitByte(pair.sockets[end])) << written << " " << read;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedStream, WhatWasWrittenBeforeTheEndIsRead) {
  Pair pair;
  EXPECT_EQ(pair.Write(0, "last words").state, State::kDone);
  ::shutdown(pair.sockets[0], SHUT_RDWR);
  std::string got;
  EXPECT_EQ(pair.Read(1, &got).state, State::kDone);
  EXPECT_EQ(got, "last words");
  EXPECT_EQ(pair.Read(1, &got).state, State::kEnd);
  EXPECT_EQ(pair.Read(1, &got).state, State::kEnd);
}

TEST(SharedStream, WhoFloodsTheSocketKeepsNobodyBusy) {
  Pair pair;
  ASSERT_EQ(::send(pair.sockets[0], std::string(10000, 'x').data(), 10000, 0), 10000);
  std::string got;
  EXPECT_EQ(pair.Read(1, &got).state, State::kWantRead);
}

// Counters anywhere in the memory, of any value: an end, or bytes that make no sense, but never
// anything outside of the memory.
TEST(SharedStream, SpoiledMemoryEndsTheStream) {
  std::mt19937_64 random(7);
  int failed = 0;
  for (int run = 0; run < HowMany("TROUPE_MUTATIONS", 20000) / 100; ++run) {
    Pair pair;
    std::string got;
    for (int step = 0; step < 30; ++step) {
      // The counters are in the page before each ring.
      const size_t ring = random() % 2 == 0 ? 4096 : pair.bytes / 2 + 2048;
      const size_t where = ring / 4096 * 4096 + random() % 4 * 64;
      const uint64_t value = random() >> random() % 64;
      std::memcpy(pair.memory + where, &value, sizeof(value));
      const int end = static_cast<int>(random() % 2);
      const IoResult result = random() % 2 == 0 ? pair.Write(end, std::string(random() % 5000, 'x'))
                                                : pair.Read(end, &got, 1 + random() % 5000);
      failed += result.state == State::kFailed;
      EXPECT_LE(result.bytes, 5000u);
    }
  }
  EXPECT_GT(failed, 0);
}

TEST(SharedMemory, OnlyWhatCreateMakesIsOpened) {
  const auto created = SharedMemory::Create();
  ASSERT_NE(created, nullptr);
  const std::string offer = created->Offer(), mark = offer.substr(8);
  ASSERT_NE(SharedMemory::Open(offer), nullptr);
  struct stat whole {};
  ASSERT_EQ(::fstat(DescriptorOf(offer), &whole), 0);

  EXPECT_EQ(SharedMemory::Open(""), nullptr);
  EXPECT_EQ(SharedMemory::Open(offer + "x"), nullptr);
  EXPECT_EQ(SharedMemory::Open(OfferOf(DescriptorOf(offer), std::string(32, 'x'))), nullptr);
  EXPECT_EQ(SharedMemory::Open(OfferOf(-1, mark)), nullptr);
  EXPECT_EQ(SharedMemory::Open(OfferOf(100000, mark)), nullptr);

  // The right mark at the right place, in what is not as it must be.
  const auto with_mark = [&](int file, int64_t size) {
    EXPECT_EQ(::ftruncate(file, size), 0);
    EXPECT_EQ(::pwrite(file, mark.data(), mark.size(), 0), 32);
    return file;
  };
  const int unsealed = with_mark(::memfd_create("unsealed", MFD_ALLOW_SEALING), whole.st_size);
  EXPECT_EQ(SharedMemory::Open(OfferOf(unsealed, mark)), nullptr);
  EXPECT_EQ(::fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_NE(SharedMemory::Open(OfferOf(unsealed, mark)), nullptr);
  const int small = with_mark(::memfd_create("small", MFD_ALLOW_SEALING), 4096);
  EXPECT_EQ(::fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_EQ(SharedMemory::Open(OfferOf(small, mark)), nullptr);
  std::string name = ::testing::TempDir() + "troupe_shared_XXXXXX";  // mkstemp's pattern
  const int named = with_mark(::mkstemp(name.data()), whole.st_size);
  EXPECT_EQ(SharedMemory::Open(OfferOf(named, mark)), nullptr);
  ::unlink(name.c_str());
  EXPECT_EQ(SharedMemory::Open(OfferOf(named, mark)), nullptr) << "it has no seals";
  // Opening it would wait for somebody who writes.
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  const int fifo = ::open(name.c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_EQ(SharedMemory::Open(OfferOf(fifo, mark)), nullptr);
  ::unlink(name.c_str());
  for (int file : {unsealed, small, named, fifo}) ::close(file);
}

TEST(SharedMemory, MutatedOffersOpenNothing) {
  const auto created = SharedMemory::Create();
  const std::string offer = created->Offer();
  std::mt19937 random(3);
  for (int run = 0; run < HowMany("TROUPE_MUTATIONS", 20000); ++run) {
    const std::string mutated = Mutated(offer, &random);
    if (mutated == offer) continue;
    ASSERT_EQ(SharedMemory::Open(mutated), nullptr) << run;
  }
}

TEST(SharedMemory, NothingIsLeftBehind) {
  const auto files = [] {
    int count = 0;
    for (int i = 0; i < 1024; ++i) count += ::fcntl(i, F_GETFD) >= 0;
    return count;
  };
  const int before = files();
  for (int run = 0; run < 2000; ++run) {  // 8 GB, if it were kept.
    const auto created = SharedMemory::Create();
    ASSERT_NE(created, nullptr) << run;
    ASSERT_NE(SharedMemory::Open(created->Offer()), nullptr) << run;
  }
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace troupe
