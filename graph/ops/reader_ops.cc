// Files: readers that take the names of files from a queue, and whole files.
#include <initializer_list>
#include <string>

#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/ops/handle_ops.h"
#include "graph/ops/op_versions.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status ReadUpToShape(InferenceContext* c) {
  c->set_output(0, InferenceContext::VectorOf(-1));
  c->set_output(1, InferenceContext::VectorOf(-1));
  return absl::OkStatus();
}

absl::Status ScalarInputs(InferenceContext* c) {
  for (int i = 0; i < c->num_inputs(); ++i) {
    TROUPE_RETURN_IF_ERROR(InferenceContext::WithRank(c->input(i), 0).status());
  }
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, InferenceContext::Scalar());
  return absl::OkStatus();
}

absl::Status RestoreStateShape(InferenceContext* c) {
  return InferenceContext::WithRank(c->input(1), 0).status();
}

absl::Status MatchingFilesShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(InferenceContext::WithRankAtMost(c->input(0), 1).status());
  c->set_output(0, InferenceContext::VectorOf(-1));
  return absl::OkStatus();
}

/// The first versions of the ops, or the second ones, which have resources as handles.
void Register(bool second) {
  auto maker = [&](OpVersions names, std::initializer_list<const char*> before,
                   std::initializer_list<const char*> behind, bool deprecated, const char* doc) {
    OpDefBuilder op(names.Name(second));
    op.Signature(StrCat("-> reader_", HandleSpec(second)));
    for (const char* attr : before) op.Attr(attr);
    op.Attr("container: string = ''").Attr("shared_name: string = ''");
    for (const char* attr : behind) op.Attr(attr);
    if (!second && deprecated) op.Deprecated(26, StrCat("Use ", names.second));
    op.SetIsStateful().SetShapeFn(second ? ScalarShape : HandlePairShape).Doc(doc);
    return op;
  };
  auto on_reader = [&](OpVersions names, const char* queue, const char* rest, ShapeFn shape_fn,
                       const char* doc) {
    OpDefBuilder op(names.Name(second));
    op.Signature(StrCat("reader_", HandleSpec(second), queue,
                        *queue != '\0' ? HandleSpec(second) : "", rest));
    if (second) op.SetIsStateful();
    op.SetShapeFn(shape_fn).Doc(doc);
    return op;
  };
  constexpr char kQueue[] = ", queue_";
  [[maybe_unused]] const internal::OpRegistrar ops[] = {
      maker({"TFRecordReader", "TFRecordReaderV2"}, {}, {"compression_type: string = ''"}, true,
            "Makes a reader of record files, plain or compressed ('ZLIB', 'GZIP'). Keys are the "
            "file's name, a colon and the record's offset."),
      maker({"TextLineReader", "TextLineReaderV2"}, {"skip_header_lines: int = 0"}, {}, true,
            "Makes a reader of lines of text. Keys are the file's name, a colon and the line's "
            "number, from 1."),
      second ? maker({"FixedLengthRecordReader", "FixedLengthRecordReaderV2"},
                     {"header_bytes: int = 0", "record_bytes: int", "footer_bytes: int = 0",
                      "hop_bytes: int = 0"},
                     {"encoding: string = ''"}, true,
                     "Makes a reader of records of `record_bytes`, each `hop_bytes` behind the "
                     "one before (0: behind its end), between header and footer; `encoding` is '', "
                     "'ZLIB' or 'GZIP'. Keys are the file's name, a colon and the record's number.")
             : maker({"FixedLengthRecordReader", "FixedLengthRecordReaderV2"},
                     {"header_bytes: int = 0", "record_bytes: int", "footer_bytes: int = 0",
                      "hop_bytes: int = 0"},
                     {}, true,
                     "Makes a reader of records of `record_bytes`, each `hop_bytes` behind the "
                     "one before (0: behind its end), between header and footer. Keys are the "
                     "file's name, a colon and the record's number."),
      maker({"WholeFileReader", "WholeFileReaderV2"}, {}, {}, false,
            "Makes a reader of whole files. Keys are their names."),
      maker({"IdentityReader", "IdentityReaderV2"}, {}, {}, true,
            "Makes a reader that gives out names of files as keys and values."),
      on_reader({"ReaderRead", "ReaderReadV2"}, kQueue, " -> key: string, value: string",
                ScalarShape,
                "Takes the next record of a reader. If it needs a file, the name comes from the "
                "queue; without holding a thread, it waits until there is one."),
      on_reader({"ReaderReadUpTo", "ReaderReadUpToV2"}, kQueue,
                ", num_records: int64 -> keys: string, values: string", ReadUpToShape,
                "Takes as many records as the current file has left, but at most `num_records` "
                "and at least one."),
      on_reader({"ReaderReset", "ReaderResetV2"}, "", " ->", NoOutputs,
                "Has a reader leave its file and count from 0."),
      on_reader({"ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2"}, "",
                " -> records_produced: int64", ScalarShape,
                "How many records a reader has given out."),
      on_reader({"ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2"}, "",
                " -> units_completed: int64", ScalarShape,
                "How many files a reader has read to their ends."),
      on_reader({"ReaderSerializeState", "ReaderSerializeStateV2"}, "", " -> state: string",
                ScalarShape, "The place of a reader, also in the midst of a file."),
      on_reader({"ReaderRestoreState", "ReaderRestoreStateV2"}, "", ", state: string ->",
                RestoreStateShape,
                "Has a reader go on from a place that `ReaderSerializeState` has given."),
  };
}

[[maybe_unused]] const bool registered = (Register(false), Register(true), true);

REGISTER_OP("ReadFile")
    .Signature("filename: string -> contents: string")
    .SetShapeFn(ScalarInputs)
    .Doc("Reads a whole file.");

REGISTER_OP("WriteFile")
    .Signature("filename: string, contents: string ->")
    .SetIsStateful()
    .SetShapeFn(ScalarInputs)
    .Doc("Writes a whole file, in place of one that there was, and makes the folders it is in.");

REGISTER_OP("MatchingFiles")
    .Signature("pattern: string -> filenames: string")
    .SetShapeFn(MatchingFilesShape)
    .Doc("The files that fit a pattern, or one of a vector of patterns, sorted.");

}  // namespace
}  // namespace troupe
