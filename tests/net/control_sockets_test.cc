#include "net/control_sockets.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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

}  // namespace
}  // namespace troupe
