// DatasetIterator, DatasetIteratorInitialize, ...Next, ...Save, ...Restore.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "kernels/argument_spaces.h"
#include "kernels/cancellation.h"
#include "kernels/common/registration.h"
#include "kernels/dataset/iterator_resource.h"
#include "kernels/io/file_thread.h"
#include "kernels/kernel_state.h"
#include "kernels/queues/waiting_resource.h"
#include "kernels/traced_kernel.h"

namespace troupe {
namespace {

absl::StatusOr<RefPtr<IteratorResource>> InputIterator(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const RefPtr<Resource> resource, FindResource(ctx, "dataset iterator"));
  if (auto* iterator = dynamic_cast<IteratorResource*>(resource.get())) {
    return RefPtr<IteratorResource>::Share(iterator);
  }
  return InvalidArgument("the handle refers to ", resource->DebugString(),
                         ", not to a dataset iterator");
}

/// Elements in the memory of a device are for its own kernels; those on the host are for all.
absl::Status CheckDevice(const IteratorResource& iterator, const KernelContext& ctx) {
  const Device *const made_for = iterator.device(), *const device = ctx.step().device;
  if (made_for == device || made_for == nullptr ||
      made_for->memory_space() != MemorySpace::kDevice) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "the ", iterator.DebugString(), " was made on ", made_for->name(), ", and this node runs on ",
      device == nullptr ? std::string("the host") : device->name(), ": they must be the same");
}

/// Makes the iterator, or finds it. Its position is the kernel's state (docs/long-training.md).
class MakeIterator final : public Kernel, public ResumableKernel, public TracedKernel {
 public:
  MakeIterator(KernelConstruction& c, absl::Status* status) : node_(c.node_name()) {
    std::string shared_name;
    *status = c.GetAttr("dataset", &dataset_);
    if (status->ok()) *status = c.GetAttr("container", &container_);
    if (status->ok()) *status = c.GetAttr("shared_name", &shared_name);
    name_ = shared_name.empty() ? node_ : shared_name;
  }

  absl::Status Compute(KernelContext& ctx) override {
    if (ctx.resources() == nullptr) {
      return absl::FailedPreconditionError("the step has no containers");
    }
    TROUPE_ASSIGN_OR_RETURN(
        const RefPtr<Resource> found,
        ctx.resources()->FindOrCreate(container_, name_, [&]() -> absl::StatusOr<RefPtr<Resource>> {
          return RefPtr<Resource>(MakeRef<IteratorResource>(dataset_, ctx.step().device));
        }));
    auto* iterator = dynamic_cast<IteratorResource*>(found.get());
    if (iterator == nullptr || iterator->dataset() != dataset_) {
      return InvalidArgument("the resource is ", found->DebugString(), ", not an iterator of the ",
                             "dataset ", dataset_);
    }
    std::string restored;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      made_ = RefPtr<IteratorResource>::Share(iterator);
      restored = std::exchange(restored_, {});
    }
    if (!restored.empty()) TROUPE_RETURN_IF_ERROR(iterator->Begin(&restored));
    ResourceHandle handle;
    if (ctx.step().device != nullptr) handle.device = ctx.step().device->name();
    handle.container = container_;
    handle.name = name_;
    handle.type_name = "DatasetIterator";
    handle.resource = found;
    ctx.set_output(0, Tensor::Scalar(std::move(handle)));
    return absl::OkStatus();
  }

  /// Empty: there is no position that could be restored; the log says why.
  std::string SaveState() const override {
    RefPtr<IteratorResource> made;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!made_) return restored_;
      made = made_;
    }
    const absl::StatusOr<std::shared_ptr<ElementIterator>> iterator = made->Get();
    absl::StatusOr<std::string> position =
        iterator.ok() ? (*iterator)->Save() : absl::StatusOr<std::string>(iterator.status());
    if (position.ok()) return *std::move(position);
    WriteLog(LogLevel::kWarning, "", {"dataset_not_saved", node_}, "The position of '", node_,
             "', an iterator of the dataset ", dataset_,
             ", is not saved: ", position.status().ToString());
    return {};
  }
  absl::Status RestoreState(std::string_view state) override {
    std::lock_guard<std::mutex> lock(mutex_);
    restored_ = state;
    return absl::OkStatus();
  }

  void AddStatsTo(RunMetadata* metadata) const override {
    RefPtr<IteratorResource> made;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      made = made_;
    }
    if (made) made->AddStatsTo(metadata);
  }

 private:
  const std::string node_;
  std::string dataset_, container_, name_;
  mutable std::mutex mutex_;
  RefPtr<IteratorResource> made_;
  std::string restored_;  ///< Until the iterator is made.
};

class NextElement final : public AsyncKernel {
 public:
  NextElement(KernelConstruction& c, absl::Status* status) {
    auto expected = std::make_shared<Expected>();
    for (int i = 0; i < c.num_outputs(); ++i) expected->types.push_back(c.output_type(i));
    *status = c.GetAttr("output_shapes", &expected->shapes);
    expected_ = std::move(expected);
  }

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<RefPtr<IteratorResource>> resource = InputIterator(ctx);
    if (!resource.ok()) return done(resource.status());
    if (absl::Status same = CheckDevice(**resource, ctx); !same.ok()) return done(std::move(same));
    absl::StatusOr<std::shared_ptr<ElementIterator>> iterator = (*resource)->Get();
    if (!iterator.ok()) return done(iterator.status());
    const auto waiting = std::make_shared<Waiting>(&ctx, done, *iterator, expected_);
    CancellationToken* const token = ctx.cancellation();
    if (!token->Register([waiting, token] { waiting->Cancel(token); }, &waiting->callback)) {
      return done(token->status());
    }
    try {
      const uint64_t request =
          (*iterator)->NextAsync([waiting](absl::StatusOr<bool> more, std::vector<Tensor> element) {
            waiting->OnElement(std::move(more), std::move(element));
          });
      waiting->request = request;
      // Cancelled meanwhile: whoever did it did not know the request.
      if (waiting->cancelled) waiting->Cancel(token);
    } catch (...) {
      waiting->OnElement(StatusOfException(), {});
    }
  }

 private:
  struct Expected {
    std::vector<ElementType> types;
    std::vector<PartialShape> shapes;  ///< As many, or none.
  };

  /// One execution, until the element is there.
  struct Waiting {
    Waiting(KernelContext* c, KernelDone d, std::shared_ptr<ElementIterator> i,
            std::shared_ptr<const Expected> e)
        : ctx(c), done(d), iterator(std::move(i)), expected(std::move(e)) {}

    /// What is forgotten has not been answered: the token is there.
    void Cancel(const CancellationToken* token) {
      cancelled = true;
      const uint64_t id = request;
      if (id != 0 && iterator->Forget(id) && !answered.exchange(true)) done(token->status());
    }
    void OnElement(absl::StatusOr<bool> more, std::vector<Tensor> element) {
      if (answered.exchange(true)) return;
      ctx->cancellation()->Deregister(callback);
      absl::Status status = more.status();
      if (status.ok() && !*more) status = absl::OutOfRangeError("the dataset has ended");
      if (status.ok()) status = CatchExceptions([&] { return Check(element); });
      if (status.ok()) status = CatchExceptions([&] { return Upload(&element); });
      if (status.ok()) {
        for (size_t i = 0; i < element.size(); ++i) {
          ctx->set_output(static_cast<int>(i), std::move(element[i]));
        }
      }
      done(std::move(status));
    }
    absl::Status Check(const std::vector<Tensor>& element) const {
      if (element.size() != expected->types.size()) {
        return InvalidArgument("an element has ", element.size(), " components, not ",
                               expected->types.size());
      }
      for (size_t i = 0; i < element.size(); ++i) {
        if (element[i].type() != expected->types[i]) {
          return InvalidArgument("component ", i, " of an element is ",
                                 ElementTypeName(element[i].type()), ", not ",
                                 ElementTypeName(expected->types[i]));
        }
        if (!expected->shapes.empty() &&
            !expected->shapes[i].IsCompatibleWith(element[i].shape())) {
          return InvalidArgument("component ", i, " of an element has shape ",
                                 element[i].shape().ToString(), ", not ",
                                 expected->shapes[i].ToString());
        }
      }
      return absl::OkStatus();
    }

    /// What is not where the kernel gives it: the iterator was made on the host, or this device had
    /// no room before.
    absl::Status Upload(std::vector<Tensor>* element) const {
      if (ctx->step().device == nullptr) return absl::OkStatus();
      for (Tensor& component : *element) {
        if (!LivesOnDevice(component.type())) continue;
        TROUPE_ASSIGN_OR_RETURN(component, troupe::Upload(ctx->step().device, component));
      }
      return absl::OkStatus();
    }

    KernelContext* const ctx;  ///< Until it is answered.
    const KernelDone done;
    const std::shared_ptr<ElementIterator> iterator;
    const std::shared_ptr<const Expected> expected;
    uint64_t callback = 0;
    std::atomic<uint64_t> request{0};
    std::atomic<bool> cancelled{false}, answered{false};
  };

  std::shared_ptr<const Expected> expected_;
};

/// What reads files or waits for functions of the dataset is left to a thread of its own: these may
/// wait for the thread of files.
class IteratorWork : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, KernelDone done) final {
    absl::StatusOr<RefPtr<IteratorResource>> resource = InputIterator(ctx);
    if (!resource.ok()) return done(resource.status());
    Tensor input;
    if (ctx.num_inputs() > 1) {
      input = ctx.input(1);
      if (input.num_elements() != 1) {
        return done(InvalidArgument("the position must be a scalar, got ", input.ToString(1)));
      }
    }
    OnOwnThread(ctx, done,
                [work = GetWork(), resource = *std::move(resource), input = std::move(input)](
                    const std::function<bool()>&) { return work(*resource, input); });
  }

 protected:
  using Work = absl::StatusOr<std::vector<Tensor>> (*)(IteratorResource& iterator,
                                                       const Tensor& input);
  virtual Work GetWork() const = 0;
};

template <absl::StatusOr<std::vector<Tensor>> (*work)(IteratorResource&, const Tensor&)>
class IteratorWorkOf final : public IteratorWork {
  Work GetWork() const override { return work; }
};

absl::StatusOr<std::vector<Tensor>> Initialize(IteratorResource& iterator, const Tensor&) {
  TROUPE_RETURN_IF_ERROR(iterator.Begin(nullptr));
  return std::vector<Tensor>();
}

absl::StatusOr<std::vector<Tensor>> Save(IteratorResource& iterator, const Tensor&) {
  TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<ElementIterator> begun, iterator.Get());
  TROUPE_ASSIGN_OR_RETURN(std::string position, begun->Save());
  return std::vector<Tensor>{Tensor::Scalar(std::move(position))};
}

absl::StatusOr<std::vector<Tensor>> Restore(IteratorResource& iterator, const Tensor& position) {
  TROUPE_RETURN_IF_ERROR(iterator.Begin(&position.unchecked_scalar<std::string>()));
  return std::vector<Tensor>();
}

KernelSpec OnAnyDevice(const char* op) { return KernelSpec(op).Device("DEFAULT"); }

REGISTER_KERNEL(KernelSpec("DatasetIterator"), MakeKernel<MakeIterator>);
REGISTER_KERNEL(KernelSpec("DatasetIteratorNext"), MakeKernel<NextElement>);
REGISTER_KERNEL(KernelSpec("DatasetIteratorInitialize"), MakeKernel<IteratorWorkOf<Initialize>>);
REGISTER_KERNEL(KernelSpec("DatasetIteratorSave"), MakeKernel<IteratorWorkOf<Save>>);
REGISTER_KERNEL(KernelSpec("DatasetIteratorRestore"), MakeKernel<IteratorWorkOf<Restore>>);
REGISTER_KERNEL(OnAnyDevice("DatasetIterator"), MakeKernel<MakeIterator>);
REGISTER_KERNEL(OnAnyDevice("DatasetIteratorNext"), MakeKernel<NextElement>);
REGISTER_KERNEL(OnAnyDevice("DatasetIteratorInitialize"), MakeKernel<IteratorWorkOf<Initialize>>);
REGISTER_KERNEL(OnAnyDevice("DatasetIteratorSave"), MakeKernel<IteratorWorkOf<Save>>);
REGISTER_KERNEL(OnAnyDevice("DatasetIteratorRestore"), MakeKernel<IteratorWorkOf<Restore>>);

}  // namespace
}  // namespace troupe
