/// Where files are read and written for steps.
#ifndef TROUPE_KERNELS_IO_FILE_THREAD_H_
#define TROUPE_KERNELS_IO_FILE_THREAD_H_

#include <functional>

#include "absl/status/status.h"
#include "devices/tensor.h"
#include "kernels/kernel.h"

namespace troupe {

class ComputePool;

/// Work on files for a kernel. It owns all that it reads, and gives the outputs: a step that is
/// cancelled does not wait for it, and it outlives the step then. `cancelled` says so, so that long
/// work can be given up.
using FileWork =
    std::function<absl::StatusOr<std::vector<Tensor>>(const std::function<bool()>& cancelled)>;

/// Has the work done by the process's actor of files, which does one thing after another on a
/// thread of its own: no thread of a step and no worker waits for a disk. Calls `done` with the
/// outputs set, or with the error. Thread-safe.
void OnFileThread(KernelContext& ctx, KernelDone done, FileWork work);

/// The same on one of the threads that read input: it does not wait for a checkpoint.
void OnInputThread(KernelContext& ctx, KernelDone done, FileWork work);

/// The same on a thread that only this work has: it may wait for steps, which may wait for the
/// other threads.
void OnOwnThread(KernelContext& ctx, KernelDone done, FileWork work);

/// The threads that read input, as many as the machine has processors but at most 4. They begin
/// with the first work.
ComputePool* InputThreads();

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_FILE_THREAD_H_
