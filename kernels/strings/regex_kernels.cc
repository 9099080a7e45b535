// Regular expressions: RegexFullMatch, RegexReplace and their static forms. RE2 takes time linear
// in the string, whatever the pattern, and bounds what a pattern may cost.
#include <re2/re2.h>

#include <memory>
#include <string>

#include "devices/status_macros.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

absl::StatusOr<std::shared_ptr<const RE2>> Compile(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_shared<const RE2>(pattern, options);
  if (!regex->ok()) {
    return InvalidArgument("the pattern '", pattern,
                           "' is no regular expression: ", regex->error());
  }
  return regex;
}

absl::StatusOr<std::string> Scalar(KernelContext& ctx, int input, const char* what) {
  const Tensor& tensor = ctx.input(input);
  if (tensor.rank() != 0) {
    return InvalidArgument(what, " is a tensor of shape ", tensor.shape().ToString(),
                           ", not a scalar");
  }
  return tensor.unchecked_scalar<std::string>();
}

absl::Status Match(KernelContext& ctx, const RE2& regex) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kBool, ctx.input(0).shape()));
  const auto in = ctx.input(0).unchecked_values<std::string>();
  bool* out = output->mutable_data<bool>();
  for (size_t i = 0; i < in.size(); ++i) {
    out[i] = regex.Match(in[i], 0, in[i].size(), RE2::ANCHOR_BOTH, nullptr, 0);
  }
  return absl::OkStatus();
}

absl::Status Replace(KernelContext& ctx, const RE2& regex, const std::string& rewrite, bool all) {
  TROUPE_ASSIGN_OR_RETURN(Tensor * output,
                          ctx.AllocateOutput(0, ElementType::kString, ctx.input(0).shape()));
  const auto in = ctx.input(0).unchecked_values<std::string>();
  const auto out = output->mutable_values<std::string>();
  for (size_t i = 0; i < in.size(); ++i) {
    out[i] = in[i];
    if (all) {
      RE2::GlobalReplace(&out[i], regex, rewrite);
    } else {
      RE2::Replace(&out[i], regex, rewrite);
    }
  }
  return absl::OkStatus();
}

absl::Status RegexFullMatch(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(const std::string pattern, Scalar(ctx, 1, "pattern"));
  TROUPE_ASSIGN_OR_RETURN(const auto regex, Compile(pattern));
  return Match(ctx, *regex);
}

absl::Status RegexReplace(KernelContext& ctx, bool all) {
  TROUPE_ASSIGN_OR_RETURN(const std::string pattern, Scalar(ctx, 1, "pattern"));
  TROUPE_ASSIGN_OR_RETURN(const std::string rewrite, Scalar(ctx, 2, "rewrite"));
  TROUPE_ASSIGN_OR_RETURN(const auto regex, Compile(pattern));
  return Replace(ctx, *regex, rewrite, all);
}

/// The pattern is an attribute, and compiled once.
class StaticKernel : public Kernel {
 public:
  StaticKernel(KernelConstruction& construction, absl::Status* status) {
    auto regex = Compile(construction.Attr<std::string>("pattern"));
    if (!regex.ok()) {
      *status = regex.status();
      return;
    }
    regex_ = *std::move(regex);
  }

 protected:
  const RE2& regex() const { return *regex_; }

 private:
  std::shared_ptr<const RE2> regex_;
};

class StaticRegexFullMatch final : public StaticKernel {
 public:
  using StaticKernel::StaticKernel;
  absl::Status Compute(KernelContext& ctx) override { return Match(ctx, regex()); }
};

class StaticRegexReplace final : public StaticKernel {
 public:
  StaticRegexReplace(KernelConstruction& construction, absl::Status* status)
      : StaticKernel(construction, status),
        rewrite_(construction.Attr<std::string>("rewrite")),
        all_(construction.Attr<bool>("replace_global")) {}
  absl::Status Compute(KernelContext& ctx) override {
    return Replace(ctx, regex(), rewrite_, all_);
  }

 private:
  const std::string rewrite_;
  const bool all_;
};

REGISTER_KERNEL(KernelSpec("RegexFullMatch"), MakeKernel<RegexFullMatch>);
REGISTER_KERNEL(KernelSpec("RegexReplace"), (MakeAttrKernel<RegexReplace, "replace_global">));
REGISTER_KERNEL(KernelSpec("StaticRegexFullMatch"), MakeKernel<StaticRegexFullMatch>);
REGISTER_KERNEL(KernelSpec("StaticRegexReplace"), MakeKernel<StaticRegexReplace>);

}  // namespace
}  // namespace troupe
