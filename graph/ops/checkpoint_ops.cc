// Checkpoints: saving and restoring tensors under names.
#include <string>

#include "devices/status_macros.h"
#include "devices/storage/tensor_slice.h"
#include "graph/op_registry.h"
#include "graph/shape_inference.h"

namespace troupe {
namespace {

absl::Status MustBe(InferenceContext* c, int input, int rank) {
  return InferenceContext::WithRank(c->input(input), rank).status();
}

/// A scalar, and vectors from input 1 on, which have as many elements as one another.
absl::Status ScalarAndVectors(InferenceContext* c, int vectors, int64_t elements) {
  TROUPE_RETURN_IF_ERROR(MustBe(c, 0, 0));
  for (int i = 1; i <= vectors; ++i) {
    TROUPE_ASSIGN_OR_RETURN(const PartialShape vector, InferenceContext::WithRank(c->input(i), 1));
    const int64_t size = vector.unknown_rank() ? -1 : vector.dim(0);
    if (size >= 0 && size != elements) {
      return InvalidArgument("input ", i, " has ", size, " elements, where there are ", elements,
                             " tensors");
    }
  }
  return absl::OkStatus();
}

absl::Status SaveShape(InferenceContext* c) { return ScalarAndVectors(c, 1, c->num_inputs() - 2); }
absl::Status SaveSlicesShape(InferenceContext* c) {
  return ScalarAndVectors(c, 2, c->num_inputs() - 3);
}

/// Outputs have the shapes of the slices that are asked for; those of whole tensors are not known.
absl::Status ShapesOfSlices(InferenceContext* c, int input) {
  const Tensor slices = c->input_tensor(input);
  for (int i = 0; i < c->num_outputs(); ++i) {
    PartialShape shape;
    if (slices.valid() && slices.type() == ElementType::kString && i < slices.num_elements()) {
      const std::string& text = slices.unchecked_data<std::string>()[i];
      if (!text.empty()) {
        TROUPE_ASSIGN_OR_RETURN(const ShapeAndSlice slice, ParseShapeAndSlice(text));
        TROUPE_ASSIGN_OR_RETURN(const TensorSlice inside, slice.slice.In(slice.full));
        shape = inside.shape();
      }
    }
    c->set_output(i, shape);
  }
  return absl::OkStatus();
}

absl::Status RestoreV2Shape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(ScalarAndVectors(c, 2, c->num_outputs()));
  return ShapesOfSlices(c, 2);
}
absl::Status RestoreShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(MustBe(c, 1, 0));
  c->set_output(0, PartialShape());
  return absl::OkStatus();
}
absl::Status RestoreSliceShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(MustBe(c, 1, 0));
  TROUPE_RETURN_IF_ERROR(MustBe(c, 2, 0));
  return ShapesOfSlices(c, 2);
}
absl::Status MergeShape(InferenceContext* c) {
  TROUPE_RETURN_IF_ERROR(MustBe(c, 0, 1));
  return MustBe(c, 1, 0);
}
absl::Status ScalarsToScalar(InferenceContext* c) {
  for (int i = 0; i < c->num_inputs(); ++i) TROUPE_RETURN_IF_ERROR(MustBe(c, i, 0));
  c->set_output(0, InferenceContext::Scalar());
  return absl::OkStatus();
}

REGISTER_OP("SaveV2")
    .Signature("prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes ->")
    .Attr("dtypes: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn(SaveSlicesShape)
    .Doc(
        "Saves tensors as the checkpoint `prefix`, in TensorFlow's V2 format. `shape_and_slices` "
        "says which part of a larger tensor each one is: '4 5 0,2:-', or '' for a whole tensor.");

REGISTER_OP("RestoreV2")
    .Signature("prefix: string, tensor_names: string, shape_and_slices: string -> tensors: dtypes")
    .Attr("dtypes: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn(RestoreV2Shape)
    .Doc(
        "Reads tensors, or the parts of them that `shape_and_slices` names, from the checkpoint "
        "`prefix`, of either format.");

REGISTER_OP("MergeV2Checkpoints")
    .Signature("checkpoint_prefixes: string, destination_prefix: string ->")
    .Attr("delete_old_dirs: bool = true")
    .Attr("allow_missing_files: bool = false")
    .SetIsStateful()
    .SetShapeFn(MergeShape)
    .Doc(
        "Makes one checkpoint of those that several tasks have saved; their data files are "
        "renamed, not copied.");

REGISTER_OP("Save")
    .Signature("filename: string, tensor_names: string, data: T ->")
    .Attr("T: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn(SaveShape)
    .Doc("Saves tensors in the file `filename`, in TensorFlow's V1 format.");

REGISTER_OP("SaveSlices")
    .Signature("filename: string, tensor_names: string, shapes_and_slices: string, data: T ->")
    .Attr("T: list(type) >= 1")
    .SetIsStateful()
    .SetShapeFn(SaveSlicesShape)
    .Doc("As `Save`, with the parts of larger tensors that `shapes_and_slices` says they are.");

REGISTER_OP("Restore")
    .Signature("file_pattern: string, tensor_name: string -> tensor: dt")
    .Attr("dt: type")
    .Attr("preferred_shard: int = -1")
    .SetIsStateful()
    .SetShapeFn(RestoreShape)
    .Doc("Reads a tensor from the checkpoint of the files that fit `file_pattern`.");

REGISTER_OP("RestoreSlice")
    .Signature("file_pattern: string, tensor_name: string, shape_and_slice: string -> tensor: dt")
    .Attr("dt: type")
    .Attr("preferred_shard: int = -1")
    .SetIsStateful()
    .SetShapeFn(RestoreSliceShape)
    .Doc("As `Restore`, the part of the tensor that `shape_and_slice` names.");

REGISTER_OP("ShardedFilename")
    .Signature("basename: string, shard: int32, num_shards: int32 -> filename: string")
    .SetShapeFn(ScalarsToScalar)
    .Doc("The name of a file among several: 'base-00001-of-00004'.");

REGISTER_OP("ShardedFilespec")
    .Signature("basename: string, num_shards: int32 -> filename: string")
    .SetShapeFn(ScalarsToScalar)
    .Doc("The pattern that fits all of them: 'base-\?\?\?\?\?-of-00004'.");

REGISTER_OP("DisableCopyOnRead")
    .Signature("resource: resource ->")
    .SetIsStateful()
    .SetShapeFn(NoOutputs)
    .Doc("Does nothing: a read of a variable never copies it here.");

}  // namespace
}  // namespace troupe
