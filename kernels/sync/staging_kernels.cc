// The kernels of staging areas and maps, which have no handles: nodes find theirs by name.
#include <algorithm>
#include <utility>

#include "kernels/common/registration.h"
#include "kernels/sync/synchronizer_options.h"

namespace troupe {
namespace {

/// What the nodes of both have in common: whoever comes first makes it, with its own limits.
template <typename T, typename Options>
class Named {
 public:
  Named(KernelConstruction& c, absl::Status* status) : named_(c, status) {
    if (status->ok()) *status = c.GetAttr("capacity", &options_.capacity);
    if (status->ok()) *status = c.GetAttr("memory_limit", &options_.memory_limit);
  }
  absl::StatusOr<RefPtr<T>> Find(KernelContext& ctx) {
    return named_.Find(ctx,
                       [&](const std::string& name) { return MakeSynchronizer(name, {options_}); });
  }

 private:
  Options options_;
  NamedKind<T> named_;
};
using NamedArea = Named<TupleStage, StagingAreaOptions>;
using NamedMap = Named<StagingMap, StagingMapOptions>;

template <typename NamedT, typename Call>
class CallKernel : public AsyncKernel {
 public:
  CallKernel(KernelConstruction& c, absl::Status* status) : named_(c, status) {
    if (status->ok()) *status = c.GetAttr("dtypes", &types_);
  }
  void ComputeAsync(KernelContext& ctx, KernelDone done) final {
    auto resource = named_.Find(ctx);
    if (!resource.ok()) return done(resource.status());
    auto call = std::make_unique<KernelCall<Call>>(resource->get(), ctx, done);
    call->KeepResource();
    if (absl::Status status = Ask(ctx, call.get()); !status.ok()) return done(std::move(status));
    WaitingResource::Submit(std::move(call));
  }

 protected:
  /// Says in `call` what is asked for.
  virtual absl::Status Ask(KernelContext& ctx, Call* call) = 0;

  std::vector<ElementType> types_;

 private:
  NamedT named_;
};

/// Sizes are looked up by kernels that wait for nothing.
template <typename NamedT, auto kSize>
class SizeKernel final : public Kernel {
 public:
  SizeKernel(KernelConstruction& c, absl::Status* status) : named_(c, status) {}

  absl::Status Compute(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(auto resource, named_.Find(ctx));
    const int64_t size = (resource.get()->*kSize)();
    return ctx.SetScalar(0, static_cast<int32_t>(std::min<int64_t>(size, INT32_MAX)));
  }

 private:
  NamedT named_;
};

// --- areas ---------------------------------------------------------------------------------------

class Stage final : public CallKernel<NamedArea, TupleStage::PutCall> {
 public:
  using CallKernel::CallKernel;

 private:
  absl::Status Ask(KernelContext& ctx, TupleStage::PutCall* call) override {
    call->tuple.reserve(ctx.num_inputs());
    for (int i = 0; i < ctx.num_inputs(); ++i) call->tuple.push_back(ctx.TakeInput(i));
    return absl::OkStatus();
  }
};

template <TupleStage::TakeCall::What what>
class Unstage final : public CallKernel<NamedArea, TupleStage::TakeCall> {
 public:
  using CallKernel::CallKernel;

 private:
  absl::Status Ask(KernelContext& ctx, TupleStage::TakeCall* call) override {
    using What = TupleStage::TakeCall::What;
    call->what = what;
    if constexpr (what == What::kLookAt) {
      const Tensor& index = ctx.input(0);
      if (index.rank() != 0) {
        return InvalidArgument("index must be a scalar, got shape ", index.shape().ToString());
      }
      call->index = index.unchecked_scalar<int32_t>();
    }
    if constexpr (what != What::kClear) call->types = types_;
    return absl::OkStatus();
  }
};

// --- maps ----------------------------------------------------------------------------------------

absl::Status ReadKey(const KernelContext& ctx, int64_t* key) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 0) {
    return InvalidArgument("key must be a scalar, got shape ", input.shape().ToString());
  }
  *key = input.unchecked_scalar<int64_t>();
  return absl::OkStatus();
}

void ReadIndices(const KernelContext& ctx, int input, std::vector<int64_t>* indices) {
  const auto values = ctx.input(input).unchecked_values<int32_t>();
  indices->assign(values.begin(), values.end());
}

class MapStage final : public CallKernel<NamedMap, StagingMap::PutCall> {
 public:
  using CallKernel::CallKernel;

 private:
  absl::Status Ask(KernelContext& ctx, StagingMap::PutCall* call) override {
    TROUPE_RETURN_IF_ERROR(ReadKey(ctx, &call->key));
    ReadIndices(ctx, 1, &call->indices);
    call->types = types_;
    call->values.reserve(ctx.num_inputs() - 2);
    for (int i = 2; i < ctx.num_inputs(); ++i) call->values.push_back(ctx.TakeInput(i));
    return absl::OkStatus();
  }
};

template <StagingMap::TakeCall::What what>
class MapUnstage final : public CallKernel<NamedMap, StagingMap::TakeCall> {
 public:
  using CallKernel::CallKernel;

 private:
  absl::Status Ask(KernelContext& ctx, StagingMap::TakeCall* call) override {
    using What = StagingMap::TakeCall::What;
    call->what = what;
    if constexpr (what == What::kClear) return absl::OkStatus();
    if constexpr (what != What::kFirstKey) TROUPE_RETURN_IF_ERROR(ReadKey(ctx, &call->key));
    ReadIndices(ctx, what == What::kFirstKey ? 0 : 1, &call->indices);
    call->types = types_;
    return absl::OkStatus();
  }
};

using AreaWhat = TupleStage::TakeCall::What;
using MapWhat = StagingMap::TakeCall::What;
using AreaSize = SizeKernel<NamedArea, &TupleStage::Size>;
using MapSize = SizeKernel<NamedMap, &StagingMap::Size>;
using MapIncomplete = SizeKernel<NamedMap, &StagingMap::IncompleteSize>;

// Tensors are held and not looked at. Each device has its own.
KernelSpec Spec(const char* op) { return KernelSpec(op).Device("DEFAULT"); }
KernelSpec OfKey(const char* op) { return Spec(op).HostMemory("key"); }

REGISTER_KERNEL(Spec("Stage"), MakeKernel<Stage>);
REGISTER_KERNEL(Spec("Unstage"), MakeKernel<Unstage<AreaWhat::kFirst>>);
REGISTER_KERNEL(Spec("StagePeek"), MakeKernel<Unstage<AreaWhat::kLookAt>>);
REGISTER_KERNEL(Spec("StageClear"), MakeKernel<Unstage<AreaWhat::kClear>>);
REGISTER_KERNEL(Spec("StageSize").Cost(KernelCost::kCheap), MakeKernel<AreaSize>);
// A map that need not be ordered may well be.
REGISTER_KERNELS(OfKey("MapStage"), MakeKernel<MapStage>, "OrderedMapStage");
REGISTER_KERNELS(OfKey("MapUnstage"), MakeKernel<MapUnstage<MapWhat::kKey>>, "OrderedMapUnstage");
REGISTER_KERNELS(OfKey("MapUnstageNoKey"), MakeKernel<MapUnstage<MapWhat::kFirstKey>>,
                 "OrderedMapUnstageNoKey");
REGISTER_KERNELS(OfKey("MapPeek"), MakeKernel<MapUnstage<MapWhat::kLookAt>>, "OrderedMapPeek");
REGISTER_KERNELS(Spec("MapClear"), MakeKernel<MapUnstage<MapWhat::kClear>>, "OrderedMapClear");
REGISTER_KERNELS(Spec("MapSize").Cost(KernelCost::kCheap), MakeKernel<MapSize>, "OrderedMapSize");
REGISTER_KERNELS(Spec("MapIncompleteSize").Cost(KernelCost::kCheap), MakeKernel<MapIncomplete>,
                 "OrderedMapIncompleteSize");

}  // namespace
}  // namespace troupe
