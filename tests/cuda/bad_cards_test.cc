// Cards that are not there, are lost, or have no memory left: each in a process of its own, as a
// process looks for cards once. On CUDA on the host (tests/cuda_on_host), whose environment says
// what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "api/program/child_process.h"
#include "api/troupe.h"
#include "devices/device_registry.h"
#include "graph/protos/stats.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Environment = std::map<std::string, std::string>;

/// Runs `body` in a process of its own, which writes what it says with `Say`.
ChildProcess Child(const Environment& environment, const std::function<void()>& body) {
  absl::StatusOr<ChildProcess> child = ChildProcess::Fork(
      [&] {
        for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
        body();
        return 0;
      },
      {.input = true, .output = true});
  return *std::move(child);
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}
void Say(const absl::Status& status) { Say(absl::StrReplaceAll(status.ToString(), {{"\n", " "}})); }

/// What it says, a line.
std::string Heard(ChildProcess& child) {
  return child.Line(absl::Seconds(60)).value_or("(nothing within 60 s)");
}

/// What a session with these cards is told.
std::string Told(const Environment& environment, const DeviceOptions& cards = {}) {
  ChildProcess child = Child(environment, [&] {
    SessionOptions options;
    options.devices["GPU"] = cards;
    Say(Session::Create(std::make_shared<Graph>(), options).status());
  });
  return Heard(child);
}

TEST(BadCards, NoDriver) {
  EXPECT_THAT(Told({{"CUDA_ON_HOST_DRIVER", "0"}}),
              AllOf(StartsWith("FAILED_PRECONDITION"),
                    HasSubstr("there is no NVIDIA driver on this machine: install one, or ask for "
                              "no GPU")));
}

TEST(BadCards, ADriverThatIsTooOld) {
  EXPECT_THAT(Told({{"CUDA_ON_HOST_DRIVER", "12040"}}),
              AllOf(StartsWith("FAILED_PRECONDITION"), HasSubstr("knows CUDA up to 12.4, and 13."),
                    HasSubstr("install a newer")));
}

TEST(BadCards, CardsThatAreNotThere) {
  EXPECT_EQ(Told({}), "OK");
  EXPECT_EQ(Told({}, {.count = 2}), "OK");
  EXPECT_EQ(Told({}, {.visible = {1}}), "OK");
  EXPECT_THAT(Told({}, {.count = 3}),
              AllOf(StartsWith("INVALID_ARGUMENT"),
                    HasSubstr("asked for 3 devices of type GPU, but there are only 2")));
  EXPECT_THAT(Told({}, {.visible = {5}}),
              AllOf(StartsWith("INVALID_ARGUMENT"),
                    HasSubstr("there is no GPU device number 5: the machine has 2")));
  EXPECT_THAT(Told({{"CUDA_ON_HOST_CARDS", "0"}}), Not(StartsWith("OK")));
}

TEST(BadCards, OneThatAnotherProcessHasForItself) {
  EXPECT_THAT(Told({{"CUDA_ON_HOST_EXCLUSIVE", "1"}}),
              AllOf(StartsWith("UNAVAILABLE"), HasSubstr("card 0"), HasSubstr("busy")));
}

/// What a step of one node is told, and where it ran: "" if it failed.
std::pair<absl::Status, std::string> RunOne(bool soft,
                                            const std::function<Output(const Scope&)>& build) {
  const Scope s = Scope::NewRoot();
  const Output y = build(s);
  SessionOptions options;
  options.devices["GPU"] = {};
  options.allow_soft_placement = soft;
  options.optimize = false;  // The node is not folded away.
  auto session = Session::Create(s.graph(), options).value();
  RunOptions traced;
  traced.trace = true;
  RunMetadata metadata;
  const absl::Status status = session->Run({}, {y}, {}, traced, &metadata).status();
  std::string where;
  for (const DeviceStepStats& device : metadata.step_stats().dev_stats()) {
    for (const NodeExecStats& node : device.node_stats()) {
      if (node.timeline_label().starts_with("it = ")) where = device.device();
    }
  }
  return {status, where};
}

TEST(BadCards, KernelsThatAreMissingForAType) {
  const auto build = [](const Scope& s) {
    const auto ints = [&](std::vector<int32_t> values, const Shape& shape) {
      return ops::Const(s, *Tensor::FromValues<int32_t>(values, shape));
    };
    return ops::Conv2D(s.WithOpName("it").WithDevice("/device:GPU:0"),
                       ints({1, 2, 3, 4}, Shape({1, 2, 2, 1})), ints({5}, Shape({1, 1, 1, 1})),
                       {1, 1, 1, 1}, "VALID");
  };
  ChildProcess child = Child({}, [&] {
    Say(RunOne(/*soft=*/false, build).first);
    const auto [status, where] = RunOne(/*soft=*/true, build);
    Say(status);
    Say(where);
  });
  // The types for which there are some.
  EXPECT_THAT(Heard(child), AllOf(StartsWith("INVALID_ARGUMENT"), HasSubstr("'it'"),
                                  HasSubstr("has no kernel on GPU"), HasSubstr("T=int32"),
                                  HasSubstr("registered are:")));
  EXPECT_EQ(Heard(child), "OK");
  EXPECT_THAT(Heard(child), HasSubstr("device:CPU:0"));
}

TEST(BadCards, ANodeThatAsksForOneThatIsNotThere) {
  const auto build = [](const Scope& s) {
    return ops::Fill(s.WithOpName("it").WithDevice("/device:GPU:7"), Tensor::Vector<int32_t>({2}),
                     1.0f);
  };
  ChildProcess child = Child({}, [&] {
    Say(RunOne(/*soft=*/false, build).first);
    const auto [status, where] = RunOne(/*soft=*/true, build);
    Say(status);
    Say(where);
  });
  EXPECT_THAT(Heard(child), AllOf(StartsWith("INVALID_ARGUMENT"),
                                  HasSubstr("asks for device /device:GPU:7, which does not exist"),
                                  HasSubstr("device:GPU:0")));
  EXPECT_EQ(Heard(child), "OK");
  EXPECT_THAT(Heard(child), HasSubstr("device:CPU:0"));
}

/// y = x + x + ... on the card, of a placeholder x.
struct Sum {
  explicit Sum(int64_t limit = 0, std::vector<int> visible = {}) {
    Scope s = Scope::NewRoot();
    const Scope card = s.WithDevice("/device:GPU:0");
    x = ops::Placeholder(s.WithOpName("x"), ElementType::kFloat);
    y = ops::Add(card.WithOpName("y"), x, x);
    SessionOptions options;
    options.devices["GPU"].memory_limit = limit;
    options.devices["GPU"].visible = std::move(visible);
    session = Session::Create(s.graph(), options).value();
  }
  absl::Status Run(int64_t num_elements) {
    const Tensor ones = *Tensor::FromValues<float>(
        std::vector<float>(static_cast<size_t>(num_elements), 1), Shape({num_elements}));
    const absl::StatusOr<std::vector<Tensor>> values = session->Run({{x, ones}}, {y});
    if (!values.ok()) return values.status();
    for (int64_t i = 0; i < num_elements; ++i) {
      const float value = (*values)[0].unchecked_data<float>()[i];
      if (value != 2) return absl::DataLossError(StrCat("1 + 1 = ", value));
    }
    return absl::OkStatus();
  }
  Output x, y;
  std::unique_ptr<Session> session;
};

// Steps that have not ended fail, as do all that come: none gives wrong values, none hangs.
TEST(BadCards, OneThatIsLost) {
  ChildProcess child = Child({{"CUDA_ON_HOST_LOST_AFTER", "10"}}, [] {
    Sum sum;
    absl::Status status;
    int good = 0;
    while (good < 100 && (status = sum.Run(100)).ok()) ++good;
    Say(StrCat(good));
    Say(status);
    Say(sum.Run(100));
    SessionOptions options;
    options.devices["GPU"] = {};
    Say(Session::Create(std::make_shared<Graph>(), options).status());
  });
  const int good = std::stoi(Heard(child));
  EXPECT_GE(good, 5);
  EXPECT_LE(good, 10);
  for (const char* when : {"the step", "a later one", "a later session"}) {
    const std::string said = Heard(child);
    EXPECT_THAT(said, AllOf(StartsWith("UNAVAILABLE"), HasSubstr("unspecified launch failure")))
        << when;
    EXPECT_TRUE(said.find("GPU:0") != std::string::npos || said.find("card 0") != std::string::npos)
        << when << ": " << said;
  }
}

/// A card whose number is not 0, asked by threads that have chosen none.
void AskTheSecondCard() {
  auto devices =
      DeviceRegistry::Global()->MakeDevices("j", 0, {{"GPU", {.visible = {1}}}}, nullptr);
  Say(devices.status());
  Device* const card = devices->back().get();
  const auto apart = [](const std::function<void()>& body) { std::thread(body).join(); };
  Allocator* const pinned = card->allocator(MemorySpace::kPinned);
  apart([pinned] {
    void* const block = pinned->Allocate(1000);
    Say(block != nullptr ? "OK" : "no pinned memory");
    pinned->Free(block, 1000);
  });
  apart([pinned] { pinned->Trim(); });
  constexpr int64_t kElements = 1 << 20;
  const Tensor large = Tensor::Uninitialized(ElementType::kFloat, Shape({kElements}));
  const Tensor there = *Upload(card, large);
  apart([card] {
    std::promise<absl::Status> done;
    card->stream(StreamUse::kUpload)->WhenDone([&](absl::Status status) {
      done.set_value(std::move(status));
    });
    Say(done.get_future().get());
  });
  // It may be quicker than this thread, but not every time.
  Stream* const upload = card->stream(StreamUse::kUpload);
  bool busy = false;
  for (int attempt = 0; attempt < 100 && !busy; ++attempt) {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(card->Copy(large, there, upload).ok());
    apart([upload, &busy] { busy = !upload->Done(); });
  }
  Say(busy ? "OK" : "always done");
  while (!upload->Done()) std::this_thread::yield();
}

// Card 0 is not ours: what comes to it would make a context there.
TEST(BadCards, OneThatIsNotToBeTouched) {
  ChildProcess child = Child({}, AskTheSecondCard);
  EXPECT_EQ(Heard(child), "OK");
  for (const char* what : {"pinned memory", "WhenDone", "Done"}) {
    EXPECT_EQ(Heard(child), "OK") << what;
  }
  ChildProcess steps = Child({}, [] {
    Sum sum(/*limit=*/0, /*visible=*/{1});
    for (int i = 0; i < 5; ++i) Say(sum.Run(1 << 18));
  });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Heard(steps), "OK");
}

// The host waits instead: nobody is told of a copy that is still to be made.
TEST(BadCards, OneThatHasNoEvents) {
  ChildProcess child = Child({{"CUDA_ON_HOST_NO_EVENTS", "1"}}, [] {
    Sum sum;
    for (int i = 0; i < 20; ++i) Say(sum.Run(1 << 16));
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Heard(child), "OK");
}

// One that comes later has what the first one has left, and is told if that becomes less.
TEST(BadCards, TwoProcessesOnOne) {
  const std::string notes = StrCat(::testing::TempDir(), "/cards_", getpid());
  std::filesystem::remove(notes);
  const Environment shared = {{"CUDA_ON_HOST_TAKEN", notes}};
  constexpr int32_t kMiB = (1 << 20) / sizeof(float);
  // Keeps a variable of 40 MiB until its input ends.
  const auto keep = [] {
    Scope s = Scope::NewRoot();
    const Scope card = s.WithDevice("/device:GPU:0");
    const Output w = ops::VarHandleOp(card, ElementType::kFloat, PartialShape({40 * kMiB}));
    Node* const init =
        ops::AssignVariableOp(card, w, ops::Fill(card, Tensor::Vector<int32_t>({40 * kMiB}), 1.0f));
    SessionOptions options;
    options.devices["GPU"] = {};
    auto session = Session::Create(s.graph(), options).value();
    Say(s.status());
    std::getchar();
    Say(session->RunTargets({init}));
    while (std::getchar() != EOF) {
    }
  };
  ChildProcess first = Child(shared, keep);
  ASSERT_EQ(Heard(first), "OK");
  ChildProcess second = Child(shared, [] {
    Sum sum;  // With all the memory.
    Say(sum.Run(8 * kMiB));
    std::getchar();
    Say(sum.Run(4 * kMiB));
    Say(sum.Run(16 * kMiB));
    Say(sum.Run(4 * kMiB));
    std::getchar();
  });
  EXPECT_EQ(Heard(second), "OK");
  first.Say("");
  ASSERT_EQ(Heard(first), "OK");
  second.Say("");
  EXPECT_EQ(Heard(second), "OK");
  EXPECT_THAT(Heard(second),
              AllOf(StartsWith("RESOURCE_EXHAUSTED"), HasSubstr("node y"),
                    HasSubstr("the card has "), HasSubstr(" bytes left for all processes")));
  EXPECT_EQ(Heard(second), "OK");
  // A block less than 8 MiB is its limit: what the second one keeps is not to be had.
  ChildProcess third = Child(shared, [] { Say(Sum().Run(16 * kMiB)); });
  EXPECT_THAT(Heard(third),
              AllOf(StartsWith("RESOURCE_EXHAUSTED"), HasSubstr("the limit is 8388096")));
  for (ChildProcess* child : {&second, &first}) {
    child->CloseInput();
    EXPECT_TRUE(child->Wait(absl::Seconds(60))->ok());
  }
  std::filesystem::remove(notes);
}

}  // namespace
}  // namespace troupe
