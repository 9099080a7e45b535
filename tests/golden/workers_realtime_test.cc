// The worker processes of troupe_golden. This program is also what they run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "api/troupe.h"
#include "devices/status_macros.h"
#include "tests/golden/workers.h"

namespace troupe::golden {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

absl::StatusOr<size_t> CountDevices(const Workers& workers) {
  SessionOptions options;
  options.target = workers.target();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                          Session::Create(std::make_shared<Graph>(), options));
  TROUPE_ASSIGN_OR_RETURN(const std::vector<DeviceAttributes> devices, session->ListDevices());
  return devices.size();
}

TEST(Workers, ServeAndAreStartedAgainWhenTheyDie) {
  Workers workers;
  ASSERT_TRUE(workers.Start(2).ok());
  EXPECT_THAT(workers.devices(), ElementsAre("/job:worker/task:0", "/job:worker/task:1"));
  EXPECT_EQ(CountDevices(workers).value_or(0), 2u);
  EXPECT_THAT(workers.Revive(), IsEmpty());
  kill(workers.pid(1), SIGKILL);
  std::vector<std::string> died;
  const absl::Time limit = absl::Now() + absl::Seconds(10);
  while (died.empty() && absl::Now() < limit) died = workers.Revive();
  EXPECT_THAT(died, ElementsAre(HasSubstr("/job:worker/task:1 was killed by signal 9")));
  EXPECT_EQ(CountDevices(workers).value_or(0), 2u);
}

}  // namespace
}  // namespace troupe::golden

int main(int argc, char** argv) {
  int status = 0;
  if (troupe::golden::ServeTask(argc, argv, &status)) return status;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
