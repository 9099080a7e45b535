#include "api/internal/secret.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr char kAddress[] = "127.0.0.1:7000", kOther[] = "127.0.0.1:7001";
constexpr char kFile[] = "secret-127.0.0.1:7000";

std::string Message(const absl::Status& status) { return std::string(status.message()); }

/// A variable of the environment as it is for a while.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_.has_value() ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* const name_;
  std::optional<std::string> before_;
};

class SecretTest : public testing::Test {
 protected:
  SecretTest()
      : folder_(testing::TempDir() + "secret_" + std::to_string(getpid())),
        runtime_("XDG_RUNTIME_DIR", folder_ + "/run"),
        home_("HOME", folder_ + "/home") {
    std::filesystem::remove_all(folder_);
    for (const char* name : {"", "/run", "/home"}) {
      std::filesystem::create_directory(folder_ + name);
    }
  }
  ~SecretTest() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    std::string file = folder_ + "/" + name;
    std::ofstream(file) << text;
    chmod(file.c_str(), mode);
    return file;
  }
  std::string Published(const std::string& name = "") { return folder_ + "/run/troupe/" + name; }
  static mode_t Mode(const std::string& file) {
    struct stat about {};
    EXPECT_EQ(stat(file.c_str(), &about), 0) << file;
    return about.st_mode & 07777;
  }

  const std::string folder_;
  const Variable runtime_, home_;
};

TEST_F(SecretTest, IsTheBytesOfAFile) {
  const std::string sixteen = "0123456789abcdef", most(4096, 'x');
  EXPECT_EQ(ReadSecret(Write("a", sixteen)).value(), sixteen);
  EXPECT_EQ(ReadSecret(Write("b", sixteen + "\n")).value(), sixteen);
  EXPECT_EQ(ReadSecret(Write("c", sixteen + "\n\n")).value(), sixteen + "\n");
  EXPECT_EQ(ReadSecret(Write("d", most)).value(), most);
  EXPECT_EQ(ReadSecret(Write("e", most + "\n")).value(), most);
  const std::string bytes("\0\xff\n 3456789abcdef", 17);
  EXPECT_EQ(ReadSecret(Write("f", bytes, 0400)).value(), bytes);
  EXPECT_EQ(SecretFor(Write("g", sixteen), "192.0.2.1:7000").value(), sixteen);
}

TEST_F(SecretTest, FilesThatHoldNoneAreNamed) {
  const std::string texts[] = {"",
                               "\n",
                               "0123456789abcde",
                               "0123456789abcde\n",
                               std::string(4097, 'x'),
                               std::string(100000, 'x')};
  for (const std::string& text : texts) {
    const std::string file = Write("bad", text);
    const absl::Status status = ReadSecret(file).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("secret file " + file));
    EXPECT_THAT(Message(status), HasSubstr("16 to 4096"));
  }
  const std::string absent = folder_ + "/absent", pipe = folder_ + "/pipe";
  EXPECT_TRUE(absl::IsNotFound(ReadSecret(absent).status()));
  EXPECT_THAT(Message(ReadSecret(absent).status()), HasSubstr(absent));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSecret(folder_).status()));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(ReadSecret(pipe).status()));
}

TEST_F(SecretTest, OthersMustNotReadOrWriteTheFile) {
  for (const mode_t mode : {0644, 0640, 0604, 0620, 0602}) {
    const std::string file = Write("open", "0123456789abcdef", mode);
    const absl::Status status = ReadSecret(file).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(file));
    EXPECT_THAT(Message(status), HasSubstr("chmod 600"));
  }
}

TEST_F(SecretTest, PublishedSecretsAreFoundAsLongAsTheyLive) {
  EXPECT_EQ(SecretFor("", kAddress).value(), "");
  auto published = PublishedSecret::Create({kAddress, "localhost:7001", "[::1]:7000"});
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ((*published)->file(kAddress), Published(kFile));
  const std::string secret = ReadSecret((*published)->file(kAddress)).value();
  EXPECT_EQ(secret.size(), 64u);
  for (const char* address : {kAddress, kOther, "localhost:7000", "localhost:7001", "[::1]:7000"}) {
    EXPECT_EQ(SecretFor("", address).value(), secret) << address;
  }
  for (const char* address : {"127.0.0.1:7002", "127.0.0.2:7000", "192.0.2.1:7000", "host:7000"}) {
    EXPECT_EQ(SecretFor("", address).value(), "") << address;
  }
  EXPECT_EQ(Mode(Published()), 0700u);
  EXPECT_EQ(Mode(Published(kFile)), 0600u);
  published->reset();
  EXPECT_EQ(SecretFor("", kAddress).value(), "");
  EXPECT_TRUE(std::filesystem::is_empty(Published()));
}

TEST_F(SecretTest, ClustersHaveSecretsOfTheirOwn) {
  auto first = PublishedSecret::Create({kAddress}), second = PublishedSecret::Create({kOther});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(SecretFor("", kAddress).value(), SecretFor("", kOther).value());
  const std::string of_first = SecretFor("", kAddress).value();
  const absl::Status again = PublishedSecret::Create({kAddress}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(again)) << again;
  EXPECT_THAT(Message(again), HasSubstr(kAddress));
  // What it had published before it came to that is gone, and the other's is as it was.
  EXPECT_TRUE(absl::IsAlreadyExists(PublishedSecret::Create({"[::1]:7", kAddress}).status()));
  EXPECT_FALSE(std::filesystem::exists(Published("secret-[::1]:7")));
  EXPECT_EQ(SecretFor("", kAddress).value(), of_first);
}

TEST_F(SecretTest, WhatAKilledProcessLeavesDoesNotCount) {
  { ASSERT_TRUE(PublishedSecret::Create({kOther}).ok()); }
  Write(std::string("run/troupe/") + kFile, "of the one that was killed");
  EXPECT_EQ(SecretFor("", kAddress).value(), "");
  // It may have been killed while it wrote.
  Write(std::string("run/troupe/") + kFile + ".new", "");
  auto published = PublishedSecret::Create({kAddress});
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(SecretFor("", kAddress).value().size(), 64u);
}

TEST_F(SecretTest, TheCacheOfTheHomeIsTheSecondPlace) {
  std::string in_home;
  {
    const Variable none("XDG_RUNTIME_DIR", "");
    auto published = PublishedSecret::Create({kAddress});
    ASSERT_TRUE(published.ok()) << published.status();
    in_home = (*published)->file(kAddress);
    EXPECT_EQ(in_home, folder_ + "/home/.cache/troupe/" + kFile);
    EXPECT_EQ(Mode(folder_ + "/home/.cache"), 0700u);
    EXPECT_EQ(SecretFor("", kAddress).value().size(), 64u);
    {
      const Variable some("XDG_RUNTIME_DIR", folder_ + "/run");
      EXPECT_EQ(SecretFor("", kAddress).value().size(), 64u) << "the cluster had no such folder";
    }
  }
  EXPECT_FALSE(std::filesystem::exists(in_home));
}

TEST_F(SecretTest, WithoutAPlaceItSaysSo) {
  const Variable runtime("XDG_RUNTIME_DIR", folder_ + "/nowhere"),
      home("HOME", folder_ + "/nowhere");
  const absl::Status status = PublishedSecret::Create({kAddress}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(folder_ + "/nowhere"));
  EXPECT_THAT(Message(status), HasSubstr("--secret-file"));
  EXPECT_EQ(SecretFor("", kAddress).value(), "");
}

TEST_F(SecretTest, AddressesOfOtherMachinesGetNone) {
  const auto published = PublishedSecret::Create({kAddress, "192.0.2.1:7000"});
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(*published, nullptr);
  EXPECT_FALSE(std::filesystem::exists(Published()));
}

TEST_F(SecretTest, AFolderThatOthersCanUseIsRefused) {
  auto published = PublishedSecret::Create({kAddress});
  ASSERT_TRUE(published.ok()) << published.status();
  for (const mode_t mode : {0755, 0770, 0777}) {
    ASSERT_EQ(chmod(Published().c_str(), mode), 0);
    for (const absl::Status& status :
         {SecretFor("", kAddress).status(), PublishedSecret::Create({kOther}).status()}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(Message(status), HasSubstr(folder_ + "/run/troupe"));
    }
    // Who has no secret there is not concerned.
    EXPECT_EQ(SecretFor("", "127.0.0.1:9").value(), "");
  }
  ASSERT_EQ(chmod(Published().c_str(), 0700), 0);
  ASSERT_EQ(chmod(Published(kFile).c_str(), 0644), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(SecretFor("", kAddress).status()));
}

TEST_F(SecretTest, LinksAreNotFollowed) {
  const std::string elsewhere = folder_ + "/elsewhere";
  ASSERT_EQ(mkdir(elsewhere.c_str(), 0700), 0);
  ASSERT_EQ(symlink(elsewhere.c_str(), (folder_ + "/run/troupe").c_str()), 0);
  ASSERT_EQ(mkdir((folder_ + "/home/.cache").c_str(), 0700), 0);
  ASSERT_EQ(symlink(elsewhere.c_str(), (folder_ + "/home/.cache/troupe").c_str()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(PublishedSecret::Create({kAddress}).status()));
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
  std::filesystem::remove(folder_ + "/run/troupe");

  ASSERT_EQ(mkdir((folder_ + "/run/troupe").c_str(), 0700), 0);
  const std::string victim = Write("victim", "0123456789abcdef");
  for (const char* end : {"", ".new"}) {
    ASSERT_EQ(symlink(victim.c_str(), (Published(kFile) + end).c_str()), 0);
  }
  EXPECT_FALSE(SecretFor("", kAddress).ok());
  auto published = PublishedSecret::Create({kAddress});
  ASSERT_TRUE(published.ok()) << published.status();
  EXPECT_EQ(ReadSecret(victim).value(), "0123456789abcdef");
  EXPECT_EQ(SecretFor("", kAddress).value().size(), 64u);
}

TEST_F(SecretTest, AnotherUsersAreRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  auto published = PublishedSecret::Create({kAddress});
  ASSERT_TRUE(published.ok()) << published.status();
  ASSERT_EQ(chown(Published(kFile).c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(SecretFor("", kAddress).status()));
  ASSERT_EQ(chown(Published(kFile).c_str(), 0, 0), 0);
  ASSERT_EQ(chown(Published().c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(SecretFor("", kAddress).status()));
  // A folder for run-time files that is another's is no place at all.
  ASSERT_EQ(chown((folder_ + "/run").c_str(), 65534, 65534), 0);
  EXPECT_EQ(SecretFor("", kAddress).value(), "");
  auto elsewhere = PublishedSecret::Create({kAddress});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ((*elsewhere)->file(kAddress), folder_ + "/home/.cache/troupe/" + kFile);
}

}  // namespace
}  // namespace troupe
