#include "net/control_sockets.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "net/resolver.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Two sockets that are connected to each other.
struct Pair {
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
  ~Pair() {
    close(ends[0]);
    close(ends[1]);
  }
  bool ended() const {
    char byte = 0;
    return recv(ends[1], &byte, 1, MSG_DONTWAIT) == 0;
  }
  int ends[2];
};

TEST(ControlSockets, WhoSaysNothingIsHungUpOn) {
  ControlSockets sockets;
  Pair silent, speaking, gone;
  for (const Pair* pair : {&silent, &speaking, &gone}) sockets.Opened(pair->ends[0]);
  sockets.Spoke(speaking.ends[0]);
  sockets.Closing(gone.ends[0]);
  sockets.EndSilent(seconds(1000));
  EXPECT_FALSE(silent.ended());
  sockets.EndSilent(milliseconds(0));
  EXPECT_TRUE(silent.ended());
  EXPECT_FALSE(speaking.ended());
  EXPECT_FALSE(gone.ended());
}

TEST(ControlSockets, SeversWhatThereIsAndWhatComes) {
  ControlSockets sockets;
  Pair one, gone, later;
  sockets.Opened(one.ends[0]);
  sockets.Opened(gone.ends[0]);
  sockets.Spoke(one.ends[0]);
  sockets.Closing(gone.ends[0]);
  sockets.Sever();
  EXPECT_TRUE(one.ended());
  EXPECT_FALSE(gone.ended());
  sockets.Opened(later.ends[0]);
  EXPECT_TRUE(later.ended());
}

TEST(ControlSockets, ConnectsNoMoreOnceStopped) {
  ControlSockets sockets;
  sockets.StopConnecting();
  EXPECT_EQ(sockets.Connect("name.invalid", 1, seconds(100)), -1);
}

TEST(Resolver, NumbersComeAtOnceAndNamesOnce) {
  for (const auto& [host, number] :
       std::map<std::string, std::string>{{"localhost", "127.0.0.1"}, {"::1", "::1"}}) {
    Hosts hosts = absl::UnknownError("not called");
    Resolve(host, [&](const Hosts& answer) { hosts = answer; });
    ASSERT_TRUE(hosts.ok()) << hosts.status();
    EXPECT_EQ(hosts->front(), number);
  }
  // More questions than threads; labels as long as these are refused without a network.
  std::mutex mutex;
  std::condition_variable changed;
  int answers = 0;
  for (int i = 0; i < 60; ++i) {
    Resolve(std::string(70, 'x') + std::to_string(i / 3), [&](const Hosts& hosts) {
      EXPECT_TRUE(absl::IsUnavailable(hosts.status())) << hosts.status();
      std::lock_guard<std::mutex> lock(mutex);
      if (++answers == 60) changed.notify_one();
    });
  }
  std::unique_lock<std::mutex> lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, std::chrono::minutes(2), [&] { return answers == 60; }));
}

}  // namespace
}  // namespace troupe
