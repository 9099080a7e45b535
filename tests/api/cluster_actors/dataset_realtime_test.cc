// Elements of a dataset that an actor of another process gives.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "api/dataset.h"
#include "api/program/child_process.h"
#include "tests/api/cluster_actors/cluster_actors.h"

namespace troupe {
namespace {

constexpr char kTarget[] = "TROUPE_TEST_SOURCE";
constexpr int64_t kElements = 1000;

/// Answers the number that it is asked for, and how often it has been asked so far.
caf::behavior Numbers(caf::event_based_actor*) {
  auto asked = std::make_shared<int64_t>(0);
  return {[asked](ask_atom, const Tensors& in) -> caf::result<Tensors> {
    ++*asked;
    const auto number = in.at(1).unchecked_scalar<int64_t>();
    if (number >= kElements) return ToCafError(absl::OutOfRangeError("that is all"));
    return Tensors{Tensor::Scalar(number), Tensor::Scalar(*asked)};
  }};
}

/// What the process runs that the test below starts; skipped where nobody has started it.
TEST_F(ClusterActorsTest, Source) {
  const char* const target = std::getenv(kTarget);
  if (target == nullptr) GTEST_SKIP() << "the other test runs this one";
  Config config;
  auto node = ClusterNode::Join({.target = target, .config = &config});
  ASSERT_TRUE(node.ok()) << node.status();
  const auto published = (*node)->Publish("numbers", (*node)->system().spawn(Numbers));
  ASSERT_TRUE(published.ok()) << published.status();
  std::puts("published");
  std::fflush(stdout);
  while (true) absl::SleepFor(absl::Seconds(1));  // Until it is killed.
}

TEST_F(ClusterActorsTest, ADatasetOfAnotherProcess) {
  auto source = ChildProcess::Start(
      {.arguments = {"/proc/self/exe", "--gtest_filter=ClusterActorsTest.Source"},
       .environment = {{kTarget, Target(1)}},
       .output = true,
       .errors = true});
  ASSERT_TRUE(source.ok()) << source.status();
  std::optional<std::string> line;
  while ((line = source->Line()).has_value() && *line != "published") {
  }
  ASSERT_TRUE(line.has_value());

  auto node = Join();
  EXPECT_EQ(node->Import("nobody").status().code(), absl::StatusCode::kNotFound);
  auto imported = node->Import("numbers");
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(node->Import("numbers").status().code(), absl::StatusCode::kAlreadyExists);

  // All of them, in order, and no more are asked for than have been taken and may be under way.
  constexpr int kInFlight = 16;
  const Dataset dataset = Dataset::FromActor("numbers", {.in_flight = kInFlight});
  auto iterator = dataset.MakeIterator();
  ASSERT_TRUE(iterator.ok()) << iterator.status();
  Tensors element;
  for (int64_t i = 0; i < kElements; ++i) {
    const auto more = (*iterator)->Next(&element);
    ASSERT_TRUE(more.ok() && *more) << more.status();
    EXPECT_EQ(element[0].unchecked_scalar<int64_t>(), i);
    EXPECT_LE(element[1].unchecked_scalar<int64_t>(), i + kInFlight);
    // Who stops, stops the source.
    if (i == 100) absl::SleepFor(absl::Milliseconds(200));
  }
  auto more = (*iterator)->Next(&element);
  EXPECT_TRUE(more.ok() && !*more) << more.status();

  // A position, in another iterator.
  auto second = *dataset.MakeIterator();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(second->Next(&element).ok());
  const auto position = second->Save();
  ASSERT_TRUE(position.ok()) << position.status();
  auto third = *dataset.MakeIterator();
  ASSERT_EQ(third->Restore(*position), absl::OkStatus());
  ASSERT_TRUE(third->Next(&element).ok());
  EXPECT_EQ(element[0].unchecked_scalar<int64_t>(), 10);

  // The process is lost: after the elements that have come, an error that names it.
  source->End(SIGKILL);
  absl::Status status;
  for (int i = 0; status.ok() && i < kElements; ++i) status = third->Next(&element).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("FromActor(numbers): actor numbers of client:"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(" at 127.0.0.1:"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("lost with its process"));
  EXPECT_EQ(third->Next(&element).status(), status);
}

}  // namespace
}  // namespace troupe
