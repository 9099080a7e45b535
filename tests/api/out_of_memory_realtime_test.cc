// Kernels for which a process has no memory: its address space is limited while they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/troupe.h"
#include "tests/api/free_port.h"
#include "tests/api/troupe_process.h"

namespace troupe {
namespace {

/// What this process has in use of its address space.
rlim_t AddressSpace() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long pages = 0;
  EXPECT_EQ(std::fscanf(file, "%lu", &pages), 1);
  std::fclose(file);
  return static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

/// Limits the address space of this process, and of those that it starts meanwhile.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

struct Case {
  const char* name;
  std::function<Output(const Scope&)> make;
};

Output Numbers(const Scope& s, int32_t n) { return ops::Range(s, 0, n, 1); }
Output Matrix(const Scope& s, int32_t n) {
  // Positive definite: the identity and a little more.
  return ops::MatrixDiag(s, ops::Add(s, ops::Cast(s, Numbers(s, n), ElementType::kFloat), 1.0f));
}

const Case kCases[] = {
    {"Unique", [](const Scope& s) { return ops::Unique(s, Numbers(s, 2000000)).y; }},
    {"MatrixInverse", [](const Scope& s) { return ops::MatrixInverse(s, Matrix(s, 900)); }},
    {"Cholesky", [](const Scope& s) { return ops::Cholesky(s, Matrix(s, 900)); }},
    {"StringFill",
     [](const Scope& s) {
       return ops::Fill(s, Const(s, Tensor::Vector<int32_t>({1000000})),
                        Const(s, Tensor::Scalar<std::string>(std::string(100, 'a'))));
     }},
    {"Where", [](const Scope& s) { return ops::Where(s, ops::Less(s, -1, Numbers(s, 2000000))); }},
    {"RandomShuffle", [](const Scope& s) { return ops::RandomShuffle(s, Numbers(s, 4000000)); }},
};

TEST(MemoryLimitTest, KernelsFailAndTheProcessGoesOn) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Scope s = Scope::NewRoot();
    Output y = c.make(s.WithOpName("culprit"));
    Output small = ops::Add(s, 1.0f, 2.0f);
    ASSERT_TRUE(s.ok()) << s.status();
    SessionOptions options;
    options.threads = 2;
    options.optimize = false;  // Nothing is computed beforehand.
    auto session = Session::Create(s.graph(), options);
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE((*session)->Run({small}).ok());
    int failures = 0;
    absl::Status status = absl::UnknownError("");
    for (rlim_t room = 1 << 20; !status.ok(); room = room * 3 / 2) {
      {
        const AddressSpaceLimit limit(AddressSpace() + room);
        status = (*session)->Run({y}).status();
      }
      HostAllocator()->Trim();
      if (!status.ok()) {
        ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
        ++failures;
      }
      ASSERT_TRUE((*session)->Run({small}).ok());
      ASSERT_LT(room, rlim_t{1} << 34);
    }
    EXPECT_GT(failures, 0);
    EXPECT_TRUE((*session)->Close().ok());
  }
}

TEST(MemoryLimitTest, AWorkerAnswersAndServesOn) {
  const std::string address = "127.0.0.1:" + std::to_string(FreePort());
  const std::string file = testing::TempDir() + "/memory_" + std::to_string(getpid()) + ".json";
  std::ofstream(file) << "{\"worker\": [\"" << address << "\"]}";
  std::unique_ptr<TroupeProcess> worker;
  {
    const AddressSpaceLimit limit(rlim_t{2000} << 20);
    worker = std::make_unique<TroupeProcess>(
        std::vector<std::string>{"worker", "--cluster", file, "--job", "worker", "--task", "0"});
  }
  ASSERT_THAT(worker->Line(), testing::StartsWith("ready"));
  SessionOptions options;
  options.target = "troupe://" + address;
  const struct {
    const char* name;
    std::function<Output(const Scope&)> make;
  } cases[] = {
      {"StringFill",
       [](const Scope& s) {
         return ops::Size(s,
                          ops::Fill(s, Const(s, Tensor::Vector<int32_t>({30000000})),
                                    Const(s, Tensor::Scalar<std::string>(std::string(100, 'a')))));
       }},
      {"Unique",
       [](const Scope& s) { return ops::Size(s, ops::Unique(s, Numbers(s, 60000000)).y); }},
      {"Where",
       [](const Scope& s) {
         return ops::Size(s, ops::Where(s, ops::Less(s, -1, Numbers(s, 100000000))));
       }},
      {"RandomShuffle",
       [](const Scope& s) { return ops::Size(s, ops::RandomShuffle(s, Numbers(s, 200000000))); }},
      {"AFetch",
       [](const Scope& s) {
         return ops::Fill(s, Const(s, Tensor::Vector<int32_t>({150000000})), 1.0f);
       }},
  };
  RunOptions run;
  run.timeout = absl::Seconds(60);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Scope s = Scope::NewRoot();
    Output large = c.make(s);
    Output small = ops::Add(s, 1.0f, 2.0f);
    ASSERT_TRUE(s.ok()) << s.status();
    options.optimize = false;
    auto session = Session::Create(s.graph(), options);
    ASSERT_TRUE(session.ok()) << session.status();
    for (int i = 0; i < 2; ++i) {
      const auto result = (*session)->Run({}, {large}, {}, run);
      EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
      const auto value = (*session)->Run({}, {small}, {}, run);
      ASSERT_TRUE(value.ok()) << value.status();
      EXPECT_EQ((*value)[0].unchecked_scalar<float>(), 3);
    }
    const absl::Status closed = (*session)->Close();
    EXPECT_TRUE(closed.ok()) << closed;
  }
  // What the failed steps had is free: most of it is used once more.
  Scope s = Scope::NewRoot();
  Output most = ops::Size(s, Numbers(s, 200000000));
  auto session = Session::Create(s.graph(), options);
  ASSERT_TRUE(session.ok()) << session.status();
  const auto size = (*session)->Run({}, {most}, {}, run);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ((*size)[0].unchecked_scalar<int32_t>(), 200000000);
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_TRUE(worker->End(SIGTERM).ok());
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace troupe
