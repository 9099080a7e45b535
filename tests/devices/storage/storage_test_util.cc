#include "tests/devices/storage/storage_test_util.h"

#include <cstring>
#include <memory>
#include <random>

#include "devices/narrow_types.h"
#include "devices/status_macros.h"
#include "devices/storage/bundle_writer.h"
#include "devices/storage/table_writer.h"
#include "tests/devices/storage/simulated_disk.h"

namespace troupe {

std::string Difference(const Tensor& got, const Tensor& want) {
  bool same = got.type() == want.type() && got.shape() == want.shape();
  if (same && want.type() == ElementType::kString) {
    same = got.unchecked_values<std::string>() == want.unchecked_values<std::string>();
  } else if (same && want.num_elements() > 0) {
    same = std::memcmp(got.raw_data(), want.raw_data(), want.bytes()) == 0;
  }
  return same ? "" : StrCat("got ", got.ToString(), ", want ", want.ToString());
}

Tensor RandomTensor(ElementType type, const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  Tensor tensor = Tensor::Uninitialized(type, shape);
  if (type == ElementType::kString) {
    for (std::string& value : tensor.mutable_values<std::string>()) {
      value.resize(random() % 20);
      for (char& c : value) c = static_cast<char>(random());
    }
    return tensor;
  }
  char* bytes = static_cast<char*>(tensor.mutable_raw_data());
  for (size_t i = 0; i < tensor.bytes(); ++i) {
    bytes[i] = static_cast<char>(type == ElementType::kBool ? random() % 2 : random());
    // The upper half is the sign's, or 0.
    if (type == ElementType::kInt4) bytes[i] = static_cast<char>(int4(bytes[i]).bits);
    if (type == ElementType::kUint4) bytes[i] = static_cast<char>(uint4(bytes[i]).bits);
  }
  return tensor;
}

TensorsByName EveryType() {
  TensorsByName tensors;
  for (int type = 1; type < kRefOffset; ++type) {
    const auto element = static_cast<ElementType>(type);
    if (ElementSize(element) == 0 || element == ElementType::kResource ||
        element == ElementType::kVariant) {
      continue;
    }
    tensors[ElementTypeName(element) + "/matrix"] = RandomTensor(element, Shape({3, 5}), type);
    tensors[ElementTypeName(element) + "/scalar"] = RandomTensor(element, Shape(), type + 50);
    tensors[ElementTypeName(element) + "/empty"] = RandomTensor(element, Shape({2, 0}), type);
  }
  tensors["string/lengths"] = Tensor::Vector<std::string>(
      {"", std::string(1, '\0'), std::string(300, 'x'), "\xff\xfe", std::string(20000, 'y')});
  return tensors;
}

absl::Status WriteBundle(FileSystem* file_system, const std::string& prefix,
                         const TensorsByName& tensors) {
  TROUPE_ASSIGN_OR_RETURN(const auto writer,
                          BundleWriter::Create(file_system, prefix, {true, "test"}));
  for (const auto& [name, tensor] : tensors) TROUPE_RETURN_IF_ERROR(writer->Add(name, tensor));
  return writer->Finish();
}

std::string Difference(const CheckpointReader& reader, const TensorsByName& want) {
  if (reader.tensors().size() != want.size()) {
    return StrCat("got ", reader.tensors().size(), " tensors, want ", want.size());
  }
  for (const auto& [name, tensor] : want) {
    const absl::StatusOr<Tensor> got = reader.Read(name);
    if (!got.ok()) return got.status().ToString();
    const std::string difference = Difference(*got, tensor);
    if (!difference.empty()) return StrCat(name, ": ", difference);
  }
  return "";
}

void ForEachDamage(
    const std::string& bytes,
    const std::function<void(const std::string& damaged, const std::string& what)>& f) {
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      f(damaged, StrCat("byte ", at, " xor ", flip));
    }
    f(bytes.substr(0, at), StrCat("cut off at byte ", at));
  }
}

std::string TableBytes(const std::map<std::string, std::string>& entries) {
  SimulatedDisk disk;
  const std::unique_ptr<WritableFile> file = disk.Create("/table").value();
  TableWriter writer(file.get());
  absl::Status status;
  for (const auto& [key, value] : entries) status.Update(writer.Add(key, value));
  status.Update(writer.Finish());
  return status.ok() ? disk.Contents("/table") : status.ToString();
}

std::string TestData(const std::string& name) {
  return StrCat("tests/devices/storage/testdata/", name);  // tests run in the root of the sources
}

}  // namespace troupe
