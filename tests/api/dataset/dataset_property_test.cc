// Random pipelines beside a model of them that is written as plain loops: the same elements for any
// number of threads, and after a position was saved and restored anywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "api/data/stage.h"
#include "api/dataset.h"
#include "devices/status_macros.h"
#include "tests/api/dataset/dataset_test_util.h"

namespace troupe {
namespace {

using data::Draw;
using data::Mix;
using testing::All;
using testing::Begin;
using testing::Take;

/// A component: numbers, and the sizes of its dimensions.
struct Part {
  std::vector<int64_t> dims, values;
};
using Item = std::vector<Part>;
using Items = std::vector<Item>;
/// What a pass gives.
using Model = std::function<Items(uint64_t pass)>;

std::string TextOf(const Item& item) {
  Tensors tensors;
  for (const Part& part : item) {
    tensors.push_back(
        *Tensor::FromValues<int64_t>(absl::MakeConstSpan(part.values), Shape(part.dims)));
  }
  return testing::Text(tensors);
}

int64_t Sum(const std::vector<int64_t>& values) {
  int64_t sum = 0;
  for (const int64_t value : values) sum += value;
  return sum;
}

Item Scalar(int64_t value) { return {{{}, {value}}}; }

std::vector<int64_t> ValuesOf(const Tensor& tensor) {
  const auto values = tensor.unchecked_values<int64_t>();
  return {values.begin(), values.end()};
}

/// A pipeline and its model, which grow a stage at a time.
struct Pipeline {
  Dataset dataset;
  Model model;
  std::string text;
  int rank = 0;           ///< Of all components.
  bool same_size = true;  ///< All elements have the same shapes.
};

class Growing {
 public:
  explicit Growing(unsigned seed) : random_(seed) {}

  Pipeline Make() {
    Pipeline p;
    Source(&p);
    for (int stages = Number(1, 5); stages > 0; --stages) Add(&p, Number(0, 14));
    return p;
  }

 private:
  int Number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  void Source(Pipeline* p) {
    const int n = Number(0, 20);
    if (Number(0, 2) == 0) {
      std::vector<int64_t> rows(n);
      for (int64_t& row : rows) row = Number(0, 99);
      p->dataset = Dataset::FromTensors({Tensor::Vector<int64_t>(absl::MakeConstSpan(rows))});
      p->model = [rows](uint64_t) {
        Items items;
        for (const int64_t row : rows) items.push_back(Scalar(row));
        return items;
      };
      p->text = "tensors" + std::to_string(n);
    } else if (Number(0, 1) == 0) {
      p->dataset = Dataset::Generate([n](uint64_t pass) {
        auto next = std::make_shared<int64_t>(static_cast<int64_t>(pass % 7));
        const int64_t end = *next + n;
        return [next, end](Tensors* element) -> absl::StatusOr<bool> {
          if (*next == end) return false;
          *element = {Tensor::Scalar((*next)++)};
          return true;
        };
      });
      p->model = [n](uint64_t pass) {
        Items items;
        for (int i = 0; i < n; ++i) items.push_back(Scalar(static_cast<int64_t>(pass % 7) + i));
        return items;
      };
      p->text = "generate" + std::to_string(n);
    } else {
      p->dataset = Dataset::Range(5, 5 - 2 * n, -2);
      p->model = [n](uint64_t) {
        Items items;
        for (int i = 0; i < n; ++i) items.push_back(Scalar(5 - 2 * i));
        return items;
      };
      p->text = "range" + std::to_string(n);
    }
  }

  void Add(Pipeline* p, int stage) {
    const Model before = p->model;
    std::string& text = p->text;
    switch (stage) {
      case 0: {  // Map, in any way
        const int parallel = Number(0, 3);
        p->dataset = p->dataset.Map(
            [](Tensors element) -> absl::StatusOr<Tensors> {
              for (Tensor& tensor : element) {
                std::vector<int64_t> values = ValuesOf(tensor);
                for (int64_t& value : values) value = 3 * value + 1;
                tensor = *Tensor::FromValues<int64_t>(absl::MakeConstSpan(values), tensor.shape());
              }
              return element;
            },
            {.parallel = parallel});
        p->model = [before](uint64_t pass) {
          Items items = before(pass);
          for (Item& item : items) {
            for (Part& part : item) {
              for (int64_t& value : part.values) value = 3 * value + 1;
            }
          }
          return items;
        };
        text += " map" + std::to_string(parallel);
        return;
      }
      case 1: {
        p->dataset = p->dataset.Filter([](const Tensors& element) -> absl::StatusOr<bool> {
          return Sum(ValuesOf(element[0])) % 3 != 0;
        });
        p->model = [before](uint64_t pass) {
          Items items;
          for (const Item& item : before(pass)) {
            if (Sum(item[0].values) % 3 != 0) items.push_back(item);
          }
          return items;
        };
        text += " filter";
        return;
      }
      case 2:
      case 3: {
        const int window = Number(1, 8);
        const uint64_t seed = static_cast<uint64_t>(Number(0, 99));
        const bool reshuffle = Number(0, 1) == 0;
        p->dataset = p->dataset.Shuffle({.window = window, .seed = seed, .reshuffle = reshuffle});
        p->model = [=](uint64_t pass) {
          Items in = before(pass), out, held;
          Draw draw(Mix(seed, reshuffle ? pass : 0));
          size_t next = 0;
          while (true) {
            while (held.size() < static_cast<size_t>(window) && next < in.size()) {
              held.push_back(in[next++]);
            }
            if (held.empty()) return out;
            const size_t drawn = draw.Below(held.size());
            out.push_back(held[drawn]);
            held[drawn] = held.back();
            held.pop_back();
          }
        };
        text += " shuffle" + std::to_string(window);
        return;
      }
      case 4: {  // Batch
        if (!p->same_size || p->rank > 1) return;
        const int size = Number(1, 4);
        const bool drop = Number(0, 1) == 0;
        p->dataset = p->dataset.Batch(size, {.drop_remainder = drop});
        p->model = [before, size, drop](uint64_t pass) {
          return Batches(before(pass), size, drop);
        };
        ++p->rank;
        p->same_size = drop;
        text += " batch" + std::to_string(size) + (drop ? "d" : "");
        return;
      }
      case 5: {  // PaddedBatch
        if (p->rank != 1) return;
        const int size = Number(1, 4);
        p->dataset = p->dataset.PaddedBatch(size);
        p->model = [before, size](uint64_t pass) { return Batches(before(pass), size, false); };
        ++p->rank;
        p->same_size = false;
        text += " padded" + std::to_string(size);
        return;
      }
      case 6: {
        const int passes = Number(0, 3);
        p->dataset = p->dataset.Repeat(passes);
        p->model = [before, passes](uint64_t pass) {
          Items items;
          for (int i = 0; i < passes; ++i) {
            const Items more = before(Mix(pass, static_cast<uint64_t>(i)));
            if (more.empty()) break;
            items.insert(items.end(), more.begin(), more.end());
          }
          return items;
        };
        text += " repeat" + std::to_string(passes);
        return;
      }
      case 7: {
        const int n = Number(0, 12);
        p->dataset = p->dataset.Take(n);
        p->model = [before, n](uint64_t pass) {
          Items items = before(pass);
          if (items.size() > static_cast<size_t>(n)) items.resize(n);
          return items;
        };
        text += " take" + std::to_string(n);
        return;
      }
      case 8: {
        const int n = Number(0, 5);
        p->dataset = p->dataset.Skip(n);
        p->model = [before, n](uint64_t pass) {
          Items items = before(pass);
          items.erase(items.begin(), items.begin() + std::min<ptrdiff_t>(n, items.size()));
          return items;
        };
        text += " skip" + std::to_string(n);
        return;
      }
      case 9: {
        const int of = Number(1, 4), index = Number(0, of - 1);
        p->dataset = p->dataset.Shard(index, of);
        p->model = [=](uint64_t pass) {
          const Items all = before(pass);
          Items items;
          for (size_t i = index; i < all.size(); i += of) items.push_back(all[i]);
          return items;
        };
        text += " shard" + std::to_string(of);
        return;
      }
      case 10: {  // Zip with what came before, shuffled
        const int window = Number(1, 4);
        p->dataset = Dataset::Zip(
            {p->dataset, p->dataset.Shuffle({.window = window, .seed = 3}).Prefetch(2)});
        const Model mixed = [before, window](uint64_t pass) {
          Items in = before(pass), out, held;
          Draw draw(Mix(3, pass));
          for (size_t next = 0;;) {
            while (held.size() < static_cast<size_t>(window) && next < in.size()) {
              held.push_back(in[next++]);
            }
            if (held.empty()) return out;
            const size_t drawn = draw.Below(held.size());
            out.push_back(held[drawn]);
            held[drawn] = held.back();
            held.pop_back();
          }
        };
        p->model = [before, mixed](uint64_t pass) {
          Items left = before(pass), right = mixed(pass);
          for (size_t i = 0; i < left.size(); ++i) {
            left[i].insert(left[i].end(), right[i].begin(), right[i].end());
          }
          return left;
        };
        text += " zip" + std::to_string(window);
        return;
      }
      case 11: {  // Interleave
        if (p->rank > 0) return;
        const int cycle = Number(1, 3), block = Number(1, 3);
        const bool parallel = Number(0, 1) == 0;
        p->dataset = p->dataset.Interleave(
            [](const Tensors& element) -> absl::StatusOr<Dataset> {
              const int64_t value = element[0].unchecked_scalar<int64_t>();
              return Dataset::Range(value, value + (value % 4 + 4) % 4)
                  .Shuffle({.window = 2, .seed = 1});
            },
            {.cycle = cycle, .block = block, .parallel = parallel, .ahead = 2});
        p->model = [=](uint64_t pass) { return Interleaved(before(pass), pass, cycle, block); };
        text += " interleave" + std::to_string(cycle) + (parallel ? "p" : "");
        return;
      }
      case 12: {
        const int n = Number(0, 4);
        p->dataset = p->dataset.Prefetch(n);
        text += " prefetch" + std::to_string(n);
        return;
      }
      case 13: {
        p->dataset = p->dataset.Cache();
        // The first pass that is asked for stays.
        const auto kept = std::make_shared<std::unique_ptr<Items>>();
        p->model = [before, kept](uint64_t pass) {
          if (*kept == nullptr) *kept = std::make_unique<Items>(before(pass));
          return **kept;
        };
        text += " cache";
        return;
      }
      default: {  // Bucket
        if (p->rank != 1) return;
        DatasetBucketOptions options;
        options.length = [](const Tensors& element) -> absl::StatusOr<int64_t> {
          return Sum(ValuesOf(element[0])) % 5;
        };
        options.boundaries = {2, 4};
        options.batch_sizes = {2, 3, 1};
        p->dataset = p->dataset.Bucket(options);
        p->model = [before](uint64_t pass) {
          std::map<int, Items> buckets;
          const std::map<int, size_t> sizes = {{0, 2}, {1, 3}, {2, 1}};
          Items out;
          for (const Item& item : before(pass)) {
            const int64_t length = Sum(item[0].values) % 5;
            const int i = length < 2 ? 0 : length < 4 ? 1 : 2;
            buckets[i].push_back(item);
            if (buckets[i].size() < sizes.at(i)) continue;
            out.push_back(Batches(buckets[i], 9, false)[0]);
            buckets[i].clear();
          }
          for (auto& [i, items] : buckets) {
            if (!items.empty()) out.push_back(Batches(items, 9, false)[0]);
          }
          return out;
        };
        ++p->rank;
        p->same_size = false;
        text += " bucket";
        return;
      }
    }
  }

  static Items Interleaved(const Items& of, uint64_t pass, int cycle, int block) {
    std::vector<std::vector<Item>> open(cycle);
    std::vector<bool> taken(cycle, false);
    size_t next = 0;
    uint64_t opened = 0;
    const auto fill = [&](int place) {
      taken[place] = next < of.size();
      if (!taken[place]) return;
      const int64_t value = of[next++][0].values[0];
      Items in;
      for (int64_t i = 0; i < (value % 4 + 4) % 4; ++i) in.push_back(Scalar(value + i));
      Draw draw(Mix(1, Mix(pass, ++opened)));
      Items held, out;
      for (size_t i = 0;;) {
        while (held.size() < 2 && i < in.size()) held.push_back(in[i++]);
        if (held.empty()) break;
        const size_t drawn = draw.Below(held.size());
        out.push_back(held[drawn]);
        held[drawn] = held.back();
        held.pop_back();
      }
      open[place] = out;
    };
    for (int place = 0; place < cycle; ++place) fill(place);
    Items out;
    for (int turn = 0;; turn = (turn + 1) % cycle) {
      if (std::none_of(taken.begin(), taken.end(), [](bool t) { return t; })) return out;
      for (int given = 0; given < block && taken[turn];) {
        if (open[turn].empty()) {  // The next one takes its place, with a turn of its own.
          fill(turn);
          given = 0;
          continue;
        }
        out.push_back(open[turn][0]);
        open[turn].erase(open[turn].begin());
        ++given;
      }
    }
  }

  /// Stacked, and filled up with zeros.
  static Items Batches(const Items& items, int size, bool drop) {
    Items out;
    for (size_t begin = 0; begin < items.size(); begin += size) {
      const size_t end = std::min(items.size(), begin + size);
      if (drop && end - begin < static_cast<size_t>(size)) break;
      Item batch;
      for (size_t c = 0; c < items[begin].size(); ++c) {
        Part part;
        std::vector<int64_t> largest(items[begin][c].dims.size(), 0);
        for (size_t i = begin; i < end; ++i) {
          for (size_t d = 0; d < largest.size(); ++d) {
            largest[d] = std::max(largest[d], items[i][c].dims[d]);
          }
        }
        part.dims = largest;
        part.dims.insert(part.dims.begin(), static_cast<int64_t>(end - begin));
        for (size_t i = begin; i < end; ++i) {
          const Part& from = items[i][c];
          int64_t all = 1;
          for (const int64_t dim : largest) all *= dim;
          for (int64_t at = 0; at < all; ++at) {
            int64_t index = 0, rest = at, step = 1;
            bool inside = true;
            for (size_t d = largest.size(); d-- > 0;) {
              const int64_t k = rest % largest[d];
              rest /= largest[d];
              inside = inside && k < from.dims[d];
              index += k * step;
              step *= from.dims[d];
            }
            part.values.push_back(inside ? from.values[index] : 0);
          }
        }
        batch.push_back(part);
      }
      out.push_back(batch);
    }
    return out;
  }

  std::mt19937 random_;
};

std::vector<std::string> Expected(const Model& model) {
  std::vector<std::string> texts;
  for (const Item& item : model(0)) texts.push_back(TextOf(item));
  return texts;
}

TEST(DatasetPropertyTest, RandomPipelinesGiveWhatTheirModelsSay) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const Pipeline p = Growing(seed).Make();
    SCOPED_TRACE(StrCat("seed ", seed, ": ", p.text));
    const std::vector<std::string> expected = Expected(p.model);
    if (expected.size() > 2000) continue;
    for (const int threads : {1, 2, 5}) {
      ASSERT_EQ(All(p.dataset, threads), expected) << threads << " threads";
    }
  }
}

TEST(DatasetPropertyTest, PositionsAreExactEverywhere) {
  for (unsigned seed = 1001; seed <= 1100; ++seed) {
    const Pipeline p = Growing(seed).Make();
    SCOPED_TRACE(StrCat("seed ", seed, ": ", p.text));
    const std::vector<std::string> expected = Expected(p.model);
    if (expected.size() > 60) continue;
    // Saved again and again, it goes on undisturbed.
    const auto iterator = Begin(p.dataset, 2);
    for (size_t k = 0; k <= expected.size(); ++k) {
      const absl::StatusOr<std::string> position = iterator->Save();
      ASSERT_TRUE(position.ok()) << position.status();
      const auto restored = Begin(p.dataset, static_cast<int>(k % 3) + 1);
      ASSERT_EQ(restored->Restore(*position), absl::OkStatus());
      const std::vector<std::string> rest = Take(*restored, 1 << 20);
      ASSERT_EQ(rest, std::vector<std::string>(expected.begin() + static_cast<ptrdiff_t>(k),
                                               expected.end()))
          << "at " << k;
      const std::vector<std::string> next = Take(*iterator, 1);
      ASSERT_EQ(next.empty(), k == expected.size());
      if (!next.empty()) {
        ASSERT_EQ(next[0], expected[k]);
      }
    }
  }
}

/// Of one iterator to the next, many times over one pipeline without end.
TEST(DatasetPropertyTest, PositionsOfPositions) {
  const Dataset dataset = Dataset::Range(0, 10)
                              .Shuffle({.window = 4, .seed = 5})
                              .Repeat()
                              .Map([](Tensors element) { return element; }, {.parallel = 2})
                              .Batch(3)
                              .Prefetch(2);
  const std::vector<std::string> expected = Take(*Begin(dataset), 100);
  std::vector<std::string> got;
  std::string position;
  while (got.size() < expected.size()) {
    const auto iterator = Begin(dataset);
    if (!position.empty()) {
      ASSERT_EQ(iterator->Restore(position), absl::OkStatus());
    }
    for (const std::string& element : Take(*iterator, 1 + got.size() % 3)) got.push_back(element);
    position = *iterator->Save();
  }
  got.resize(expected.size());
  EXPECT_EQ(got, expected);
}

/// What is held ready and how many calls there are at once may be changed in between.
TEST(DatasetPropertyTest, PositionsFitOtherSettings) {
  const auto make = [](int64_t ahead, int parallel) {
    return Dataset::Range(0, 50)
        .Prefetch(ahead)
        .Map([](Tensors element) { return element; }, {.parallel = parallel})
        .Batch(4)
        .Prefetch(ahead);
  };
  const std::vector<std::string> expected = All(make(1, 2));
  const auto iterator = Begin(make(20, 4));
  Take(*iterator, 3);
  const auto restored = Begin(make(1, kAuto));
  ASSERT_EQ(restored->Restore(*iterator->Save()), absl::OkStatus());
  EXPECT_EQ(Take(*restored, 100), std::vector<std::string>(expected.begin() + 3, expected.end()));
}

}  // namespace
}  // namespace troupe
