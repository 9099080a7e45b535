#include "devices/memory_use.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

constexpr size_t kMostDescribed = 5;
constexpr char kOutOfMemory[] = "troupe.out_of_memory";

constinit thread_local AllocationPurpose purpose;

auto AsTuple(const LargeValue& value) { return std::tie(value.bytes, value.what, value.holder); }

}  // namespace

AllocationPurpose& AllocationPurpose::OfThisThread() { return purpose; }

std::string DescribeLargest(std::vector<LargeValue> values) {
  std::sort(values.begin(), values.end(),
            [](const auto& a, const auto& b) { return AsTuple(b) < AsTuple(a); });
  std::string text;
  auto value = values.begin();
  for (size_t described = 0; value != values.end() && described < kMostDescribed; ++described) {
    const auto alike = std::find_if(
        value, values.end(), [&](const auto& other) { return AsTuple(other) != AsTuple(*value); });
    if (!text.empty()) text += ", ";
    if (alike - value > 1) absl::StrAppend(&text, alike - value, " of ");
    absl::StrAppend(&text, value->bytes, " bytes");
    if (!value->what.empty() || !value->holder.empty()) {
      const char* const comma = value->what.empty() || value->holder.empty() ? "" : ", ";
      absl::StrAppend(&text, " (", value->what, comma, value->holder, ")");
    }
    value = alike;
  }
  return text;
}

struct LiveBlocks::Block {
  size_t bytes;
  ElementType type;
  int64_t num_elements;
  std::shared_ptr<const std::string> node;
};

LiveBlocks::LiveBlocks() = default;
LiveBlocks::~LiveBlocks() = default;

void LiveBlocks::Add(const void* block, size_t bytes) noexcept {
  Block made{bytes, purpose.type, purpose.num_elements, nullptr};
  if (purpose.nodes != nullptr && *purpose.nodes != nullptr) {
    made.node = {*purpose.nodes, &(**purpose.nodes)[purpose.node]};
  }
  try {
    std::lock_guard<std::mutex> lock(mutex_);
    blocks_.insert_or_assign(block, std::move(made));
  } catch (const std::bad_alloc&) {  // Then it is not listed.
  }
}

void LiveBlocks::Remove(const void* block) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_.erase(block);
}

std::string LiveBlocks::Largest() const {
  std::vector<LargeValue> values;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    values.reserve(blocks_.size());
    for (const auto& [address, block] : blocks_) {
      LargeValue& value = values.emplace_back(LargeValue{block.bytes, "", ""});
      if (block.num_elements > 0) {
        value.what = absl::StrCat(block.num_elements, " of ", ElementTypeName(block.type));
      }
      if (block.node != nullptr) value.holder = *block.node;
    }
  }
  return DescribeLargest(std::move(values));
}

absl::Status OutOfMemory(std::string_view message) {
  absl::Status status(absl::StatusCode::kResourceExhausted, {message.data(), message.size()});
  status.SetPayload(kOutOfMemory, absl::Cord());
  return status;
}

bool IsOutOfMemory(const absl::Status& status) {
  return status.GetPayload(kOutOfMemory).has_value();
}

}  // namespace troupe
