/// Reading files of golden cases.
#ifndef TROUPE_TESTS_GOLDEN_CASE_FILE_H_
#define TROUPE_TESTS_GOLDEN_CASE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/golden/golden.pb.h"

namespace troupe::golden {

/// The case files (`.pb`, `.pb.gz`) that a path names: itself, or those of a folder, sorted.
absl::StatusOr<std::vector<std::string>> ListCaseFiles(const std::string& path);

/// Reads a case file, compressed or not.
absl::StatusOr<CaseFile> ReadCaseFile(const std::string& file);

}  // namespace troupe::golden

#endif  // TROUPE_TESTS_GOLDEN_CASE_FILE_H_
