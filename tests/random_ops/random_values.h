/// Random types, shapes, tensors and attributes: about half as an op may want them, the rest
/// hostile.
#ifndef TROUPE_TESTS_RANDOM_OPS_RANDOM_VALUES_H_
#define TROUPE_TESTS_RANDOM_OPS_RANDOM_VALUES_H_

#include <cstdint>
#include <string>

#include "devices/tensor.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/tensor.pb.h"
#include "tests/random_ops/random_source.h"

namespace troupe::random_ops {

/// Mostly one that tensors can hold.
DataType RandomType(RandomSource* random);
/// A few elements, or none; rank 0 to 7.
Shape RandomShape(RandomSource* random);
/// Also of unknown sizes or rank, huge, overflowing, negative.
TensorShapeProto RandomShapeProto(RandomSource* random);
/// A number, a regular expression, a format, an equation, bytes of a file, or junk. It names no
/// file outside the current folder.
std::string RandomText(RandomSource* random);
/// With a few bytes more, less, or others.
std::string MutatedText(RandomSource* random, std::string text);
/// Small, a boundary of some type, or huge.
int64_t RandomInteger(RandomSource* random);

/// Whether `RandomTensor` and `Mutate` know the type: all but resources, variants, and those that
/// hold no tensors.
bool HasValues(ElementType type);
/// Of values of one kind: indices, small numbers, special ones, any bits.
Tensor RandomTensor(RandomSource* random, ElementType type, const Shape& shape);
/// The tensor with some other elements, or another shape.
Tensor Mutated(RandomSource* random, const Tensor& tensor);

AttrValue RandomAttr(RandomSource* random, const OpDef::AttrDef& definition);
/// Changes a value a little, or altogether. `definition`: nullptr if the op has no such attribute.
void MutateAttr(RandomSource* random, const OpDef::AttrDef* definition, AttrValue* value);

}  // namespace troupe::random_ops

#endif  // TROUPE_TESTS_RANDOM_OPS_RANDOM_VALUES_H_
