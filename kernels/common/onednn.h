/// oneDNN for kernels: primitives that are made once and executed from many threads.
///
/// oneDNN's own threads are never used: whoever calls it tells OpenMP to stay on its thread
/// (`ScopedOpenMpAlone`), and cuts the work into pieces for the compute pool.
#ifndef TROUPE_KERNELS_COMMON_ONEDNN_H_
#define TROUPE_KERNELS_COMMON_ONEDNN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "devices/status_macros.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace troupe {

/// While it lives, OpenMP runs what this thread begins on this thread alone. What an application
/// has set for its own loops is as before afterwards.
class ScopedOpenMpAlone {
 public:
  ScopedOpenMpAlone();
  ~ScopedOpenMpAlone();
  ScopedOpenMpAlone(const ScopedOpenMpAlone&) = delete;
  ScopedOpenMpAlone& operator=(const ScopedOpenMpAlone&) = delete;

 private:
  const int before_;
};

/// The process's CPU engine.
const dnnl::engine& OneDnnEngine();

/// The best instructions that oneDNN may use.
dnnl::cpu_isa OneDnnInstructionSet();

/// True if oneDNN has instructions of this processor for bfloat16 (AVX512_BF16, AMX), and may use
/// them. Without, it converts.
bool OneDnnHasBfloat16();

/// True if these are AMX's, which multiply some eight times as fast: pieces of work have to be
/// larger.
bool OneDnnHasAmx();

/// An argument of a primitive (DNNL_ARG_...) and its layout.
struct OneDnnArgument {
  int id;
  dnnl::memory::desc layout;
};

/// A primitive with its arguments' layouts. Thread-safe; several threads may execute it at once.
class OneDnnPrimitive {
 public:
  OneDnnPrimitive(const dnnl::primitive& primitive, std::vector<OneDnnArgument> arguments);
  ~OneDnnPrimitive();
  OneDnnPrimitive(const OneDnnPrimitive&) = delete;
  OneDnnPrimitive& operator=(const OneDnnPrimitive&) = delete;

  const dnnl::memory::desc& layout(int i) const { return arguments_[i].layout; }
  size_t bytes(int i) const { return arguments_[i].layout.get_size(); }

  /// Runs on this thread. `data`: one address for each argument, in their order; what is read is
  /// not changed. Internal if oneDNN refuses.
  absl::Status Execute(absl::Span<void* const> data);

 private:
  struct Binding;  // memory objects, used by one execution at a time
  Binding* Acquire();
  void Release(Binding* binding);

  dnnl::primitive primitive_;
  std::vector<OneDnnArgument> arguments_;
  std::atomic<Binding*> spare_{nullptr};  // the most recent one, without the lock
  std::mutex mutex_;
  std::vector<Binding*> free_;
};

/// a b = c, for `Execute` with the data of a, b, c and the scratchpad. oneDNN's exceptions.
std::shared_ptr<OneDnnPrimitive> MakeOneDnnMatMul(const dnnl::memory::desc& a,
                                                  const dnnl::memory::desc& b,
                                                  const dnnl::memory::desc& c);

/// Calls `make()`, alone, turning oneDNN's exceptions into Internal ("what: message").
template <typename Make>
auto CatchOneDnn(const char* what, Make make) -> absl::StatusOr<decltype(make())> {
  const ScopedOpenMpAlone alone;
  try {
    return make();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("oneDNN, ", what, ": ", e.what()));
  }
}

/// Objects by key, made on demand, for the whole process, and found again by a kernel without a
/// look-up as long as its shapes stay the same. Entry is immutable or thread-safe.
template <typename Key, typename Entry>
class OneDnnCache {
 public:
  /// The entry for `key`; `make()` gives absl::StatusOr<std::shared_ptr<Entry>>. Thread-safe.
  template <typename Make>
  absl::StatusOr<std::shared_ptr<Entry>> Find(const Key& key, Make make) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      for (size_t i = 0; i < recent_.size(); ++i) {
        if (recent_[i].first == key) {
          if (i > 0) std::swap(recent_[i], recent_[i - 1]);
          return recent_[i > 0 ? i - 1 : 0].second;
        }
      }
    }
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<Entry> entry, make());
    std::lock_guard<std::mutex> lock(mutex_);
    if (recent_.size() >= kMostEntries) recent_.pop_back();
    recent_.emplace(recent_.begin(), key, entry);
    return entry;
  }

 private:
  static constexpr size_t kMostEntries = 64;
  std::mutex mutex_;
  std::vector<std::pair<Key, std::shared_ptr<Entry>>> recent_;
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_COMMON_ONEDNN_H_
