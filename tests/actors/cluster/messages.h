/// Messages for tests, written as text.
#ifndef TROUPE_TESTS_ACTORS_CLUSTER_MESSAGES_H_
#define TROUPE_TESTS_ACTORS_CLUSTER_MESSAGES_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "actors/cluster/calls.h"

namespace troupe {

/// A message from a life of a task (empty: of a client). `text` may say otherwise.
inline cluster::Message MessageFrom(const std::string& task, uint64_t incarnation,
                                    const std::string& text) {
  cluster::Message message;
  message.set_version(kProtocolVersion);
  message.mutable_sender()->set_task(task);
  message.mutable_sender()->set_incarnation(incarnation);
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(text, &message)) << text;
  return message;
}

inline absl::StatusCode CodeOf(const cluster::Message& reply) {
  return StatusOf(reply.status()).code();
}

}  // namespace troupe

#endif  // TROUPE_TESTS_ACTORS_CLUSTER_MESSAGES_H_
