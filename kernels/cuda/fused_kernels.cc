#include "kernels/cuda/fused_kernels.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fused_program.h"

namespace troupe::cuda {
namespace {

/// What is computed in float, and in double.
constexpr char kFloats = 0, kDoubles = 0;

bool IsComputedInFloat(Number type) {
  return type == Number::kHalf || type == Number::kBfloat16 || type == Number::kFloat ||
         type == Number::kBool;
}
bool IsComputedInDouble(Number type) { return type == Number::kDouble || type == Number::kBool; }

/// An operand's number and shape.
using Operands =
    absl::InlinedVector<std::pair<int, const Shape*>, size_t{FusedProgram::kMostOperands}>;

/// How operands are read to fill an output of this shape; unlike `BroadcastOperands`, any number.
absl::Status SetStrides(const Shape& shape, const Operands& operands, FusedCall* call) {
  // The innermost dimension comes first, until all are known.
  call->rank = 0;
  std::array<int64_t, FusedProgram::kMostOperands> running, strides;
  running.fill(1);
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const int64_t size = shape.dim(d);
    strides.fill(0);
    for (size_t k = 0; k < operands.size(); ++k) {
      const Shape& of = *operands[k].second;
      const int at = d - (shape.rank() - of.rank());
      if (at < 0 || of.dim(at) == 1) continue;
      strides[k] = running[k];
      running[k] *= of.dim(at);
    }
    if (size == 1) continue;
    bool joins = call->rank > 0;
    for (size_t k = 0; joins && k < operands.size(); ++k) {
      const int last = call->rank - 1;
      joins = strides[k] == call->strides[operands[k].first][last] * call->sizes[last];
    }
    if (joins) {
      call->sizes[call->rank - 1] *= size;
      continue;
    }
    if (call->rank == FusedProgram::kMostDims) {
      return absl::UnimplementedError(StrCat("broadcasting to ", shape.ToString(),
                                             " has more than ", FusedProgram::kMostDims,
                                             " dimensions that differ"));
    }
    for (size_t k = 0; k < operands.size(); ++k) {
      call->strides[operands[k].first][call->rank] = strides[k];
    }
    call->sizes[call->rank++] = size;
  }
  if (call->rank == 0) {  // One element.
    for (const auto& [k, of] : operands) call->strides[k][0] = 0;
    call->sizes[call->rank++] = 1;
  }
  std::reverse(call->sizes, call->sizes + call->rank);
  for (const auto& [k, of] : operands) {
    std::reverse(call->strides[k], call->strides[k] + call->rank);
  }
  return absl::OkStatus();
}

class FusedKernel final : public Kernel {
 public:
  /// `program` stores all outputs.
  FusedKernel(std::vector<Number> types, std::vector<FusedFunction> functions,
              std::vector<int> results, FusedCalls calls, bool in_double,
              const FusedProgram& program)
      : types_(std::move(types)),
        functions_(std::move(functions)),
        results_(std::move(results)),
        calls_(std::move(calls)),
        in_double_(in_double),
        whole_(program) {
    for (size_t o = 0; o < calls_.outputs.size(); ++o) {
      std::vector<int>& inputs = in_place_.emplace_back();
      for (int k = 0; k < calls_.num_inputs; ++k) {
        if (LastLoad(whole_, k) < StoreOf(whole_, static_cast<int>(o))) inputs.push_back(k);
      }
    }
  }

  absl::Status Compute(KernelContext& ctx) override {
    Shapes shapes;
    absl::InlinedVector<Shape, 16> results(calls_.calls.size());
    for (int k = 0; k < calls_.num_inputs; ++k) shapes.push_back(&ctx.input(k).shape());
    Shapes operands;
    for (size_t c = 0; c < results.size(); ++c) {
      const FusedCalls::Call& call = calls_.calls[c];
      operands.clear();
      for (const int operand : call.operands) operands.push_back(shapes[operand]);
      absl::StatusOr<Shape> shape = PartOf(call).ShapeFor(operands);
      if (!shape.ok()) {
        return absl::Status(shape.status().code(),
                            StrCat(call.node, ": ", shape.status().message()));
      }
      results[c] = *std::move(shape);
      shapes.push_back(&results[c]);
    }
    // Outputs of one shape are those of one launch.
    absl::InlinedVector<char, 8> done(calls_.outputs.size());
    for (size_t o = 0; o < done.size(); ++o) {
      if (done[o]) continue;
      Outputs alike;
      for (size_t other = o; other < done.size(); ++other) {
        if (!(*shapes[calls_.outputs[other]] == *shapes[calls_.outputs[o]])) continue;
        alike.push_back(static_cast<int>(other));
        done[other] = 1;
      }
      TROUPE_RETURN_IF_ERROR(Enqueue(ctx, *shapes[calls_.outputs[o]], shapes, alike));
    }
    return absl::OkStatus();
  }

 private:
  using Shapes = absl::InlinedVector<const Shape*, 24>;
  using Outputs = absl::InlinedVector<int, size_t{FusedProgram::kMostOutputs}>;

  static const FusiblePart& PartOf(const FusedCalls::Call& call) {
    return static_cast<const FusiblePart&>(*call.kernel);
  }

  /// Outputs of this shape. Operands' buffers may be taken over if these are all that there are.
  absl::Status Enqueue(KernelContext& ctx, const Shape& shape, const Shapes& shapes,
                       const Outputs& outputs) {
    const bool all = outputs.size() == calls_.outputs.size();
    FusedCall call;
    if (all) {
      call.program = whole_;
    } else {
      TROUPE_ASSIGN_OR_RETURN(call.program, ProgramFor(outputs));
    }
    Operands operands;
    std::array<bool, FusedProgram::kMostOperands> fits;  // May become an output.
    for (int k = 0; k < calls_.num_inputs; ++k) {
      fits[k] = all && *shapes[k] == shape;
      call.operands[k] = nullptr;
      std::fill_n(call.strides[k], FusedProgram::kMostDims, 0);
      if (LastLoad(call.program, k) < 0) continue;
      operands.emplace_back(k, shapes[k]);
      call.operands[k] = ctx.input(k).raw_data();
    }
    call.num_operands = calls_.num_inputs;
    TROUPE_RETURN_IF_ERROR(SetStrides(shape, operands, &call));
    for (const int o : outputs) {
      const int value = calls_.outputs[o];
      const ElementType type = TypeOf(calls_.calls[value - calls_.num_inputs]);
      int from = -1;
      for (const int k : in_place_[o]) {
        if (!fits[k] || !ctx.CanForward(k) || ctx.input(k).type() != type) continue;
        fits[k] = false;
        from = k;
        break;
      }
      TROUPE_ASSIGN_OR_RETURN(Tensor * output, from < 0
                                                   ? ctx.AllocateOutput(o, type, shape)
                                                   : ctx.ForwardOrAllocate(from, o, type, shape));
      call.outputs[call.num_outputs++] = output->mutable_raw_data();
    }
    call.n = shape.num_elements();
    return CudaStatus(LaunchFused(in_double_, call, StreamOf(ctx)), "an element-wise kernel");
  }

  absl::StatusOr<FusedProgram> ProgramFor(const Outputs& outputs) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto [known, is_new] = parts_.try_emplace(outputs);
    if (is_new) {
      std::vector<int> results;
      for (const int o : outputs) results.push_back(results_[o]);
      known->second = MakeFusedProgram(types_, functions_, results);
    }
    if (!known->second.has_value()) return absl::InternalError("a part of a program is too large");
    return *known->second;
  }

  static ElementType TypeOf(const FusedCalls::Call& call) {
    switch (PartOf(call).to()) {
      case Number::kHalf:
        return ElementType::kHalf;
      case Number::kBfloat16:
        return ElementType::kBfloat16;
      case Number::kDouble:
        return ElementType::kDouble;
      case Number::kBool:
        return ElementType::kBool;
      default:
        return ElementType::kFloat;
    }
  }

  const std::vector<Number> types_;             ///< Of the inputs.
  const std::vector<FusedFunction> functions_;  ///< A sum of many is some.
  const std::vector<int> results_;              ///< Per output: its value among the functions'.
  const FusedCalls calls_;
  const bool in_double_;
  const FusedProgram whole_;
  std::vector<std::vector<int>> in_place_;  ///< Per output: inputs that it may overwrite.
  std::mutex mutex_;
  std::map<Outputs, std::optional<FusedProgram>> parts_;  ///< Of some outputs.
};

}  // namespace

const void* FusiblePart::family() const {
  if (!offered_) return nullptr;
  if (IsComputedInFloat(from_) && IsComputedInFloat(to_)) return &kFloats;
  return IsComputedInDouble(from_) && IsComputedInDouble(to_) ? &kDoubles : nullptr;
}

std::shared_ptr<Kernel> FusiblePart::Fuse(const FusedCalls& calls) const {
  const int inputs = calls.num_inputs;
  std::vector<Number> types(inputs, from_);
  std::vector<FusedFunction> functions;
  std::vector<int> value_of;  // Among the functions' values, per value of the calls.
  for (int k = 0; k < inputs; ++k) value_of.push_back(k);
  const bool in_double = family() == &kDoubles;
  const Number wide = in_double ? Number::kDouble : Number::kFloat;
  for (const FusedCalls::Call& call : calls.calls) {
    const auto& part = static_cast<const FusiblePart&>(*call.kernel);
    std::vector<int> operands;
    for (size_t k = 0; k < call.operands.size(); ++k) {
      const int operand = call.operands[k];
      if (operand < inputs) types[operand] = part.TypeOfOperand(static_cast<int>(k));
      operands.push_back(value_of[operand]);
    }
    if (part.swapped()) std::swap(operands[0], operands[1]);
    if (part.op() == FusedOp::kSelect) {
      functions.push_back({part.op(), part.to(), operands[0], operands[1], operands[2]});
    } else {
      int first = operands[0];
      for (size_t k = 2; k < operands.size(); ++k) {
        functions.push_back({part.op(), wide, first, operands[k - 1]});
        first = inputs + static_cast<int>(functions.size()) - 1;
      }
      const int second = operands.size() > 1 ? operands.back() : -1;
      const FusedOp op =
          second < 0 && part.op() == ToFused(BinaryOp::kAdd) ? FusedOp::kRound : part.op();
      functions.push_back({op, part.to(), first, second});
    }
    value_of.push_back(inputs + static_cast<int>(functions.size()) - 1);
  }
  std::vector<int> results;
  for (const int output : calls.outputs) results.push_back(value_of[output]);
  const std::optional<FusedProgram> program = MakeFusedProgram(types, functions, results);
  if (!program.has_value()) return nullptr;
  return std::make_shared<FusedKernel>(std::move(types), std::move(functions), std::move(results),
                                       calls, in_double, *program);
}

}  // namespace troupe::cuda
