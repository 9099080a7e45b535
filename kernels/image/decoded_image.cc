#include "kernels/image/decoded_image.h"

#include "devices/status_macros.h"

namespace troupe {

absl::Status CheckClaim(std::string_view format, const ImageForm& form, size_t file_bytes,
                        double pixels_per_byte) {
  const auto text = [&] {
    return StrCat(form.width, " x ", form.height, " pixels",
                  form.frames == 1 ? "" : StrCat(" in ", form.frames, " frames"));
  };
  if (form.frames <= 0 || form.height <= 0 || form.width <= 0) {
    return InvalidArgument("a ", format, " without pixels: ", text());
  }
  const double pixels = static_cast<double>(form.frames) * static_cast<double>(form.height) *
                        static_cast<double>(form.width);
  if (pixels > static_cast<double>(kMaxImagePixels)) {
    return InvalidArgument("a ", format, " of ", text(), ": the most are ", kMaxImagePixels);
  }
  if (pixels > pixels_per_byte * static_cast<double>(file_bytes)) {
    return InvalidArgument("a ", format, " of ", file_bytes, " bytes cannot hold the ", text(),
                           " that it claims");
  }
  return absl::OkStatus();
}

}  // namespace troupe
