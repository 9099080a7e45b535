// ReadFile, WriteFile, MatchingFiles.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/status_macros.h"
#include "devices/storage/file_system_registry.h"
#include "devices/storage/path.h"
#include "devices/storage/whole_file.h"
#include "kernels/common/registration.h"
#include "kernels/io/file_thread.h"

namespace troupe {
namespace {

using Cancelled = std::function<bool()>;
using Outputs = absl::StatusOr<std::vector<Tensor>>;

absl::StatusOr<std::string> ScalarInput(KernelContext& ctx, int input, const char* what) {
  const Tensor& tensor = ctx.input(input);
  if (tensor.rank() == 0) return tensor.unchecked_scalar<std::string>();
  return InvalidArgument(what, " must be a scalar, got shape ", tensor.shape().ToString());
}

class ReadFile final : public AsyncKernel {
 public:
  ReadFile(KernelConstruction&, absl::Status*) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<std::string> path = ScalarInput(ctx, 0, "filename");
    if (!path.ok()) return done(path.status());
    OnInputThread(ctx, done, [path = *std::move(path)](const Cancelled&) -> Outputs {
      TROUPE_ASSIGN_OR_RETURN(FileSystem * files, FileSystems().Find(path));
      TROUPE_ASSIGN_OR_RETURN(std::string contents, ReadWholeFile(files, path));
      return std::vector<Tensor>{Tensor::Scalar(std::move(contents))};
    });
  }
};

class WriteFile final : public AsyncKernel {
 public:
  WriteFile(KernelConstruction&, absl::Status*) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<std::string> path = ScalarInput(ctx, 0, "filename");
    if (!path.ok()) return done(path.status());
    if (ctx.input(1).rank() != 0) {
      return done(InvalidArgument("contents must be a scalar, got shape ",
                                  ctx.input(1).shape().ToString()));
    }
    OnFileThread(ctx, done,
                 [path = *std::move(path), contents = ctx.input(1)](const Cancelled&) -> Outputs {
                   TROUPE_RETURN_IF_ERROR(Write(path, contents.unchecked_scalar<std::string>()));
                   return std::vector<Tensor>();
                 });
  }

 private:
  static absl::Status Write(const std::string& path, std::string_view contents) {
    TROUPE_ASSIGN_OR_RETURN(FileSystem * files, FileSystems().Find(path));
    TROUPE_RETURN_IF_ERROR(files->CreateDirectories(PathDirectory(path)));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files->Create(path));
    TROUPE_RETURN_IF_ERROR(file->Append(contents));
    return file->Close();
  }
};

class MatchingFiles final : public AsyncKernel {
 public:
  MatchingFiles(KernelConstruction&, absl::Status*) {}
  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    if (ctx.input(0).rank() > 1) {
      return done(InvalidArgument("pattern must be a scalar or a vector, got shape ",
                                  ctx.input(0).shape().ToString()));
    }
    OnInputThread(ctx, done, [patterns = ctx.input(0)](const Cancelled& cancelled) -> Outputs {
      std::vector<std::string> all;
      for (const std::string& pattern : patterns.unchecked_values<std::string>()) {
        if (cancelled()) return absl::CancelledError("matching files was given up");
        TROUPE_ASSIGN_OR_RETURN(FileSystem * files, FileSystems().Find(pattern));
        TROUPE_ASSIGN_OR_RETURN(std::vector<std::string> matches, MatchFiles(files, pattern));
        std::move(matches.begin(), matches.end(), std::back_inserter(all));
      }
      std::sort(all.begin(), all.end());
      return std::vector<Tensor>{Tensor::Vector<std::string>(all)};
    });
  }
};

REGISTER_KERNEL(KernelSpec("ReadFile"), MakeKernel<ReadFile>);
REGISTER_KERNEL(KernelSpec("WriteFile"), MakeKernel<WriteFile>);
REGISTER_KERNEL(KernelSpec("MatchingFiles"), MakeKernel<MatchingFiles>);

}  // namespace
}  // namespace troupe
