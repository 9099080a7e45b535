#include "tests/net/tensors.h"

#include <cstring>

#include "devices/resource_handle.h"

namespace troupe {

std::vector<Tensor> TensorsOfAllTypes() {
  using E = ElementType;
  const Shape shapes[] = {Shape(),        Shape({0}),       Shape({7}),
                          Shape({3, 5}),  Shape({2, 0, 4}), Shape({1, 2, 1, 3, 1, 2}),
                          Shape({40, 50})};
  std::vector<Tensor> tensors;
  uint8_t seed = 1;
  for (const E type :
       {E::kFloat,      E::kDouble,    E::kInt32,    E::kUint8,  E::kInt16,      E::kInt8,
        E::kString,     E::kComplex64, E::kInt64,    E::kBool,   E::kBfloat16,   E::kUint16,
        E::kComplex128, E::kHalf,      E::kResource, E::kUint32, E::kUint64,     E::kQint8,
        E::kQuint8,     E::kQint16,    E::kQuint16,  E::kQint32, E::kFloat8E5m2, E::kFloat8E4m3fn,
        E::kInt4,       E::kUint4}) {
    for (const Shape& shape : shapes) {
      Tensor tensor = Tensor::Uninitialized(type, shape);
      const int64_t n = shape.num_elements();
      if (type == E::kString) {
        for (int64_t i = 0; i < n; ++i) {
          tensor.mutable_data<std::string>()[i] =
              std::string(static_cast<size_t>(i * 3 % 200), static_cast<char>(i));
        }
      } else if (type == E::kResource) {
        for (int64_t i = 0; i < n; ++i) {
          ResourceHandle& handle = tensor.mutable_data<ResourceHandle>()[i];
          handle.device = "/job:ps/replica:0/task:0/device:CPU:0";
          handle.name = "v" + std::to_string(i);
          handle.type_name = "Variable";
          handle.hash_code = static_cast<uint64_t>(i) << 40;
          handle.types_and_shapes = {{E::kFloat, PartialShape({-1, i})}, {E::kInt8, {}}};
        }
      } else {
        auto* bytes = static_cast<uint8_t*>(tensor.mutable_raw_data());
        for (size_t i = 0; i < tensor.bytes(); ++i) {
          seed = static_cast<uint8_t>(seed * 5 + 3);
          bytes[i] = type == E::kBool ? seed >> 7 : seed;
        }
      }
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

bool SameTensor(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type() || !(a.shape() == b.shape())) return false;
  if (a.type() == ElementType::kString) {
    const auto x = a.unchecked_values<std::string>(), y = b.unchecked_values<std::string>();
    return std::equal(x.begin(), x.end(), y.begin());
  }
  if (a.type() == ElementType::kResource) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      const ResourceHandle &x = a.unchecked_data<ResourceHandle>()[i],
                           &y = b.unchecked_data<ResourceHandle>()[i];
      if (x.device != y.device || x.container != y.container || x.name != y.name ||
          x.type_name != y.type_name || x.hash_code != y.hash_code ||
          x.types_and_shapes != y.types_and_shapes) {
        return false;
      }
    }
    return true;
  }
  return a.bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

}  // namespace troupe
