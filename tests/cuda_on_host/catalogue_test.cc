// Which of TensorFlow's kernels of GPUs there are here.
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/cuda_on_host/against_cpu.h"
#include "tests/cuda_on_host/tensorflow_kernels.h"

namespace troupe::testing {
namespace {

/// What TensorFlow's GPUs have and cards here lack: ops, with the types of an attribute if there
/// are kernels for others. Whoever adds a kernel takes it from this list, and from docs/gpu.md.
constexpr char kMissing[] = R"(
Conj T=variant
Conv T=int32
Conv2D T=int32
Conv2DBackpropInput T=int32
DepthToSpace T=qint8
HistogramFixedWidth T=bfloat16,half
MaxPool T=qint8
MaxPoolV2 T=qint8
ParameterizedTruncatedNormal
Recv
Relu T=qint8
ResourceGather dtype=variant
ResourceScatterUpdate dtype=variant
Send
SpaceToDepth T=qint8
TileGrad T=int16
)";

/// What the executor does itself.
const std::set<std::string> kOfExecutor = {
    "ControlTrigger", "Enter",    "Exit",    "LoopCond",  "Merge",     "NextIteration",
    "NoOp",           "RefEnter", "RefExit", "RefMerge",  "RefSwitch", "RefNextIteration",
    "Switch",         "_Arg",     "_Retval", "_HostRecv", "_HostSend", "_Recv",
    "_Send"};

std::vector<std::string> Split(const std::string& text, char by) {
  return absl::StrSplit(text, by, absl::SkipEmpty());
}

/// True if a card's node with this type has a kernel, be it one that runs on the host.
bool HasKernel(const std::string& op, const std::string& attr, ElementType type) {
  for (const KernelRegistration* kernel : KernelRegistry::Global()->ForOp(op)) {
    const KernelSpec& spec = kernel->spec;
    if (spec.device_type != "GPU" && spec.device_type != "DEFAULT") continue;
    bool fits = true;
    for (const auto& [name, types] : spec.constraints) {
      if (name == attr) fits = std::count(types.begin(), types.end(), type) > 0;
    }
    if (fits) return true;
  }
  return false;
}

/// The types that tensors here have: not those of quantized or tiny numbers.
bool IsKnown(const std::string& name, ElementType* type) {
  for (const ElementType known : AllTypes()) {
    if (ElementTypeName(known) != name) continue;
    *type = known;
    return true;
  }
  return false;
}

/// The kernels of a line of the catalogue that are missing.
std::string MissingOf(const std::string& op, const std::string& attrs) {
  std::string missing;
  bool any =
      attrs.find_first_not_of('=') == std::string::npos && HasKernel(op, "", ElementType::kFloat);
  for (const std::string& attr : Split(attrs, ';')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(attr, absl::MaxSplits('=', 1));
    std::vector<std::string> lacking;
    for (const std::string& name : Split(parts.second, ',')) {
      ElementType type = ElementType::kInvalid;
      if (!IsKnown(name, &type)) continue;
      if (HasKernel(op, parts.first, type)) {
        any = true;
      } else {
        lacking.push_back(name);
      }
    }
    if (lacking.empty()) continue;
    missing += StrCat(" ", parts.first, "=", absl::StrJoin(lacking, ","));
  }
  if (!any) return op;
  return missing.empty() ? "" : op + missing;
}

TEST(Catalogue, KernelsThatAreMissing) {
  LoadCards();
  std::string missing = "\n";
  for (const std::string& line : Split(kTensorFlowKernels, '\n')) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (kOfExecutor.count(parts.first) != 0) continue;
    const std::string lacking = MissingOf(parts.first, parts.second);
    if (!lacking.empty()) missing += lacking + "\n";
  }
  EXPECT_EQ(missing, kMissing);
}

}  // namespace
}  // namespace troupe::testing
