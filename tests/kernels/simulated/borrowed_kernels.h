/// Kernels for the simulated accelerator: those of the CPU, called by its streams.
#ifndef TROUPE_TESTS_KERNELS_SIMULATED_BORROWED_KERNELS_H_
#define TROUPE_TESTS_KERNELS_SIMULATED_BORROWED_KERNELS_H_

namespace troupe::testing {

/// Registers, once, kernels of type "SIM" for the ops without resources that the CPU has. Like a
/// GPU's they find the shapes of their outputs on the host, by the op's shape function, take
/// buffers over where they may, enqueue, and report errors late. Sizes, axes and the like are
/// wanted on the host, and so is all of a node whose type is int32. Where shapes depend on values
/// in device memory the call waits for the device, as it would on a GPU. Thread-safe.
void BorrowKernels();

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_SIMULATED_BORROWED_KERNELS_H_
