// Float convolutions by oneDNN: images and results where they lie (channels last), filters brought
// into the layout that oneDNN likes best. The batch is cut into pieces that depend on the sizes
// only.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/common/onednn.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

using dnnl::memory;

// Multiplications of a piece: some 10 microseconds with AVX-512.
constexpr double kPieceProducts = 1.2e6;

// Sizes of a convolution as one key.
using ConvKey = std::array<int64_t, 24>;

ConvKey KeyOf(ConvOp op, const ConvShape& s) {
  ConvKey key = {static_cast<int64_t>(op), s.batch, s.in_depth, s.out_depth, s.groups, s.is_3d};
  size_t at = 6;
  for (const Window* w : {&s.planes, &s.rows, &s.columns}) {
    for (const int64_t size :
         {w->input, w->output, w->size, w->stride, w->dilation, w->pad_before}) {
      key[at++] = size;
    }
  }
  return key;
}

// The dimensions over which windows slide, slowest first.
std::vector<Window> WindowsOf(const ConvShape& s) {
  return s.is_3d ? std::vector<Window>{s.planes, s.rows, s.columns}
                 : std::vector<Window>{s.rows, s.columns};
}

// `first`, then a number of each window.
memory::dims DimsOf(const std::vector<Window>& windows, memory::dims first,
                    int64_t (*number)(const Window&)) {
  for (const Window& w : windows) first.push_back(number(w));
  return first;
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
  using Tag = memory::format_tag;
  const bool grouped = s.groups != 1;
  memory::dims first;
  if (grouped) first.push_back(s.groups);
  first.push_back(s.out_depth / s.groups);
  first.push_back(s.filter_depth());
  return {DimsOf(WindowsOf(s), first, [](const Window& w) { return w.size; }),
          memory::data_type::f32,
          s.is_3d   ? Tag::dhwio
          : grouped ? Tag::hwigo
                    : Tag::hwio};
}

memory::desc AnyFilter(const ConvShape& s) {
  return {PlainFilter(s).dims(), memory::data_type::f32, memory::format_tag::any};
}

std::shared_ptr<ConvPrimitives> MakePrimitives(ConvOp op, const ConvShape& s) {
  const auto f32 = memory::data_type::f32;
  const auto last = s.is_3d ? memory::format_tag::ndhwc : memory::format_tag::nhwc;
  const std::vector<Window> windows = WindowsOf(s);
  const memory::desc input(
      DimsOf(windows, {s.batch, s.in_depth}, [](const Window& w) { return w.input; }), f32, last);
  const memory::desc output(
      DimsOf(windows, {s.batch, s.out_depth}, [](const Window& w) { return w.output; }), f32, last);
  const memory::dims strides = DimsOf(windows, {}, [](const Window& w) { return w.stride; });
  const memory::dims dilations =
      DimsOf(windows, {}, [](const Window& w) { return w.dilation - 1; });
  const memory::dims before = DimsOf(windows, {}, [](const Window& w) { return w.pad_before; });
  // What oneDNN needs to arrive at the same output size; the input's end may also go unused.
  const memory::dims behind = DimsOf(windows, {}, [](const Window& w) {
    return std::max<int64_t>(
        0, (w.output - 1) * w.stride + w.effective_size() - w.input - w.pad_before);
  });
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

}  // namespace

struct OneDnnConv::Impl {
  absl::StatusOr<std::shared_ptr<ConvPrimitives>> Find(ConvOp op, const ConvShape& shape) {
    return cache.Find(KeyOf(op, shape), [&] {
      return CatchOneDnn("making a convolution", [&] { return MakePrimitives(op, shape); });
    });
  }

  using Primitives = std::vector<std::shared_ptr<ConvPrimitives>>;
  absl::StatusOr<Primitives> FindAll(ConvOp op, const std::vector<ConvPiece>& pieces) {
    Primitives found(pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(found[i], Find(op, pieces[i].shape));
    }
    return found;
  }
  // Forward and backward to the input.
  absl::Status ToImages(KernelContext& ctx, ConvOp op, const ConvShape& s, const float* from,
                        const ConvFilter& filter, float* to);
  // `filter` as the primitive wants it; `space` holds it if it is not the filter itself.
  absl::StatusOr<const float*> Prepare(KernelContext& ctx, const ConvPrimitives& p,
                                       const ConvFilter& filter, Tensor* space);

  OneDnnCache<ConvKey, ConvPrimitives> cache;
  PackedFilters<memory::desc> packed;
};

OneDnnConv::OneDnnConv() : impl_(std::make_unique<Impl>()) {}
OneDnnConv::~OneDnnConv() = default;

absl::StatusOr<const float*> OneDnnConv::Impl::Prepare(KernelContext& ctx, const ConvPrimitives& p,
                                                       const ConvFilter& filter, Tensor* space) {
  if (p.reorder == nullptr) return filter.data;
  TROUPE_ASSIGN_OR_RETURN(
      *space, packed.Get(filter, p.conv->layout(1), [&]() -> absl::StatusOr<Tensor> {
        TROUPE_ASSIGN_OR_RETURN(Tensor made,
                                ctx.AllocateTemp(ElementType::kUint8, Shape({p.filter_bytes})));
        TROUPE_RETURN_IF_ERROR(
            p.reorder->Execute({const_cast<float*>(filter.data), made.mutable_raw_data()}));
        return made;
      }));
  return static_cast<const float*>(space->raw_data());
}

absl::Status OneDnnConv::Impl::ToImages(KernelContext& ctx, ConvOp op, const ConvShape& s,
                                        const float* from, const ConvFilter& filter, float* to) {
  const std::vector<ConvPiece> pieces =
      CutConv(op, s, s.image_products() * static_cast<double>(s.batch) / kPieceProducts);
  TROUPE_ASSIGN_OR_RETURN(const Primitives primitives, FindAll(op, pieces));
  // Pieces of different sizes may want the filter in different layouts.
  std::vector<const float*> filters(pieces.size());
  std::vector<Tensor> spaces(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && primitives[i]->conv->layout(1) == primitives[i - 1]->conv->layout(1)) {
      filters[i] = filters[i - 1];
    } else {
      TROUPE_ASSIGN_OR_RETURN(filters[i], Prepare(ctx, *primitives[i], filter, &spaces[i]));
    }
  }
  const bool backward = op == ConvOp::kBackwardInput;
  return ForPieces(ctx, pieces, [&](const ConvPiece& piece, int64_t i) -> absl::Status {
    const ConvPrimitives& p = *primitives[i];
    TROUPE_ASSIGN_OR_RETURN(Tensor space,
                            ctx.AllocateTemp(ElementType::kUint8, Shape({p.scratch_bytes})));
    return p.conv->Execute({const_cast<float*>(from + (backward ? piece.output : piece.input)),
                            const_cast<float*>(filters[i]),
                            to + (backward ? piece.input : piece.output),
                            space.mutable_raw_data()});
  });
}

absl::Status OneDnnConv::Forward(KernelContext& ctx, const ConvShape& s, const float* input,
                                 const ConvFilter& filter, float* output) {
  return impl_->ToImages(ctx, ConvOp::kForward, s, input, filter, output);
}

absl::Status OneDnnConv::BackwardInput(KernelContext& ctx, const ConvShape& s,
                                       const ConvFilter& filter, const float* output_gradient,
                                       float* input_gradient) {
  return impl_->ToImages(ctx, ConvOp::kBackwardInput, s, output_gradient, filter, input_gradient);
}

absl::Status OneDnnConv::BackwardFilter(KernelContext& ctx, const ConvShape& s, const float* input,
                                        const float* output_gradient, float* filter_gradient) {
  // Every piece has a sum of its own; adding them up must stay cheap beside the convolution.
  const double products = s.image_products() * static_cast<double>(s.batch);
  const double positions =
      static_cast<double>(s.batch * s.planes.output * s.rows.output * s.columns.output);
  const double wanted = std::floor(std::min({products / 4e6, positions / 750, 8.0}));
  const std::vector<ConvPiece> cut = CutConv(ConvOp::kBackwardFilter, s, wanted);
  TROUPE_ASSIGN_OR_RETURN(const Impl::Primitives primitives,
                          impl_->FindAll(ConvOp::kBackwardFilter, cut));
  const ConvPrimitives& first = *primitives[0];
  // The pieces' sums, each in the filter's plain layout unless all pieces agree on another one.
  const bool one_layout = std::all_of(primitives.begin(), primitives.end(), [&](const auto& p) {
    return p->conv->layout(2) == first.conv->layout(2);
  });
  const int64_t pieces = static_cast<int64_t>(cut.size());
  const int64_t plain_bytes = s.filter_shape().num_elements() * static_cast<int64_t>(sizeof(float));
  const int64_t sum_bytes = one_layout ? first.filter_bytes : plain_bytes;
  const int64_t sum_step = (sum_bytes + 63) / 64 * 64;
  const bool in_place = pieces == 1 && first.reorder == nullptr;
  Tensor sums;
  if (!in_place) {
    TROUPE_ASSIGN_OR_RETURN(sums,
                            ctx.AllocateTemp(ElementType::kUint8, Shape({sum_step * pieces})));
  }
  TROUPE_RETURN_IF_ERROR(
      ForPieces(ctx, cut, [&](const ConvPiece& piece, int64_t i) -> absl::Status {
        const ConvPrimitives& p = *primitives[i];
        TROUPE_ASSIGN_OR_RETURN(Tensor space,
                                ctx.AllocateTemp(ElementType::kUint8, Shape({p.scratch_bytes})));
        void* sum = in_place ? static_cast<void*>(filter_gradient)
                             : static_cast<uint8_t*>(sums.mutable_raw_data()) + i * sum_step;
        void* target = sum;
        Tensor other;
        if (!one_layout && p.reorder != nullptr) {
          TROUPE_ASSIGN_OR_RETURN(other,
                                  ctx.AllocateTemp(ElementType::kUint8, Shape({p.filter_bytes})));
          target = other.mutable_raw_data();
        }
        TROUPE_RETURN_IF_ERROR(p.conv->Execute({const_cast<float*>(input + piece.input),
                                                const_cast<float*>(output_gradient + piece.output),
                                                target, space.mutable_raw_data()}));
        return target == sum ? absl::OkStatus() : p.reorder->Execute({target, sum});
      }));
  if (in_place) return absl::OkStatus();
  float* total = static_cast<float*>(sums.mutable_raw_data());
  const int64_t count = sum_bytes / static_cast<int64_t>(sizeof(float));
  ctx.ParallelFor(count, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = 1; i < pieces; ++i) {
      const float* more = total + i * sum_step / static_cast<int64_t>(sizeof(float));
      for (int64_t j = begin; j < end; ++j) total[j] += more[j];
    }
  });
  if (one_layout && first.reorder != nullptr) {
    return first.reorder->Execute({total, filter_gradient});
  }
  std::memcpy(filter_gradient, total, plain_bytes);
  return absl::OkStatus();
}

}  // namespace troupe
