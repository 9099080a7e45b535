// Tensors that a session keeps: GetSessionHandle and its kin.

#include "kernels/state/session_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "api/troupe.h"
#include "devices/resource_handle.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Code = absl::StatusCode;

class SessionTensorsTest : public testing::Test {
 protected:
  SessionTensorsTest() {
    x_ = ops::Placeholder(s_.WithOpName("x"), ElementType::kFloat);
    name_ = ops::Placeholder(s_.WithOpName("name"), ElementType::kString);
    handle_ = ops::GetSessionHandle(s_.WithOpName("keep"), x_);
    resource_ = ops::GetSessionHandleV2(s_, x_);
    value_ = ops::GetSessionTensor(s_, name_, ElementType::kFloat);
    forget_ = ops::DeleteSessionTensor(s_, name_);
    EXPECT_TRUE(s_.ok()) << s_.status();
    SessionOptions options;
    options.num_cpu_devices = 2;
    session_ = *Session::Create(s_.graph(), options);
  }
  std::string Keep(const Tensor& value) {
    const auto kept = session_->Run({{x_, value}}, {handle_});
    EXPECT_TRUE(kept.ok()) << kept.status();
    return (*kept)[0].unchecked_scalar<std::string>();
  }
  absl::StatusOr<std::vector<Tensor>> Get(const std::string& handle) {
    return session_->Run({{name_, Tensor::Scalar(handle)}}, {value_});
  }
  absl::Status Forget(const std::string& handle) {
    return session_->RunTargets({forget_}, {{name_, Tensor::Scalar(handle)}});
  }

  const size_t before_ = SessionTensors::Global()->size();
  Scope s_ = Scope::NewRoot();
  Output x_, name_, handle_, resource_, value_;
  Node* forget_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTensorsTest, LaterStepsGetWhatWasKept) {
  const Tensor one = Tensor::Vector<float>({1, 2});
  const std::string a = Keep(one), b = Keep(Tensor::Scalar(7.0F));
  EXPECT_NE(a, b);
  EXPECT_THAT(a, HasSubstr("keep;"));
  EXPECT_THAT(a, HasSubstr(";/job:localhost/replica:0/task:0/device:CPU:0"));
  const auto got = Get(a);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].unchecked_data<float>()[1], 2.0F);
  EXPECT_EQ((*got)[0].raw_data(), one.raw_data());  // not copied
  EXPECT_EQ((*Get(b))[0].unchecked_scalar<float>(), 7.0F);
  EXPECT_TRUE(Forget(a).ok());
  EXPECT_EQ(Get(a).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Forget(a).code(), Code::kInvalidArgument);
  EXPECT_TRUE(Get(b).ok());
}

TEST_F(SessionTensorsTest, OtherDevicesAndTypes) {
  const std::string a = Keep(Tensor::Scalar(3.0F));
  const Output far =
      ops::GetSessionTensor(s_.WithDevice("/device:CPU:1"), name_, ElementType::kFloat);
  const Output wrong = ops::GetSessionTensor(s_, name_, ElementType::kInt32);
  const auto got = session_->Run({{name_, Tensor::Scalar(a)}}, {far});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].unchecked_scalar<float>(), 3.0F);
  const absl::Status status = session_->Run({{name_, Tensor::Scalar(a)}}, {wrong}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has type float, not int32"));
  const Tensor two = Tensor::Vector<std::string>({a, a});
  EXPECT_EQ(session_->Run({{name_, two}}, {value_}).status().code(), Code::kInvalidArgument);
}

TEST_F(SessionTensorsTest, TheResourceIsNamedByTheHandle) {
  const auto kept = session_->Run({{x_, Tensor::Scalar(5.0F)}}, {resource_});
  ASSERT_TRUE(kept.ok()) << kept.status();
  const ResourceHandle& handle = (*kept)[0].unchecked_scalar<ResourceHandle>();
  EXPECT_EQ(handle.type_name, "TensorHandle");
  EXPECT_EQ((*Get(handle.name))[0].unchecked_scalar<float>(), 5.0F);
}

TEST_F(SessionTensorsTest, EndWithTheirSession) {
  for (int i = 0; i < 100; ++i) Keep(Tensor::Scalar(1.0F));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Forget(Keep(Tensor::Scalar(1.0F))).ok());
  EXPECT_EQ(SessionTensors::Global()->size(), before_ + 100);
  session_.reset();
  EXPECT_EQ(SessionTensors::Global()->size(), before_);
}

TEST_F(SessionTensorsTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const float value = static_cast<float>(t * 1000 + i);
        const std::string handle = Keep(Tensor::Scalar(value));
        EXPECT_EQ((*Get(handle))[0].unchecked_scalar<float>(), value);
        EXPECT_TRUE(Forget(handle).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(SessionTensors::Global()->size(), before_);
}

}  // namespace
}  // namespace troupe
