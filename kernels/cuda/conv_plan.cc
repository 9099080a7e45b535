#include "kernels/cuda/conv_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "devices/status_macros.h"

namespace troupe::cuda {
namespace {

/// How tensors are known to a plan.
enum Uid : int64_t { kInput = 1, kFilter, kOutput };

using Dims = absl::InlinedVector<int64_t, 5>;

/// A number of each window: of those over planes, if there are some, rows and columns.
Dims OfWindows(const ConvShape& s, int64_t Window::*number) {
  Dims numbers;
  if (s.is_3d) numbers.push_back(s.planes.*number);
  numbers.push_back(s.rows.*number);
  numbers.push_back(s.columns.*number);
  return numbers;
}

/// Batch, depth, then the spatial dimensions, as cuDNN counts dimensions in any layout.
Dims TensorDims(int64_t batch, int64_t depth, const Dims& spatial) {
  Dims dims = {batch, depth};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}
Dims InputDims(const ConvShape& s) {
  return TensorDims(s.batch, s.in_depth, OfWindows(s, &Window::input));
}
Dims FilterDims(const ConvShape& s) {
  return TensorDims(s.out_depth, s.filter_depth(), OfWindows(s, &Window::size));
}
Dims OutputDims(const ConvShape& s) {
  return TensorDims(s.batch, s.out_depth, OfWindows(s, &Window::output));
}

cudnnDataType_t DataType(ElementType type) {
  switch (type) {
    case ElementType::kHalf:
      return CUDNN_DATA_HALF;
    case ElementType::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    case ElementType::kDouble:
      return CUDNN_DATA_DOUBLE;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

/// The names of an operation's attributes.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, convolution, input, filter, output;
};
OperationNames NamesOf(ConvOp op) {
  switch (op) {
    case ConvOp::kBackwardInput:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case ConvOp::kBackwardFilter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
  }
}

class PlanMaker {
 public:
  PlanMaker(const Cudnn& cudnn, const ConvTarget& target, const ConvProblem& problem)
      : cudnn_(cudnn), target_(target), problem_(problem) {}

  struct Result {
    CudnnDescriptor configuration, plan;
    int64_t workspace;
  };
  /// The first `most` plans with little enough workspace; if there are none, that with the least.
  absl::StatusOr<std::vector<Result>> Make(size_t most) {
    TROUPE_RETURN_IF_ERROR(MakeGraph());
    std::vector<Result> results;
    std::optional<Result> tightest;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      absl::StatusOr<std::vector<CudnnDescriptor>> configurations = Configurations(mode);
      if (!configurations.ok()) continue;  // It knows none.
      for (CudnnDescriptor& configuration : *configurations) {
        TROUPE_ASSIGN_OR_RETURN(const bool wanted, IsWanted(configuration));
        if (!wanted) continue;
        absl::StatusOr<Result> result = PlanOf(std::move(configuration));
        if (!result.ok()) continue;  // The heuristics promise nothing.
        if (result->workspace <= problem_.most_workspace) {
          results.push_back(*std::move(result));
          if (results.size() == most) return results;
        } else if (!tightest || result->workspace < tightest->workspace) {
          tightest.emplace(*std::move(result));
        }
      }
    }
    if (results.empty() && tightest) results.push_back(*std::move(tightest));
    if (!results.empty()) return results;
    return absl::UnimplementedError("cuDNN knows no way to compute this convolution");
  }

  /// What results are made of, beside their configurations.
  std::vector<CudnnDescriptor> Kept() && { return std::move(kept_); }

 private:
  absl::StatusOr<CudnnDescriptor> TensorOf(Uid uid, const Dims& dims) {
    Dims strides(dims.size());
    int64_t inside = 1;
    if (!problem_.shape.channels_first) strides[1] = std::exchange(inside, dims[1]);
    for (size_t d = dims.size() - 1; d > 1; --d) {
      strides[d] = inside;
      inside *= dims[d];
    }
    if (problem_.shape.channels_first) strides[1] = std::exchange(inside, inside * dims[1]);
    strides[0] = inside;
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor tensor,
                            CudnnDescriptor::Make(cudnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, {uid})
        .Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, DataType(problem_.type))
        .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
        .Set(CUDNN_ATTR_TENSOR_STRIDES, strides)
        .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {ConvPlan::kAlignment});
    TROUPE_RETURN_IF_ERROR(tensor.Finalize());
    return tensor;
  }

  absl::StatusOr<CudnnDescriptor> Convolution() {
    const ConvShape& s = problem_.shape;
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor convolution,
                            CudnnDescriptor::Make(cudnn_, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
    convolution
        .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
             IsDouble() ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)
        .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
        .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {s.is_3d ? 3 : 2})
        .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, OfWindows(s, &Window::dilation))
        .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, OfWindows(s, &Window::stride))
        .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, OfWindows(s, &Window::pad_before))
        .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, OfWindows(s, &Window::pad_after));
    TROUPE_RETURN_IF_ERROR(convolution.Finalize());
    return convolution;
  }

  absl::StatusOr<CudnnDescriptor> Operation() {
    const ConvShape& s = problem_.shape;
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor input, TensorOf(kInput, InputDims(s)));
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor filter, TensorOf(kFilter, FilterDims(s)));
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor output, TensorOf(kOutput, OutputDims(s)));
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor convolution, Convolution());
    const OperationNames names = NamesOf(problem_.op);
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor operation,
                            CudnnDescriptor::Make(cudnn_, names.operation));
    operation.Set(names.convolution, convolution)
        .Set(names.input, input)
        .Set(names.filter, filter)
        .Set(names.output, output);
    if (IsDouble()) {
      operation.Set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0).Set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
    } else {
      operation.Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f).Set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
    }
    TROUPE_RETURN_IF_ERROR(operation.Finalize());
    for (CudnnDescriptor* used : {&input, &filter, &output, &convolution}) {
      kept_.push_back(std::move(*used));
    }
    return operation;
  }

  absl::Status MakeGraph() {
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor operation, Operation());
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor graph,
                            CudnnDescriptor::Make(cudnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    if (target_.handle != nullptr) {
      graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target_.handle);
    }
    TROUPE_RETURN_IF_ERROR(graph.Finalize());
    kept_.push_back(std::move(operation));
    graph_ = graph.get();
    kept_.push_back(std::move(graph));
    return absl::OkStatus();
  }

  /// The best ones first.
  absl::StatusOr<std::vector<CudnnDescriptor>> Configurations(cudnnBackendHeurMode_t mode) {
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor heuristics,
                            CudnnDescriptor::Make(cudnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
    heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph_)
        .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (target_.properties != nullptr) {
      heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target_.properties);
    }
    TROUPE_RETURN_IF_ERROR(heuristics.Finalize());
    TROUPE_ASSIGN_OR_RETURN(
        const int64_t count,
        heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr));
    std::vector<CudnnDescriptor> results;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < count; ++i) {
      TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor result,
                              CudnnDescriptor::Make(cudnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
      raw.push_back(result.get());
      results.push_back(std::move(result));
    }
    TROUPE_ASSIGN_OR_RETURN(const int64_t filled,
                            heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                           CUDNN_TYPE_BACKEND_DESCRIPTOR, count, raw.data()));
    results.erase(results.begin() + std::min(filled, count), results.end());
    return results;
  }

  /// Whether its engine gives the same bits every time, of sums as they are wanted.
  absl::StatusOr<bool> IsWanted(const CudnnDescriptor& configuration) {
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor engine,
                            CudnnDescriptor::Make(cudnn_, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
    cudnnBackendDescriptor_t raw = engine.get();
    TROUPE_RETURN_IF_ERROR(
        configuration.Get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw)
            .status());
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes;
    TROUPE_ASSIGN_OR_RETURN(const int64_t count,
                            engine.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                       notes.size(), notes.data()));
    return std::none_of(notes.begin(), notes.begin() + count, [this](auto note) {
      return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
             note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
             note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
             (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && problem_.type == ElementType::kFloat &&
              !problem_.tf32);
    });
  }

  absl::StatusOr<Result> PlanOf(CudnnDescriptor configuration) {
    TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor plan,
                            CudnnDescriptor::Make(cudnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    if (target_.handle != nullptr) {
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target_.handle);
    } else {
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target_.properties);
    }
    TROUPE_RETURN_IF_ERROR(plan.Finalize());
    int64_t workspace = 0;
    TROUPE_RETURN_IF_ERROR(
        plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace)
            .status());
    return Result{std::move(configuration), std::move(plan), workspace};
  }

  bool IsDouble() const { return problem_.type == ElementType::kDouble; }

  const Cudnn& cudnn_;
  const ConvTarget& target_;
  const ConvProblem& problem_;
  std::vector<CudnnDescriptor> kept_;
  cudnnBackendDescriptor_t graph_ = nullptr;
};

}  // namespace

Border MakePaddingEven(Window* window) {
  Window& w = *window;
  const int64_t room = w.input + 2 * w.pad_before - w.effective_size();
  if (room >= 0 && room / w.stride + 1 == w.output) {  // The last elements are met by no window.
    w.pad_after = w.pad_before;
    return {};
  }
  const int64_t both = std::min(w.pad_before, w.pad_after);
  const Border border = {w.pad_before - both, w.pad_after - both};
  w.input += border.before + border.after;
  w.pad_before = w.pad_after = both;
  return border;
}

absl::StatusOr<std::vector<ConvPlan>> ConvPlan::Make(const Cudnn& cudnn, const ConvTarget& target,
                                                     const ConvProblem& problem, size_t most) {
  PlanMaker maker(cudnn, target, problem);
  TROUPE_ASSIGN_OR_RETURN(std::vector<PlanMaker::Result> results, maker.Make(most));
  const auto graph = std::make_shared<const std::vector<CudnnDescriptor>>(std::move(maker).Kept());
  std::vector<ConvPlan> plans;
  for (PlanMaker::Result& result : results) {
    plans.push_back(
        ConvPlan(graph, std::move(result.configuration), std::move(result.plan), result.workspace));
  }
  return plans;
}

absl::Status ConvPlan::Execute(const Cudnn& cudnn, cudnnHandle_t handle, const void* input,
                               const void* filter, const void* output, void* workspace) const {
  TROUPE_ASSIGN_OR_RETURN(CudnnDescriptor pack,
                          CudnnDescriptor::Make(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  const std::array<const void*, 3> tensors = {input, filter, output};
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {kInput, kFilter, kOutput})
      .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           absl::Span<const void* const>(tensors))
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  TROUPE_RETURN_IF_ERROR(pack.Finalize());
  return cudnn.StatusOf(cudnn.execute(handle, plan_.get(), pack.get()), "a convolution");
}

}  // namespace troupe::cuda
