/// What an executor keeps for a plan whose kernels enqueue work on a device.
#ifndef TROUPE_ACTORS_EXECUTOR_ON_DEVICE_H_
#define TROUPE_ACTORS_EXECUTOR_ON_DEVICE_H_

#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "actors/executor/executor_role.h"
#include "devices/device.h"
#include "devices/pollable.h"
#include "kernels/late_errors.h"

namespace troupe {

/// For an asynchronous kernel that enqueues: it may be called later, on another thread, when other
/// nodes have their turn.
struct ExecutorRole::AsyncOnDevice {
  explicit AsyncOnDevice(LateErrors* all) : errors(all) {}
  StepContext step;
  LateErrors errors;
};

/// Marks are messages that the stream sends when it has come to where they were enqueued. They say
/// how far ahead of the device the host is, and when the device has finished with the step.
struct ExecutorRole::OnDevice {
  /// A mark follows every so many kernels,
  static constexpr int32_t kKernelsPerMark = 64;
  /// and so many are under way at most; then nodes wait for the next one before they complete.
  static constexpr size_t kMarks = 4;

  explicit OnDevice(ExecutorRole* executor) {
    for (PendingKernel& mark : marks) {
      mark.executor = executor;
      mark.news = PendingKernel::News::kMark;
      mark.next_free = std::exchange(free_mark, &mark);
    }
  }

  /// A kernel whose time on the device is measured.
  struct Timing {
    int32_t node;
    uint64_t called_ns;  ///< Of the plan's clock.
    RefPtr<DeviceEvent> before, after;
  };

  StepContext step;            ///< For kernels that enqueue: the device's allocator and stream.
  Pollable* polled = nullptr;  ///< The device, if it can be polled.
  LateErrors errors;
  int32_t since_mark = 0;  ///< Kernels enqueued since the last mark.
  PendingKernel* free_mark = nullptr;
  std::array<PendingKernel, kMarks> marks;
  /// Nodes that have been enqueued and not completed.
  std::vector<std::pair<int32_t, Iteration*>> held;

  // Runs that measure.
  std::deque<Timing> timings;     ///< Of what the device has not come to, in order.
  RefPtr<DeviceEvent> beginning;  ///< Of the step, and when that was on the host: later, if a
  uint64_t beginning_ns = 0;      ///< kernel would have run before it was called.
};

}  // namespace troupe

#endif  // TROUPE_ACTORS_EXECUTOR_ON_DEVICE_H_
