// The kernels of the reader ops. The first versions have references to strings as handles, the
// second ones resources.
#include <string>
#include <utility>

#include "kernels/common/registration.h"
#include "kernels/sync/synchronizer_options.h"

namespace troupe {
namespace {

using Kind = FileRecordsOptions::Kind;

template <Kind kind>
class MakeReader final : public ResourceMaker {
 public:
  MakeReader(KernelConstruction& c, absl::Status* status)
      : ResourceMaker(c, StrCat(KindName(kind), "Reader"), status) {
    if (status->ok()) *status = Read(c, &options_.files);
  }

 private:
  static absl::Status Read(KernelConstruction& c, FileRecordsOptions* files) {
    files->kind = kind;
    if (kind == Kind::kRecords) return ReadCompression(c, "compression_type", files);
    if (kind == Kind::kLines) return c.GetAttr("skip_header_lines", &files->skip_header_lines);
    if (kind != Kind::kFixedLength) return absl::OkStatus();
    TROUPE_RETURN_IF_ERROR(c.GetAttr("header_bytes", &files->header_bytes));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("record_bytes", &files->record_bytes));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("footer_bytes", &files->footer_bytes));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("hop_bytes", &files->hop_bytes));
    if (files->header_bytes < 0 || files->record_bytes <= 0 || files->footer_bytes < 0 ||
        files->hop_bytes < 0) {
      return InvalidArgument("header_bytes, footer_bytes and hop_bytes must be >= 0, and ",
                             "record_bytes > 0, got ", files->header_bytes, ", ",
                             files->footer_bytes, ", ", files->hop_bytes, " and ",
                             files->record_bytes);
    }
    return ReadCompression(c, "encoding", files);
  }

  /// '' where there is no such attribute: the first version of a fixed-length reader has none.
  static absl::Status ReadCompression(KernelConstruction& c, const char* attr,
                                      FileRecordsOptions* files) {
    const auto name = c.Attr<std::string>(attr);
    TROUPE_ASSIGN_OR_RETURN(files->compression, ParseFileCompression(name));
    return absl::OkStatus();
  }

  absl::StatusOr<RefPtr<Resource>> Make(KernelContext&, const std::string& name) override {
    return MakeSynchronizer(name, {options_});
  }
  absl::Status Check(const WaitingResource& resource) override {
    const auto* reader = dynamic_cast<const Reader*>(&resource);
    if (reader != nullptr && reader->options() == options_) return absl::OkStatus();
    const bool other = reader == nullptr || reader->options().files.kind != kind;
    return InvalidArgument("the shared ", resource.DebugString(), " differs from what this ",
                           KindName(kind), "Reader asks for in its ",
                           other ? "kind" : "attributes");
  }

  ReaderOptions options_;
};

template <bool many>
class ReadKernel final : public WaitingKernel<Reader, Reader::ReadCall> {
 public:
  ReadKernel(KernelConstruction&, absl::Status*) {}

 private:
  absl::Status Ask(const Reader&, KernelContext& ctx, Reader::ReadCall* call) override {
    TROUPE_ASSIGN_OR_RETURN(call->names, FindWaiting<Queue>(ctx, 1));
    call->many = many;
    if (!many) return absl::OkStatus();
    const Tensor& n = ctx.input(2);
    if (n.rank() != 0) {
      return InvalidArgument("num_records must be a scalar, got shape ", n.shape().ToString());
    }
    call->n = n.unchecked_scalar<int64_t>();
    return absl::OkStatus();
  }
};

template <Reader::ChangeCall::What what>
class ChangeKernel final : public WaitingKernel<Reader, Reader::ChangeCall> {
 public:
  ChangeKernel(KernelConstruction&, absl::Status*) {}

 private:
  absl::Status Ask(const Reader&, KernelContext& ctx, Reader::ChangeCall* call) override {
    call->what = what;
    if (what != Reader::ChangeCall::What::kRestore) return absl::OkStatus();
    const Tensor& state = ctx.input(1);
    if (state.rank() != 0) {
      return InvalidArgument("state must be a scalar, got shape ", state.shape().ToString());
    }
    call->state = state.unchecked_scalar<std::string>();
    return absl::OkStatus();
  }
};

template <int64_t (Reader::*kCount)() const>
absl::Status Count(KernelContext& ctx) {
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Reader> reader, FindWaiting<Reader>(ctx));
  return ctx.SetScalar(0, (reader.get()->*kCount)());
}

using What = Reader::ChangeCall::What;

REGISTER_KERNELS(Cheap("TFRecordReader"), MakeKernel<MakeReader<Kind::kRecords>>,
                 "TFRecordReaderV2");
REGISTER_KERNELS(Cheap("TextLineReader"), MakeKernel<MakeReader<Kind::kLines>>, "TextLineReaderV2");
REGISTER_KERNELS(Cheap("FixedLengthRecordReader"), MakeKernel<MakeReader<Kind::kFixedLength>>,
                 "FixedLengthRecordReaderV2");
REGISTER_KERNELS(Cheap("WholeFileReader"), MakeKernel<MakeReader<Kind::kWholeFile>>,
                 "WholeFileReaderV2");
REGISTER_KERNELS(Cheap("IdentityReader"), MakeKernel<MakeReader<Kind::kIdentity>>,
                 "IdentityReaderV2");
REGISTER_KERNELS(Cheap("ReaderRead"), MakeKernel<ReadKernel<false>>, "ReaderReadV2");
REGISTER_KERNELS(Cheap("ReaderReadUpTo"), MakeKernel<ReadKernel<true>>, "ReaderReadUpToV2");
REGISTER_KERNELS(Cheap("ReaderReset"), MakeKernel<ChangeKernel<What::kReset>>, "ReaderResetV2");
REGISTER_KERNELS(Cheap("ReaderSerializeState"), MakeKernel<ChangeKernel<What::kSave>>,
                 "ReaderSerializeStateV2");
REGISTER_KERNELS(Cheap("ReaderRestoreState"), MakeKernel<ChangeKernel<What::kRestore>>,
                 "ReaderRestoreStateV2");
REGISTER_KERNELS(Cheap("ReaderNumRecordsProduced"), MakeKernel<Count<&Reader::RecordsProduced>>,
                 "ReaderNumRecordsProducedV2");
REGISTER_KERNELS(Cheap("ReaderNumWorkUnitsCompleted"), MakeKernel<Count<&Reader::FilesFinished>>,
                 "ReaderNumWorkUnitsCompletedV2");

}  // namespace
}  // namespace troupe
