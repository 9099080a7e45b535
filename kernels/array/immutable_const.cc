// ImmutableConst: a constant whose bytes are those of a file.
#include <cstring>
#include <string>
#include <utility>

#include "graph/message_file.h"
#include "kernels/common/registration.h"

namespace troupe {
namespace {

class ImmutableConstKernel final : public Kernel {
 public:
  ImmutableConstKernel(KernelConstruction& c, absl::Status* status) { *status = Read(c); }
  absl::Status Compute(KernelContext& ctx) override {
    ctx.output(0) = value_;
    return absl::OkStatus();
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    PartialShape wanted;
    TROUPE_RETURN_IF_ERROR(c.GetAttr("shape", &wanted));
    TROUPE_ASSIGN_OR_RETURN(const Shape shape, wanted.ToShape());
    const std::string file = c.Attr<std::string>("memory_region_name");
    TROUPE_ASSIGN_OR_RETURN(const std::string bytes, ReadFileBytes(file));
    const ElementType type = c.output_type(0);
    const int64_t size = static_cast<int64_t>(ElementSize(type));
    if (static_cast<int64_t>(bytes.size()) / size < shape.num_elements()) {
      return InvalidArgument("the file '", file, "' has ", bytes.size(), " bytes, too few for ",
                             ElementTypeName(type), shape.ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(value_, Tensor::Allocate(type, shape));
    std::memcpy(value_.mutable_raw_data(), bytes.data(), value_.bytes());
    // Other bytes than 0 and 1 are no bools.
    if (type == ElementType::kBool) {
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        value_.mutable_data<bool>()[i] = bytes[i] != 0;
      }
    }
    return absl::OkStatus();
  }

  Tensor value_;
};

REGISTER_KERNEL(Cheap("ImmutableConst").Types("dtype", PlainTypes()).HostMemory("*"),
                MakeKernel<ImmutableConstKernel>);

}  // namespace
}  // namespace troupe
