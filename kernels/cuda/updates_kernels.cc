// Optimisers' updates of variables on cards: ApplyAdam and its kin.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/updates.h"
#include "kernels/state/own_value.h"
#include "kernels/training/update_kernel.h"

namespace troupe::cuda {
namespace {

class CudaUpdate final : public UpdateKernel {
 public:
  CudaUpdate(KernelConstruction& construction, absl::Status* status)
      : UpdateKernel(construction, status) {
    if (!status->ok()) return;
    const absl::StatusOr<Number> number = NumberOf(type());
    *status = number.status();
    if (number.ok()) call_.type = *number;
    call_.rule = rule();
    call_.flag = flag();
    for (size_t i = 0; i < scalars().size(); ++i) {
      call_.scalars.integer[i] = construction.input_type(scalars()[i]) == ElementType::kInt64;
      call_.scalars.needs[i] = NeedOf(need(i));
    }
  }

 protected:
  absl::Status Update(KernelContext& ctx, Leases& leases) override {
    UpdateCall call = call_;
    call.by_row = ByRow(ctx);
    call.grad = ctx.input(grad()).raw_data();
    for (size_t i = 0; i < scalars().size(); ++i) {
      call.scalars.at[i] = ctx.input(scalars()[i]).raw_data();
    }
    TROUPE_ASSIGN_OR_RETURN(call.scalars.check, CheckLate(ctx, BadScalarThere));
    return indices() < 0 ? UpdateAll(ctx, leases, &call) : UpdateRows(ctx, leases, &call);
  }

 private:
  static ScalarNeed NeedOf(Need need) {
    switch (need) {
      case Need::kPositive:
        return ScalarNeed::kPositive;
      case Need::kNotNegative:
        return ScalarNeed::kNotNegative;
      case Need::kNotPositive:
        return ScalarNeed::kNotPositive;
      default:
        return ScalarNeed::kNothing;
    }
  }

  /// What the device has found has no name.
  static absl::Status BadScalarThere(const int64_t* values) {
    return InvalidArgument("scalar ", values[0], " must not be ", std::bit_cast<double>(values[1]),
                           ": learning rates are positive, regularization strengths not negative, "
                           "lr_power not positive");
  }

  absl::Status UpdateAll(KernelContext& ctx, Leases& leases, UpdateCall* call) {
    // In place where nobody reads the old value, else in one pass into a new one.
    std::vector<Tensor> fresh(num_variables());
    for (int i = 0; i < num_variables(); ++i) {
      const int same = FirstOf(leases, i);
      if (same < i) {
        call->from[i] = call->from[same];
        call->to[i] = call->to[same];
        continue;
      }
      const Tensor& value = leases[i].value();
      call->from[i] = value.raw_data();
      if (value.unique()) {
        TROUPE_ASSIGN_OR_RETURN(Tensor * own, leases[i].mutable_value());
        call->to[i] = own->mutable_raw_data();
      } else {
        TROUPE_ASSIGN_OR_RETURN(fresh[i], ctx.AllocateTemp(type(), value.shape()));
        call->to[i] = fresh[i].mutable_raw_data();
      }
    }
    TROUPE_RETURN_IF_ERROR(CudaStatus(
        LaunchUpdate(*call, ctx.input(grad()).num_elements(), StreamOf(ctx)), std::string(name())));
    for (int i = 0; i < num_variables(); ++i) {
      if (fresh[i].valid()) leases[i].set_value(std::move(fresh[i]));
    }
    return absl::OkStatus();
  }

  absl::Status UpdateRows(KernelContext& ctx, Leases& leases, UpdateCall* call) {
    const Tensor& positions = ctx.input(indices());
    RowUpdates rows{};
    rows.rows = positions.num_elements();
    if (rows.rows == 0) return absl::OkStatus();
    rows.width = ctx.input(grad()).num_elements() / rows.rows;
    if (rows.width == 0) return absl::OkStatus();
    rows.limit = leases[0].value().dim(0);
    rows.indices.data = positions.raw_data();
    TROUPE_ASSIGN_OR_RETURN(rows.indices.type, NumberOf(positions.type()));
    TROUPE_ASSIGN_OR_RETURN(rows.check, CheckLate(ctx, BadIndex));
    for (int i = 0; i < num_variables(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(Tensor * value, OwnValue(ctx, leases[i]));
      call->from[i] = call->to[i] = value->mutable_raw_data();
    }
    TROUPE_ASSIGN_OR_RETURN(
        Tensor scratch,
        ctx.AllocateTemp(ElementType::kUint8, Shape({UpdateRowsScratch(rows.rows)})));
    return CudaStatus(LaunchUpdateRows(*call, rows, scratch.mutable_raw_data(), StreamOf(ctx)),
                      std::string(name()));
  }

  /// The first input with the variable of input `i`.
  static int FirstOf(Leases& leases, int i) {
    int first = 0;
    while (leases[first].variable() != leases[i].variable()) ++first;
    return first;
  }

  UpdateCall call_{};
};

}  // namespace

void RegisterUpdates(Extension& extension) {
  ForEachUpdateOp([&](KernelSpec spec) {
    if (spec.op.ends_with("ProximalAdagrad")) {
      spec.constraints[0].second.push_back(ElementType::kHalf);
    }
    extension.Kernel(spec.Device("GPU"), MakeKernel<CudaUpdate>);
  });
}

}  // namespace troupe::cuda
