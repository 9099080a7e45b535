// Float convolutions by oneDNN: images and results where they lie (NHWC), filters brought into the
// layout that oneDNN likes best. The batch is cut into pieces that depend on the sizes only.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/common/onednn.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

using dnnl::memory;

// Sizes of a convolution as one key.
using ConvKey = std::array<int64_t, 17>;

ConvKey KeyOf(ConvOp op, const ConvShape& s) {
  return {static_cast<int64_t>(op),
          s.batch,
          s.in_depth,
          s.out_depth,
          s.groups,
          s.rows.input,
          s.rows.output,
          s.rows.size,
          s.rows.stride,
          s.rows.dilation,
          s.rows.pad_before,
          s.columns.input,
          s.columns.output,
          s.columns.size,
          s.columns.stride,
          s.columns.dilation,
          s.columns.pad_before};
}

// A convolution of a fixed batch, and the change of the filter's layout that goes with it (null if
// none).
struct ConvPrimitives {
  std::unique_ptr<OneDnnPrimitive> conv;     // arguments: the op's inputs, output, scratch memory
  std::unique_ptr<OneDnnPrimitive> reorder;  // plain filter to oneDNN's, or back
  int64_t filter_bytes = 0;                  // in oneDNN's layout
  int64_t scratch_bytes = 0;
};

memory::desc PlainFilter(const ConvShape& s) {
  const int64_t group_out = s.out_depth / s.groups, depth = s.filter_depth();
  if (s.groups == 1) {
    return {{s.out_depth, depth, s.rows.size, s.columns.size},
            memory::data_type::f32,
            memory::format_tag::hwio};
  }
  return {{s.groups, group_out, depth, s.rows.size, s.columns.size},
          memory::data_type::f32,
          memory::format_tag::hwigo};
}

memory::desc AnyFilter(const ConvShape& s) {
  return {PlainFilter(s).dims(), memory::data_type::f32, memory::format_tag::any};
}

std::shared_ptr<ConvPrimitives> MakePrimitives(ConvOp op, const ConvShape& s) {
  const auto f32 = memory::data_type::f32;
  const auto nhwc = memory::format_tag::nhwc;
  const memory::desc input({s.batch, s.in_depth, s.rows.input, s.columns.input}, f32, nhwc);
  const memory::desc output({s.batch, s.out_depth, s.rows.output, s.columns.output}, f32, nhwc);
  const memory::dims strides = {s.rows.stride, s.columns.stride};
  const memory::dims dilations = {s.rows.dilation - 1, s.columns.dilation - 1};
  const memory::dims before = {s.rows.pad_before, s.columns.pad_before};
  // What oneDNN needs to arrive at the same output size; the input's end may also go unused.
  const auto after = [](const Window& w) {
    return std::max<int64_t>(
        0, (w.output - 1) * w.stride + w.effective_size() - w.input - w.pad_before);
  };
  const memory::dims behind = {after(s.rows), after(s.columns)};
  const auto direct = dnnl::algorithm::convolution_direct;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::engine& engine = OneDnnEngine();
  auto made = std::make_shared<ConvPrimitives>();
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, direct, input, AnyFilter(s), output, strides, dilations,
       before, behind},
      attributes, engine);
  memory::desc filter;
  if (op == ConvOp::kForward) {
    filter = forward.weights_desc();
    made->conv = std::make_unique<OneDnnPrimitive>(
        dnnl::convolution_forward(forward),
        std::vector<OneDnnArgument>{{DNNL_ARG_SRC, input},
                                    {DNNL_ARG_WEIGHTS, filter},
                                    {DNNL_ARG_DST, output},
                                    {DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc()}});
    made->scratch_bytes = static_cast<int64_t>(forward.scratchpad_desc().get_size());
  } else if (op == ConvOp::kBackwardInput) {
    const dnnl::convolution_backward_data::primitive_desc backward(
        {direct, input, AnyFilter(s), output, strides, dilations, before, behind}, attributes,
        engine, forward);
    filter = backward.weights_desc();
    made->conv = std::make_unique<OneDnnPrimitive>(
        dnnl::convolution_backward_data(backward),
        std::vector<OneDnnArgument>{{DNNL_ARG_DIFF_DST, output},
                                    {DNNL_ARG_WEIGHTS, filter},
                                    {DNNL_ARG_DIFF_SRC, input},
                                    {DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc()}});
    made->scratch_bytes = static_cast<int64_t>(backward.scratchpad_desc().get_size());
  } else {
    const dnnl::convolution_backward_weights::primitive_desc backward(
        {direct, input, AnyFilter(s), output, strides, dilations, before, behind}, attributes,
        engine, forward);
    filter = backward.diff_weights_desc();
    made->conv = std::make_unique<OneDnnPrimitive>(
        dnnl::convolution_backward_weights(backward),
        std::vector<OneDnnArgument>{{DNNL_ARG_SRC, input},
                                    {DNNL_ARG_DIFF_DST, output},
                                    {DNNL_ARG_DIFF_WEIGHTS, filter},
                                    {DNNL_ARG_SCRATCHPAD, backward.scratchpad_desc()}});
    made->scratch_bytes = static_cast<int64_t>(backward.scratchpad_desc().get_size());
  }
  made->filter_bytes = static_cast<int64_t>(filter.get_size());
  const memory::desc plain = PlainFilter(s);
  if (filter != plain) {
    const bool back = op == ConvOp::kBackwardFilter;
    const memory::desc from = back ? filter : plain, to = back ? plain : filter;
    made->reorder = std::make_unique<OneDnnPrimitive>(
        dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to)),
        std::vector<OneDnnArgument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }
  return made;
}

// How a batch is cut: `pieces` pieces of `images` images, the last of which may be shorter.
struct BatchCut {
  int64_t pieces, images;
};

BatchCut CutBatch(int64_t batch, double wanted_pieces) {
  const int64_t pieces =
      std::clamp<int64_t>(static_cast<int64_t>(wanted_pieces), 1, std::min<int64_t>(batch, 16));
  BatchCut cut;
  cut.images = (batch + pieces - 1) / pieces;
  cut.pieces = (batch + cut.images - 1) / cut.images;
  return cut;
}

}  // namespace

struct OneDnnConv::Impl {
  absl::StatusOr<std::shared_ptr<ConvPrimitives>> Find(ConvOp op, ConvShape shape, int64_t batch) {
    shape.batch = batch;
    return cache.Find(KeyOf(op, shape), [&] {
      return CatchOneDnn("making a convolution", [&] { return MakePrimitives(op, shape); });
    });
  }

  // Forward and backward to the input: from -> to, images of the given sizes in elements.
  absl::Status OverBatch(KernelContext& ctx, ConvOp op, const ConvShape& s, const float* from,
                         int64_t from_size, const float* filter, float* to, int64_t to_size);

  OneDnnCache<ConvKey, ConvPrimitives> cache;
};

OneDnnConv::OneDnnConv() : impl_(std::make_unique<Impl>()) {}
OneDnnConv::~OneDnnConv() = default;

absl::Status OneDnnConv::Impl::OverBatch(KernelContext& ctx, ConvOp op, const ConvShape& s,
                                         const float* from, int64_t from_size, const float* filter,
                                         float* to, int64_t to_size) {
  // Pieces of about 100 microseconds.
  const BatchCut cut = CutBatch(s.batch, s.image_products() * static_cast<double>(s.batch) / 4e6);
  TROUPE_ASSIGN_OR_RETURN(const auto whole, Find(op, s, cut.images));
  const int64_t last_images = s.batch - (cut.pieces - 1) * cut.images;
  auto last = whole;
  if (last_images != cut.images) {
    TROUPE_ASSIGN_OR_RETURN(last, Find(op, s, last_images));
  }
  const bool one_layout = last->conv->layout(1) == whole->conv->layout(1);
  Tensor scratch[2];
  const auto prepare = [&](const ConvPrimitives& p, Tensor* space, const float** prepared) {
    *prepared = filter;
    if (p.reorder == nullptr) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(*space, ctx.AllocateTemp(ElementType::kUint8, Shape({p.filter_bytes})));
    *prepared = static_cast<const float*>(space->raw_data());
    return p.reorder->Execute({const_cast<float*>(filter), space->mutable_raw_data()});
  };
  const float* filters[2];
  TROUPE_RETURN_IF_ERROR(prepare(*whole, &scratch[0], &filters[0]));
  filters[1] = filters[0];
  if (!one_layout) TROUPE_RETURN_IF_ERROR(prepare(*last, &scratch[1], &filters[1]));
  std::vector<absl::Status> failed(cut.pieces);
  ctx.ParallelFor(cut.pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const bool is_last = i == cut.pieces - 1;
      const ConvPrimitives& p = is_last ? *last : *whole;
      absl::StatusOr<Tensor> space =
          ctx.AllocateTemp(ElementType::kUint8, Shape({p.scratch_bytes}));
      if (!space.ok()) {
        failed[i] = space.status();
        continue;
      }
      const int64_t first = i * cut.images;
      failed[i] = p.conv->Execute({const_cast<float*>(from + first * from_size),
                                   const_cast<float*>(filters[is_last]), to + first * to_size,
                                   space->mutable_raw_data()});
    }
  });
  for (absl::Status& status : failed) {
    if (!status.ok()) return std::move(status);
  }
  return absl::OkStatus();
}

absl::Status OneDnnConv::Forward(KernelContext& ctx, const ConvShape& s, const float* input,
                                 const float* filter, float* output) {
  return impl_->OverBatch(ctx, ConvOp::kForward, s, input,
                          s.rows.input * s.columns.input * s.in_depth, filter, output,
                          s.rows.output * s.columns.output * s.out_depth);
}

absl::Status OneDnnConv::BackwardInput(KernelContext& ctx, const ConvShape& s, const float* filter,
                                       const float* output_gradient, float* input_gradient) {
  return impl_->OverBatch(ctx, ConvOp::kBackwardInput, s, output_gradient,
                          s.rows.output * s.columns.output * s.out_depth, filter, input_gradient,
                          s.rows.input * s.columns.input * s.in_depth);
}

absl::Status OneDnnConv::BackwardFilter(KernelContext& ctx, const ConvShape& s, const float* input,
                                        const float* output_gradient, float* filter_gradient) {
  // Every piece has a sum of its own; adding them up must stay cheap beside the convolution.
  const double work = s.image_products() * static_cast<double>(s.batch) / 4e6;
  const double positions = static_cast<double>(s.batch * s.rows.output * s.columns.output);
  const BatchCut cut = CutBatch(s.batch, std::min({work, positions / 750, 8.0}));
  TROUPE_ASSIGN_OR_RETURN(const auto whole, impl_->Find(ConvOp::kBackwardFilter, s, cut.images));
  const int64_t last_images = s.batch - (cut.pieces - 1) * cut.images;
  auto last = whole;
  if (last_images != cut.images) {
    TROUPE_ASSIGN_OR_RETURN(last, impl_->Find(ConvOp::kBackwardFilter, s, last_images));
  }
  // The pieces' sums, each in the filter's plain layout unless all pieces agree on another one.
  const bool one_layout = last->conv->layout(2) == whole->conv->layout(2);
  const int64_t plain_bytes = s.filter_shape().num_elements() * static_cast<int64_t>(sizeof(float));
  const int64_t sum_bytes = one_layout ? whole->filter_bytes : plain_bytes;
  const int64_t sum_step = (sum_bytes + 63) / 64 * 64;
  const bool in_place = cut.pieces == 1 && whole->reorder == nullptr;
  Tensor sums;
  if (!in_place) {
    TROUPE_ASSIGN_OR_RETURN(sums,
                            ctx.AllocateTemp(ElementType::kUint8, Shape({sum_step * cut.pieces})));
  }
  std::vector<absl::Status> failed(cut.pieces);
  const auto run = [&](int64_t i) -> absl::Status {
    const ConvPrimitives& p = i == cut.pieces - 1 ? *last : *whole;
    TROUPE_ASSIGN_OR_RETURN(Tensor space,
                            ctx.AllocateTemp(ElementType::kUint8, Shape({p.scratch_bytes})));
    const int64_t first = i * cut.images;
    void* sum = in_place ? static_cast<void*>(filter_gradient)
                         : static_cast<uint8_t*>(sums.mutable_raw_data()) + i * sum_step;
    void* target = sum;
    Tensor other;
    if (!one_layout && p.reorder != nullptr) {
      TROUPE_ASSIGN_OR_RETURN(other,
                              ctx.AllocateTemp(ElementType::kUint8, Shape({p.filter_bytes})));
      target = other.mutable_raw_data();
    }
    TROUPE_RETURN_IF_ERROR(p.conv->Execute(
        {const_cast<float*>(input + first * s.rows.input * s.columns.input * s.in_depth),
         const_cast<float*>(output_gradient +
                            first * s.rows.output * s.columns.output * s.out_depth),
         target, space.mutable_raw_data()}));
    return target == sum ? absl::OkStatus() : p.reorder->Execute({target, sum});
  };
  ctx.ParallelFor(cut.pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) failed[i] = run(i);
  });
  for (absl::Status& status : failed) {
    if (!status.ok()) return std::move(status);
  }
  if (in_place) return absl::OkStatus();
  float* total = static_cast<float*>(sums.mutable_raw_data());
  const int64_t count = sum_bytes / static_cast<int64_t>(sizeof(float));
  ctx.ParallelFor(count, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = 1; i < cut.pieces; ++i) {
      const float* more = total + i * sum_step / static_cast<int64_t>(sizeof(float));
      for (int64_t j = begin; j < end; ++j) total[j] += more[j];
    }
  });
  if (one_layout && whole->reorder != nullptr) {
    return whole->reorder->Execute({total, filter_gradient});
  }
  std::memcpy(filter_gradient, total, plain_bytes);
  return absl::OkStatus();
}

}  // namespace troupe
