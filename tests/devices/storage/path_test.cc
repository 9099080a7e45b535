#include "devices/storage/path.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Path, IsTakenApart) {
  const struct {
    const char *path, *scheme, *rest, *directory, *base;
    bool absolute;
  } kCases[] = {
      {"/a/b", "", "/a/b", "/a", "b", true},
      {"/a", "", "/a", "/", "a", true},
      {"a/b", "", "a/b", "a", "b", false},
      {"a", "", "a", ".", "a", false},
      {"a/", "", "a/", "a", "", false},
      {"", "", "", ".", "", false},
      {"s3://bucket/a/b", "s3", "bucket/a/b", "s3://bucket/a", "b", true},
      {"s3://bucket", "s3", "bucket", "s3://", "bucket", true},
      {"file:///a", "file", "/a", "file:///", "a", true},
      {"://a/b", "", "://a/b", "://a", "b", false},
      {"3s://a/b", "", "3s://a/b", "3s://a", "b", false},
      {"a b://c", "", "a b://c", "a b:/", "c", false},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(PathScheme(c.path), c.scheme) << c.path;
    EXPECT_EQ(PathWithoutScheme(c.path), c.rest) << c.path;
    EXPECT_EQ(PathDirectory(c.path), c.directory) << c.path;
    EXPECT_EQ(PathBase(c.path), c.base) << c.path;
    EXPECT_EQ(IsAbsolutePath(c.path), c.absolute) << c.path;
  }
}

TEST(Path, IsJoined) {
  EXPECT_EQ(JoinPath("/a", "b"), "/a/b");
  EXPECT_EQ(JoinPath("/a/", "b"), "/a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("/a", "/b"), "/b");
  EXPECT_EQ(JoinPath("s3://bucket", "a/b"), "s3://bucket/a/b");
  EXPECT_EQ(JoinPath("/a", "s3://bucket"), "s3://bucket");
}

TEST(Path, IsSeenFromAFolder) {
  const struct {
    const char *path, *directory, *relative;
  } kCases[] = {
      {"a/b", "a", "b"},
      {"a/b", "", "a/b"},
      {"a/b", ".", "a/b"},
      {"./a/b", "a/", "b"},
      {"a//b", "a", "b"},
      {"a/b", "a/c", "../b"},
      {"b", "a/c", "../../b"},
      {"a", "a", "."},
      {"../a/b", "../a", "b"},
      {"a/x/../b", "a", "b"},
      {"/a/b", "/a", "b"},
      {"/a/b", "/c", "../a/b"},
      {"/a/b", "a", "/a/b"},
      {"a/b", "/a", "a/b"},
      {"s3://x/a/b", "s3://x/a", "b"},
      {"s3://x/a", "/a", "s3://x/a"},
      {"a/b", "../a", "a/b"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(RelativePath(c.path, c.directory), c.relative) << c.path << " from " << c.directory;
  }
}

}  // namespace
}  // namespace troupe
