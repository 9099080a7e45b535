#include "tests/golden/case_file.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "devices/status_macros.h"

namespace troupe::golden {
namespace {

bool IsCaseFile(const std::string& file) {
  return file.ends_with(".pb") || file.ends_with(".pb.gz");
}

struct CloseGzip {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ListCaseFiles(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (IsCaseFile(entry.path().string())) files.push_back(entry.path().string());
  }
  if (error) return absl::UnknownError(StrCat("Cannot list ", path, ": ", error.message()));
  if (files.empty()) return absl::NotFoundError(StrCat("No .pb or .pb.gz files in ", path));
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<CaseFile> ReadCaseFile(const std::string& file) {
  // zlib reads files that are not compressed as they are.
  const std::unique_ptr<gzFile_s, CloseGzip> in(gzopen(file.c_str(), "rb"));
  if (!in) return absl::NotFoundError(StrCat("Cannot open ", file));
  std::string bytes;
  char block[64 << 10];
  int n;
  while ((n = gzread(in.get(), block, sizeof(block))) > 0) bytes.append(block, n);
  int error = Z_OK;
  const char* message = gzerror(in.get(), &error);
  if (n < 0 || (error != Z_OK && error != Z_STREAM_END)) {
    return absl::DataLossError(StrCat("Cannot read ", file, ": ", message));
  }
  CaseFile cases;
  if (!cases.ParseFromString(bytes)) {
    return absl::DataLossError(StrCat(file, " is not a file of golden cases"));
  }
  return cases;
}

}  // namespace troupe::golden
