// SaveV2, RestoreV2, MergeV2Checkpoints, Save, SaveSlices, Restore, RestoreSlice and what goes with
// them.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "devices/storage/bundle_writer.h"
#include "devices/storage/checkpoint_reader.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/merge_bundles.h"
#include "devices/storage/tensor_slice.h"
#include "devices/storage/v1_checkpoint_writer.h"
#include "kernels/common/integer_input.h"
#include "kernels/common/registration.h"
#include "kernels/io/file_thread.h"

namespace troupe {
namespace {

absl::StatusOr<std::string> ScalarString(KernelContext& ctx, int input, const char* what) {
  const Tensor& tensor = ctx.input(input);
  if (tensor.num_elements() != 1) {
    return InvalidArgument(what, " is a tensor of ", tensor.num_elements(),
                           " elements, not one string");
  }
  return tensor.unchecked_data<std::string>()[0];
}

absl::StatusOr<std::vector<std::string>> Strings(KernelContext& ctx, int input, const char* what,
                                                 int64_t count) {
  const Tensor& tensor = ctx.input(input);
  if (tensor.shape().rank() != 1 || (count >= 0 && tensor.num_elements() != count)) {
    return InvalidArgument(what, " is a tensor of shape ", tensor.shape().ToString(), ", not of [",
                           count < 0 ? "?" : std::to_string(count), "]");
  }
  const auto values = tensor.unchecked_values<std::string>();
  return std::vector<std::string>(values.begin(), values.end());
}

// --- saving --------------------------------------------------------------------------------------

/// What is to be saved: values that nobody changes, as variables change copies while they are held.
struct Saved {
  std::string prefix;
  std::vector<std::string> names, slices;  ///< No slices: all are whole.
  std::vector<Tensor> tensors;
};

absl::StatusOr<Saved> TakeSaved(KernelContext& ctx, bool sliced) {
  const int first = sliced ? 3 : 2;
  Saved saved;
  TROUPE_ASSIGN_OR_RETURN(saved.prefix, ScalarString(ctx, 0, "the checkpoint's name"));
  const int count = ctx.num_inputs() - first;
  TROUPE_ASSIGN_OR_RETURN(saved.names, Strings(ctx, 1, "tensor_names", count));
  if (sliced) {
    TROUPE_ASSIGN_OR_RETURN(saved.slices, Strings(ctx, 2, "shape_and_slices", count));
  }
  for (int i = 0; i < count; ++i) saved.tensors.push_back(ctx.input(first + i));
  return saved;
}

/// `Writer`: BundleWriter or V1CheckpointWriter.
template <typename Writer>
absl::StatusOr<std::vector<Tensor>> Write(Saved* saved, const std::function<bool()>& cancelled) {
  TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(saved->prefix));
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Writer> writer,
                          Writer::Create(files, saved->prefix));
  for (size_t i = 0; i < saved->names.size(); ++i) {
    if (cancelled()) return absl::CancelledError("the save was given up");
    const Tensor tensor = std::move(saved->tensors[i]);  // Its memory goes as it is written.
    if (saved->slices.empty() || saved->slices[i].empty()) {
      TROUPE_RETURN_IF_ERROR(writer->Add(saved->names[i], tensor));
      continue;
    }
    const absl::StatusOr<ShapeAndSlice> part = ParseShapeAndSlice(saved->slices[i]);
    if (!part.ok()) {
      return WithContext(StrCat("tensor '", saved->names[i], "', part '", saved->slices[i], "': "),
                         part.status());
    }
    TROUPE_RETURN_IF_ERROR(writer->AddSlice(saved->names[i], part->full, part->slice, tensor));
  }
  TROUPE_RETURN_IF_ERROR(writer->Finish());
  return std::vector<Tensor>();
}

template <typename Writer, bool kSliced>
class SaveKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<Saved> taken = TakeSaved(ctx, kSliced);
    if (!taken.ok()) return done(taken.status());
    auto saved = std::make_shared<Saved>(*std::move(taken));
    OnFileThread(ctx, done, [saved](const std::function<bool()>& cancelled) {
      return Write<Writer>(saved.get(), cancelled);
    });
  }
};

// --- restoring -----------------------------------------------------------------------------------

struct Wanted {
  std::string name, slice;
  ElementType type = ElementType::kInvalid;
};

absl::StatusOr<Tensor> ReadOne(const CheckpointReader& reader, const std::string& prefix,
                               const Wanted& wanted) {
  TROUPE_ASSIGN_OR_RETURN(const CheckpointTensor* const found, reader.Find(wanted.name));
  if (found->type != wanted.type) {
    return InvalidArgument("tensor ", wanted.name, " of checkpoint ", prefix, " is of type ",
                           ElementTypeName(found->type), ", not ", ElementTypeName(wanted.type));
  }
  if (wanted.slice.empty()) return reader.Read(wanted.name);
  TROUPE_ASSIGN_OR_RETURN(const ShapeAndSlice part, ParseShapeAndSlice(wanted.slice));
  if (part.full != found->shape) {
    return InvalidArgument("tensor ", wanted.name, " of checkpoint ", prefix, " has the shape ",
                           found->shape.ToString(), ", and '", wanted.slice,
                           "' asks for a part of ", part.full.ToString());
  }
  return reader.ReadSlice(wanted.name, part.slice);
}

FileWork ReadAll(std::string prefix, std::vector<Wanted> wanted) {
  return [prefix = std::move(prefix), wanted = std::move(wanted)](
             const std::function<bool()>& cancelled) -> absl::StatusOr<std::vector<Tensor>> {
    TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(prefix));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                            OpenCheckpoint(files, prefix));
    std::vector<Tensor> tensors;
    for (const Wanted& one : wanted) {
      if (cancelled()) return absl::CancelledError("the restore was given up");
      TROUPE_ASSIGN_OR_RETURN(tensors.emplace_back(), ReadOne(*reader, prefix, one));
    }
    return tensors;
  };
}

class RestoreV2Kernel final : public AsyncKernel {
 public:
  RestoreV2Kernel(KernelConstruction& construction, absl::Status*) {
    for (int i = 0; i < construction.num_outputs(); ++i) {
      types_.push_back(construction.output_type(i));
    }
  }
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<FileWork> work = Work(ctx);
    if (!work.ok()) return done(work.status());
    OnFileThread(ctx, done, *std::move(work));
  }

 private:
  absl::StatusOr<FileWork> Work(KernelContext& ctx) const {
    const auto count = static_cast<int64_t>(types_.size());
    TROUPE_ASSIGN_OR_RETURN(std::string prefix, ScalarString(ctx, 0, "the checkpoint's name"));
    TROUPE_ASSIGN_OR_RETURN(const auto names, Strings(ctx, 1, "tensor_names", count));
    TROUPE_ASSIGN_OR_RETURN(const auto slices, Strings(ctx, 2, "shape_and_slices", count));
    std::vector<Wanted> wanted;
    for (size_t i = 0; i < types_.size(); ++i) wanted.push_back({names[i], slices[i], types_[i]});
    return ReadAll(std::move(prefix), std::move(wanted));
  }

  std::vector<ElementType> types_;
};

/// Restore and RestoreSlice. Where files are that a tensor is in, the reader knows by itself
/// (`preferred_shard`).
class RestoreKernel final : public AsyncKernel {
 public:
  RestoreKernel(KernelConstruction& construction, absl::Status*)
      : type_(construction.output_type(0)) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<FileWork> work = Work(ctx);
    if (!work.ok()) return done(work.status());
    OnFileThread(ctx, done, *std::move(work));
  }

 private:
  absl::StatusOr<FileWork> Work(KernelContext& ctx) const {
    Wanted wanted{.type = type_};
    TROUPE_ASSIGN_OR_RETURN(std::string pattern, ScalarString(ctx, 0, "file_pattern"));
    TROUPE_ASSIGN_OR_RETURN(wanted.name, ScalarString(ctx, 1, "tensor_name"));
    if (ctx.num_inputs() > 2) {
      TROUPE_ASSIGN_OR_RETURN(wanted.slice, ScalarString(ctx, 2, "shape_and_slice"));
    }
    return ReadAll(std::move(pattern), {std::move(wanted)});
  }

  const ElementType type_;
};

// --- parts ---------------------------------------------------------------------------------------

class MergeKernel final : public AsyncKernel {
 public:
  MergeKernel(KernelConstruction& construction, absl::Status*)
      : options_{.allow_missing = construction.Attr<bool>("allow_missing_files"),
                 .remove_directories = construction.Attr<bool>("delete_old_dirs")} {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    auto prefixes = Strings(ctx, 0, "checkpoint_prefixes", -1);
    if (!prefixes.ok()) return done(prefixes.status());
    auto merged = ScalarString(ctx, 1, "destination_prefix");
    if (!merged.ok()) return done(merged.status());
    OnFileThread(ctx, done,
                 [prefixes = *std::move(prefixes), merged = *std::move(merged), options = options_](
                     const std::function<bool()>&) -> absl::StatusOr<std::vector<Tensor>> {
                   TROUPE_ASSIGN_OR_RETURN(FileSystem* const files, FileSystems().Find(merged));
                   TROUPE_RETURN_IF_ERROR(MergeBundles(files, prefixes, merged, options));
                   return std::vector<Tensor>();
                 });
  }

 private:
  const MergeOptions options_;
};

absl::Status ShardedFilename(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const std::string base, ScalarString(ctx, 0, "basename"));
  TROUPE_ASSIGN_OR_RETURN(const int32_t shard, ctx.input(1).scalar<int32_t>());
  TROUPE_ASSIGN_OR_RETURN(const int32_t shards, ctx.input(2).scalar<int32_t>());
  ctx.set_output(0, Tensor::Scalar<std::string>(
                        StrCat(base, absl::StrFormat("-%05d-of-%05d", shard, shards))));
  return absl::OkStatus();
}

absl::Status ShardedFilespec(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const std::string base, ScalarString(ctx, 0, "basename"));
  TROUPE_ASSIGN_OR_RETURN(const int64_t shards, ReadIntegerScalar(ctx.input(1), "num_shards"));
  ctx.set_output(
      0, Tensor::Scalar<std::string>(StrCat(base, absl::StrFormat("-\?\?\?\?\?-of-%05d", shards))));
  return absl::OkStatus();
}

absl::Status DoNothing(KernelContext&) { return absl::OkStatus(); }

REGISTER_KERNEL(KernelSpec("SaveV2"), (MakeKernel<SaveKernel<BundleWriter, true>>));
REGISTER_KERNEL(KernelSpec("Save"), (MakeKernel<SaveKernel<V1CheckpointWriter, false>>));
REGISTER_KERNEL(KernelSpec("SaveSlices"), (MakeKernel<SaveKernel<V1CheckpointWriter, true>>));
REGISTER_KERNEL(KernelSpec("RestoreV2"), MakeKernel<RestoreV2Kernel>);
REGISTER_KERNELS(KernelSpec("Restore"), MakeKernel<RestoreKernel>, "RestoreSlice");
REGISTER_KERNEL(KernelSpec("MergeV2Checkpoints"), MakeKernel<MergeKernel>);
REGISTER_KERNEL(Cheap("ShardedFilename"), MakeKernel<ShardedFilename>);
REGISTER_KERNEL(Cheap("ShardedFilespec"), MakeKernel<ShardedFilespec>);
REGISTER_KERNEL(Cheap("DisableCopyOnRead"), MakeKernel<DoNothing>);

}  // namespace
}  // namespace troupe
