/// Elements of datasets as tests see them.
#ifndef TROUPE_TESTS_API_DATASET_DATASET_TEST_UTIL_H_
#define TROUPE_TESTS_API_DATASET_DATASET_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/dataset.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/record_writer.h"
#include "devices/storage/whole_file.h"

namespace troupe::testing {

/// "int64[2] [1 2]; string[] [a]".
inline std::string Text(const Tensors& element) {
  std::string text;
  for (const Tensor& tensor : element) {
    text += (text.empty() ? "" : "; ") + tensor.ToString(1 << 20);
  }
  return text;
}

inline std::unique_ptr<DatasetIterator> Begin(const Dataset& dataset, int threads = 2) {
  DatasetIteratorOptions options;
  options.threads = threads;
  auto iterator = dataset.MakeIterator(options);
  EXPECT_TRUE(iterator.ok()) << iterator.status();
  return iterator.ok() ? *std::move(iterator) : nullptr;
}

/// Up to `most` elements; the status is OK at the end.
inline std::vector<std::string> Take(DatasetIterator& iterator, size_t most,
                                     absl::Status* status = nullptr) {
  std::vector<std::string> elements;
  Tensors element;
  while (elements.size() < most) {
    absl::StatusOr<bool> more = iterator.Next(&element);
    if (status != nullptr) *status = more.status();
    if (status == nullptr) {
      EXPECT_TRUE(more.ok()) << more.status();
    }
    if (!more.ok() || !*more) break;
    elements.push_back(Text(element));
  }
  return elements;
}

inline std::vector<std::string> All(const Dataset& dataset, int threads = 2,
                                    absl::Status* status = nullptr) {
  const std::unique_ptr<DatasetIterator> iterator = Begin(dataset, threads);
  if (iterator == nullptr) return {};
  return Take(*iterator, 1 << 20, status);
}

/// A folder of its own, which goes with it.
class TempFolder {
 public:
  TempFolder() {
    static std::atomic<int> last{0};
    path_ =
        ::testing::TempDir() + "dataset_" + std::to_string(getpid()) + "_" + std::to_string(++last);
    EXPECT_TRUE(files()->CreateDirectories(path_).ok());
  }
  ~TempFolder() {
    const std::vector<std::string> names = files()->List(path_).value();
    for (const std::string& name : names) {
      files()->Remove(path_ + "/" + name).IgnoreError();
    }
    files()->RemoveDirectory(path_).IgnoreError();
  }
  std::string Path(std::string_view name) const { return path_ + "/" + std::string(name); }

  std::string Write(std::string_view name, std::string_view contents) const {
    EXPECT_TRUE(ReplaceFile(files(), Path(name), contents).ok());
    return Path(name);
  }
  std::string WriteRecords(std::string_view name, const std::vector<std::string>& records,
                           FileCompression compression = FileCompression::kNone) const {
    auto writer = *RecordWriter::Create(files(), Path(name), {.compression = compression});
    for (const std::string& record : records) EXPECT_TRUE(writer->Write(record).ok());
    EXPECT_TRUE(writer->Close().ok());
    return Path(name);
  }
  static FileSystem* files() { return *FileSystems().Find("/"); }

 private:
  std::string path_;
};

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_API_DATASET_DATASET_TEST_UTIL_H_
