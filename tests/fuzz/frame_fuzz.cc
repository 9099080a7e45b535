// Bytes of a connection from outside. The first byte chooses who reads them and how they are cut;
// with bit 3 magic, version and checksums are put right first, so that what is behind is reached.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "net/frame_reader.h"
#include "net/handshake.h"
#include "net/send_queue.h"

namespace {

using namespace troupe;  // NOLINT: a short program

constexpr uint64_t kWindow = 4 << 20;

struct Handler : FrameReader::Handler {
  absl::Status Admit(const IncomingTensor& info) override {
    return info.step % 7 == 6 ? absl::NotFoundError("step") : absl::OkStatus();
  }
  void OnTensor(const IncomingTensor& info, Tensor tensor, uint64_t charge) override {
    if (info.dead == tensor.valid()) std::abort();
    if (tensor.valid() && !(tensor.shape() == info.shape)) std::abort();
    credits->Release(charge);
    // What was read can be sent again.
    if (!Outgoing::ForTensor(1, 1, 1, info.dead, std::move(tensor), UINT64_MAX).ok()) std::abort();
  }
  void OnDropped(const IncomingTensor&, uint64_t charge, const absl::Status&) override {
    credits->Release(charge);
  }
  absl::Status OnCredit(int lane, uint64_t bytes) override {
    SendCredits sender(kWindow);
    if (lane < 0 || lane > 1 || sender.Give(bytes)) std::abort();
    return absl::OkStatus();
  }
  void OnReject(uint64_t, uint64_t, uint64_t, const absl::Status& why) override {
    if (why.ok()) std::abort();
  }
  void OnMessage(uint64_t, uint64_t, std::string) override {}
  void OnGoodbye(const absl::Status&) override {}

  ReceiveCredits* credits = nullptr;
};

uint32_t Crc32(const char* bytes, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; ++i) {
    crc ^= static_cast<uint8_t>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

/// Makes the input a sequence of frames that pass the first checks.
std::string Repaired(std::string bytes) {
  size_t at = 0;
  while (at + kFrameHeaderBytes <= bytes.size()) {
    char* head = bytes.data() + at;
    std::memcpy(head, "TRPF", 4);
    std::memcpy(head + 4, &kWireVersion, sizeof(kWireVersion));
    size_t size = kFrameHeaderBytes;
    if (head[6] == static_cast<char>(FrameKind::kTensor))
      size += 8u * static_cast<uint8_t>(head[13]);
    if (at + size > bytes.size()) break;
    std::memset(head + 8, 0, 4);
    const uint32_t sum = Crc32(head, size);
    std::memcpy(head + 8, &sum, 4);
    uint64_t length = 0;
    std::memcpy(&length, head + 16, 8);
    at += size;
    if (length > bytes.size() - at) break;
    at += length;
  }
  return bytes;
}

void Read(std::string_view bytes, bool bulk, size_t step) {
  Handler handler;
  ReceiveCredits credits(kWindow);
  handler.credits = &credits;
  FrameReader reader(/*max_tensor_bytes=*/1 << 20, bulk, &credits, &handler);
  while (!bytes.empty()) {
    iovec buffers[2];
    const int count = reader.NextBuffers(buffers);
    size_t put = 0;
    for (int i = 0; i < count && put < std::min(step, bytes.size()); ++i) {
      const size_t n = std::min(std::min(step, bytes.size()) - put, buffers[i].iov_len);
      std::memcpy(buffers[i].iov_base, bytes.data() + put, n);
      put += n;
    }
    if (put == 0) std::abort();  // It would wait for ever.
    bytes.remove_prefix(put);
    if (!reader.Consume(put).ok()) return;
  }
}

void Shake(std::string_view bytes, bool answering, size_t step) {
  const Identity self = {"/job:a/replica:0/task:0", 1, "secret"};
  const auto terms = [](int lane) { return StreamTerms{1, lane, 1 << 20, 1 << 20}; };
  Handshake role =
      answering ? Handshake::Answering(self, terms) : Handshake::Connecting(self, terms(0), "", 0);
  while (!bytes.empty() && role.wanted() > 0) {
    role.TakeOutput();
    const size_t n = std::min({role.wanted(), bytes.size(), step});
    role.Consume(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
  if (role.verified() || role.open()) std::abort();  // Nobody guesses the proof.
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t how = data[0];
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (how & 8) bytes = Repaired(std::move(bytes));
  static constexpr size_t kSteps[] = {SIZE_MAX, 1, 63, 1000};
  const size_t step = kSteps[(how >> 4) & 3];
  if (how & 2) {
    Shake(bytes, how & 1, step);
  } else {
    Read(bytes, how & 1, step);
  }
  return 0;
}
