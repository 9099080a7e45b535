// Print, PrintV2, Abort.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

/// Written at once, so that lines of several threads do not mix.
void Write(std::FILE* stream, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

/// Passes its first input on and prints the others, the first `first_n` times that it runs.
class Print final : public Kernel {
 public:
  Print(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("message", &message_);
    if (status->ok()) *status = c.GetAttr("first_n", &first_n_);
    if (status->ok()) *status = c.GetAttr("summarize", &summarize_);
  }
  absl::Status Compute(KernelContext& ctx) override {
    if (first_n_ < 0 || calls_.fetch_add(1, std::memory_order_relaxed) < first_n_) {
      std::string text = message_;
      for (int i = 1; i < ctx.num_inputs(); ++i) absl::StrAppend(&text, Summary(ctx.input(i)));
      text += '\n';
      Write(stderr, text);
    }
    ctx.PassThrough(0, 0);
    return absl::OkStatus();
  }

 private:
  /// "[1 2 3...]"
  std::string Summary(const Tensor& tensor) const {
    const int64_t most = summarize_ < 0 ? INT32_MAX : std::min<int64_t>(summarize_, INT32_MAX);
    std::string text = tensor.ToString(static_cast<int>(most));
    // Without the type and shape in front.
    const size_t space = text.find(' ');
    if (space != std::string::npos) text.erase(0, space + 1);
    absl::StrReplaceAll({{" ...", "..."}}, &text);
    return absl::StartsWith(text, "[") ? text : absl::StrCat("[", text, "]");
  }

  std::string message_;
  int64_t first_n_ = -1, summarize_ = 3;
  std::atomic<int64_t> calls_{0};
};

class PrintV2 final : public Kernel {
 public:
  PrintV2(KernelConstruction& c, absl::Status* status) {
    *status = c.GetAttr("output_stream", &stream_);
    if (status->ok()) *status = c.GetAttr("end", &end_);
    if (status->ok() && !absl::StartsWith(stream_, kFile) && stream_ != "stdout" &&
        stream_ != "stderr" && LogLevel() == nullptr) {
      *status = InvalidArgument("Unknown output stream: ", stream_,
                                ". Valid streams are: log(info), log(warning), log(error), stdout, "
                                "stderr, file://PATH");
    }
  }
  absl::Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 0) {
      return InvalidArgument("Input is expected to be scalar, but got ",
                             ctx.input(0).shape().ToString());
    }
    const std::string text = ctx.input(0).unchecked_scalar<std::string>() + end_;
    if (absl::StartsWith(stream_, kFile)) return AppendToFile(text);
    if (stream_ == "stdout") {
      Write(stdout, text);
    } else if (stream_ == "stderr") {
      Write(stderr, text);
    } else {
      Write(stderr, absl::StrCat(LogLevel(), text));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr char kFile[] = "file://";

  /// What log lines begin with; nullptr if the stream is no log.
  const char* LogLevel() const {
    if (stream_ == "log(info)") return "INFO: ";
    if (stream_ == "log(warning)") return "WARNING: ";
    return stream_ == "log(error)" ? "ERROR: " : nullptr;
  }
  absl::Status AppendToFile(const std::string& text) const {
    const std::string path = stream_.substr(sizeof(kFile) - 1);
    std::FILE* file = std::fopen(path.c_str(), "ab");
    if (file == nullptr) {
      return InvalidArgument("cannot open the file '", path, "' to append to it");
    }
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !written) {
      return absl::DataLossError(absl::StrCat("cannot write to the file '", path, "'"));
    }
    return absl::OkStatus();
  }

  std::string stream_, end_;
};

/// Ends the step, not the process: the host program is not the graph's to end.
absl::Status Abort(KernelContext&, const std::string& message) {
  return absl::AbortedError(message.empty() ? "the graph aborts the step" : message);
}

REGISTER_KERNEL(Cheap("Print"), MakeKernel<Print>);
REGISTER_KERNEL(Cheap("PrintV2"), MakeKernel<PrintV2>);
REGISTER_KERNEL(Cheap("Abort"), (MakeAttrKernel<Abort, "error_msg">));

}  // namespace
}  // namespace troupe
