#include "api/cli/checkpoint_command.h"

#include <cmath>
#include <cstring>
#include <iostream>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/str_join.h"
#include "api/cli/cli.h"
#include "api/cli/value_types.h"
#include "api/training/checkpoint_files.h"
#include "devices/npy.h"
#include "devices/status_macros.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/object_names.h"

namespace troupe::cli {
namespace {

using Entry = CheckpointReader::Tensors::value_type;

absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& checkpoint) {
  TROUPE_ASSIGN_OR_RETURN(const std::string prefix, FindCheckpoint(checkpoint));
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(prefix));
  return OpenCheckpoint(files, prefix);
}

std::string TypeAndShape(ElementType type, const Shape& shape) {
  return StrCat(ElementTypeName(type), " [", absl::StrJoin(shape.dims(), ","), "]");
}

/// "NAME TYPE [d0,d1,...] BYTES".
std::string Line(const Entry& entry) {
  const auto& [name, tensor] = entry;
  return StrCat(EscapeLine(name), " ", TypeAndShape(tensor.type, tensor.shape), " ", tensor.bytes);
}

/// Prints a tensor or saves it.
absl::Status Show(const CheckpointReader& reader, const ObjectNames& names,
                  const std::string& text) {
  // A name may have an equals sign.
  std::string name = text, file;
  if (const size_t equals = text.rfind('=');
      absl::IsNotFound(names.Key(reader, text).status()) && equals != text.npos) {
    name = text.substr(0, equals);
    file = text.substr(equals + 1);
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string key, names.Key(reader, name));
  TROUPE_ASSIGN_OR_RETURN(const Tensor tensor, reader.Read(key));
  if (!file.empty()) return WriteNpy(tensor, file);
  std::cout << EscapeLine(name) << " " << TypeAndShape(tensor.type(), tensor.shape()) << " "
            << ToJson(tensor) << "\n";
  return absl::OkStatus();
}

// --- differences ---------------------------------------------------------------------------------

/// How many elements differ, and by how much at most where they are numbers; not-a-numbers are
/// equal if their bits are.
struct Difference {
  int64_t count = 0;
  double most = 0;
};

template <typename T>
double Distance(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
    return 0;
  } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
    return std::abs(complex128(a) - complex128(b));
  } else if constexpr (IsQuantized(kElementType<T>)) {
    return Distance(a.value, b.value);
  } else {
    return std::abs(static_cast<double>(a) - static_cast<double>(b));
  }
}

template <typename T>
bool Same(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::string>) {
    return a == b;
  } else {
    return std::memcmp(&a, &b, sizeof(T)) == 0;  // NOLINT: NaNs of the same bits are equal
  }
}

absl::StatusOr<Difference> Compare(const Tensor& a, const Tensor& b) {
  Difference difference;
  TROUPE_RETURN_IF_ERROR(SwitchValueType(a.type(), [&]<typename T>() -> absl::Status {
    const auto x = a.unchecked_values<T>(), y = b.unchecked_values<T>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (Same(x[i], y[i])) continue;
      ++difference.count;
      const double distance = Distance(x[i], y[i]);
      if (!(distance <= difference.most)) difference.most = distance;
    }
    return absl::OkStatus();
  }));
  return difference;
}

/// A line for each tensor that is only in one of them, "-" and "+", or differs, "~"; whether there
/// is any.
absl::StatusOr<bool> PrintDifferences(const CheckpointReader& a, const CheckpointReader& b) {
  bool any = false;
  auto x = a.tensors().begin(), y = b.tensors().begin();
  while (x != a.tensors().end() || y != b.tensors().end()) {
    if (y == b.tensors().end() || (x != a.tensors().end() && x->first < y->first)) {
      std::cout << "- " << Line(*x++) << "\n";
      any = true;
      continue;
    }
    if (x == a.tensors().end() || y->first < x->first) {
      std::cout << "+ " << Line(*y++) << "\n";
      any = true;
      continue;
    }
    const auto& [name, left] = *x++;
    const CheckpointTensor& right = (*y++).second;
    const std::string mine = TypeAndShape(left.type, left.shape),
                      other = TypeAndShape(right.type, right.shape);
    if (mine != other) {
      std::cout << "~ " << EscapeLine(name) << " " << mine << " and " << other << "\n";
      any = true;
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(const Tensor p, a.Read(name));
    TROUPE_ASSIGN_OR_RETURN(const Tensor q, b.Read(name));
    TROUPE_ASSIGN_OR_RETURN(const Difference difference, Compare(p, q));
    if (difference.count == 0) continue;
    any = true;
    std::cout << "~ " << EscapeLine(name) << " " << mine << " " << difference.count << " of "
              << p.num_elements() << " elements";
    if (left.type != ElementType::kString && left.type != ElementType::kBool) {
      std::cout << ", by " << difference.most << " at most";
    }
    std::cout << "\n";
  }
  return any;
}

}  // namespace

absl::StatusOr<int> CheckpointCommand(const CheckpointOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const auto reader, Open(options.checkpoint));
  if (options.verify) TROUPE_RETURN_IF_ERROR(reader->Verify());
  TROUPE_ASSIGN_OR_RETURN(const ObjectNames names, ObjectNames::Of(*reader));
  for (const std::string& text : options.tensors) {
    TROUPE_RETURN_IF_ERROR(Show(*reader, names, text));
  }
  if (!options.other.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const auto other, Open(options.other));
    if (options.verify) TROUPE_RETURN_IF_ERROR(other->Verify());
    TROUPE_ASSIGN_OR_RETURN(const bool differ, PrintDifferences(*reader, *other));
    return differ ? 1 : 0;
  }
  if (!options.tensors.empty()) return 0;
  for (const Entry& entry : reader->tensors()) {
    const std::string name = options.full_names ? names.FullName(entry.first) : "";
    std::cout << Line(entry) << (name.empty() ? "" : " " + EscapeLine(name)) << "\n";
  }
  return 0;
}

}  // namespace troupe::cli
