/// How fast devices are, for those who choose among them.
#ifndef TROUPE_DEVICES_DEVICE_FIGURES_H_
#define TROUPE_DEVICES_DEVICE_FIGURES_H_

#include <algorithm>
#include <iterator>

namespace troupe {

/// What a device can do; the defaults are a core's of the CPU.
struct DeviceFigures {
  double flops_per_us = 1e4;  ///< Of products, convolutions and decompositions.
  double bytes_per_us = 5e3;  ///< That kernels read and write.
  double node_us = 0.1;       ///< What any node costs: a kernel's call, or launch.
  /// A copy between the host's memory and its own: what each costs, and the bytes.
  double transfer_us = 10;
  double transfer_bytes_per_us = 1e4;

  bool operator==(const DeviceFigures&) const = default;
};

/// False if a figure is no number, not positive, or beyond all machines: what comes from outside
/// is looked at before it is used.
inline bool MakeSense(const DeviceFigures& figures) {
  const double all[] = {figures.flops_per_us, figures.bytes_per_us, figures.node_us,
                        figures.transfer_us, figures.transfer_bytes_per_us};
  return std::all_of(std::begin(all), std::end(all),
                     [](double figure) { return figure > 0 && figure < 1e18; });
}

}  // namespace troupe

#endif  // TROUPE_DEVICES_DEVICE_FIGURES_H_
