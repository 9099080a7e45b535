#include "net/message_assembler.h"

#include <algorithm>
#include <utility>

#include "devices/status_macros.h"
#include "net/tensor_codec.h"

namespace troupe {

namespace {
using Format = MessageFormat;
}

absl::Status MessageAssembler::Admit(const IncomingTensor& part) {
  const bool frame = (part.key & Format::kFrameNumber) != 0;
  if (part.tag >= Format::kMaxParts || part.dead || (!frame && part.type != ElementType::kUint8)) {
    return InvalidArgument("parts of messages are bytes, numbered from 0");
  }
  Incomplete* message = Find(part.key);
  if (!message->refused) {
    const size_t places = std::max<size_t>(message->parts.size(), part.tag + 1);
    const uint64_t bytes = DecodedBytes(part.type, part.shape, part.bytes) +
                           (places - message->parts.size()) * sizeof(Tensor);
    if (budget_->Take(bytes, &held_)) {
      message->bytes += bytes;
      message->parts.resize(places);
      return absl::OkStatus();
    }
    Refuse(message);
  }
  return absl::ResourceExhaustedError("too much is on its way beside messages");
}

absl::Status MessageAssembler::OnPart(uint64_t number, uint64_t index, Tensor part) {
  Incomplete& message = *Find(number);
  if (!message.refused) {
    Tensor& place = message.parts[index];  // It was admitted.
    if (place.valid()) return InvalidArgument("a part of a message has come twice");
    place = std::move(part);
  }
  --message.missing;
  return Complete(number);
}

absl::Status MessageAssembler::OnDropped(uint64_t number) {
  Incomplete* message = Find(number);
  Refuse(message);
  --message->missing;
  TROUPE_RETURN_IF_ERROR(Check());
  return Complete(number);
}

absl::Status MessageAssembler::OnMessage(uint64_t type, uint64_t id, std::string body) {
  const uint64_t kind = type % Format::kPartsUnit, parts = type / Format::kPartsUnit;
  const bool frame = kind == Format::kFrame || kind == Format::kFrameInPart;
  const bool body_is_part = kind == Format::kMessageInPart || kind == Format::kFrameInPart;
  if (kind < Format::kMessage || kind > Format::kFrameInPart || (body_is_part && parts == 0) ||
      frame != ((id & Format::kFrameNumber) != 0) || parts > Format::kMaxParts) {
    return absl::OkStatus();  // Of a kind that is not known here.
  }
  if (parts == 0 && !frame) {
    done_({false, std::move(body), {}, absl::OkStatus()});
    return absl::OkStatus();
  }
  Incomplete& message = *Find(id);
  if (message.has_body) return InvalidArgument("a message has come twice");
  message.has_body = true;
  message.body_is_part = body_is_part;
  message.missing += parts;
  Charge(body.size(), &message);
  message.body = std::move(body);
  if (!budget_->Allows(held_)) Refuse(&message);
  TROUPE_RETURN_IF_ERROR(Check());
  return Complete(id);
}

MessageAssembler::Incomplete* MessageAssembler::Find(uint64_t number) {
  const auto [at, begun] = incomplete_.try_emplace(number);
  if (begun) Charge(sizeof(*at), &at->second);
  return &at->second;
}

void MessageAssembler::Charge(uint64_t bytes, Incomplete* message) {
  message->bytes += bytes;
  budget_->Force(bytes, &held_);
}

void MessageAssembler::Refuse(Incomplete* message) {
  // What of it is on its way yet is bounded by the connection's credits.
  budget_->Return(std::exchange(message->bytes, 0), &held_);
  message->refused = true;
  message->parts.clear();
  Charge(sizeof(*message) + message->body.size(), message);
}

absl::Status MessageAssembler::Check() const {
  if (budget_->Allows(held_)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      StrCat("messages that are incomplete hold ", held_, " bytes, which is too much"));
}

absl::Status MessageAssembler::Complete(uint64_t number) {
  const auto at = incomplete_.find(number);
  if (!at->second.has_body || at->second.missing != 0) return absl::OkStatus();
  Incomplete message = std::move(at->second);
  incomplete_.erase(at);
  for (const Tensor& part : message.parts) {
    if (part.valid()) continue;
    return InvalidArgument("parts of a message are missing");  // Others were sent in their place.
  }
  if ((number & Format::kFrameNumber) == 0) return HandOn(std::move(message), false);
  const uint64_t order = number & ~Format::kFrameNumber;
  if (order < next_frame_ || !early_.try_emplace(order, std::move(message)).second) {
    return InvalidArgument("a frame has come twice");
  }
  for (auto next = early_.find(next_frame_); next != early_.end() && next->first == next_frame_;
       next = early_.erase(next), ++next_frame_) {
    TROUPE_RETURN_IF_ERROR(HandOn(std::move(next->second), true));
  }
  return Check();
}

absl::Status MessageAssembler::HandOn(Incomplete message, bool frame) {
  budget_->Return(message.bytes, &held_);
  absl::Status whole;
  if (message.refused) {
    whole = absl::ResourceExhaustedError("there is no memory for what came with a message");
    // Nobody knows what was lost, so that everything is.
    if (message.body_is_part) return whole;
  } else if (message.body_is_part) {
    const Tensor& body = message.parts.front();
    message.body.assign(static_cast<const char*>(body.raw_data()), body.bytes());
    message.parts.erase(message.parts.begin());
  }
  done_({frame, std::move(message.body), std::move(message.parts), std::move(whole)});
  return absl::OkStatus();
}

}  // namespace troupe
