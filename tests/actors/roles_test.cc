// What holds of all roles: they know no clock, thread or socket, and their messages are in the
// manual.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/protos/cluster.pb.h"

namespace troupe {
namespace {

bool IsForbidden(const std::string& line) {
  static const std::regex forbidden(
      R"(<(chrono|thread|future|ctime|time\.h|sched\.h|pthread\.h|unistd\.h|sys/(?!uio).*|netinet/.*)>|)"
      R"([<"]caf/|asio|)"
      R"(_clock\b|clock_gettime|gettimeofday|absl::Now|GetCurrentTimeNanos|TimeSource::System|)"
      R"(\bstd::(jthread|thread|async)\b|this_thread|pthread_|sched_yield|SleepFor|sleep|)"
      R"((\.|->)wait_(for|until)\b|future<)");
  return std::regex_search(line, forbidden);
}

TEST(RolesTest, KnowNoClockThreadOrSocket) {
  std::vector<std::string> found;
  int files = 0;
  std::vector<std::filesystem::path> paths(std::filesystem::recursive_directory_iterator("actors"),
                                           {});
  paths.insert(paths.end(), std::filesystem::recursive_directory_iterator("kernels/queues"), {});
  // What of the link between processes is logic alone.
  for (const char* role :
       {"handshake", "credits", "send_queue", "frame_reader", "message_assembler", "stall_watch"}) {
    for (const char* suffix : {".h", ".cc"}) {
      const std::filesystem::path path = std::string("net/") + role + suffix;
      if (std::filesystem::exists(path)) paths.push_back(path);
    }
  }
  for (const std::filesystem::path& path : paths) {
    const std::string name = path.generic_string();
    if (!name.ends_with(".h") && !name.ends_with(".cc")) continue;
    ++files;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (IsForbidden(line)) found.push_back(absl::StrCat(name, ": ", line));
    }
  }
  EXPECT_GT(files, 50) << "is this the source folder?";
  // The runtime is no role: it is what sessions are given their threads and their clock by.
  EXPECT_EQ(
      found,
      std::vector<std::string>{
          "actors/runtime.h:     TimeSource* clock = TimeSource::System();  ///< Outlives the "
          "runtime."});
}

TEST(RolesTest, WhatIsForbiddenIsFound) {
  for (const char* line :
       {"const auto now = std::chrono::steady_clock::now();", "absl::Time t = absl::Now();",
        "#include <thread>", "std::thread([] {}).detach();", "clock_gettime(CLOCK_MONOTONIC, &t);",
        "#include <boost/asio.hpp>", "#include <caf/all.hpp>", "#include \"caf/actor.hpp\"",
        "std::this_thread::yield();", "TimeSource::System()->NowNs()",
        "changed_.wait_for(lock, patience);", "none->wait_until(lock, deadline)"}) {
    EXPECT_TRUE(IsForbidden(line)) << line;
  }
  for (const char* line : {"clock_->NowNs();", "TimeSource* clock() const;", "a thread of the pool",
                           "options.wait_for_workers", "changed_.wait(lock);"}) {
    EXPECT_FALSE(IsForbidden(line)) << line;
  }
}

std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::set<std::string> Matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.insert((*it)[1]);
  }
  return found;
}

TEST(ProtocolTest, TheManualNamesEveryMessage) {
  const std::string manual = Read("docs/protocol.md");
  std::set<std::string> messages;
  const auto* body = cluster::Message::descriptor()->FindOneofByName("body");
  for (int i = 0; i < body->field_count(); ++i) messages.insert(body->field(i)->name());
  EXPECT_GT(messages.size(), 30u);
  const std::string handles = Read("api/actors.h");
  const auto interfaces = Matches(handles, R"(using (\w+Actor) =\s+caf::typed_actor)");
  EXPECT_EQ(interfaces.size(), 10u);
  const auto atoms = Matches(handles, R"(re(?:plies|acts)_to<(?:caf::)?(\w+_atom))");
  EXPECT_GT(atoms.size(), 6u);
  const auto frames = Matches(Read("api/internal/actor_protocol.h"), R"((k\w+) = \d+,\s+//)");
  EXPECT_EQ(frames.size(), 13u);
  for (const auto& some : {interfaces, atoms, frames}) messages.insert(some.begin(), some.end());
  for (const std::string& message : messages) {
    EXPECT_NE(manual.find("`" + message + "`"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace troupe
