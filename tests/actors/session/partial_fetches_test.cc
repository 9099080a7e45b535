#include "actors/session/partial_fetches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PartialFetchesTest : public testing::Test {
 protected:
  /// Asks, and writes the answer down.
  PartialFetches::Answers Want(std::vector<int> fetches) {
    return fetches_.Want(std::move(fetches), [this](absl::Status status, std::vector<Tensor> got) {
      statuses_.push_back(status.code());
      for (const Tensor& value : got) values_.push_back(value.unchecked_scalar<int32_t>());
    });
  }
  static void Give(PartialFetches::Answers answers) {
    for (auto& answer : answers) answer();
  }

  PartialFetches fetches_{3};
  std::vector<absl::StatusCode> statuses_;
  std::vector<int32_t> values_;
};

TEST_F(PartialFetchesTest, AnswersWhenAllThatIsWantedHasBeenMade) {
  Give(Want({2, 0}));
  Give(fetches_.Made(0, Tensor::Scalar(10)));
  EXPECT_THAT(statuses_, IsEmpty());
  Give(fetches_.Made(2, Tensor::Scalar(12)));
  EXPECT_THAT(values_, ElementsAre(12, 10));
  Give(fetches_.Made(1, Tensor::Scalar(11)));
  Give(Want({1}));
  EXPECT_THAT(values_, ElementsAre(12, 10, 11));
  EXPECT_FALSE(fetches_.TakeEnd()) << "its nodes run";
  Give(fetches_.Ran(absl::OkStatus()));
  EXPECT_EQ(fetches_.TakeEnd(), absl::OkStatus());
  EXPECT_FALSE(fetches_.TakeEnd()) << "once";
}

TEST_F(PartialFetchesTest, WaitsForItsFetchesToBeTaken) {
  for (int i = 0; i < 3; ++i) Give(fetches_.Made(i, Tensor::Scalar(i)));
  Give(fetches_.Ran(absl::OkStatus()));
  EXPECT_FALSE(fetches_.TakeEnd());
  Give(Want({0, 1}));
  EXPECT_FALSE(fetches_.TakeEnd());
  Give(Want({2}));
  EXPECT_TRUE(fetches_.TakeEnd());
}

TEST_F(PartialFetchesTest, EachIsFetchedOnce) {
  Give(fetches_.Made(0, Tensor::Scalar(0)));
  Give(Want({0}));
  Give(Want({0}));
  Give(Want({3}));
  Give(Want({-1}));
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(statuses_, ElementsAre(absl::StatusCode::kOk, bad, bad, bad));
}

TEST_F(PartialFetchesTest, AnErrorReachesEverybody) {
  Give(Want({0}));
  Give(fetches_.Ran(absl::InternalError("broken")));
  Give(Want({1}));
  EXPECT_THAT(statuses_, ElementsAre(absl::StatusCode::kInternal, absl::StatusCode::kInternal));
  EXPECT_EQ(fetches_.TakeEnd(), absl::InternalError("broken"));
}

TEST_F(PartialFetchesTest, DeadAndMissingFetchesAreRefused) {
  Give(Want({0}));
  Give(Want({1}));
  Give(fetches_.Made(0, Tensor(), /*dead=*/true));
  Give(fetches_.Ran(absl::OkStatus()));
  const auto bad = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(statuses_, ElementsAre(bad, bad));
}

TEST_F(PartialFetchesTest, IsAbandonedOnceItsNodesHaveRun) {
  EXPECT_THAT(fetches_.Abandon(absl::CancelledError("closed")), IsEmpty());
  Give(fetches_.Ran(absl::OkStatus()));
  Give(fetches_.Abandon(absl::CancelledError("closed")));
  EXPECT_EQ(fetches_.TakeEnd(), absl::CancelledError("closed"));
}

}  // namespace
}  // namespace troupe
