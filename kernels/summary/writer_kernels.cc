// SummaryWriter and the ops that write with one. All file work is done by the process's actor of
// files, in the order in which the nodes ran: no step's thread waits for a disk.
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "devices/device.h"
#include "devices/resource_handle.h"
#include "devices/storage/event_log.h"
#include "devices/tensor_proto.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/summary.pb.h"
#include "kernels/common/registration.h"
#include "kernels/io/file_thread.h"
#include "kernels/state/variable_kernel.h"
#include "kernels/summary/summary_values.h"
#include "kernels/variable.h"

namespace troupe {
namespace {

/// What `CreateSummaryFileWriter` makes. The log is touched by the file thread only.
class Writer final : public Resource {
 public:
  explicit Writer(std::string name) : name_(std::move(name)) {}
  std::string DebugString() const override { return StrCat("SummaryWriter '", name_, "'"); }

  absl::Status Open(const std::string& directory, const EventLogOptions& options) {
    if (log_ != nullptr) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(log_, EventLog::Create(directory, options));
    return absl::OkStatus();
  }
  absl::StatusOr<EventLog*> log() const {
    if (log_ == nullptr)
      return absl::FailedPreconditionError(StrCat(DebugString(), " is not open"));
    return log_.get();
  }
  absl::Status Close() {
    const std::unique_ptr<EventLog> log = std::move(log_);
    return log == nullptr ? absl::OkStatus() : log->Close();
  }

 private:
  const std::string name_;
  std::unique_ptr<EventLog> log_;
};

class WriterHandle final : public Kernel {
 public:
  WriterHandle(KernelConstruction& construction, absl::Status* status)
      : container_(construction.Attr<std::string>("container")),
        name_(construction.Attr<std::string>("shared_name")) {
    *status = CheckContainer(container_);
    if (name_.empty()) name_ = construction.node_name();
  }
  absl::Status Compute(KernelContext& ctx) override {
    ResourceHandle handle;
    if (ctx.step().device != nullptr) handle.device = ctx.step().device->name();
    handle.container = container_;
    handle.name = name_;
    handle.type_name = "SummaryWriter";
    ctx.set_output(0, Tensor::Scalar(std::move(handle)));
    return absl::OkStatus();
  }

 private:
  std::string container_, name_;
};

absl::StatusOr<const ResourceHandle*> HandleOf(KernelContext& ctx) {
  if (ctx.input(0).num_elements() != 1) {
    return InvalidArgument("the writer must be one handle, got shape ",
                           ctx.input(0).shape().ToString());
  }
  if (ctx.resources() == nullptr) return absl::InternalError("the device holds no resources");
  return ctx.input(0).unchecked_data<ResourceHandle>();
}

using Make = std::function<absl::StatusOr<RefPtr<Resource>>()>;

absl::StatusOr<RefPtr<Writer>> FindWriter(KernelContext& ctx, const Make& make = nullptr) {
  TROUPE_ASSIGN_OR_RETURN(const ResourceHandle* const handle, HandleOf(ctx));
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Resource> found,
                          ctx.resources()->FindOrCreate(handle->container, handle->name, make));
  if (auto* writer = dynamic_cast<Writer*>(found.get())) return RefPtr<Writer>::Share(writer);
  return InvalidArgument("the handle refers to ", found->DebugString(), ", not to a SummaryWriter");
}

template <typename T>
absl::StatusOr<T> ScalarOf(KernelContext& ctx, int input, const char* what) {
  const Tensor& tensor = ctx.input(input);
  if (tensor.rank() != 0) {
    return InvalidArgument(what, " must be a scalar, got shape ", tensor.shape().ToString());
  }
  return tensor.unchecked_scalar<T>();
}

/// Does something with a writer on the file thread. What depends on the inputs is taken in `Take`.
class WriterKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, KernelDone done) final {
    absl::StatusOr<Work> work = Take(ctx);
    if (!work.ok()) return done(work.status());
    OnFileThread(ctx, done,
                 [work = *std::move(work)](
                     const std::function<bool()>&) -> absl::StatusOr<std::vector<Tensor>> {
                   TROUPE_RETURN_IF_ERROR(work());
                   return std::vector<Tensor>();
                 });
  }

 protected:
  using Work = std::function<absl::Status()>;
  virtual absl::StatusOr<Work> Take(KernelContext& ctx) = 0;
};

class CreateWriter final : public WriterKernel {
  absl::StatusOr<Work> Take(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const std::string directory, ScalarText(ctx.input(1), "logdir"));
    TROUPE_ASSIGN_OR_RETURN(const int32_t pending, ScalarOf<int32_t>(ctx, 2, "max_queue"));
    TROUPE_ASSIGN_OR_RETURN(const int32_t millis, ScalarOf<int32_t>(ctx, 3, "flush_millis"));
    EventLogOptions options{.max_pending = pending, .flush_interval = absl::Milliseconds(millis)};
    TROUPE_ASSIGN_OR_RETURN(options.suffix, ScalarText(ctx.input(4), "filename_suffix"));
    TROUPE_ASSIGN_OR_RETURN(const ResourceHandle* const handle, HandleOf(ctx));
    TROUPE_ASSIGN_OR_RETURN(RefPtr<Writer> writer,
                            FindWriter(ctx, [handle]() -> absl::StatusOr<RefPtr<Resource>> {
                              return RefPtr<Resource>(MakeRef<Writer>(handle->name));
                            }));
    return Work([writer, directory, options] { return writer->Open(directory, options); });
  }
};

class FlushWriter final : public WriterKernel {
  absl::StatusOr<Work> Take(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const RefPtr<Writer> writer, FindWriter(ctx));
    return Work([writer]() -> absl::Status {
      TROUPE_ASSIGN_OR_RETURN(EventLog* const log, writer->log());
      return log->Flush();
    });
  }
};

class CloseWriter final : public WriterKernel {
  absl::StatusOr<Work> Take(KernelContext& ctx) override {
    TROUPE_ASSIGN_OR_RETURN(const RefPtr<Writer> writer, FindWriter(ctx));
    TROUPE_ASSIGN_OR_RETURN(const ResourceHandle* const handle, HandleOf(ctx));
    TROUPE_RETURN_IF_ERROR(ctx.resources()->Destroy(handle->container, handle->name));
    return Work([writer] { return writer->Close(); });
  }
};

// --- events --------------------------------------------------------------------------------------

/// Writes an event.
class WriteKernel : public WriterKernel {
  absl::StatusOr<Work> Take(KernelContext& ctx) final {
    TROUPE_ASSIGN_OR_RETURN(const RefPtr<Writer> writer, FindWriter(ctx));
    const auto event = std::make_shared<Event>();
    TROUPE_RETURN_IF_ERROR(Fill(ctx, event.get()));
    return Work([writer, event]() -> absl::Status {
      TROUPE_ASSIGN_OR_RETURN(EventLog* const log, writer->log());
      return log->Write(*event);
    });
  }
  virtual absl::Status Fill(KernelContext& ctx, Event* event) = 0;
};

class ImportEvent final : public WriteKernel {
  absl::Status Fill(KernelContext& ctx, Event* event) override {
    TROUPE_ASSIGN_OR_RETURN(const std::string bytes, ScalarText(ctx.input(1), "event"));
    if (event->ParseFromString(bytes)) return absl::OkStatus();
    return absl::DataLossError("the string is no message Event");
  }
};

/// Those whose input 1 is the step.
class WriteAtStep : public WriteKernel {
  absl::Status Fill(KernelContext& ctx, Event* event) final {
    TROUPE_ASSIGN_OR_RETURN(const int64_t step, ScalarOf<int64_t>(ctx, 1, "step"));
    event->set_step(step);
    event->set_wall_time(WallTime(absl::Now()));
    return FillContents(ctx, event);
  }
  virtual absl::Status FillContents(KernelContext& ctx, Event* event) = 0;
};

class WriteGraph final : public WriteAtStep {
  absl::Status FillContents(KernelContext& ctx, Event* event) override {
    TROUPE_ASSIGN_OR_RETURN(*event->mutable_graph_def(), ScalarText(ctx.input(2), "the graph"));
    if (GraphDef().ParseFromString(event->graph_def())) return absl::OkStatus();
    return absl::DataLossError("the string is no message GraphDef");
  }
};

class WriteRawProto final : public WriteAtStep {
  absl::Status FillContents(KernelContext& ctx, Event* event) override {
    int64_t i = 0;
    event->mutable_summary();
    for (const std::string& bytes : ctx.input(2).unchecked_values<std::string>()) {
      Summary summary;
      if (bytes.size() > INT32_MAX || !summary.ParseFromString(bytes)) {
        return absl::DataLossError(StrCat("string ", i, " is no message Summary"));
      }
      event->mutable_summary()->MergeFrom(summary);
      ++i;
    }
    return absl::OkStatus();
  }
};

class WriteTensor final : public WriteAtStep {
  absl::Status FillContents(KernelContext& ctx, Event* event) override {
    TROUPE_ASSIGN_OR_RETURN(const std::string tag, ScalarText(ctx.input(3), "tag"));
    TROUPE_ASSIGN_OR_RETURN(const std::string metadata,
                            ScalarText(ctx.input(4), "summary_metadata"));
    AddTensor(ctx.input(2), event->mutable_summary());
    Summary::Value* value = event->mutable_summary()->mutable_value(0);
    value->set_tag(tag);
    if (metadata.empty()) return absl::OkStatus();
    // As in TensorFlow, what can be read of it counts.
    static_cast<void>(value->mutable_metadata()->ParseFromString(metadata));
    return absl::OkStatus();
  }
};

/// Those whose input 2 is a tag.
class WriteTagged : public WriteAtStep {
  absl::Status FillContents(KernelContext& ctx, Event* event) final {
    TROUPE_ASSIGN_OR_RETURN(const std::string tag, ScalarText(ctx.input(2), "tag"));
    return FillSummary(ctx, tag, event->mutable_summary());
  }
  virtual absl::Status FillSummary(KernelContext& ctx, const std::string& tag,
                                   Summary* summary) = 0;
};

class WriteScalar final : public WriteTagged {
  absl::Status FillSummary(KernelContext& ctx, const std::string& tag, Summary* summary) override {
    const Tensor& value = ctx.input(3);
    if (value.num_elements() < 1) {
      return InvalidArgument("value must be a number, got shape ", value.shape().ToString());
    }
    // As TensorFlow does, the first one of several.
    const Tensor first = value.Reshaped(Shape({value.num_elements()})).Slice(0, 1);
    return AddScalars(Tensor::Vector<std::string>({tag}), first, summary);
  }
};

class WriteHistogram final : public WriteTagged {
  absl::Status FillSummary(KernelContext& ctx, const std::string& tag, Summary* summary) override {
    return AddHistogram(tag, ctx.input(3), summary);
  }
};

class WriteImages final : public WriteTagged {
 public:
  WriteImages(KernelConstruction& construction, absl::Status* status)
      : most_(construction.Attr<int64_t>("max_images")) {
    if (most_ > INT32_MAX) {
      *status = InvalidArgument("max_images must be less than 2^31, got ", most_);
    }
  }

 private:
  absl::Status FillSummary(KernelContext& ctx, const std::string& tag, Summary* summary) override {
    return AddImages(tag, ctx.input(3), most_, ctx.input(4), summary);
  }
  const int64_t most_;
};

class WriteSounds final : public WriteTagged {
 public:
  WriteSounds(KernelConstruction& construction, absl::Status* status)
      : most_(construction.Attr<int64_t>("max_outputs")) {
    *status = absl::OkStatus();
  }

 private:
  absl::Status FillSummary(KernelContext& ctx, const std::string& tag, Summary* summary) override {
    TROUPE_ASSIGN_OR_RETURN(const float rate, ScalarOf<float>(ctx, 4, "sample_rate"));
    return AddSounds(tag, ctx.input(3), rate, most_, summary);
  }
  const int64_t most_;
};

REGISTER_KERNEL(Cheap("SummaryWriter"), MakeKernel<WriterHandle>);
REGISTER_KERNEL(Cheap("CreateSummaryFileWriter"), MakeKernel<CreateWriter>);
REGISTER_KERNEL(Cheap("FlushSummaryWriter"), MakeKernel<FlushWriter>);
REGISTER_KERNEL(Cheap("CloseSummaryWriter"), MakeKernel<CloseWriter>);
REGISTER_KERNEL(KernelSpec("ImportEvent"), MakeKernel<ImportEvent>);
REGISTER_KERNEL(KernelSpec("WriteGraphSummary"), MakeKernel<WriteGraph>);
REGISTER_KERNEL(KernelSpec("WriteRawProtoSummary"), MakeKernel<WriteRawProto>);
REGISTER_KERNEL(KernelSpec("WriteSummary").Types("T", AllTypes()), MakeKernel<WriteTensor>);
REGISTER_KERNEL(KernelSpec("WriteScalarSummary"), MakeKernel<WriteScalar>);
REGISTER_KERNEL(KernelSpec("WriteHistogramSummary"), MakeKernel<WriteHistogram>);
REGISTER_KERNEL(KernelSpec("WriteImageSummary"), MakeKernel<WriteImages>);
REGISTER_KERNEL(KernelSpec("WriteAudioSummary"), MakeKernel<WriteSounds>);

}  // namespace
}  // namespace troupe
