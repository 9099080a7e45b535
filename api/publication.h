/// Names that the process knows for a while.
#ifndef TROUPE_API_PUBLICATION_H_
#define TROUPE_API_PUBLICATION_H_

#include <functional>
#include <utility>

namespace troupe {

/// Something is known under its name for as long as this lives. A move-only value.
class Publication {
 public:
  /// `end` ends it.
  explicit Publication(std::function<void()> end) : end_(std::move(end)) {}
  Publication(Publication&& other) noexcept { end_.swap(other.end_); }
  Publication& operator=(Publication&& other) noexcept {
    end_.swap(other.end_);
    return *this;
  }
  ~Publication() {
    if (end_ != nullptr) end_();
  }

 private:
  std::function<void()> end_;
};

}  // namespace troupe

#endif  // TROUPE_API_PUBLICATION_H_
