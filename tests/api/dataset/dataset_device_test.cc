// Iterators on a device with a memory of its own, here the simulated one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/troupe.h"
#include "tests/devices/simulated/simulated_device.h"
#include "tests/kernels/simulated/borrowed_kernels.h"

namespace troupe {
namespace {

using troupe::testing::NumSimulatedCopies;
constexpr int64_t kElements = 40, kLength = 5000;

class DatasetDevice : public ::testing::Test {
 protected:
  DatasetDevice() {
    troupe::testing::BorrowKernels();
    // Numbers in the device's memory; int32 and strings are on the host.
    const Dataset rows = Dataset::Range(0, kElements).Map([this](const Tensors& number) -> Tensors {
      ++made_;
      const int64_t i = number[0].unchecked_scalar<int64_t>();
      return {Row(i), Tensor::Scalar(static_cast<int32_t>(i)), Tensor::Scalar(std::to_string(i))};
    });
    published_.emplace(PublishDataset("device_rows", rows, {.threads = 1}).value());
    handle_ = ops::DatasetIterator(sim_.WithOpName("iterator"), "device_rows");
    next_ = ops::DatasetIteratorNext(
        sim_, handle_, {ElementType::kFloat, ElementType::kInt32, ElementType::kString});
    doubled_ = ops::Add(sim_, next_[0], next_[0]);
    save_ = ops::DatasetIteratorSave(sim_, handle_);
    position_ = ops::Placeholder(s_, ElementType::kString);
    restore_ = ops::DatasetIteratorRestore(sim_, handle_, position_);
    EXPECT_TRUE(s_.ok()) << s_.status();
  }
  static Tensor Row(int64_t i) {
    Tensor row = Tensor::Uninitialized(ElementType::kFloat, Shape({kLength}));
    for (int64_t k = 0; k < kLength; ++k) {
      row.mutable_data<float>()[k] = static_cast<float>(i * kLength + k);
    }
    return row;
  }
  std::unique_ptr<Session> NewSession(const troupe::testing::SimulatedOptions& simulated) {
    troupe::testing::UseSimulatedDevices(simulated);
    SessionOptions options;
    options.threads = 2;
    options.devices["SIM"] = {};
    auto session = Session::Create(s_.graph(), options);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  void ExpectElement(Session& session, int64_t i) {
    const auto values = session.Run({doubled_, next_[1], next_[2]});
    ASSERT_TRUE(values.ok()) << i << ": " << values.status();
    for (int64_t k = 0; k < kLength; ++k) {
      ASSERT_EQ((*values)[0].unchecked_data<float>()[k], 2 * static_cast<float>(i * kLength + k))
          << i;
    }
    EXPECT_EQ((*values)[1].unchecked_scalar<int32_t>(), i);
    EXPECT_EQ((*values)[2].unchecked_scalar<std::string>(), std::to_string(i));
  }

  const Scope s_ = Scope::NewRoot(), sim_ = s_.WithDevice("/device:SIM:0");
  std::atomic<int64_t> made_{0};
  std::optional<PublishedDataset> published_;
  OutputList next_;
  Output handle_, doubled_, save_, position_;
  Node* restore_ = nullptr;
};

TEST_F(DatasetDevice, GivesTheSameElements) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto session = NewSession({.seed = seed});
    for (int64_t i = 0; i < kElements; ++i) ExpectElement(*session, i);
    EXPECT_TRUE(absl::IsOutOfRange(session->Run({doubled_}).status()));
  }
}

// The device goes with its session, at any moment of the pipeline's.
TEST_F(DatasetDevice, GoesWithItsSession) {
  for (int run = 0; run < 100; ++run) {
    auto session = NewSession({});
    std::atomic<int> answered{0};
    for (int step = 0; step < 3; ++step) {
      session->RunAsync({}, {doubled_, next_[1]}, {},
                        [&](const absl::StatusOr<std::vector<Tensor>>&) { ++answered; });
    }
    // Ends before the first element, between two of them, or after the last.
    const absl::Time end = absl::Now() + absl::Seconds(60);
    while (answered < run % 4 && absl::Now() < end) std::this_thread::yield();
    session.reset();
    ASSERT_EQ(answered, 3) << run;
  }
}

// Nobody asks for more than the first element; two more are uploaded, and no third.
TEST_F(DatasetDevice, UploadsAheadOfTheStep) {
  const auto session = NewSession({});
  const int64_t before = NumSimulatedCopies();
  const auto settle = [&](int64_t wanted) {
    const absl::Time end = absl::Now() + absl::Seconds(60);
    // The simulated device tells nobody of its copies.
    while (NumSimulatedCopies() - before < wanted && absl::Now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    // A copy too many would come now; nothing says that none will.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return NumSimulatedCopies() - before;
  };
  for (int64_t steps = 1; steps <= 5; ++steps) {
    ASSERT_TRUE(session->RunTargets({doubled_.node}).ok());
    EXPECT_EQ(settle(steps + 2), steps + 2);
  }
  EXPECT_LT(made_, kElements) << "the source stops with the one who takes";
}

TEST_F(DatasetDevice, ItsPositionHasWhatWasUploaded) {
  Tensor position;
  {
    const auto session = NewSession({});
    for (int64_t i = 0; i < 7; ++i) ExpectElement(*session, i);
    const auto saved = session->Run({save_});
    ASSERT_TRUE(saved.ok()) << saved.status();
    position = (*saved)[0];
    ExpectElement(*session, 7);
  }
  const auto session = NewSession({.seed = 2});
  ASSERT_TRUE(session->RunTargets({restore_}, {{position_, position}}).ok());
  for (int64_t i = 7; i < kElements; ++i) ExpectElement(*session, i);
}

TEST_F(DatasetDevice, WhatHasNoRoomIsAnError) {
  const auto session = NewSession({.memory = kLength * 2});
  const absl::Status status = session->Run({doubled_}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST_F(DatasetDevice, EndsWhileItUploads) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto session = NewSession({.seed = seed, .max_delay_us = 2000});
    for (uint64_t i = 0; i < seed % 4; ++i) {
      ASSERT_TRUE(session->RunTargets({doubled_.node}).ok());
    }
  }
}

// Elements in the memory of a device are for its own kernels.
TEST_F(DatasetDevice, IsForKernelsOfItsDevice) {
  const Output fed = ops::Placeholder(s_, ElementType::kResource);
  const auto next_on = [&](const char* device) {
    return ops::DatasetIteratorNext(
        s_.WithDevice(device), fed,
        {ElementType::kFloat, ElementType::kInt32, ElementType::kString});
  };
  const OutputList on_host = next_on("/device:CPU:0"), on_other = next_on("/device:SIM:1"),
                   on_same = next_on("/device:SIM:0");
  troupe::testing::UseSimulatedDevices();
  SessionOptions options;
  options.devices["SIM"].count = 2;
  const auto session = Session::Create(s_.graph(), options).value();
  const Tensor handle = session->Run({handle_}).value()[0];
  const FeedMap feeds = {{fed, handle}};
  for (const auto& [next, device] : {std::pair(on_host, "CPU:0"), std::pair(on_other, "SIM:1")}) {
    const absl::Status status = session->Run(feeds, {next[1]}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    for (const std::string& part :
         {std::string("was made on /job:localhost/replica:0/task:0/device:SIM:0"),
          StrCat("this node runs on /job:localhost/replica:0/task:0/device:", device)}) {
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(part));
    }
  }
  const auto values = session->Run(feeds, {on_same[1]});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_scalar<int32_t>(), 0) << "none has been taken";
}

// Those on the host are uploaded by whoever takes them.
TEST_F(DatasetDevice, OneOfTheHostIsForAll) {
  const Output handle = ops::DatasetIterator(s_.WithDevice("/device:CPU:0"), "device_rows");
  const Output fed = ops::Placeholder(s_, ElementType::kResource);
  const OutputList next = ops::DatasetIteratorNext(
      sim_, fed, {ElementType::kFloat, ElementType::kInt32, ElementType::kString});
  const Output doubled = ops::Add(sim_, next[0], next[0]);
  const auto session = NewSession({});
  const FeedMap feeds = {{fed, session->Run({handle}).value()[0]}};
  const auto values = session->Run(feeds, {doubled});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].unchecked_data<float>()[3], 6);
}

}  // namespace
}  // namespace troupe
