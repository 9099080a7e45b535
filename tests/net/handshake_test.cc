#include "net/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "devices/status_macros.h"
#include "net/frame.h"
#include "tests/how_many.h"
#include "tests/net/mutate.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

const Identity kWorker = {"/job:worker/replica:0/task:0", 11, "s3cret"};
const Identity kServer = {"/job:ps/replica:0/task:0", 22, "s3cret"};

StreamTerms Terms(int lane) { return {77, lane, 1 << 20, 1 << 30}; }

using Tamper = std::function<std::string(std::string)>;

/// Carries bytes to and fro until nobody has anything to say.
void Talk(Handshake* a, Handshake* b, const Tamper& from_a = nullptr,
          const Tamper& from_b = nullptr) {
  const auto deliver = [](std::string bytes, Handshake* to) {
    while (!bytes.empty() && to->wanted() > 0) {
      const size_t n = std::min(bytes.size(), to->wanted());
      to->Consume(bytes.substr(0, n));
      bytes.erase(0, n);
    }
  };
  for (int i = 0; i < 6; ++i) {
    std::string said = a->TakeOutput();
    deliver(from_a && !said.empty() ? from_a(said) : said, b);
    if (b->verified()) b->Welcome();
    said = b->TakeOutput();
    deliver(from_b && !said.empty() ? from_b(said) : said, a);
  }
}

struct Outcome {
  absl::Status connecting, answering;
};

Outcome Try(const Identity& connecting, const Identity& answering, const std::string& expected = "",
            uint64_t expected_incarnation = 0, const Tamper& from_a = nullptr,
            const Tamper& from_b = nullptr) {
  Handshake a = Handshake::Connecting(connecting, Terms(1), expected, expected_incarnation);
  Handshake b = Handshake::Answering(answering, Terms);
  Talk(&a, &b, from_a, from_b);
  EXPECT_EQ(a.open(), a.status().ok());
  return {a.status(), b.status()};
}

TEST(Handshake, BothLearnWhoTheOtherIs) {
  Handshake a = Handshake::Connecting(kWorker, Terms(1), kServer.task, kServer.incarnation);
  Handshake b = Handshake::Answering(kServer, [](int lane) {
    return StreamTerms{0, lane, 1 << 22, 1 << 28};
  });
  Talk(&a, &b);
  ASSERT_TRUE(a.open()) << a.status();
  ASSERT_TRUE(b.open()) << b.status();
  EXPECT_EQ(a.peer().task, kServer.task);
  EXPECT_EQ(a.peer().incarnation, 22u);
  EXPECT_EQ(b.peer().task, kWorker.task);
  EXPECT_EQ(b.peer().incarnation, 11u);
  EXPECT_EQ(b.peer_terms().connection, 77u);
  EXPECT_EQ(b.peer_terms().lane, 1);
  EXPECT_EQ(b.peer_terms().window, 1u << 20);
  EXPECT_EQ(a.peer_terms().window, 1u << 22);
  EXPECT_EQ(a.peer_terms().max_tensor_bytes, 1u << 28);
}

TEST(Handshake, RefusalsAreClearOnBothSides) {
  Identity other = kServer;
  other.secret = "another";
  Outcome outcome = Try(kWorker, other);
  EXPECT_TRUE(absl::IsPermissionDenied(outcome.connecting)) << outcome.connecting;
  EXPECT_TRUE(absl::IsPermissionDenied(outcome.answering)) << outcome.answering;
  EXPECT_THAT(std::string(outcome.answering.message()), HasSubstr("another secret"));

  outcome = Try(kWorker, kServer, "/job:ps/replica:0/task:1");
  EXPECT_TRUE(absl::IsFailedPrecondition(outcome.connecting));
  EXPECT_TRUE(absl::IsFailedPrecondition(outcome.answering));
  EXPECT_THAT(std::string(outcome.connecting.message()), HasSubstr("not /job:ps/replica:0/task:1"));
  EXPECT_THAT(std::string(outcome.answering.message()), HasSubstr("looking for here"));

  outcome = Try(kWorker, kServer, "", 21);
  EXPECT_TRUE(absl::IsAborted(outcome.connecting));
  EXPECT_THAT(std::string(outcome.connecting.message()), HasSubstr("restarted"));
}

TEST(Handshake, BothSidesLearnWhoHasWhichSecret) {
  const std::string none, one = "0123456789abcdef", two = "0123456789abcdeg";
  for (const std::string& of_worker : {none, one, two}) {
    for (const std::string& of_server : {none, one, two}) {
      SCOPED_TRACE(StrCat(of_worker, " and ", of_server));
      Identity worker = kWorker, server = kServer;
      worker.secret = of_worker;
      server.secret = of_server;
      const Outcome outcome = Try(worker, server);
      if (of_worker == of_server) {
        EXPECT_TRUE(outcome.connecting.ok()) << outcome.connecting;
        EXPECT_TRUE(outcome.answering.ok()) << outcome.answering;
        continue;
      }
      std::string says = kServer.task + " has another secret than " + kWorker.task;
      if (of_worker.empty()) {
        says = kServer.task + " wants a secret, and " + kWorker.task + " has none";
      } else if (of_server.empty()) {
        says = kServer.task + " has no secret, and " + kWorker.task + " has one";
      }
      for (const absl::Status& status : {outcome.connecting, outcome.answering}) {
        EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(says));
        EXPECT_THAT(std::string(status.message()), HasSubstr("--secret-file"));
        for (const std::string& secret : {one, two}) {
          EXPECT_EQ(status.message().find(secret), std::string::npos) << "it is told";
        }
      }
    }
  }
}

TEST(Handshake, WhoPassesOverTheProofIsRefused) {
  Handshake a = Handshake::Connecting(kWorker, Terms(1), "", 0);
  Handshake b = Handshake::Answering(kServer, Terms);
  FrameHeader header;
  header.kind = FrameKind::kProof;
  for (std::string bytes : {a.TakeOutput(), EncodeFrame(header, std::string(32, 'p'))}) {
    while (!bytes.empty() && b.wanted() > 0) {
      const size_t n = std::min(bytes.size(), b.wanted());
      b.Consume(bytes.substr(0, n));
      bytes.erase(0, n);
    }
  }
  EXPECT_FALSE(b.verified());
  EXPECT_TRUE(absl::IsPermissionDenied(b.status())) << b.status();
}

TEST(Handshake, OtherVersionsAreToldOnBothSides) {
  const Tamper newer = [](std::string bytes) {
    bytes[4] = kWireVersion + 1;
    return bytes;
  };
  Outcome outcome = Try(kWorker, kServer, "", 0, newer);
  EXPECT_TRUE(absl::IsFailedPrecondition(outcome.answering)) << outcome.answering;
  EXPECT_THAT(std::string(outcome.answering.message()),
              HasSubstr(StrCat("speaks version ", kWireVersion + 1)));
  EXPECT_THAT(std::string(outcome.connecting.message()), HasSubstr("refused by the peer"));
  EXPECT_THAT(std::string(outcome.connecting.message()),
              HasSubstr(StrCat("speaks version ", kWireVersion + 1)));
  outcome = Try(kWorker, kServer, "", 0, nullptr, newer);
  EXPECT_THAT(std::string(outcome.connecting.message()),
              HasSubstr(StrCat("speaks version ", kWireVersion + 1)));
}

TEST(Handshake, ARefusalOfAnotherVersionIsUnderstood) {
  const auto newer = [](std::string bytes) {
    bytes[4] = kWireVersion + 6;
    return bytes;
  };
  const Outcome outcome = Try(kWorker, kServer, "/job:ps/replica:0/task:1", 0, nullptr, newer);
  EXPECT_THAT(std::string(outcome.connecting.message()), HasSubstr("refused by the peer"));
}

TEST(Handshake, StrangersAreRecognised) {
  const auto answer = [](std::string bytes) {
    Handshake b = Handshake::Answering(kServer, Terms);
    b.Consume(bytes.substr(0, b.wanted()));
    return std::string(b.status().message());
  };
  EXPECT_THAT(answer("GET / HTTP/1.1\r\n"), HasSubstr("HTTP"));
  EXPECT_THAT(answer(std::string("\x16\x03\x01\x02\x00", 5)), HasSubstr("TLS"));
  EXPECT_THAT(answer("SSH-2.0-OpenSSH_9.2\r\n"), HasSubstr("no task of Troupe"));
}

TEST(Handshake, NothingMayBeChangedOnTheWay) {
  // Any byte of what either side says, but those of the first frame's own checksum rules.
  for (size_t at = 64; at < 200; at += 7) {
    const Tamper flip = [at](std::string bytes) {
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1);
      return bytes;
    };
    const Outcome from_a = Try(kWorker, kServer, "", 0, flip);
    if (at < 164) {
      EXPECT_FALSE(from_a.connecting.ok() && from_a.answering.ok()) << at;
    }
    const Outcome from_b = Try(kWorker, kServer, "", 0, nullptr, flip);
    if (at < 174) {
      EXPECT_FALSE(from_b.connecting.ok() && from_b.answering.ok()) << at;
    }
  }
}

// Whatever is done to what they say: nobody opens a stream to somebody else, or on other terms.
// TROUPE_MUTATIONS=N makes N of them.
TEST(Handshake, MutatedHandshakesOpenNothingElse) {
  std::mt19937 random(20260);
  int refused = 0;
  const int runs = HowMany("TROUPE_MUTATIONS", 20000, /*one_in=*/10);
  for (int run = 0; run < runs && !testing::Test::HasFailure(); ++run) {
    Handshake a = Handshake::Connecting(kWorker, Terms(1), run % 2 == 0 ? kServer.task : "", 0);
    Handshake b = Handshake::Answering(kServer, Terms);
    a.set_offer([] { return std::string("memory"); });
    b.set_take([](const std::string& offer) {
      EXPECT_EQ(offer, "memory");
      return true;
    });
    int said = 0;
    const int which = static_cast<int>(random() % 4);
    const Tamper tamper = [&](const std::string& bytes) {
      return said++ == which ? Mutated(bytes, &random) : bytes;
    };
    Talk(&a, &b, tamper, tamper);
    if (a.open()) {
      EXPECT_EQ(a.peer().task, kServer.task) << run;
      EXPECT_EQ(a.peer().incarnation, kServer.incarnation) << run;
      EXPECT_EQ(a.peer_terms().window, Terms(1).window) << run;
    }
    if (b.open()) {
      EXPECT_EQ(b.peer().task, kWorker.task) << run;
      EXPECT_EQ(b.peer().incarnation, kWorker.incarnation) << run;
      EXPECT_EQ(b.peer_terms().max_tensor_bytes, Terms(1).max_tensor_bytes) << run;
      EXPECT_EQ(b.peer_terms().lane, 1) << run;
    }
    refused += !a.status().ok() || !b.status().ok();
    EXPECT_LT(a.wanted(), size_t{1} << 20) << run;
    EXPECT_LT(b.wanted(), size_t{1} << 20) << run;
  }
  EXPECT_GT(refused, runs / 4);
  std::printf("%d mutated handshakes, %d refused\n", runs, refused);
}

TEST(Handshake, MemoryIsSharedIfItIsOfferedAndTaken) {
  for (const std::string offered : {"", "memory"}) {
    for (const bool taken : {false, true}) {
      Handshake a = Handshake::Connecting(kWorker, Terms(1), "", 0);
      Handshake b = Handshake::Answering(kServer, Terms);
      std::string asked;
      a.set_offer([&] { return offered; });
      b.set_take([&](const std::string& offer) {
        asked = offer;
        return taken;
      });
      Talk(&a, &b);
      ASSERT_TRUE(a.open() && b.open()) << a.status() << b.status();
      EXPECT_EQ(asked, offered);
      EXPECT_EQ(a.shared(), taken && !offered.empty());
      EXPECT_EQ(b.shared(), a.shared());
    }
  }
  // What was not offered cannot be taken.
  Handshake a = Handshake::Connecting(kWorker, Terms(1), "", 0);
  Handshake b = Handshake::Answering(kServer, Terms);
  Talk(&a, &b, nullptr, [](const std::string& bytes) {
    return bytes.size() > kFrameHeaderBytes ? bytes
                                            : EncodeFrame({.kind = FrameKind::kWelcome}, "s");
  });
  EXPECT_TRUE(absl::IsInvalidArgument(a.status())) << a.status();
}

TEST(Handshake, FramesOutOfOrder) {
  for (const FrameKind kind : {FrameKind::kProof, FrameKind::kChallenge, FrameKind::kWelcome,
                               FrameKind::kMessage, FrameKind::kTensor}) {
    Handshake b = Handshake::Answering(kServer, Terms);
    FrameHeader header;
    header.kind = kind;
    const std::string bytes = EncodeFrame(header, "");
    b.Consume(bytes);
    EXPECT_TRUE(absl::IsInvalidArgument(b.status())) << FrameKindName(kind) << b.status();
  }
}

TEST(Handshake, MalformedHello) {
  for (const size_t size : {size_t{0}, size_t{10}, size_t{90}, size_t{4096}}) {
    Handshake b = Handshake::Answering(kServer, Terms);
    FrameHeader header;
    header.kind = FrameKind::kHello;
    std::string bytes = EncodeFrame(header, std::string(size, '\xff'));
    while (!bytes.empty() && b.wanted() > 0) {
      const size_t n = std::min(bytes.size(), b.wanted());
      b.Consume(bytes.substr(0, n));
      bytes.erase(0, n);
    }
    EXPECT_THAT(std::string(b.status().message()), HasSubstr("malformed")) << size;
  }
}

}  // namespace
}  // namespace troupe
