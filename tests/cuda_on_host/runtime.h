/// What the parts of CUDA on the host share.
#ifndef TROUPE_TESTS_CUDA_ON_HOST_RUNTIME_H_
#define TROUPE_TESTS_CUDA_ON_HOST_RUNTIME_H_

#include <cstdint>
#include <functional>

#include "tests/cuda_on_host/cuda_on_host.h"

namespace troupe::cuda::on_host {

/// Runs the blocks of a launch on the calling thread: calls `thread` once for each thread of each
/// block, with its indices. Ends the process if threads of a block wait for others at barriers to
/// which those never come.
void RunBlocks(dim3 blocks, dim3 threads, uint64_t seed, const std::function<void()>& thread);

/// Has the stream do what a library of CUDA enqueues there. `work` uses addresses that went through
/// `Inside`.
cudaError_t EnqueueWork(cudaStream_t stream, std::function<void()> work);

}  // namespace troupe::cuda::on_host

#endif  // TROUPE_TESTS_CUDA_ON_HOST_RUNTIME_H_
