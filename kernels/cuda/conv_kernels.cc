// Conv, Conv2D, Conv3D and the gradients of the latter: by cuDNN, or as one product of matrices.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/array/layout_engine.h"
#include "kernels/common/integer_input.h"
#include "kernels/cuda/conv_plan.h"
#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fastest.h"
#include "kernels/cuda/plan_cache.h"
#include "kernels/cuda/transpose_planes.h"
#include "kernels/nn/conv_shape.h"
#include "kernels/nn/conv_windows.h"
#include "kernels/nn/volume_conv.h"

namespace troupe::cuda {
namespace {

constexpr size_t kPlans = 512;
constexpr int64_t kMostWorkspace = int64_t{1} << 30;
constexpr size_t kCandidates = 8;  ///< To be measured.
constexpr int kTimedRuns = 3;

/// Whether the first convolution of a shape on a card measures cuDNN's candidates, of which the
/// fastest is kept: if the environment has TROUPE_CUDNN_AUTOTUNE=1. Otherwise cuDNN's heuristics
/// choose, always the same.
bool Autotunes() {
  static const bool wanted = [] {
    const char* const value = std::getenv("TROUPE_CUDNN_AUTOTUNE");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return wanted;
}

/// A place in the work of a stream. Movable.
class TimedEvent {
 public:
  static absl::StatusOr<TimedEvent> Record(cudaStream_t stream) {
    TimedEvent event;
    TROUPE_RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&event.event_, cudaEventDefault),
                                      "timing a convolution"));
    TROUPE_RETURN_IF_ERROR(
        CudaStatus(cudaEventRecord(event.event_, stream), "timing a convolution"));
    return event;
  }
  TimedEvent(TimedEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~TimedEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }

  /// Milliseconds, when the card has come here.
  absl::StatusOr<float> Since(const TimedEvent& earlier) const {
    float milliseconds = 0;
    TROUPE_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(event_), "timing a convolution"));
    TROUPE_RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&milliseconds, earlier.event_, event_),
                                      "timing a convolution"));
    return milliseconds;
  }

 private:
  TimedEvent() = default;

  cudaEvent_t event_ = nullptr;
};

/// cuDNN's state for a card, for the life of the process.
struct Handle {
  std::mutex mutex;  ///< Held by whoever uses it.
  cudnnHandle_t handle = nullptr;
};

absl::StatusOr<Handle*> HandleOf(const Cudnn& cudnn, cudaStream_t stream) {
  static auto* const handles = new std::map<cudaStream_t, Handle>;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  Handle& handle = (*handles)[stream];
  if (handle.handle == nullptr) {
    TROUPE_RETURN_IF_ERROR(cudnn.StatusOf(cudnn.create(&handle.handle), "starting cuDNN"));
    TROUPE_RETURN_IF_ERROR(
        cudnn.StatusOf(cudnn.set_stream(handle.handle, stream), "starting cuDNN"));
  }
  return &handle;
}

/// What a plan depends on: the stream, which stands for the card, and the problem.
using Key = std::pair<cudaStream_t, std::array<int64_t, 27>>;

Key KeyOf(cudaStream_t stream, const ConvProblem& p) {
  const ConvShape& s = p.shape;
  const Window &d = s.planes, &r = s.rows, &c = s.columns;
  return {stream,
          {static_cast<int64_t>(p.op),
           static_cast<int64_t>(p.type),
           s.channels_first,
           s.batch,
           s.in_depth,
           s.out_depth,
           s.groups,
           s.is_3d,
           d.input,
           d.size,
           d.stride,
           d.dilation,
           d.pad_before,
           d.pad_after,
           r.input,
           r.size,
           r.stride,
           r.dilation,
           r.pad_before,
           r.pad_after,
           c.input,
           c.size,
           c.stride,
           c.dilation,
           c.pad_before,
           c.pad_after,
           p.most_workspace}};
}

/// `tensor`, or a copy of it at an address that cuDNN takes.
absl::StatusOr<Tensor> Aligned(KernelContext& ctx, const Tensor& tensor) {
  if (reinterpret_cast<uintptr_t>(tensor.raw_data()) % ConvPlan::kAlignment == 0) return tensor;
  TROUPE_ASSIGN_OR_RETURN(Tensor copy, ctx.AllocateTemp(tensor.type(), tensor.shape()));
  TROUPE_RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(copy.mutable_raw_data(), tensor.raw_data(), tensor.bytes(),
                                 cudaMemcpyDeviceToDevice, StreamOf(ctx)),
                 "copying a slice"));
  return copy;
}

/// Where the elements of a filter [rows, columns, depth, out_depth] (of volumes: [planes, rows,
/// columns, depth, out_depth]) come to lie for cuDNN, which wants out_depth outside.
Planes FilterPlanes(const ConvShape& s) {
  const int64_t pixels = s.planes.size * s.rows.size * s.columns.size, depth = s.filter_depth();
  if (!s.channels_first) {
    return {1, pixels * depth, s.out_depth, s.out_depth, 0, pixels * depth, 0};
  }
  return {depth, pixels, s.out_depth, depth * s.out_depth, s.out_depth, depth * pixels, pixels};
}
Planes Reversed(const Planes& p) {
  return {p.count, p.columns, p.rows, p.to_row, p.to_plane, p.from_row, p.from_plane};
}

/// Where the elements of `batch` volumes, channels being their last dimension, come to lie if they
/// are the first.
Planes ChannelPlanes(const Tensor& tensor, int64_t batch) {
  const int64_t depth = tensor.dim(tensor.rank() - 1);
  const int64_t pixels = tensor.num_elements() / (batch * depth);
  return {batch, pixels, depth, depth, pixels * depth, pixels, pixels * depth};
}

DimVector InputDims(const ConvShape& s) {
  DimVector dims = {s.batch, s.planes.input, s.rows.input, s.columns.input};
  dims.insert(dims.begin() + (s.channels_first ? 1 : 4), s.in_depth);
  return dims;
}

/// The tensors of a convolution, of which one is written.
struct Operands {
  const Tensor &input, &filter, &output;
};

class ConvKernel : public Kernel {
 public:
  explicit ConvKernel(ConvOp op) : op_(op) {}

 protected:
  /// To be called before all else.
  absl::Status Prepare() {
    TROUPE_RETURN_IF_ERROR(OpenCublas());
    TROUPE_ASSIGN_OR_RETURN(cudnn_, Cudnn::Get());
    return absl::OkStatus();
  }

  /// Output 0, of shape `result`, from `a` and `b`: the others of input, filter and output, in this
  /// order.
  absl::Status Run(KernelContext& ctx, const ConvShape& shape, const Tensor& a, const Tensor& b,
                   const Shape& result) {
    TROUPE_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.type(), result));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (a.num_elements() == 0 || b.num_elements() == 0) {
      return CudaStatus(cudaMemsetAsync(out->mutable_raw_data(), 0, out->bytes(), StreamOf(ctx)),
                        "filling zeros");
    }
    const Operands operands = op_ == ConvOp::kForward         ? Operands{a, b, *out}
                              : op_ == ConvOp::kBackwardInput ? Operands{*out, a, b}
                                                              : Operands{a, *out, b};
    if (IsProduct(shape)) return RunProduct(ctx, shape, operands);
    // Of wide numbers, cuDNN knows volumes whose channels are first.
    const bool turns = shape.is_3d && !shape.channels_first &&
                       (a.type() == ElementType::kFloat || a.type() == ElementType::kDouble);
    return turns ? RunTurned(ctx, shape, operands) : RunCudnn(ctx, shape, operands);
  }

 private:
  /// Whether the filter's windows are rows of the input as it lies there: single pixels, or whole
  /// images.
  static bool IsProduct(const ConvShape& s) {
    if (s.channels_first || s.groups != 1) return false;
    const auto is = [&s](auto holds) {
      return holds(s.planes) && holds(s.rows) && holds(s.columns);
    };
    return is([](const Window& w) {
             return w.size == 1 && w.stride == 1 && w.output == w.input && w.pad_before == 0;
           }) ||
           is([](const Window& w) {
             return w.size == w.input && w.output == 1 && w.pad_before == 0 &&
                    (w.dilation == 1 || w.size == 1);
           });
  }

  absl::Status RunProduct(KernelContext& ctx, const ConvShape& s, const Operands& operands) const {
    const int64_t images = s.batch * s.planes.output * s.rows.output * s.columns.output;
    const int64_t window = s.planes.size * s.rows.size * s.columns.size * s.in_depth;
    const Factor input{operands.input.raw_data()}, filter{operands.filter.raw_data()},
        output{operands.output.raw_data()};
    const auto transposed = [](Factor factor) {
      factor.transposition = Transposition::kTransposed;
      return factor;
    };
    Product p;
    p.type = operands.input.type();
    switch (op_) {
      case ConvOp::kForward:
        p = {p.type, images, s.out_depth, window, 1, input, filter, Writable(operands.output)};
        break;
      case ConvOp::kBackwardInput:
        p = {p.type,
             images,
             window,
             s.out_depth,
             1,
             output,
             transposed(filter),
             Writable(operands.input)};
        break;
      case ConvOp::kBackwardFilter:
        p = {p.type,      window,
             s.out_depth, images,
             1,           transposed(input),
             output,      Writable(operands.filter)};
        break;
    }
    return Multiply(ctx, p);
  }

  /// With channels before the planes, by way of copies.
  absl::Status RunTurned(KernelContext& ctx, ConvShape s, const Operands& operands) const {
    s.channels_first = true;
    const ElementType type = operands.input.type();
    const auto bytes = static_cast<int64_t>(ElementSize(type));
    TROUPE_ASSIGN_OR_RETURN(const Tensor input, ctx.AllocateTemp(type, operands.input.shape()));
    TROUPE_ASSIGN_OR_RETURN(const Tensor output, ctx.AllocateTemp(type, operands.output.shape()));
    const auto turn = [&](const Tensor& from, const Tensor& to, const Planes& planes) {
      return CudaStatus(
          LaunchTransposePlanes(bytes, planes, from.raw_data(), Writable(to), StreamOf(ctx)),
          "transposing a volume");
    };
    if (op_ != ConvOp::kBackwardInput) {
      TROUPE_RETURN_IF_ERROR(turn(operands.input, input, ChannelPlanes(operands.input, s.batch)));
    }
    if (op_ != ConvOp::kForward) {
      TROUPE_RETURN_IF_ERROR(
          turn(operands.output, output, ChannelPlanes(operands.output, s.batch)));
    }
    TROUPE_RETURN_IF_ERROR(RunCudnn(ctx, s, {input, operands.filter, output}));
    if (op_ == ConvOp::kForward) {
      return turn(output, operands.output, Reversed(ChannelPlanes(operands.output, s.batch)));
    }
    if (op_ == ConvOp::kBackwardInput) {
      return turn(input, operands.input, Reversed(ChannelPlanes(operands.input, s.batch)));
    }
    return absl::OkStatus();
  }

  /// Whether cuDNN is to see the same padding at both ends. Engine 1 of cuDNN 9.19 for gradients of
  /// filters has to: it takes the padding before the input for that after it, and so another size
  /// of the output, beyond which it reads. For the other directions cuDNN leaves such engines out;
  /// but those are the fast ones where no tensor cores compute.
  bool WantsEvenPadding(ElementType type) const {
    return op_ == ConvOp::kBackwardFilter || type == ElementType::kDouble ||
           (type == ElementType::kFloat && !AllowsTf32());
  }

  absl::Status RunCudnn(KernelContext& ctx, const ConvShape& s, const Operands& operands) const {
    return WantsEvenPadding(operands.input.type()) ? RunEven(ctx, s, operands)
                                                   : RunDirect(ctx, s, operands);
  }

  /// By way of a larger input where there has to be one, as for SAME with a stride of 2 and even
  /// sizes: one pass over the input more, as in TensorFlow.
  absl::Status RunEven(KernelContext& ctx, ConvShape s, const Operands& operands) const {
    const DimVector inside = InputDims(s);
    const int64_t before[] = {MakePaddingEven(&s.planes).before, MakePaddingEven(&s.rows).before,
                              MakePaddingEven(&s.columns).before};
    const DimVector dims = InputDims(s);
    if (dims == inside) return RunDirect(ctx, s, operands);
    DimVector begin(dims.size());
    std::copy(std::begin(before), std::end(before), begin.begin() + (s.channels_first ? 2 : 1));
    const ElementType type = operands.input.type();
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    TROUPE_ASSIGN_OR_RETURN(Tensor padded, ctx.AllocateTemp(type, shape));
    if (op_ != ConvOp::kBackwardInput) {
      PadBlock(ctx, type, dims, begin, inside, padded.mutable_raw_data(), operands.input.raw_data(),
               /*value=*/nullptr);
    }
    TROUPE_RETURN_IF_ERROR(RunDirect(ctx, s, {padded, operands.filter, operands.output}));
    if (op_ != ConvOp::kBackwardInput) return absl::OkStatus();
    const DimVector strides = RowMajorStrides(dims);
    const int64_t first =
        std::inner_product(begin.begin(), begin.end(), strides.begin(), int64_t{0});
    StridedCopy(ctx, type, inside, Writable(operands.input), RowMajorStrides(inside),
                ElementAt(type, padded.raw_data(), first), strides);
    return absl::OkStatus();
  }

  absl::Status RunDirect(KernelContext& ctx, const ConvShape& s, const Operands& operands) const {
    const ElementType type = operands.input.type();
    const cudaStream_t stream = StreamOf(ctx);
    const auto bytes = static_cast<int64_t>(ElementSize(type));
    TROUPE_ASSIGN_OR_RETURN(const Tensor input, Aligned(ctx, operands.input));
    TROUPE_ASSIGN_OR_RETURN(const Tensor output, Aligned(ctx, operands.output));
    TROUPE_ASSIGN_OR_RETURN(Tensor filter, ctx.AllocateTemp(type, operands.filter.shape()));
    if (op_ != ConvOp::kBackwardFilter) {
      TROUPE_RETURN_IF_ERROR(
          CudaStatus(LaunchTransposePlanes(bytes, FilterPlanes(s), operands.filter.raw_data(),
                                           filter.mutable_raw_data(), stream),
                     "transposing a filter"));
    }
    TROUPE_RETURN_IF_ERROR(Execute(ctx, s, {input, filter, output}));
    if (op_ != ConvOp::kBackwardFilter) return absl::OkStatus();
    return CudaStatus(LaunchTransposePlanes(bytes, Reversed(FilterPlanes(s)), filter.raw_data(),
                                            Writable(operands.filter), stream),
                      "transposing a filter");
  }

  /// With less workspace, and another plan for that, where there is no room for that of the best
  /// one, as in TensorFlow.
  absl::Status Execute(KernelContext& ctx, const ConvShape& shape, const Operands& operands) const {
    absl::Status status = ExecuteWithin(kMostWorkspace, ctx, shape, operands);
    if (absl::IsResourceExhausted(status)) {
      status = ExecuteWithin(RoomForWorkspace(ctx), ctx, shape, operands);
    }
    // Others have been quicker.
    if (absl::IsResourceExhausted(status)) status = ExecuteWithin(0, ctx, shape, operands);
    return status;
  }

  /// A power of two, or 0: there are few plans for a shape.
  static int64_t RoomForWorkspace(const KernelContext& ctx) {
    const int64_t free = static_cast<const CudaDevice*>(ctx.step().device)->FreeMemory();
    const int64_t room = std::clamp<int64_t>(free, 0, kMostWorkspace);
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(room)));
  }

  absl::Status ExecuteWithin(int64_t most_workspace, KernelContext& ctx, const ConvShape& shape,
                             const Operands& operands) const {
    static auto* const plans = new PlanCache<Key, ConvPlan>(kPlans);
    const cudaStream_t stream = StreamOf(ctx);
    TROUPE_ASSIGN_OR_RETURN(Handle* const handle, HandleOf(*cudnn_, stream));
    const ConvProblem problem{op_, operands.input.type(), shape, AllowsTf32(), most_workspace};
    const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const ConvPlan>> {
      std::lock_guard<std::mutex> lock(handle->mutex);
      TROUPE_ASSIGN_OR_RETURN(std::vector<ConvPlan> candidates,
                              ConvPlan::Make(*cudnn_, {.handle = handle->handle}, problem,
                                             Autotunes() ? kCandidates : 1));
      size_t chosen = 0;
      if (candidates.size() > 1) {
        TROUPE_ASSIGN_OR_RETURN(chosen, Fastest(candidates.size(), [&](size_t i) {
                                  auto time = TimeOf(ctx, candidates[i], handle->handle, operands);
                                  if (!time.ok()) cudaGetLastError();  // Not the next launch's.
                                  return time;
                                }));
      }
      return std::make_shared<const ConvPlan>(std::move(candidates[chosen]));
    };
    TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<const ConvPlan> plan,
                            plans->Get(KeyOf(stream, problem), make));
    TROUPE_ASSIGN_OR_RETURN(const Tensor workspace, WorkspaceOf(ctx, *plan));
    std::lock_guard<std::mutex> lock(handle->mutex);
    return Enqueue(*plan, handle->handle, operands, workspace);
  }

  static absl::StatusOr<Tensor> WorkspaceOf(KernelContext& ctx, const ConvPlan& plan) {
    if (plan.workspace() == 0) return Tensor();
    return ctx.AllocateTemp(ElementType::kUint8, Shape({plan.workspace()}));
  }

  absl::Status Enqueue(const ConvPlan& plan, cudnnHandle_t handle, const Operands& operands,
                       const Tensor& workspace) const {
    return plan.Execute(*cudnn_, handle, operands.input.raw_data(), operands.filter.raw_data(),
                        operands.output.raw_data(),
                        workspace.valid() ? Writable(workspace) : nullptr);
  }

  /// Of some runs after a first one, which loads kernels. This thread waits for the card.
  absl::StatusOr<float> TimeOf(KernelContext& ctx, const ConvPlan& plan, cudnnHandle_t handle,
                               const Operands& operands) const {
    TROUPE_ASSIGN_OR_RETURN(const Tensor workspace, WorkspaceOf(ctx, plan));
    TROUPE_RETURN_IF_ERROR(Enqueue(plan, handle, operands, workspace));
    TROUPE_ASSIGN_OR_RETURN(const TimedEvent begin, TimedEvent::Record(StreamOf(ctx)));
    for (int i = 0; i < kTimedRuns; ++i) {
      TROUPE_RETURN_IF_ERROR(Enqueue(plan, handle, operands, workspace));
    }
    TROUPE_ASSIGN_OR_RETURN(const TimedEvent end, TimedEvent::Record(StreamOf(ctx)));
    return end.Since(begin);
  }

  static void* Writable(const Tensor& tensor) { return const_cast<void*>(tensor.raw_data()); }

  const ConvOp op_;
  const Cudnn* cudnn_ = nullptr;
};

class ImageConvKernel : public ConvKernel {
 public:
  ImageConvKernel(KernelConstruction& construction, ConvOp op, absl::Status* status)
      : ConvKernel(op) {
    *status = attributes_.Read(construction, op, /*only_nhwc=*/false);
    if (status->ok()) *status = Prepare();
  }

 protected:
  ConvAttributes attributes_;
};

class Conv2DKernel final : public ImageConvKernel {
 public:
  Conv2DKernel(KernelConstruction& construction, absl::Status* status)
      : ImageConvKernel(construction, ConvOp::kForward, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape,
                            attributes_.Resolve(input.shape(), filter.shape()));
    return Run(ctx, shape, input, filter, shape.output_shape());
  }
};

class Conv2DBackpropInputKernel final : public ImageConvKernel {
 public:
  Conv2DBackpropInputKernel(KernelConstruction& construction, absl::Status* status)
      : ImageConvKernel(construction, ConvOp::kBackwardInput, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &filter = ctx.input(1), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape input,
                            ReadConvInputSizes(ctx.input(0), filter.shape(), gradient.shape(),
                                               attributes_.channels_first()));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input, filter.shape()));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return Run(ctx, shape, filter, gradient, input);
  }
};

class Conv2DBackpropFilterKernel final : public ImageConvKernel {
 public:
  Conv2DBackpropFilterKernel(KernelConstruction& construction, absl::Status* status)
      : ImageConvKernel(construction, ConvOp::kBackwardFilter, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &gradient = ctx.input(2);
    TROUPE_ASSIGN_OR_RETURN(const Shape filter, ReadShapeVector(ctx.input(1), "filter_sizes"));
    TROUPE_ASSIGN_OR_RETURN(const ConvShape shape, attributes_.Resolve(input.shape(), filter));
    TROUPE_RETURN_IF_ERROR(CheckConvGradient(shape, gradient.shape()));
    return Run(ctx, shape, input, gradient, filter);
  }
};

class GeneralConvKernel final : public ConvKernel {
 public:
  GeneralConvKernel(KernelConstruction& construction, absl::Status* status)
      : ConvKernel(ConvOp::kForward) {
    *status = conv_.Read(construction, /*is_cpu=*/false);
    if (status->ok()) *status = Prepare();
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &input = ctx.input(0), &filter = ctx.input(1);
    TROUPE_ASSIGN_OR_RETURN(const auto resolved, conv_.Resolve(input.shape(), filter.shape()));
    return Run(ctx, resolved.first, input, filter, resolved.second);
  }

 private:
  GeneralConv conv_;
};

}  // namespace

void RegisterConv(Extension& extension) {
  const auto spec = [](const char* op) {
    return KernelSpec(op).Device("GPU").Types("T", FloatTypes()).Cost(KernelCost::kExpensive);
  };
  extension.Kernel(spec("Conv2D"), MakeKernel<Conv2DKernel>);
  extension.Kernel(spec("Conv2DBackpropInput").HostMemory("input_sizes"),
                   MakeKernel<Conv2DBackpropInputKernel>);
  extension.Kernel(spec("Conv2DBackpropFilter").HostMemory("filter_sizes"),
                   MakeKernel<Conv2DBackpropFilterKernel>);
  extension.Kernel(spec("Conv3D"), (MakeKernel<Conv3DKernel<ConvKernel, /*kIsCpu=*/false>>));
  extension.Kernel(spec("Conv3DBackpropInput"),
                   (MakeKernel<Conv3DBackpropInputKernel<ConvKernel, /*kIsCpu=*/false>>));
  extension.Kernel(spec("Conv3DBackpropInputV2").HostMemory("input_sizes"),
                   (MakeKernel<Conv3DBackpropInputKernel<ConvKernel, /*kIsCpu=*/false>>));
  extension.Kernel(spec("Conv3DBackpropFilter"),
                   (MakeKernel<Conv3DBackpropFilterKernel<ConvKernel, /*kIsCpu=*/false>>));
  extension.Kernel(spec("Conv3DBackpropFilterV2").HostMemory("filter_sizes"),
                   (MakeKernel<Conv3DBackpropFilterKernel<ConvKernel, /*kIsCpu=*/false>>));
  extension.Kernel(spec("Conv"), MakeKernel<GeneralConvKernel>);
}

}  // namespace troupe::cuda
