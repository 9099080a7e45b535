#include "api/training/save_slice_info.h"

#include "absl/strings/str_join.h"
#include "devices/status_macros.h"
#include "devices/storage/tensor_slice.h"
#include "graph/collection_records.h"
#include "graph/protos/meta_graph.pb.h"

namespace troupe {

absl::Status SaveSliceInfo::Check() const {
  const auto rank = static_cast<size_t>(full_shape.rank());
  bool inside = offset.size() == rank && extent.size() == rank && !full_name.empty();
  for (size_t i = 0; inside && i < rank; ++i) {
    const int64_t size = full_shape.dim(static_cast<int>(i));
    inside = offset[i] >= 0 && extent[i] >= 0 && extent[i] <= size && offset[i] <= size - extent[i];
  }
  if (inside) return absl::OkStatus();
  return InvalidArgument("a variable cannot be the part of '", full_name, "' that begins at [",
                         absl::StrJoin(offset, ","), "] and has the shape [",
                         absl::StrJoin(extent, ","), "]: the whole has the shape ",
                         full_shape.ToString());
}

std::string SaveSliceInfo::ShapeAndSlice() const {
  std::string slice;
  for (size_t i = 0; i < offset.size() && i < extent.size(); ++i) {
    slice += StrCat(i == 0 ? "" : ":", offset[i], ",", extent[i]);
  }
  return StrCat(absl::StrJoin(full_shape.dims(), " "), " ", slice);
}

absl::StatusOr<SaveSliceInfo> SaveSliceInfo::FromProto(const SaveSliceInfoDef& def) {
  SaveSliceInfo info;
  info.full_name = def.full_name();
  TROUPE_ASSIGN_OR_RETURN(info.full_shape, Shape::Create(std::vector<int64_t>(
                                               def.full_shape().begin(), def.full_shape().end())));
  info.offset.assign(def.var_offset().begin(), def.var_offset().end());
  info.extent.assign(def.var_shape().begin(), def.var_shape().end());
  TROUPE_RETURN_IF_ERROR(info.Check());
  return info;
}

void SaveSliceInfo::ToProto(SaveSliceInfoDef* def) const {
  def->set_full_name(full_name);
  const auto dims = full_shape.dims();
  def->mutable_full_shape()->Assign(dims.begin(), dims.end());
  def->mutable_var_offset()->Assign(offset.begin(), offset.end());
  def->mutable_var_shape()->Assign(extent.begin(), extent.end());
}

absl::StatusOr<std::optional<SaveSliceInfo>> SaveSliceInfoOf(const Node& variable) {
  if (!variable.attrs().Has(kSliceOfAttr)) {
    // Of a variable that came with a MetaGraph.
    const absl::StatusOr<VariableDef> def = DescribeVariable(*variable.graph(), variable.name());
    if (!def.ok() || !def->has_save_slice_info_def()) return std::optional<SaveSliceInfo>();
    return SaveSliceInfo::FromProto(def->save_slice_info_def());
  }
  SaveSliceInfo info;
  std::string text;
  TROUPE_RETURN_IF_ERROR(variable.attrs().Get(kSliceOfAttr, &info.full_name));
  TROUPE_RETURN_IF_ERROR(variable.attrs().Get(kShapeAndSliceAttr, &text));
  TROUPE_ASSIGN_OR_RETURN(const ShapeAndSlice parsed, ParseShapeAndSlice(text));
  info.full_shape = parsed.full;
  TROUPE_ASSIGN_OR_RETURN(const TensorSlice slice, parsed.slice.In(parsed.full));
  for (const TensorSlice::Extent& extent : slice.extents()) {
    info.offset.push_back(extent.start);
    info.extent.push_back(extent.length);
  }
  return std::optional<SaveSliceInfo>(std::move(info));
}

}  // namespace troupe
