// Convolutions by oneDNN: images and results where they lie (channels last), filters brought into
// the layout that oneDNN likes best. The batch is cut into pieces that depend on the sizes only.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "kernels/common/onednn.h"
#include "kernels/common/widen.h"
#include "kernels/math/cast.h"
#include "kernels/nn/conv_shape.h"

namespace troupe {
namespace {

using dnnl::memory;

// Multiplications of a piece: some 10 microseconds with AVX-512; some 50 with AMX, as each call of
// it asks the processor what it has (CPUID), which takes 7 on a virtual machine.
constexpr double kPieceProducts = 1.2e6, kAmxPieceProducts = 4e7;

// Sizes of a convolution as one key.
using ConvKey = std::array<int64_t, 25>;

ConvKey KeyOf(ConvOp op, const ConvShape& s, memory::data_type type) {
  ConvKey key = {static_cast<int64_t>(op),
                 static_cast<int64_t>(type),
                 s.batch,
                 s.in_depth,
                 s.out_depth,
                 s.groups,
                 s.is_3d};
  size_t at = 7;
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

memory::desc PlainFilter(const ConvShape& s, memory::data_type type) {
  using Tag = memory::format_tag;
  const bool grouped = s.groups != 1;
  memory::dims first;
  if (grouped) first.push_back(s.groups);
  first.push_back(s.out_depth / s.groups);
  first.push_back(s.filter_depth());
  return {DimsOf(WindowsOf(s), first, [](const Window& w) { return w.size; }), type,
          s.is_3d   ? Tag::dhwio
          : grouped ? Tag::hwigo
                    : Tag::hwio};
}

memory::desc AnyFilter(const ConvShape& s, memory::data_type type) {
  return {PlainFilter(s, type).dims(), type, memory::format_tag::any};
}

// The fastest way to go forward that oneDNN 2.6 makes without fault: its `brgconv` for AMX reads up
// to 128 bytes behind a table while it is made. Iteration reads `desc` again.
dnnl::convolution_forward::primitive_desc ForwardDesc(const dnnl::convolution_forward::desc& desc,
                                                      const dnnl::primitive_attr& attributes) {
  dnnl::convolution_forward::primitive_desc forward(desc, attributes, OneDnnEngine());
  while (absl::StartsWith(forward.impl_info_str(), "brgconv:avx512_core_amx") &&
         forward.next_impl()) {
  }
  return forward;
}

// Operands of `type`; a filter's gradient is float.
std::shared_ptr<ConvPrimitives> MakePrimitives(ConvOp op, const ConvShape& s,
                                               memory::data_type type) {
  const auto filter_type = op == ConvOp::kBackwardFilter ? memory::data_type::f32 : type;
  const auto last = s.is_3d ? memory::format_tag::ndhwc : memory::format_tag::nhwc;
  const std::vector<Window> windows = WindowsOf(s);
  const memory::desc input(
      DimsOf(windows, {s.batch, s.in_depth}, [](const Window& w) { return w.input; }), type, last);
  const memory::desc output(
      DimsOf(windows, {s.batch, s.out_depth}, [](const Window& w) { return w.output; }), type,
      last);
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
  const dnnl::convolution_forward::primitive_desc forward =
      ForwardDesc({dnnl::prop_kind::forward_training, direct, input, AnyFilter(s, type), output,
                   strides, dilations, before, behind},
                  attributes);
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
        {direct, input, AnyFilter(s, filter_type), output, strides, dilations, before, behind},
        attributes, engine, forward);
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
        {direct, input, AnyFilter(s, filter_type), output, strides, dilations, before, behind},
        attributes, engine, forward);
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
  const memory::desc plain = PlainFilter(s, filter_type);
  if (filter != plain) {
    const bool back = op == ConvOp::kBackwardFilter;
    const memory::desc from = back ? filter : plain, to = back ? plain : filter;
    made->reorder = std::make_unique<OneDnnPrimitive>(
        dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to)),
        std::vector<OneDnnArgument>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }
  return made;
}

// What oneDNN is given for tensors of one type: bfloat16 where its code for it is fast, else float,
// to which and from which the elements of a piece are converted.
class PieceConverter {
 public:
  explicit PieceConverter(ElementType stored)
      : stored_bytes_(ElementSize(stored)),
        type_(stored == ElementType::kBfloat16 && OneDnnHasBfloat16() ? stored
                                                                      : ElementType::kFloat) {
    if (type_ == stored) return;
    widen_ = FindCast(stored, type_);
    narrow_ = FindCast(type_, stored);
  }

  ElementType type() const { return type_; }
  bool uses_amx() const { return type_ == ElementType::kBfloat16 && OneDnnHasAmx(); }

  /// Elements [begin, begin + count) of `tensor`, in `space` if they have to be converted.
  absl::StatusOr<void*> Read(KernelContext& ctx, const Tensor& tensor, int64_t begin, int64_t count,
                             Tensor* space) const {
    const void* from = static_cast<const char*>(tensor.raw_data()) + begin * stored_bytes_;
    if (widen_ == nullptr) return const_cast<void*>(from);
    TROUPE_ASSIGN_OR_RETURN(*space, ctx.AllocateTemp(type_, Shape({count})));
    widen_(from, space->mutable_raw_data(), count);
    return space->mutable_raw_data();
  }

  /// Where elements [begin, begin + count) of `tensor` are to be put: there, or in `space`, from
  /// which Write() brings them there.
  absl::StatusOr<void*> Place(KernelContext& ctx, Tensor* tensor, int64_t begin, int64_t count,
                              Tensor* space) const {
    if (widen_ == nullptr) {
      return static_cast<char*>(tensor->mutable_raw_data()) + begin * stored_bytes_;
    }
    TROUPE_ASSIGN_OR_RETURN(*space, ctx.AllocateTemp(type_, Shape({count})));
    return space->mutable_raw_data();
  }
  void Write(const Tensor& space, Tensor* tensor, int64_t begin) const {
    if (narrow_ == nullptr) return;
    narrow_(space.raw_data(),
            static_cast<char*>(tensor->mutable_raw_data()) + begin * stored_bytes_,
            space.num_elements());
  }

 private:
  int64_t stored_bytes_;
  ElementType type_;
  simd::UnaryFn widen_ = nullptr, narrow_ = nullptr;  // null if nothing is converted
};

// The elements of `tensor` if it is float, else those of `wide`, which gets its shape.
absl::StatusOr<float*> FloatsFor(KernelContext& ctx, Tensor* tensor, Tensor* wide) {
  if (tensor->type() == ElementType::kFloat) return tensor->mutable_data<float>();
  TROUPE_ASSIGN_OR_RETURN(*wide, ctx.AllocateTemp(ElementType::kFloat, tensor->shape()));
  return wide->mutable_data<float>();
}

}  // namespace

struct OneDnnConv::Impl {
  using Primitives = std::vector<std::shared_ptr<ConvPrimitives>>;
  absl::StatusOr<Primitives> FindAll(ConvOp op, const std::vector<ConvPiece>& pieces,
                                     ElementType type) {
    const auto onednn_type =
        type == ElementType::kFloat ? memory::data_type::f32 : memory::data_type::bf16;
    Primitives found(pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      const ConvShape& shape = pieces[i].shape;
      TROUPE_ASSIGN_OR_RETURN(found[i], cache.Find(KeyOf(op, shape, onednn_type), [&] {
        return CatchOneDnn("making a convolution",
                           [&] { return MakePrimitives(op, shape, onednn_type); });
      }));
    }
    return found;
  }
  // Forward and backward to the input.
  absl::Status ToImages(KernelContext& ctx, ConvOp op, const ConvShape& s, const Tensor& from,
                        const ConvFilter& filter, Tensor* to);
  // `filter` as elements of `type` in the layout that the primitive wants.
  absl::StatusOr<Tensor> Prepare(KernelContext& ctx, const ConvPrimitives& p,
                                 const ConvFilter& filter, ElementType type);

  OneDnnCache<ConvKey, ConvPrimitives> cache;
  PackedFilters<memory::desc> packed;
};

OneDnnConv::OneDnnConv() : impl_(std::make_unique<Impl>()) {}
OneDnnConv::~OneDnnConv() = default;

absl::StatusOr<Tensor> OneDnnConv::Impl::Prepare(KernelContext& ctx, const ConvPrimitives& p,
                                                 const ConvFilter& filter, ElementType type) {
  if (p.reorder == nullptr && type == filter.tensor.type()) return filter.tensor;
  return packed.Get(filter, p.conv->layout(1), [&]() -> absl::StatusOr<Tensor> {
    Tensor plain = filter.tensor;
    if (plain.type() != type) {
      TROUPE_ASSIGN_OR_RETURN(plain, Widened(ctx, filter.tensor));
    }
    if (p.reorder == nullptr) return plain;
    TROUPE_ASSIGN_OR_RETURN(Tensor made,
                            ctx.AllocateTemp(ElementType::kUint8, Shape({p.filter_bytes})));
    TROUPE_RETURN_IF_ERROR(
        p.reorder->Execute({const_cast<void*>(plain.raw_data()), made.mutable_raw_data()}));
    return made;
  });
}

absl::Status OneDnnConv::Impl::ToImages(KernelContext& ctx, ConvOp op, const ConvShape& s,
                                        const Tensor& from, const ConvFilter& filter, Tensor* to) {
  const PieceConverter converter(from.type());
  const std::vector<ConvPiece> pieces =
      CutConv(op, s,
              s.image_products() * static_cast<double>(s.batch) /
                  (converter.uses_amx() ? kAmxPieceProducts : kPieceProducts));
  TROUPE_ASSIGN_OR_RETURN(const Primitives primitives, FindAll(op, pieces, converter.type()));
  // Pieces of different sizes may want the filter in different layouts.
  std::vector<Tensor> filters(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && primitives[i]->conv->layout(1) == primitives[i - 1]->conv->layout(1)) {
      filters[i] = filters[i - 1];
    } else {
      TROUPE_ASSIGN_OR_RETURN(filters[i], Prepare(ctx, *primitives[i], filter, converter.type()));
    }
  }
  const bool backward = op == ConvOp::kBackwardInput;
  return ForPieces(ctx, pieces, [&](const ConvPiece& piece, int64_t i) -> absl::Status {
    const ConvPrimitives& p = *primitives[i];
    TROUPE_ASSIGN_OR_RETURN(Tensor space,
                            ctx.AllocateTemp(ElementType::kUint8, Shape({p.scratch_bytes})));
    int64_t from_elements = piece.shape.input_elements(), from_begin = piece.input;
    int64_t to_elements = piece.shape.output_elements(), to_begin = piece.output;
    if (backward) {
      std::swap(from_elements, to_elements);
      std::swap(from_begin, to_begin);
    }
    Tensor wide_from, wide_to;
    TROUPE_ASSIGN_OR_RETURN(void* read,
                            converter.Read(ctx, from, from_begin, from_elements, &wide_from));
    TROUPE_ASSIGN_OR_RETURN(void* written,
                            converter.Place(ctx, to, to_begin, to_elements, &wide_to));
    TROUPE_RETURN_IF_ERROR(p.conv->Execute(
        {read, const_cast<void*>(filters[i].raw_data()), written, space.mutable_raw_data()}));
    converter.Write(wide_to, to, to_begin);
    return absl::OkStatus();
  });
}

absl::Status OneDnnConv::Forward(KernelContext& ctx, const ConvShape& s, const Tensor& input,
                                 const ConvFilter& filter, Tensor* output) {
  return impl_->ToImages(ctx, ConvOp::kForward, s, input, filter, output);
}

absl::Status OneDnnConv::BackwardInput(KernelContext& ctx, const ConvShape& s,
                                       const ConvFilter& filter, const Tensor& output_gradient,
                                       Tensor* input_gradient) {
  return impl_->ToImages(ctx, ConvOp::kBackwardInput, s, output_gradient, filter, input_gradient);
}

absl::Status OneDnnConv::BackwardFilter(KernelContext& ctx, const ConvShape& s, const Tensor& input,
                                        const Tensor& output_gradient, Tensor* filter_gradient) {
  const PieceConverter converter(input.type());
  Tensor wide_gradient;
  TROUPE_ASSIGN_OR_RETURN(float* gradient, FloatsFor(ctx, filter_gradient, &wide_gradient));
  // Every piece has a sum of its own; adding them up must stay cheap beside the convolution.
  const double products = s.image_products() * static_cast<double>(s.batch);
  const double positions =
      static_cast<double>(s.batch * s.planes.output * s.rows.output * s.columns.output);
  const double wanted =
      std::floor(std::min({products / (converter.uses_amx() ? 6e7 : 4e6), positions / 750, 8.0}));
  const std::vector<ConvPiece> cut = CutConv(ConvOp::kBackwardFilter, s, wanted);
  TROUPE_ASSIGN_OR_RETURN(const Impl::Primitives primitives,
                          impl_->FindAll(ConvOp::kBackwardFilter, cut, converter.type()));
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
        void* sum = in_place ? static_cast<void*>(gradient)
                             : static_cast<uint8_t*>(sums.mutable_raw_data()) + i * sum_step;
        void* target = sum;
        Tensor other;
        if (!one_layout && p.reorder != nullptr) {
          TROUPE_ASSIGN_OR_RETURN(other,
                                  ctx.AllocateTemp(ElementType::kUint8, Shape({p.filter_bytes})));
          target = other.mutable_raw_data();
        }
        Tensor wide_input, wide_output;
        TROUPE_ASSIGN_OR_RETURN(void* x, converter.Read(ctx, input, piece.input,
                                                        piece.shape.input_elements(), &wide_input));
        TROUPE_ASSIGN_OR_RETURN(void* dy,
                                converter.Read(ctx, output_gradient, piece.output,
                                               piece.shape.output_elements(), &wide_output));
        TROUPE_RETURN_IF_ERROR(p.conv->Execute({x, dy, target, space.mutable_raw_data()}));
        return target == sum ? absl::OkStatus() : p.reorder->Execute({target, sum});
      }));
  if (!in_place) {
    float* total = static_cast<float*>(sums.mutable_raw_data());
    const int64_t count = sum_bytes / static_cast<int64_t>(sizeof(float));
    ctx.ParallelFor(count, 16384, [&](int64_t begin, int64_t end) {
      for (int64_t i = 1; i < pieces; ++i) {
        const float* more = total + i * sum_step / static_cast<int64_t>(sizeof(float));
        for (int64_t j = begin; j < end; ++j) total[j] += more[j];
      }
    });
    if (one_layout && first.reorder != nullptr) {
      TROUPE_RETURN_IF_ERROR(first.reorder->Execute({total, gradient}));
    } else {
      std::memcpy(gradient, total, plain_bytes);
    }
  }
  if (wide_gradient.valid()) NarrowTo(ctx, wide_gradient, filter_gradient);
  return absl::OkStatus();
}

}  // namespace troupe
