// Summaries: values for TensorBoard as serialized messages, and writers of event files.
#include "devices/status_macros.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

// --- messages ------------------------------------------------------------------------------------

REGISTER_OP("ScalarSummary")
    .Signature("tags: string, values: T -> summary: string")
    .Attr("T: realnumbertype")
    .SetShapeFn(ScalarShape)
    .Doc(
        "A message `Summary` with the numbers `values`, as floats, under `tags`, which have the "
        "same shape.");

REGISTER_OP("HistogramSummary")
    .Signature("tag: string, values: T -> summary: string")
    .Attr("T: realnumbertype = DT_FLOAT")
    .SetShapeFn(ScalarShape)
    .Doc(
        "A message `Summary` with a histogram of all elements of `values` under the scalar `tag`: "
        "how many lie in each of a series of ranges that grow by a tenth, and moments. "
        "InvalidArgument if one is not finite.");

REGISTER_OP("ImageSummary")
    .Signature("tag: string, tensor: T -> summary: string")
    .Attr("max_images: int >= 1 = 3")
    .Attr("T: {uint8, float, half, double} = DT_FLOAT")
    .Attr(
        "bad_color: tensor = { dtype: DT_UINT8 tensor_shape { dim { size: 4 } } int_val: 255 "
        "int_val: 0 int_val: 0 int_val: 255 }")
    .SetShapeFn(ScalarShape)
    .Doc(
        "A message `Summary` with the first `max_images` images of `tensor` as PNG, under the "
        "scalar `tag`. `tensor` has the shape [images, height, width, channels], with 1, 3 or 4 "
        "channels. Floating-point images are scaled to a byte's range, each by itself; pixels "
        "that are not finite get `bad_color`.");

REGISTER_OP("AudioSummary")
    .Signature("tag: string, tensor: float -> summary: string")
    .Attr("sample_rate: float")
    .Attr("max_outputs: int >= 1 = 3")
    .Deprecated(15, "Use AudioSummaryV2.")
    .SetShapeFn(ScalarShape)
    .Doc("As `AudioSummaryV2`, with the rate as an attribute.");

REGISTER_OP("AudioSummaryV2")
    .Signature("tag: string, tensor: float, sample_rate: float -> summary: string")
    .Attr("max_outputs: int >= 1 = 3")
    .SetShapeFn(ScalarShape)
    .Doc(
        "A message `Summary` with the first `max_outputs` sounds of `tensor` as WAV of 16 bits, "
        "under the scalar `tag`. `tensor` has the shape [sounds, frames] or [sounds, frames, "
        "channels]; its elements lie in [-1, 1]. `sample_rate` is in hertz.");

REGISTER_OP("TensorSummary")
    .Signature("tensor: T -> summary: string")
    .Attr("T: type")
    .Attr("description: string = ''")
    .Attr("labels: list(string) = []")
    .Attr("display_name: string = ''")
    .SetShapeFn(ScalarShape)
    .Doc("A message `Summary` with `tensor` under the name of the node.");

REGISTER_OP("TensorSummaryV2")
    .Signature("tag: string, tensor: T, serialized_summary_metadata: string -> summary: string")
    .Attr("T: type")
    .SetShapeFn(ScalarShape)
    .Doc(
        "A message `Summary` with `tensor` under the scalar `tag`, and a message "
        "`SummaryMetadata`, which says how it is shown.");

REGISTER_OP("MergeSummary")
    .Signature("inputs: N * string -> summary: string")
    .Attr("N: int >= 1")
    .SetShapeFn(ScalarShape)
    .Doc(
        "A message `Summary` with all values of those in `inputs`. InvalidArgument if two have "
        "the same tag.");

// --- writers -------------------------------------------------------------------------------------

REGISTER_OP("SummaryWriter")
    .Signature("-> writer: resource")
    .Attr("shared_name: string = ''")
    .Attr("container: string = ''")
    .SetIsStateful()
    .SetShapeFn(ScalarShape)
    .Doc("A handle to a writer of an event file, which `CreateSummaryFileWriter` opens.");

REGISTER_OP("CreateSummaryFileWriter")
    .Signature(
        "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, "
        "filename_suffix: string ->")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc(
        "Opens an event file in the folder `logdir`, unless `writer` has one. It is flushed when "
        "more than `max_queue` events wait, or have waited for `flush_millis`.");

/// An op on a writer.
OpDefBuilder OnWriter(const char* name, const char* rest, const char* doc) {
  OpDefBuilder op(name);
  op.Signature(StrCat("writer: resource", std::string_view(rest), " ->")).SetIsStateful();
  op.SetShapeFn(NoOutputs).Doc(doc);
  return op;
}

[[maybe_unused]] const internal::OpRegistrar kWriters[] = {
    OnWriter("FlushSummaryWriter", "", "Readers see all that was written so far."),
    OnWriter("CloseSummaryWriter", "", "Flushes and closes the writer's file."),
    OnWriter("WriteSummary", ", step: int64, tensor: T, tag: string, summary_metadata: string",
             "Writes `tensor` under `tag`, with a message `SummaryMetadata`, or '' for none.")
        .Attr("T: type"),
    OnWriter("WriteRawProtoSummary", ", step: int64, tensor: string",
             "Writes the values of all messages `Summary` in `tensor` as one event."),
    OnWriter("ImportEvent", ", event: string", "Writes a message `Event` as it is."),
    OnWriter("WriteScalarSummary", ", step: int64, tag: string, value: T",
             "Writes a number as `ScalarSummary` has it.")
        .Attr("T: realnumbertype"),
    OnWriter("WriteHistogramSummary", ", step: int64, tag: string, values: T",
             "Writes a histogram as `HistogramSummary` has it.")
        .Attr("T: {realnumbertype, bool} = DT_FLOAT"),
    OnWriter("WriteImageSummary", ", step: int64, tag: string, tensor: T, bad_color: uint8",
             "Writes images as `ImageSummary` has them.")
        .Attr("max_images: int >= 1 = 3")
        .Attr("T: {uint8, double, float, half} = DT_FLOAT"),
    OnWriter("WriteAudioSummary", ", step: int64, tag: string, tensor: float, sample_rate: float",
             "Writes sounds as `AudioSummaryV2` has them.")
        .Attr("max_outputs: int >= 1 = 3"),
    OnWriter("WriteGraphSummary", ", step: int64, tensor: string",
             "Writes a message `GraphDef`, serialized, as a graph for TensorBoard."),
};

}  // namespace
}  // namespace troupe
