// Examples and SequenceExamples, made and read without protobuf's types; data sets in files.

#include "api/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "api/loaders.h"
#include "devices/status_macros.h"
#include "devices/storage/record_reader.h"
#include "tests/devices/storage/storage_test_util.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kRecorded[] = "tests/api/input/testdata/";

TEST(Example, HoldsFeaturesOfEachKind) {
  const std::vector<float> pixels = {0.5f, 1.5f};
  const std::array<int64_t, 2> numbers = {int64_t{1} << 40, -7};
  const std::string bytes =
      ExampleBuilder()
          .Add("pixels", pixels)
          .Add("doubles", {1.0, 2.5})
          .Add("label", 3)
          .Add("numbers", numbers)
          .Add("small", {uint8_t{255}, uint8_t{1}})
          .Add("name", "cat")
          .Add("words", {"a", "b"})
          .Add("texts", std::vector<std::string>{std::string("\0\xff", 2), ""})
          .Add("none", std::vector<int64_t>())
          .Add("again", 1)
          .Add("again", 2.0f)
          .Serialize();
  const auto example = ExampleReader::Parse(bytes);
  ASSERT_TRUE(example.ok()) << example.status();
  EXPECT_THAT(example->features().names(),
              ElementsAre("again", "doubles", "label", "name", "none", "numbers", "pixels", "small",
                          "texts", "words"));
  EXPECT_THAT(*example->Floats("pixels"), ElementsAre(0.5f, 1.5f));
  EXPECT_THAT(*example->Floats("doubles"), ElementsAre(1.0f, 2.5f));
  EXPECT_THAT(*example->Ints("label"), ElementsAre(3));
  EXPECT_THAT(*example->Ints("numbers"), ElementsAre(int64_t{1} << 40, -7));
  EXPECT_THAT(*example->Ints("small"), ElementsAre(255, 1));
  EXPECT_THAT(*example->Strings("name"), ElementsAre("cat"));
  EXPECT_THAT(*example->Strings("words"), ElementsAre("a", "b"));
  EXPECT_THAT(*example->Strings("texts"), ElementsAre(std::string("\0\xff", 2), ""));
  EXPECT_THAT(*example->Ints("none"), IsEmpty());
  EXPECT_THAT(*example->Floats("again"), ElementsAre(2.0f));
  EXPECT_EQ(example->features().Find("numbers")->size(), 2);
  EXPECT_TRUE(absl::IsNotFound(example->Floats("nothing").status()));
  const absl::Status other = example->Floats("label").status();
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_EQ(other.message(), "feature 'label' holds integers, not floats");
}

TEST(Example, HasTheSameBytesInWhateverOrder) {
  EXPECT_EQ(ExampleBuilder().Add("a", 1).Add("b", {2.0f}).Add("c", "x").Serialize(),
            ExampleBuilder().Add("c", "x").Add("b", {2.0f}).Add("a", 1).Serialize());
  EXPECT_EQ(ExampleBuilder().Serialize(), "");
}

TEST(SequenceExample, HoldsStepsInOrder) {
  SequenceExampleBuilder builder;
  builder.AddContext("length", 2).AddStep("words", "one").AddStep("words", {"two", "more"});
  builder.AddStep("tags", 7).AddContext("length", 3);
  const auto example = SequenceExampleReader::Parse(builder.Serialize());
  ASSERT_TRUE(example.ok()) << example.status();
  EXPECT_THAT(*example->context().Ints("length"), ElementsAre(3));
  EXPECT_THAT(example->list_names(), ElementsAre("tags", "words"));
  const auto steps = example->Steps("words");
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_THAT((*steps)[0].strings(), ElementsAre("one"));
  EXPECT_THAT((*steps)[1].strings(), ElementsAre("two", "more"));
  EXPECT_THAT((*steps)[1].ints(), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(example->Steps("nothing").status()));
}

// What scripts/golden/record_input.py has TensorFlow write.
TEST(Example, OfTensorFlowIsRead) {
  std::string record;
  const auto reader =
      RecordReader::Open(StrCat(kRecorded, "examples.gz"), {.compression = FileCompression::kAny});
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (int64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(*(*reader)->Next(&record));
    const auto example = ExampleReader::Parse(record);
    ASSERT_TRUE(example.ok()) << example.status();
    EXPECT_THAT(*example->Ints("number"), ElementsAre(i, -i));
    EXPECT_THAT(*example->Floats("half"), ElementsAre(0.5f * static_cast<float>(i)));
    EXPECT_THAT(*example->Strings("text"), ElementsAre(StrCat("text ", i), "\xff"));
    EXPECT_EQ(example->features().Find("empty")->kind(), FeatureValues::Kind::kNone);
    EXPECT_EQ(ExampleBuilder()
                      .Add("number", {i, -i})
                      .Add("half", 0.5f * static_cast<float>(i))
                      .Add("text", {StrCat("text ", i), std::string("\xff")})
                      .Serialize()
                      .size() +
                  11,  // and the empty one
              record.size());
  }
  ASSERT_TRUE(*(*reader)->Next(&record));
  const auto sequence = SequenceExampleReader::Parse(record);
  ASSERT_TRUE(sequence.ok()) << sequence.status();
  EXPECT_THAT(*sequence->context().Strings("title"), ElementsAre("of three"));
  EXPECT_EQ(sequence->Steps("steps")->size(), 3u);
  EXPECT_FALSE(*(*reader)->Next(&record));
}

TEST(Example, ThatIsDamagedIsAnErrorOrAnotherExample) {
  const std::string bytes =
      ExampleBuilder().Add("x", {1.0f, 2.0f}).Add("n", {1, 300}).Add("s", {"a", "bc"}).Serialize();
  int refused = 0;
  ForEachDamage(bytes, [&](const std::string& damaged, const std::string& what) {
    const auto example = ExampleReader::Parse(damaged);
    if (!example.ok()) {
      ++refused;
      EXPECT_TRUE(absl::IsInvalidArgument(example.status())) << what;
      return;
    }
    for (const std::string& name : example->features().names()) {
      const FeatureValues values = *example->features().Find(name);
      EXPECT_LE(values.size(), static_cast<int64_t>(damaged.size())) << what;
      EXPECT_EQ(values.size(), static_cast<int64_t>(values.floats().size() + values.ints().size() +
                                                    values.strings().size()));
    }
  });
  EXPECT_GT(refused, 0);
}

// --- data sets in files --------------------------------------------------------------------------

class Loaders : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string WriteGzip(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + name;
    const gzFile file = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
    return path;
  }
  const std::string folder_ = StrCat(testing::TempDir(), "troupe_loaders_", getpid(), "/");
};

std::string Bytes(std::initializer_list<int> bytes) { return {bytes.begin(), bytes.end()}; }

TEST_F(Loaders, IdxOfEachType) {
  const std::string header = Bytes({0, 0, 0x0b, 2, 0, 0, 0, 1, 0, 0, 0, 2});
  for (const std::string& path : {Write("short", header + Bytes({1, 2, 0xff, 0xfe})),
                                  WriteGzip("short.gz", header + Bytes({1, 2, 0xff, 0xfe}))}) {
    const auto tensor = ReadIdx(path);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->shape(), Shape({1, 2}));
    EXPECT_THAT(*tensor->values<int16_t>(), ElementsAre(258, -2));
  }
  EXPECT_THAT(*ReadIdx(Write("float", Bytes({0, 0, 0x0d, 0, 0x3f, 0x80, 0, 0})))->values<float>(),
              ElementsAre(1.0f));
  EXPECT_THAT(*ReadIdx(Write("bytes", Bytes({0, 0, 8, 1, 0, 0, 0, 2, 7, 255})))->values<uint8_t>(),
              ElementsAre(7, 255));
}

TEST_F(Loaders, IdxThatIsDamagedIsAnError) {
  const std::string bytes = Bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6});
  ForEachDamage(bytes, [&](const std::string& damaged, const std::string& what) {
    const auto tensor = ReadIdx(Write("idx", damaged));
    if (tensor.ok()) {
      // Values may be others, sizes cannot.
      EXPECT_EQ(damaged.size(), bytes.size()) << what;
      EXPECT_EQ(tensor->num_elements() * static_cast<int64_t>(ElementSize(tensor->type())), 6)
          << what;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(tensor.status())) << what << tensor.status();
      EXPECT_THAT(std::string(tensor.status().message()), HasSubstr(folder_ + "idx"));
    }
  });
  const absl::Status large = ReadIdx(Write("idx", bytes), 5).status();
  EXPECT_TRUE(absl::IsResourceExhausted(large)) << large;
  const std::string much = Bytes({0, 0, 8, 3, 127, 0, 0, 0, 127, 0, 0, 0, 127, 0, 0, 0});
  EXPECT_TRUE(absl::IsDataLoss(ReadIdx(WriteGzip("much.gz", much)).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadIdx(folder_ + "nothing").status()));
}

TEST_F(Loaders, MnistIsTwoFiles) {
  Write("train-images-idx3-ubyte",
        Bytes({0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4}));
  WriteGzip("train-labels-idx1-ubyte.gz", Bytes({0, 0, 8, 1, 0, 0, 0, 2, 9, 3}));
  const auto data = ReadMnist(folder_, "train");
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->images.shape(), Shape({2, 1, 2, 1}));
  EXPECT_THAT(*data->labels.values<int32_t>(), ElementsAre(9, 3));
  WriteGzip("train-labels-idx1-ubyte.gz", Bytes({0, 0, 8, 1, 0, 0, 0, 1, 9}));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadMnist(folder_, "train").status()));
  EXPECT_TRUE(absl::IsNotFound(ReadMnist(folder_, "t10k").status()));
}

TEST_F(Loaders, CifarHasChannelsOneByOne) {
  std::string image(1, 4);
  for (int c = 0; c < 3; ++c) image += std::string(1024, static_cast<char>(10 * c));
  image[1] = 99;  // red of the first pixel
  const std::string a = Write("a.bin", image + image), b = Write("b.bin", image);
  const auto data = ReadCifar({a, b});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->images.shape(), Shape({3, 32, 32, 3}));
  EXPECT_THAT(data->images.values<uint8_t>()->subspan(0, 6), ElementsAre(99, 10, 20, 0, 10, 20));
  EXPECT_THAT(*data->labels.values<int32_t>(), ElementsAre(4, 4, 4));

  const std::string c = Write("c.bin", Bytes({19, 99}) + image.substr(1));
  EXPECT_THAT(*ReadCifar({c}, CifarLabels::kCifar100Fine)->labels.values<int32_t>(),
              ElementsAre(99));
  EXPECT_THAT(*ReadCifar({c}, CifarLabels::kCifar100Coarse)->labels.values<int32_t>(),
              ElementsAre(19));
  const absl::Status cut = ReadCifar({a, Write("cut.bin", image.substr(1))}).status();
  EXPECT_TRUE(absl::IsDataLoss(cut));
  EXPECT_THAT(std::string(cut.message()), HasSubstr("cut.bin"));
  image[0] = 10;
  const absl::Status wrong = ReadCifar({Write("wrong.bin", image)}).status();
  EXPECT_TRUE(absl::IsDataLoss(wrong));
  EXPECT_THAT(std::string(wrong.message()), EndsWith("the image at byte 0 is of class 10, of 10"));
}

TEST_F(Loaders, FoldersAreClasses) {
  Write("dogs/b.JPG", "dog b");
  Write("dogs/a.png", "dog a");
  Write("cats/c.jpeg", "cat c");
  Write("cats/readme.txt", "no image");
  Write("empty/readme.txt", "no image");
  Write("top.png", "in no class");
  const auto images = ListImageFolder(folder_);
  ASSERT_TRUE(images.ok()) << images.status();
  EXPECT_THAT(images->classes, ElementsAre("cats", "dogs", "empty"));
  EXPECT_THAT(*images->labels.values<int32_t>(), ElementsAre(0, 1, 1));
  EXPECT_THAT(*images->paths.values<std::string>(),
              ElementsAre(EndsWith("cats/c.jpeg"), EndsWith("dogs/a.png"), EndsWith("dogs/b.JPG")));
  const auto bytes = ReadFiles(images->paths);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_THAT(*bytes->values<std::string>(), ElementsAre("cat c", "dog a", "dog b"));
  EXPECT_TRUE(absl::IsResourceExhausted(ReadFiles(images->paths, 4).status()));
  EXPECT_TRUE(absl::IsNotFound(ListImageFolder(folder_, {".gif"}).status()));
  EXPECT_TRUE(absl::IsNotFound(ListImageFolder(folder_ + "nowhere").status()));
}

}  // namespace
}  // namespace troupe
