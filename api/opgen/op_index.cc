// Writes docs/ops.md, a line for every registered op: `troupe_op_index [--check] ROOT`, where ROOT
// is the project's folder. With --check the file stays, and it is an error if it would be another.
//
// The family of an op is the file in graph/ops that names it, as a string: an op whose name is put
// together there, so that nobody finds it, is an error. Kernels of cards are those of the library
// that TROUPE_CUDA_LIBRARY names; without it what the file says of cards is kept.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/extension.h"
#include "devices/narrow_types.h"
#include "graph/gradients/gradient_registry.h"
#include "graph/op_registry.h"
#include "graph/passes/rewrite.h"
#include "graph/protos/graph.pb.h"
#include "kernels/common/quantized_types.h"
#include "kernels/kernel_registry.h"

namespace troupe {
namespace {

using Types = std::set<ElementType>;

constexpr char kStart[] = R"(# Ops

Every op, by the files of `graph/ops` that define them. What an op computes, its inputs, outputs and attributes are in
the comment of its function in `troupe/api/ops.h`, which the build generates. `git grep '"MatMul"'` finds where an op is
defined and where its kernels are registered. `troupe_op_index` writes this file; a test fails if it is old.

| column | |
|---|---|
| types on the CPU | element types that kernels of the CPU take, for each type attribute. *real*: all integers and floats; *numbers*: these and complex64, complex128; *floats*: half, bfloat16, float, double; *plain*: numbers and bool; *quantized*: qint8, quint8, qint32, qint16, quint16; *narrow*: float8_e5m2, float8_e4m3fn, int4, uint4; *any*: all that the op allows |
| devices | *CPU*; *GPU*: cards ([gpu.md](gpu.md)) have kernels, be it for fewer types; *all*: the executor does it, wherever. The simulated accelerator of the tests borrows the CPU's kernels |
| gradient | *yes*; *none*: gradients end there; empty: none is known, asking for it is an error |
| state | *stateful*: it has state, or effects, and is never left out or joined with another |
)";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Where each name in quotes stands: "array_slice" for graph/ops/array_slice_ops.cc. The file that
/// has it in REGISTER_OP, or else the first one.
std::map<std::string, std::string> FilesOfNames(const std::filesystem::path& folder) {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".cc") paths.insert(entry.path());
  }
  std::map<std::string, std::string> files;
  for (const auto& path : paths) {
    const std::string text = ReadFile(path), stem = path.stem().string();
    const std::string file = stem.substr(0, stem.rfind("_ops"));
    for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
      size_t end = at + 1;
      while (end < text.size() && absl::ascii_isalnum(text[end])) ++end;
      if (end == text.size() || text[end] != '"') continue;
      const std::string name = text.substr(at + 1, end - at - 1);
      constexpr std::string_view kDefines = "REGISTER_OP(";
      if (std::string_view(text).substr(0, at).ends_with(kDefines)) {
        files[name] = file;
      } else {
        files.emplace(name, file);
      }
    }
  }
  return files;
}

/// "array" of "array_slice".
std::string FamilyOf(const std::string& file) {
  for (const char* family : {"control_flow", "data_format", "tensor_array", "tensor_list"}) {
    if (file.starts_with(family)) return family;
  }
  return file.substr(0, file.find('_'));
}

/// The shortest list of types and of names for many of them.
std::string Describe(Types types) {
  const auto numbers = NumberTypes(), real = RealNumberTypes(), floats = FloatTypes(),
             plain = PlainTypes(), quantized = QuantizedTypes();
  const std::vector<ElementType> narrow(std::begin(kNarrowTypes), std::end(kNarrowTypes));
  std::vector<std::string> words;
  for (const auto& [name, all] : {std::pair("*plain*", &plain),
                                  {"*numbers*", &numbers},
                                  {"*real*", &real},
                                  {"*floats*", &floats},
                                  {"*quantized*", &quantized},
                                  {"*narrow*", &narrow}}) {
    const Types wanted(all->begin(), all->end());
    if (!std::includes(types.begin(), types.end(), wanted.begin(), wanted.end())) continue;
    words.emplace_back(name);
    for (const ElementType type : wanted) types.erase(type);
  }
  for (const ElementType type : types) words.push_back(ElementTypeName(type));
  return absl::StrJoin(words, ", ");
}

/// The types that kernels of the CPU take for an attribute: of every registration together.
std::string TypesOf(const OpDef::AttrDef& attr,
                    absl::Span<const KernelRegistration* const> kernels) {
  Types types;
  const auto& allowed = attr.allowed_values().list().type();
  for (const KernelRegistration* kernel : kernels) {
    const auto& constraints = kernel->spec.constraints;
    const auto found = std::find_if(constraints.begin(), constraints.end(),
                                    [&](const auto& c) { return c.first == attr.name(); });
    if (found != constraints.end()) {
      types.insert(found->second.begin(), found->second.end());
    } else if (allowed.empty()) {
      return "*any*";
    } else {
      for (const int type : allowed) types.insert(static_cast<ElementType>(type));
    }
  }
  const bool all = !allowed.empty() && std::all_of(allowed.begin(), allowed.end(), [&](int type) {
    return types.count(static_cast<ElementType>(type)) != 0;
  });
  return all && allowed.size() > 3 ? "*any*" : Describe(std::move(types));
}

struct Devices {
  std::vector<const KernelRegistration*> cpu;
  bool gpu = false;
};

Devices DevicesOf(const std::string& op) {
  Devices devices;
  for (const KernelRegistration* kernel : KernelRegistry::Global()->ForOp(op)) {
    const std::string& type = kernel->spec.device_type;
    if (type == "CPU" || type == "DEFAULT") devices.cpu.push_back(kernel);
    devices.gpu = devices.gpu || type == "GPU" || type == "DEFAULT";
  }
  return devices;
}

std::string RowOf(const OpDef& op, const std::string& file, const std::set<std::string>& on_cards) {
  const Devices devices = DevicesOf(op.name());
  std::vector<std::string> types;
  for (const auto& attr : op.attr()) {
    if (attr.type() != "type" && attr.type() != "list(type)") continue;
    if (!devices.cpu.empty()) {
      types.push_back(absl::StrCat(attr.name(), ": ", TypesOf(attr, devices.cpu)));
    }
  }
  std::string where = devices.cpu.empty() ? "none" : "CPU";
  if (devices.gpu || on_cards.count(op.name()) != 0) where += ", GPU";
  if (IsControlFlow(op.name())) where = "all";
  const absl::StatusOr<GradientFn> gradient = GradientRegistry::Global()->LookUp(op.name());
  const char* differentiable = !gradient.ok() ? "" : *gradient != nullptr ? "yes" : "none";
  return absl::StrCat("| `", op.name(), "` | ", absl::StrJoin(types, "; "), " | ", where, " | ",
                      differentiable, " | ", op.is_stateful() ? "stateful" : "", " | ", file,
                      " |\n");
}

/// The ops that are on cards by what the file says.
std::set<std::string> OnCards(const std::string& file) {
  std::set<std::string> ops;
  std::istringstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `") || line.find("GPU |") == std::string::npos) continue;
    ops.insert(line.substr(3, line.find('`', 3) - 3));
  }
  return ops;
}

absl::StatusOr<std::string> Write(const std::filesystem::path& root, const std::string& old) {
  const char* const library = std::getenv("TROUPE_CUDA_LIBRARY");
  if (library != nullptr) TROUPE_RETURN_IF_ERROR(LoadLibrary(library));
  const std::set<std::string> on_cards =
      library == nullptr ? OnCards(old) : std::set<std::string>();
  const auto files = FilesOfNames(root / "graph/ops");
  std::map<std::string, std::string> families;
  for (const std::string& name : OpRegistry::Global()->Names()) {
    if (name[0] == '_') continue;
    const auto file = files.find(name);
    if (file == files.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("no file of graph/ops has the string \"", name, "\""));
    }
    TROUPE_ASSIGN_OR_RETURN(const OpRegistration* op, OpRegistry::Global()->LookUp(name));
    families[FamilyOf(file->second)] += RowOf(*op->def, file->second, on_cards);
  }
  std::string text = kStart;
  for (const auto& [family, rows] : families) {
    absl::StrAppend(&text, "\n## ", family,
                    "\n| op | types on the CPU | devices | gradient | state | file |\n"
                    "|---|---|---|---|---|---|\n",
                    rows);
  }
  return text;
}

int Main(int argc, char** argv) {
  const bool check = argc == 3 && std::string(argv[1]) == "--check";
  if (argc != 2 && !check) {
    std::cerr << "usage: troupe_op_index [--check] ROOT\n";
    return 2;
  }
  const std::filesystem::path root = argv[argc - 1], path = root / "docs/ops.md";
  const std::string old = ReadFile(path);
  const absl::StatusOr<std::string> text = Write(root, old);
  if (!text.ok()) {
    std::cerr << text.status() << "\n";
    return 1;
  }
  if (check && *text != old) {
    std::cerr << "docs/ops.md is old: run `build/release/bin/troupe_op_index .`\n";
    std::istringstream before(old), after(*text);
    for (std::string a, b; std::getline(after, b);) {
      std::getline(before, a);
      if (a == b) continue;
      std::cerr << "first difference:\n" << a << "\n" << b << "\n";
      break;
    }
    return 1;
  }
  if (check) return 0;
  std::ofstream file(path, std::ios::binary);
  file << *text;
  return file.flush().good() ? 0 : 1;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
