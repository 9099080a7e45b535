// The functions of cuDNN's graph interface that Troupe calls: descriptors, which are as strict as
// cuDNN's, and graphs of one convolution, by plain loops.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/cuda_on_host/runtime.h"

using troupe::cuda::on_host::EnqueueWork;
using troupe::cuda::on_host::Inside;

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using Status = cudnnStatus_t;
using Integers = std::vector<int64_t>;

/// What the heuristics suggest, in this order: which of them are fit is for the caller to find out.
enum Engine : int64_t {
  kFailsToPlan,
  kNondeterministic,  ///< Gives nonsense.
  kTensorCore,        ///< Rounds float to TF32.
  kLarge,             ///< Needs more workspace than there is memory.
  kRoomy,             ///< Needs as much as a small limit leaves no room for.
  kSlow,
  kGood,
  kFrugal,  ///< Needs none.
  kFailsToRun,
  kEngines
};
constexpr int64_t kWorkspace = 512;

struct Node;
using Reference = std::shared_ptr<Node>;

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::string bytes;
  std::vector<Reference> nodes;  ///< Of descriptors.
};

/// A descriptor.
struct Node {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<int, Attribute> attributes;
  int64_t engine = -1;  ///< Of an engine or its configuration: which.

  template <typename T>
  T Get(int name) const {
    T value;
    std::memcpy(&value, attributes.at(name).bytes.data(), sizeof(value));
    return value;
  }
  Integers Many(int name) const {
    const Attribute& a = attributes.at(name);
    Integers values(static_cast<size_t>(a.count));
    std::memcpy(values.data(), a.bytes.data(), a.bytes.size());
    return values;
  }
  const Node& At(int name) const { return *attributes.at(name).nodes[0]; }
  bool Has(int name) const { return attributes.count(name) != 0; }
};

/// Descriptors are handles of references, so that they may be destroyed while others use them.
Reference& Of(cudnnBackendDescriptor_t handle) { return *static_cast<Reference*>(handle); }

thread_local std::string last_error;
Status Refuse(Status status, std::string why) {
  last_error = std::move(why);
  return status;
}

struct Rule {
  cudnnBackendAttributeType_t type;
  int64_t least, most;  ///< Elements; a `least` of 0 is an attribute that may be missing.
};
using Rules = std::map<int, Rule>;

Rules OperationRules(int first) {  // ALPHA, BETA, CONV_DESC and the tensors follow each other.
  return {{first, {CUDNN_TYPE_FLOAT, 1, 1}},
          {first + 1, {CUDNN_TYPE_FLOAT, 1, 1}},
          {first + 2, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}},
          {first + 3, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}},
          {first + 4, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}},
          {first + 5, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}}};
}

/// The attributes that a descriptor of a type may have.
const Rules* RulesOf(cudnnBackendDescriptorType_t type) {
  static const std::map<int, Rules> all = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {{CUDNN_ATTR_TENSOR_UNIQUE_ID, {CUDNN_TYPE_INT64, 1, 1}},
        {CUDNN_ATTR_TENSOR_DATA_TYPE, {CUDNN_TYPE_DATA_TYPE, 1, 1}},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, {CUDNN_TYPE_INT64, 1, CUDNN_DIM_MAX}},
        {CUDNN_ATTR_TENSOR_STRIDES, {CUDNN_TYPE_INT64, 1, CUDNN_DIM_MAX}},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, {CUDNN_TYPE_INT64, 1, 1}}}},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
       {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, {CUDNN_TYPE_DATA_TYPE, 1, 1}},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, {CUDNN_TYPE_CONVOLUTION_MODE, 1, 1}},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, {CUDNN_TYPE_INT64, 1, 1}},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, {CUDNN_TYPE_INT64, 2, 3}},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {CUDNN_TYPE_INT64, 2, 3}},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {CUDNN_TYPE_INT64, 2, 3}},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {CUDNN_TYPE_INT64, 2, 3}}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       OperationRules(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA)},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       OperationRules(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA)},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       OperationRules(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA)},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATIONGRAPH_OPS, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}},
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, {CUDNN_TYPE_HANDLE, 1, 1}}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}},
        {CUDNN_ATTR_ENGINEHEUR_MODE, {CUDNN_TYPE_HEUR_MODE, 1, 1}}}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1}},
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, {CUDNN_TYPE_HANDLE, 1, 1}}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, {CUDNN_TYPE_INT64, 1, 8}},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, {CUDNN_TYPE_VOID_PTR, 1, 8}},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {CUDNN_TYPE_VOID_PTR, 0, 1}}}},
      {CUDNN_BACKEND_ENGINE_DESCRIPTOR, {}},
      {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, {}},
  };
  const auto found = all.find(type);
  return found == all.end() ? nullptr : &found->second;
}

size_t SizeOf(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_FLOAT:
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
      return 4;
    default:
      return 8;
  }
}

/// Where a tensor's elements are, in batch, depth, planes (of volumes), rows, columns.
struct Tensor {
  Integers dims, strides;
  int64_t uid = 0, alignment = 0;
  cudnnDataType_t type{};

  explicit Tensor(const Node& node)
      : dims(node.Many(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(node.Many(CUDNN_ATTR_TENSOR_STRIDES)),
        uid(node.Get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        alignment(node.Get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
        type(node.Get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)) {}
  int64_t At(int64_t n, int64_t depth, const Integers& spatial) const {
    int64_t at = n * strides[0] + depth * strides[1];
    for (size_t d = 0; d < spatial.size(); ++d) at += spatial[d] * strides[2 + d];
    return at;
  }
};

enum class Which { kForward, kInput, kFilter };

/// What an operation's descriptor says.
struct Convolution {
  Which which;
  Tensor x, w, y;
  Integers dilations, strides, before, after;
  cudnnDataType_t sums;

  static Convolution From(const Node& op) {
    switch (op.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return {Which::kInput,
                op,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                op.At(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC)};
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return {Which::kFilter,
                op,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                op.At(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC)};
      default:
        return {Which::kForward,
                op,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                op.At(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC)};
    }
  }

  Convolution(Which which, const Node& op, int x, int w, int y, const Node& conv)
      : which(which),
        x(op.At(x)),
        w(op.At(w)),
        y(op.At(y)),
        dilations(conv.Many(CUDNN_ATTR_CONVOLUTION_DILATIONS)),
        strides(conv.Many(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)),
        before(conv.Many(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)),
        after(conv.Many(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)),
        sums(conv.Get<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE)) {}

  const char* Wrong() const {
    if (x.type != w.type || x.type != y.type) return "tensors of different types";
    if (sums != (x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) {
      return "sums of another type";
    }
    const size_t rank = 2 + dilations.size();
    if (x.dims.size() != rank || w.dims.size() != rank || y.dims.size() != rank) return "rank";
    if (x.dims[0] != y.dims[0] || w.dims[0] != y.dims[1]) return "batch or depth";
    if (x.dims[1] % w.dims[1] != 0 || w.dims[0] % (x.dims[1] / w.dims[1]) != 0) return "groups";
    for (size_t d = 0; d < dilations.size(); ++d) {
      const int64_t extent = (w.dims[2 + d] - 1) * dilations[d] + 1;
      const int64_t room = x.dims[2 + d] + before[d] + after[d] - extent;
      if (room < 0 || y.dims[2 + d] != room / strides[d] + 1) return "the output's size";
    }
    return nullptr;
  }

  /// Whether the output has the size that follows from the padding before the input alone. An
  /// engine of cuDNN 9.19 assumes that it has.
  bool HasEvenPadding() const {
    for (size_t d = 0; d < dilations.size(); ++d) {
      const int64_t room = x.dims[2 + d] + 2 * before[d] - (w.dims[2 + d] - 1) * dilations[d] - 1;
      if (room < 0 || y.dims[2 + d] != room / strides[d] + 1) return false;
    }
    return true;
  }

  /// Calls f(x, w, y) with the places of all elements that are multiplied.
  template <typename F>
  void ForEach(F f) const {
    const int64_t groups = x.dims[1] / w.dims[1], per_group = w.dims[0] / groups;
    const auto spatial = [](const Tensor& t) { return Integers(t.dims.begin() + 2, t.dims.end()); };
    const Integers outputs = spatial(y), windows = spatial(w);
    for (int64_t n = 0; n < x.dims[0]; ++n) {
      for (int64_t k = 0; k < w.dims[0]; ++k) {
        Integers out(outputs.size());
        do {
          Integers tap(windows.size());
          do {
            Integers in;
            if (!Reads(out, tap, &in)) continue;
            for (int64_t c = 0; c < w.dims[1]; ++c) {
              f(x.At(n, k / per_group * w.dims[1] + c, in), w.At(k, c, tap), y.At(n, k, out));
            }
          } while (Next(windows, &tap));
        } while (Next(outputs, &out));
      }
    }
  }

 private:
  /// The next index of `sizes`, the last dimension first; false, and zeros, behind the last one.
  static bool Next(const Integers& sizes, Integers* index) {
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++(*index)[d] < sizes[d]) return true;
      (*index)[d] = 0;
    }
    return false;
  }
  /// The place of the input that the filter's element `tap` meets; false if it is beyond it.
  bool Reads(const Integers& out, const Integers& tap, Integers* in) const {
    for (size_t d = 0; d < out.size(); ++d) {
      const int64_t at = out[d] * strides[d] - before[d] + tap[d] * dilations[d];
      if (at < 0 || at >= x.dims[2 + d]) return false;
      in->push_back(at);
    }
    return true;
  }
};

/// A float without the bits that TF32 has not.
template <typename Sum>
Sum Rounded(Sum value, bool tf32) {
  if (!tf32 || !std::is_same_v<Sum, float>) return value;
  uint32_t bits;
  const auto narrow = static_cast<float>(value);
  std::memcpy(&bits, &narrow, sizeof(bits));
  bits &= 0xffffe000;
  float rounded;
  std::memcpy(&rounded, &bits, sizeof(bits));
  return static_cast<Sum>(rounded);
}

template <typename T, typename Sum>
void Compute(const Convolution& conv, int64_t engine, T* x, T* w, T* y) {
  const Tensor& result = conv.which == Which::kForward ? conv.y
                         : conv.which == Which::kInput ? conv.x
                                                       : conv.w;
  T* const to = conv.which == Which::kForward ? y : conv.which == Which::kInput ? x : w;
  int64_t elements = 1;
  for (const int64_t dim : result.dims) elements *= dim;
  std::vector<Sum> sums(static_cast<size_t>(elements));  // Tensors are dense.
  // Slow for whoever measures: that is how a test tells that it is not chosen.
  if (engine == kSlow) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const bool tf32 = engine == kTensorCore;
  const auto factor = [tf32](const T* from, int64_t at) {
    return Rounded(static_cast<Sum>(from[at]), tf32);
  };
  conv.ForEach([&](int64_t at_x, int64_t at_w, int64_t at_y) {
    switch (conv.which) {
      case Which::kForward:
        sums[at_y] += factor(x, at_x) * factor(w, at_w);
        break;
      case Which::kInput:
        sums[at_x] += factor(y, at_y) * factor(w, at_w);
        break;
      case Which::kFilter:
        sums[at_w] += factor(x, at_x) * factor(y, at_y);
        break;
    }
  });
  const bool wrong =
      engine == kNondeterministic || (conv.which == Which::kFilter && !conv.HasEvenPadding());
  for (int64_t i = 0; i < elements; ++i) {
    to[i] = static_cast<T>(wrong ? std::numeric_limits<Sum>::quiet_NaN() : sums[i]);
  }
}

Status CheckTensor(const Node& node) {
  const Tensor tensor(node);
  if (tensor.dims.size() != tensor.strides.size()) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "as many strides as dimensions");
  }
  int64_t elements = 1, reach = 1;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    if (tensor.dims[d] <= 0 || tensor.strides[d] <= 0) {
      return Refuse(CUDNN_STATUS_BAD_PARAM, "positive dimensions and strides");
    }
    elements *= tensor.dims[d];
    reach += (tensor.dims[d] - 1) * tensor.strides[d];
  }
  if (elements != reach) return Refuse(CUDNN_STATUS_NOT_SUPPORTED_LAYOUT, "dense tensors");
  if (tensor.alignment <= 0 || (tensor.alignment & (tensor.alignment - 1)) != 0) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "an alignment that is a power of two");
  }
  return CUDNN_STATUS_SUCCESS;
}

Status CheckConvolution(const Node& node) {
  for (const auto& [name, least] : {std::pair{CUDNN_ATTR_CONVOLUTION_DILATIONS, 1},
                                    std::pair{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1},
                                    std::pair{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0},
                                    std::pair{CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0}}) {
    if (static_cast<int64_t>(node.Many(name).size()) !=
        node.Get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)) {
      return Refuse(CUDNN_STATUS_BAD_PARAM, "numbers for each spatial dimension");
    }
    for (const int64_t value : node.Many(name)) {
      if (value < least) return Refuse(CUDNN_STATUS_BAD_PARAM, "strides, dilations or paddings");
    }
  }
  const int64_t spatial = node.Get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  if (spatial != 2 && spatial != 3) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "two or three spatial dimensions");
  }
  if (node.Get<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) !=
      CUDNN_CROSS_CORRELATION) {
    return Refuse(CUDNN_STATUS_NOT_SUPPORTED, "only cross correlation on the host");
  }
  return CUDNN_STATUS_SUCCESS;
}

Status CheckOperation(const Node& node) {
  const Convolution conv = Convolution::From(node);
  if (const char* wrong = conv.Wrong()) return Refuse(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, wrong);
  const Attribute& alpha = node.attributes.begin()->second;
  const Attribute& beta = std::next(node.attributes.begin())->second;
  const bool wide = conv.x.type == CUDNN_DATA_DOUBLE;
  const auto is = [wide](const Attribute& a, double wanted) {
    double of_double = 0;
    float of_float = 0;
    std::memcpy(&of_double, a.bytes.data(), std::min(a.bytes.size(), sizeof(double)));
    std::memcpy(&of_float, a.bytes.data(), sizeof(float));
    return a.type == (wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT) &&
           (wide ? of_double : of_float) == wanted;
  };
  if (!is(alpha, 1) || !is(beta, 0)) return Refuse(CUDNN_STATUS_BAD_PARAM, "alpha and beta");
  return CUDNN_STATUS_SUCCESS;
}

Status Check(const Node& node) {
  switch (node.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return CheckTensor(node);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return CheckConvolution(node);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return CheckOperation(node);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return node.At(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine == kFailsToPlan
                 ? Refuse(CUDNN_STATUS_NOT_SUPPORTED, "this engine never can")
                 : CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return node.attributes.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS).count ==
                     node.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count
                 ? CUDNN_STATUS_SUCCESS
                 : Refuse(CUDNN_STATUS_BAD_PARAM, "as many addresses as ids");
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

int64_t Workspace(int64_t engine) {
  switch (engine) {
    case kLarge:
      return int64_t{1} << 40;
    case kRoomy:
      return 1 << 20;
    case kFrugal:
      return 0;
    default:
      return kWorkspace;
  }
}

/// The operation that a configuration or a plan is for.
const Node& OperationOf(const Node& configuration) {
  return configuration.At(CUDNN_ATTR_ENGINECFG_ENGINE)
      .At(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)
      .At(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

void Refer(Node* node, int name, const Reference& to) {
  node->attributes[name] = {CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, "", {to}};
}

}  // namespace

#pragma GCC visibility push(default)

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "an error of cuDNN on the host"; }
void cudnnGetLastErrorString(char* message, size_t size) {
  std::snprintf(message, size, "%s", last_error.c_str());
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (RulesOf(type) == nullptr) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE, "a type that is not known on the host");
  }
  auto node = std::make_shared<Node>();
  node->type = type;
  *descriptor = new Reference(std::move(node));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Reference*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  Node& node = *Of(descriptor);
  if (node.finalized) return Refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
  const auto rule = RulesOf(node.type)->find(name);
  if (rule == RulesOf(node.type)->end()) return Refuse(CUDNN_STATUS_BAD_PARAM, "the attribute");
  const bool wide_scale = rule->second.type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE;
  if (type != rule->second.type && !wide_scale) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute's type");
  }
  if (count < rule->second.least || count > rule->second.most || values == nullptr) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "the number of values");
  }
  Attribute attribute{type, count, {}, {}};
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (int64_t i = 0; i < count; ++i) {
      const Reference& used = Of(static_cast<const cudnnBackendDescriptor_t*>(values)[i]);
      if (!used->finalized) return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalized");
      attribute.nodes.push_back(used);
    }
  } else {
    attribute.bytes.assign(static_cast<const char*>(values),
                           static_cast<size_t>(count) * SizeOf(type));
  }
  node.attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Node& node = *Of(descriptor);
  for (const auto& [name, rule] : *RulesOf(node.type)) {
    if (rule.least > 0 && !node.Has(name)) {
      return Refuse(CUDNN_STATUS_BAD_PARAM, "missing attribute " + std::to_string(name));
    }
  }
  const cudnnStatus_t status = Check(node);
  node.finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room,
                                       int64_t* count, void* values) {
  const Reference& self = Of(descriptor);
  if (!self->finalized) return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalized");
  const auto is = [&](cudnnBackendDescriptorType_t of, int wanted,
                      cudnnBackendAttributeType_t wanted_type) {
    return self->type == of && name == wanted && type == wanted_type;
  };
  if (is(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS,
         CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
    const bool fallback =
        self->Get<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    const int64_t first = fallback ? int64_t{kGood} : 0;
    const int64_t end = fallback ? int64_t{kEngines} : int64_t{kGood};
    *count = room == 0 ? end - first : std::min(room, end - first);
    for (int64_t i = 0; i < std::min(room, *count); ++i) {
      const Reference& configuration = Of(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
      auto engine = std::make_shared<Node>();
      engine->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
      engine->engine = configuration->engine = first + i;
      engine->finalized = configuration->finalized = true;
      Refer(engine.get(), CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
            self->attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).nodes[0]);
      Refer(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    }
    return CUDNN_STATUS_SUCCESS;
  }
  if (room < 1) return Refuse(CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "room for the attribute");
  if (is(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE,
         CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
    *count = 1;
    Of(*static_cast<cudnnBackendDescriptor_t*>(values)) =
        self->attributes.at(CUDNN_ATTR_ENGINECFG_ENGINE).nodes[0];
    return CUDNN_STATUS_SUCCESS;
  }
  if (is(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
         CUDNN_TYPE_NUMERICAL_NOTE)) {
    const bool noted = self->engine == kNondeterministic || self->engine == kTensorCore;
    *count = noted ? 1 : 0;
    if (noted) {
      *static_cast<cudnnBackendNumericalNote_t*>(values) =
          self->engine == kTensorCore ? CUDNN_NUMERICAL_NOTE_TENSOR_CORE
                                      : CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    }
    return CUDNN_STATUS_SUCCESS;
  }
  if (is(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
         CUDNN_TYPE_INT64)) {
    *count = 1;
    *static_cast<int64_t*>(values) =
        Workspace(self->At(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine);
    return CUDNN_STATUS_SUCCESS;
  }
  return Refuse(CUDNN_STATUS_BAD_PARAM, "an attribute that is not known on the host");
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                                  cudnnBackendDescriptor_t pack_handle) {
  const Node &plan = *Of(plan_handle), &pack = *Of(pack_handle);
  if (!plan.finalized || !pack.finalized) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "not finalized");
  }
  if (plan.Get<cudnnHandle_t>(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) != handle) {
    return Refuse(CUDNN_STATUS_BAD_PARAM, "the plan is another handle's");
  }
  const Node& configuration = plan.At(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  if (configuration.engine == kFailsToRun) {
    return Refuse(CUDNN_STATUS_EXECUTION_FAILED, "this engine never runs");
  }
  const Convolution conv = Convolution::From(OperationOf(configuration));
  const Integers ids = pack.Many(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const Integers addresses = pack.Many(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  if (Workspace(configuration.engine) > 0 &&
      (!pack.Has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) ||
       pack.Get<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE) == nullptr)) {
    return Refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a workspace is needed");
  }
  std::array<void*, 3> data{};
  for (int t = 0; t < 3; ++t) {
    const Tensor& tensor = t == 0 ? conv.x : t == 1 ? conv.w : conv.y;
    const auto at = std::find(ids.begin(), ids.end(), tensor.uid);
    if (at == ids.end()) return Refuse(CUDNN_STATUS_BAD_PARAM, "a tensor has no address");
    const int64_t address = addresses[static_cast<size_t>(at - ids.begin())];
    if (address == 0 || address % tensor.alignment != 0) {
      return Refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "an address is not aligned");
    }
    data[t] = Inside(reinterpret_cast<void*>(address));
  }
  const auto run = [&]<typename T, typename Sum>(T, Sum) {
    return EnqueueWork(handle->stream,
                       [conv, engine = configuration.engine, data] {
                         Compute<T, Sum>(conv, engine, static_cast<T*>(data[0]),
                                         static_cast<T*>(data[1]), static_cast<T*>(data[2]));
                       }) == cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_EXECUTION_FAILED;
  };
  switch (conv.x.type) {
    case CUDNN_DATA_HALF:
      return run(__half(), 0.0f);
    case CUDNN_DATA_BFLOAT16:
      return run(__nv_bfloat16(), 0.0f);
    case CUDNN_DATA_DOUBLE:
      return run(0.0, 0.0);
    default:
      return run(0.0f, 0.0f);
  }
}

#pragma GCC visibility pop
