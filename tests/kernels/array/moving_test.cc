// Ops that move elements, against index arithmetic.
#include <algorithm>
#include <numeric>

#include "tests/kernels/array/picks.h"
#include "tests/kernels/kernel_test_util.h"

namespace troupe::testing {
namespace {

/// Runs `check(type, threads, dice)` for every element size, alone and with a pool.
template <typename F>
void ForTypesAndThreads(F&& check) {
  uint32_t seed = 0;
  for (const ElementType type : TypesBySize()) {
    for (const int threads : {1, 3}) {
      SCOPED_TRACE(ElementTypeName(type));
      Dice dice(++seed);
      check(type, threads, dice);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Moving, Transpose) {
  ForTypesAndThreads([](ElementType type, int threads, Dice& dice) {
    for (int round = 0; round < 25; ++round) {
      const Shape shape = dice.RandomShape(0, 5, round % 5 == 0 ? 0 : 1, 9);
      Index perm(shape.rank());
      std::iota(perm.begin(), perm.end(), 0);
      for (int i = shape.rank() - 1; i > 0; --i) std::swap(perm[i], perm[dice.Roll(0, i)]);
      Shape out_shape;
      for (const int64_t p : perm) out_shape.AddDim(shape.dim(static_cast<int>(p)));
      std::vector<int64_t> picks;
      ForEachIndex(out_shape, [&](const Index& out) {
        Index in(shape.rank());
        for (int d = 0; d < shape.rank(); ++d) in[perm[d]] = out[d];
        picks.push_back(Flat(shape, in));
      });
      const Tensor input = Distinct(type, shape);
      OpTest op("Transpose", threads);
      op.Input(input).Input(Int32Vector(perm));
      ASSERT_TRUE(op.Run().ok());
      ExpectPicks(op.output(0), input, out_shape, picks);
    }
  });
}

TEST(Moving, TransposeLarge) {
  struct Case {
    Index dims, perm;
  };
  // Matrices, channels moved to and fro, kept last dimensions, narrow and wide ones.
  const std::vector<Case> cases = {{{300, 517}, {1, 0}},           {{2, 33, 35, 3}, {0, 3, 1, 2}},
                                   {{2, 3, 33, 35}, {0, 2, 3, 1}}, {{3, 40, 50, 64}, {0, 3, 1, 2}},
                                   {{64, 50, 64}, {1, 0, 2}},      {{5, 1000, 2}, {2, 1, 0}},
                                   {{70, 4, 1000}, {2, 0, 1}}};
  for (const Case& c : cases) {
    const Shape shape{absl::Span<const int64_t>(c.dims)};
    const Tensor input = Distinct(ElementType::kInt32, shape);
    Shape out_shape;
    for (const int64_t p : c.perm) out_shape.AddDim(shape.dim(static_cast<int>(p)));
    std::vector<int64_t> picks;
    ForEachIndex(out_shape, [&](const Index& out) {
      Index in(shape.rank());
      for (int d = 0; d < shape.rank(); ++d) in[c.perm[d]] = out[d];
      picks.push_back(Flat(shape, in));
    });
    OpTest op("Transpose", 2);
    op.Input(input).Input(IntVector(c.perm));
    ASSERT_TRUE(op.Run().ok());
    ExpectPicks(op.output(0), input, out_shape, picks);
  }
}

TEST(Moving, SliceAndPad) {
  ForTypesAndThreads([](ElementType type, int threads, Dice& dice) {
    for (int round = 0; round < 25; ++round) {
      const Shape shape = dice.RandomShape(1, 4, 1, round == 0 ? 60 : 9);
      Index begin, size, paddings;
      Shape out_shape, padded_shape;
      for (const int64_t dim : shape.dims()) {
        begin.push_back(dice.Roll(0, dim));
        const int64_t count = dice.Roll(0, dim - begin.back());
        const bool rest = dice.Roll(0, 3) == 0;
        size.push_back(rest ? -1 : count);
        out_shape.AddDim(rest ? dim - begin.back() : count);
        paddings.push_back(dice.Roll(0, 3));
        paddings.push_back(dice.Roll(0, 3));
        padded_shape.AddDim(dim + paddings[paddings.size() - 2] + paddings.back());
      }
      const Tensor input = Distinct(type, shape);
      std::vector<int64_t> picks;
      ForEachIndex(out_shape, [&](Index index) {
        for (size_t d = 0; d < index.size(); ++d) index[d] += begin[d];
        picks.push_back(Flat(shape, index));
      });
      OpTest slice("Slice", threads);
      slice.Input(input).Input(IntVector(begin)).Input(IntVector(size));
      ASSERT_TRUE(slice.Run().ok());
      ExpectPicks(slice.output(0), input, out_shape, picks);

      picks.clear();
      ForEachIndex(padded_shape, [&](Index index) {
        bool inside = true;
        for (size_t d = 0; d < index.size(); ++d) {
          index[d] -= paddings[2 * d];
          inside = inside && index[d] >= 0 && index[d] < shape.dim(static_cast<int>(d));
        }
        picks.push_back(inside ? Flat(shape, index) : -1);
      });
      OpTest pad("Pad", threads);
      pad.Input(input).Input(
          Tensor::FromValues<int64_t>(absl::MakeConstSpan(paddings), Shape({shape.rank(), 2}))
              .value());
      ASSERT_TRUE(pad.Run().ok());
      ExpectPicks(pad.output(0), input, padded_shape, picks);
    }
  });
}

TEST(Moving, ReverseTileBroadcast) {
  ForTypesAndThreads([](ElementType type, int threads, Dice& dice) {
    for (int round = 0; round < 25; ++round) {
      const Shape shape = dice.RandomShape(1, 4, round % 5 == 0 ? 0 : 1, 7);
      const Tensor input = Distinct(type, shape);
      Index axes, times;
      std::vector<bool> reversed;
      Shape tiled, narrow, wide;
      wide.AddDim(dice.Roll(1, 3));
      for (int d = 0; d < shape.rank(); ++d) {
        reversed.push_back(dice.Roll(0, 1) == 1);
        if (reversed.back()) axes.push_back(dice.Roll(0, 1) == 1 ? d : d - shape.rank());
        times.push_back(dice.Roll(0, 3));
        tiled.AddDim(shape.dim(d) * times[d]);
        narrow.AddDim(reversed.back() ? 1 : shape.dim(d));
        wide.AddDim(shape.dim(d));
      }
      std::vector<int64_t> picks;
      ForEachIndex(shape, [&](Index index) {
        for (int d = 0; d < shape.rank(); ++d) {
          if (reversed[d]) index[d] = shape.dim(d) - 1 - index[d];
        }
        picks.push_back(Flat(shape, index));
      });
      OpTest reverse("ReverseV2", threads);
      reverse.Input(input).Input(IntVector(axes));
      ASSERT_TRUE(reverse.Run().ok());
      ExpectPicks(reverse.output(0), input, shape, picks);

      picks.clear();
      ForEachIndex(tiled, [&](Index index) {
        for (int d = 0; d < shape.rank(); ++d) index[d] %= shape.dim(d);
        picks.push_back(Flat(shape, index));
      });
      OpTest tile("Tile", threads);
      tile.Input(input).Input(Int32Vector(times));
      ASSERT_TRUE(tile.Run().ok());
      ExpectPicks(tile.output(0), input, tiled, picks);

      const Tensor small = Distinct(type, narrow);
      picks.clear();
      ForEachIndex(wide, [&](const Index& index) {
        Index from(index.begin() + 1, index.end());
        for (int d = 0; d < narrow.rank(); ++d) {
          if (narrow.dim(d) == 1) from[d] = 0;
        }
        picks.push_back(Flat(narrow, from));
      });
      OpTest broadcast("BroadcastTo", threads);
      broadcast.Input(small).Input(IntVector(Index(wide.dims().begin(), wide.dims().end())));
      ASSERT_TRUE(broadcast.Run().ok());
      ExpectPicks(broadcast.output(0), small, wide, picks);
    }
  });
}

TEST(Moving, SplitAndConcat) {
  ForTypesAndThreads([](ElementType type, int threads, Dice& dice) {
    for (int round = 0; round < 25; ++round) {
      const Shape shape = dice.RandomShape(1, 4, 1, round == 0 ? 70 : 8);
      const int axis = static_cast<int>(dice.Roll(0, shape.rank() - 1));
      const int n = static_cast<int>(dice.Roll(2, 4));
      Index sizes;
      int64_t left = shape.dim(axis);
      for (int i = 0; i < n; ++i) {
        sizes.push_back(i == n - 1 ? left : dice.Roll(0, left));
        left -= sizes.back();
      }
      const Tensor input = Distinct(type, shape);
      OpTest split("SplitV", threads);
      Index asked = sizes;
      asked[dice.Roll(0, n - 1)] = -1;
      split.Attr("num_split", n).Input(input).Input(IntVector(asked)).Input(Tensor::Scalar(axis));
      ASSERT_TRUE(split.Run().ok());
      OpTest concat("ConcatV2", threads);
      int64_t begin = 0;
      for (int i = 0; i < n; ++i) {
        Shape part = shape;
        part.set_dim(axis, sizes[i]);
        std::vector<int64_t> picks;
        ForEachIndex(part, [&](Index index) {
          index[axis] += begin;
          picks.push_back(Flat(shape, index));
        });
        ExpectPicks(split.output(i), input, part, picks);
        begin += sizes[i];
        concat.Input(split.output(i));
      }
      concat.Attr("N", n).Input(Tensor::Scalar(axis - shape.rank()));
      ASSERT_TRUE(concat.Run().ok());
      std::vector<int64_t> all(shape.num_elements());
      std::iota(all.begin(), all.end(), 0);
      ExpectPicks(concat.output(0), input, shape, all);

      OpTest unpack("Unpack", threads);
      unpack.Attr("num", shape.dim(axis)).Attr("axis", axis).Input(input);
      ASSERT_TRUE(unpack.Run().ok());
      OpTest pack("Pack", threads);
      pack.Attr("axis", axis);
      for (int i = 0; i < unpack.num_outputs(); ++i) {
        EXPECT_EQ(unpack.output(i).rank(), shape.rank() - 1);
        pack.Input(unpack.output(i));
      }
      ASSERT_TRUE(pack.Run().ok());
      ExpectPicks(pack.output(0), input, shape, all);
    }
  });
}

TEST(Moving, StridedSliceAndItsGradient) {
  ForTypesAndThreads([](ElementType type, int threads, Dice& dice) {
    for (int round = 0; round < 40; ++round) {
      const Shape shape = dice.RandomShape(1, 4, 1, 8);
      Index begin, end, strides, in_shape(shape.dims().begin(), shape.dims().end());
      int64_t begin_mask = 0, end_mask = 0, shrink = 0;
      Shape sliced, result;  // With and without the dimensions of single indices.
      std::vector<Index> taken;
      for (int d = 0; d < shape.rank(); ++d) {
        const int64_t dim = shape.dim(d);
        int64_t stride = dice.Roll(1, 3);
        begin.push_back(dice.Roll(-dim, dim - 1));
        end.push_back(dice.Roll(-dim - 2, dim + 2));
        Index at;
        const int64_t first = begin[d] < 0 ? begin[d] + dim : begin[d];
        if (dice.Roll(0, 3) == 0) {
          shrink |= int64_t{1} << d;
          at.push_back(first);
        } else {
          if (dice.Roll(0, 1) == 1) stride = -stride;
          int64_t from = first, to = end[d] < 0 ? end[d] + dim : end[d];
          if (dice.Roll(0, 3) == 0) {
            begin_mask |= int64_t{1} << d;
            from = stride > 0 ? 0 : dim - 1;
          }
          if (dice.Roll(0, 3) == 0) {
            end_mask |= int64_t{1} << d;
            to = stride > 0 ? dim : -1;
          } else {
            to =
                stride > 0 ? std::clamp<int64_t>(to, 0, dim) : std::clamp<int64_t>(to, -1, dim - 1);
          }
          for (int64_t i = from; stride > 0 ? i < to : i > to; i += stride) at.push_back(i);
          result.AddDim(static_cast<int64_t>(at.size()));
        }
        strides.push_back(stride);
        sliced.AddDim(static_cast<int64_t>(at.size()));
        taken.push_back(at);
      }
      const Tensor input = Distinct(type, shape);
      std::vector<int64_t> picks;
      ForEachIndex(sliced, [&](Index index) {
        for (int d = 0; d < shape.rank(); ++d) index[d] = taken[d][index[d]];
        picks.push_back(Flat(shape, index));
      });
      OpTest slice("StridedSlice", threads);
      slice.Attr("begin_mask", begin_mask)
          .Attr("end_mask", end_mask)
          .Attr("shrink_axis_mask", shrink);
      slice.Input(input).Input(IntVector(begin)).Input(IntVector(end)).Input(IntVector(strides));
      ASSERT_TRUE(slice.Run().ok());
      ExpectPicks(slice.output(0), input, result, picks);

      std::vector<int64_t> back(shape.num_elements(), -1);
      for (size_t i = 0; i < picks.size(); ++i) back[picks[i]] = static_cast<int64_t>(i);
      const Tensor dy = Distinct(type, result);
      OpTest grad("StridedSliceGrad", threads);
      grad.Attr("begin_mask", begin_mask)
          .Attr("end_mask", end_mask)
          .Attr("shrink_axis_mask", shrink);
      grad.Input(IntVector(in_shape)).Input(IntVector(begin)).Input(IntVector(end));
      grad.Input(IntVector(strides)).Input(dy);
      ASSERT_TRUE(grad.Run().ok());
      ExpectPicks(grad.output(0), dy, shape, back);
    }
  });
}

TEST(Moving, GatherWithBatches) {
  ForTypesAndThreads([](ElementType type, int threads, Dice& dice) {
    for (int round = 0; round < 25; ++round) {
      const Shape shape = dice.RandomShape(1, 4, 1, 8);
      const int axis = static_cast<int>(dice.Roll(0, shape.rank() - 1));
      const int batch = static_cast<int>(dice.Roll(0, axis));
      Shape index_shape;
      for (int d = 0; d < batch; ++d) index_shape.AddDim(shape.dim(d));
      for (int64_t extra = dice.Roll(0, 2); extra > 0; --extra) index_shape.AddDim(dice.Roll(1, 5));
      std::vector<int32_t> indices;
      for (int64_t i = 0; i < index_shape.num_elements(); ++i) {
        indices.push_back(static_cast<int32_t>(dice.Roll(0, shape.dim(axis) - 1)));
      }
      Shape out_shape;
      for (int d = 0; d < axis; ++d) out_shape.AddDim(shape.dim(d));
      for (int d = batch; d < index_shape.rank(); ++d) out_shape.AddDim(index_shape.dim(d));
      for (int d = axis + 1; d < shape.rank(); ++d) out_shape.AddDim(shape.dim(d));
      const int extra = index_shape.rank() - batch;
      std::vector<int64_t> picks;
      ForEachIndex(out_shape, [&](const Index& out) {
        Index at(out.begin(), out.begin() + batch);
        at.insert(at.end(), out.begin() + axis, out.begin() + axis + extra);
        Index in(out.begin(), out.begin() + axis);
        in.push_back(indices[Flat(index_shape, at)]);
        in.insert(in.end(), out.begin() + axis + extra, out.end());
        picks.push_back(Flat(shape, in));
      });
      const Tensor input = Distinct(type, shape);
      OpTest op("GatherV2", threads);
      op.Attr("batch_dims", batch).Input(input);
      op.Input(Tensor::FromValues<int32_t>(absl::MakeConstSpan(indices), index_shape).value());
      op.Input(Tensor::Scalar<int32_t>(axis));
      ASSERT_TRUE(op.Run().ok());
      ExpectPicks(op.output(0), input, out_shape, picks);
    }
  });
}

TEST(Moving, LargePartsShareMemory) {
  const Tensor input = Distinct(ElementType::kFloat, Shape({8, 4096}));
  OpTest split("Split");
  split.Attr("num_split", 2).Input(Tensor::Scalar<int32_t>(0)).Input(input);
  ASSERT_TRUE(split.Run().ok());
  EXPECT_TRUE(split.output(1).SharesBufferWith(input));
  OpTest slice("Slice");
  slice.Input(input).Input(IntVector({2, 0})).Input(IntVector({3, -1}));
  ASSERT_TRUE(slice.Run().ok());
  EXPECT_TRUE(slice.output(0).SharesBufferWith(input));
  EXPECT_EQ(Element(slice.output(0), 0), Element(input, 2 * 4096));
  OpTest reshape("Reshape");
  reshape.Input(input).Input(IntVector({4, -1}));
  ASSERT_TRUE(reshape.Run().ok());
  EXPECT_TRUE(reshape.output(0).SharesBufferWith(input));
}

}  // namespace
}  // namespace troupe::testing
