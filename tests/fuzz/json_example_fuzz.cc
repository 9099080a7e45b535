// Examples in JSON: an error, or bytes that are an Example.
#include <cstdint>
#include <string_view>

#include "graph/protos/example.pb.h"
#include "kernels/io/json_example.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes =
      troupe::ExampleFromJson(std::string_view(reinterpret_cast<const char*>(data), size));
  troupe::Example example;
  if (bytes.ok() && !example.ParseFromString(*bytes)) __builtin_trap();
  return 0;
}
