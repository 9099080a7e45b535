#include "kernels/common/registration.h"

namespace troupe {

KernelSpec Cheap(const char* op) { return KernelSpec(op).Cost(KernelCost::kCheap); }

internal::KernelsRegistrar::KernelsRegistrar(KernelSpec spec, KernelFactory factory,
                                             std::initializer_list<const char*> others) {
  KernelRegistry::Global()->Register(spec, factory);
  for (const char* op : others) {
    spec.op = op;
    KernelRegistry::Global()->Register(spec, factory);
  }
}

}  // namespace troupe
