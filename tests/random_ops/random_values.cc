#include "tests/random_ops/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "devices/tensor_proto.h"

namespace troupe::random_ops {
namespace {

constexpr int64_t kMaxElements = 512;
constexpr DataType kUsualTypes[] = {DT_FLOAT, DT_FLOAT, DT_INT32, DT_INT64, DT_DOUBLE, DT_STRING};
constexpr int64_t kBoundaries[] = {
    127,       128,           255,       -128,          32767,      65535,     1 << 20,
    INT32_MAX, INT32_MIN,     1LL << 31, 1LL << 32,     UINT32_MAX, 1LL << 40, 1LL << 62,
    INT64_MAX, INT64_MAX - 1, INT64_MIN, INT64_MIN + 1, -1,         -2,        (1LL << 31) + 1,
    1LL << 33, 1000000007,    3037000500};
constexpr double kSpecialNumbers[] = {0,
                                      -0.0,
                                      1,
                                      -1,
                                      0.5,
                                      1e-30,
                                      1e30,
                                      1e300,
                                      -1e300,
                                      2147483648.0,
                                      9223372036854775808.0,
                                      std::numeric_limits<double>::infinity(),
                                      -std::numeric_limits<double>::infinity(),
                                      std::numeric_limits<double>::quiet_NaN(),
                                      std::numeric_limits<double>::denorm_min()};
const std::string_view kTexts[] = {"",
                                   "a",
                                   "hello world",
                                   "0",
                                   "-1",
                                   "3.5",
                                   "1e999",
                                   "nan",
                                   "0x10",
                                   "99999999999999999999",
                                   "a,b,\"c\"",
                                   "\"",
                                   ",,,,",
                                   "(a*)*b",
                                   "[",
                                   "(((((((((((a)))))))))))",
                                   "\\",
                                   "\\1\\9",
                                   "a{1000}",
                                   "x*",
                                   "(?P<n>",
                                   "%s",
                                   "%d",
                                   "%f",
                                   "%%",
                                   "{}",
                                   "%99999999d",
                                   "%n",
                                   "ij,jk->ik",
                                   "...ij->...ji",
                                   "ii->",
                                   "->",
                                   "ab...,bc->a",
                                   "i,j,k->",
                                   "NHWC",
                                   "NCHW",
                                   "SAME",
                                   "VALID",
                                   "\xff\xfe",
                                   "\xc3\x28",
                                   "\xf0\x9f\x98\x80",
                                   "UTF-8",
                                   "utf-8",
                                   "BYTE",
                                   "a/b",
                                   "..",
                                   "*",
                                   "?",
                                   "[a-",
                                   "float",
                                   "DT_FLOAT",
                                   "\x89PNG\r\n\x1a\n",
                                   "\xff\xd8\xff\xe0",
                                   "GIF89a\x01",
                                   "BM",
                                   "RIFF",
                                   "x\xda\x03",
                                   "\x1f\x8b\x08",
                                   "\n",
                                   "\t",
                                   " ",
                                   "2020-01-01",
                                   "{\"a\": [1, 2",
                                   "aGVsbG8",
                                   "aGVsbG8=",
                                   "SGVsbG8_-"};

/// The bytes of an element of an integer or bool type.
void SetInteger(ElementType type, int64_t value, char* element) {
  if (type == ElementType::kBool) value &= 1;
  std::memcpy(element, &value, ElementSize(type));  // little-endian
}

void SetNumber(ElementType type, double value, char* element) {
  // Out of range is undefined, infinity is not.
  const bool fits = !(std::abs(value) > std::numeric_limits<float>::max());
  const float single = fits || !std::isfinite(value) ? static_cast<float>(value) : 3e38f;
  const auto set = [&](const auto& typed) { std::memcpy(element, &typed, sizeof(typed)); };
  switch (type) {
    case ElementType::kDouble:
      return set(value);
    case ElementType::kHalf:
      return set(half(single));
    case ElementType::kBfloat16:
      return set(bfloat16(single));
    default:
      return set(single);
  }
}

/// What the elements of a tensor have in common.
enum class Kind { kIndices, kSmall, kMixed, kSpecial, kBits, kAscending, kEqual, kCount };

class ElementMaker {
 public:
  ElementMaker(RandomSource* random, ElementType type)
      : random_(random),
        type_(type),
        kind_(random->Chance(50)
                  ? Kind::kIndices
                  : static_cast<Kind>(random->Below(static_cast<int>(Kind::kCount)))),
        bound_(1 + random->Below(6)) {}

  void Make(int64_t i, Tensor* tensor) {
    if (type_ == ElementType::kString) {
      std::string* text = tensor->mutable_data<std::string>() + i;
      if (kind_ == Kind::kEqual && i > 0) {
        *text = text[-i];
      } else if (kind_ == Kind::kBits) {
        text->assign(static_cast<size_t>(random_->Below(40)), '\0');
        for (char& byte : *text) byte = static_cast<char>(random_->Bits());
      } else {
        *text = RandomText(random_);
      }
      return;
    }
    const size_t size = ElementSize(type_);
    char* element = static_cast<char*>(tensor->mutable_raw_data()) + static_cast<size_t>(i) * size;
    if (kind_ == Kind::kEqual && i > 0) {
      std::memcpy(element, tensor->raw_data(), size);
    } else if (IsComplex(type_)) {
      const bool single = type_ == ElementType::kComplex64;
      const ElementType part = single ? ElementType::kFloat : ElementType::kDouble;
      Number(part, i, element);
      Number(part, i, element + size / 2);
    } else if (IsFloating(type_)) {
      Number(type_, i, element);
    } else {
      SetInteger(type_, Integer(i), element);
    }
  }

 private:
  int64_t Integer(int64_t i) {
    switch (kind_) {
      case Kind::kSmall:
        return random_->Below(2 * bound_ + 1) - bound_;
      case Kind::kMixed:
        return random_->Chance(80) ? random_->Below(bound_) : RandomInteger(random_);
      case Kind::kSpecial:
        return random_->Pick(kBoundaries);
      case Kind::kBits:
        return static_cast<int64_t>(random_->Bits());
      case Kind::kAscending:
        return i / bound_;
      default:
        return random_->Below(bound_);
    }
  }

  void Number(ElementType type, int64_t i, char* element) {
    if (kind_ == Kind::kBits) {
      const uint64_t bits = random_->Bits();
      std::memcpy(element, &bits, ElementSize(type));
    } else if (kind_ == Kind::kSpecial || (kind_ == Kind::kMixed && random_->Chance(10))) {
      SetNumber(type, random_->Pick(kSpecialNumbers), element);
    } else if (kind_ == Kind::kAscending) {
      SetNumber(type, static_cast<double>(i) / static_cast<double>(bound_), element);
    } else {
      const double unit = static_cast<double>(random_->Below(1 << 20)) / (1 << 20);
      const bool positive = kind_ == Kind::kIndices;
      SetNumber(type, positive ? unit : (2 * unit - 1) * static_cast<double>(bound_), element);
    }
  }

  RandomSource* random_;
  const ElementType type_;
  const Kind kind_;
  const int64_t bound_;
};

Tensor WithShape(RandomSource* random, const Tensor& tensor) {
  const Shape& old = tensor.shape();
  const int64_t n = old.num_elements();
  switch (random->Below(7)) {
    case 0:
      return tensor.Reshaped(Shape({n}));
    case 1:
      if (old.rank() < 8) {
        Shape shape = old;
        shape.InsertDim(static_cast<int>(random->Below(old.rank() + 1)), 1);
        return tensor.Reshaped(shape);
      }
      break;
    case 2:
      if (old.rank() > 0 && old.dim(0) > 0) {  // One row less, or none left.
        return *tensor.Slice(0, random->Chance(50) ? old.dim(0) - 1 : 0).Clone();
      }
      break;
    case 3:
      if (n > 0 && n % 2 == 0) return tensor.Reshaped(Shape({2, n / 2}));
      break;
    case 4:
      if (old.rank() > 1) {
        std::vector<int64_t> dims(old.dims().begin(), old.dims().end());
        std::swap(dims[0], dims[dims.size() - 1]);
        return tensor.Reshaped(Shape(dims));
      }
      break;
    case 5:
      if (old.rank() > 0 && n < kMaxElements) {
        Shape shape = old;
        shape.set_dim(0, old.dim(0) + 1);
        if (shape.num_elements() > kMaxElements) break;
        return RandomTensor(random, tensor.type(), shape);
      }
      break;
    default:
      break;
  }
  return RandomTensor(random, tensor.type(), RandomShape(random));
}

}  // namespace

DataType RandomType(RandomSource* random) {
  if (random->Chance(70)) return random->Pick(kUsualTypes);
  return static_cast<DataType>(1 + random->Below(random->Chance(90) ? 23 : 33));
}

Shape RandomShape(RandomSource* random) {
  constexpr int kRanks[] = {0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 7};
  const int rank = random->Pick(kRanks);
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (int i = 0; i < rank; ++i) {
    int64_t size = random->Chance(4) ? 0 : 1 + random->Below(random->Chance(90) ? 4 : 40);
    if (elements * size > kMaxElements) size = 1;
    elements *= size;
    dims.push_back(size);
  }
  return Shape(dims);
}

TensorShapeProto RandomShapeProto(RandomSource* random) {
  TensorShapeProto proto;
  if (random->Chance(15)) {
    proto.set_unknown_rank(true);
    return proto;
  }
  RandomShape(random).ToProto(&proto);
  for (auto& dim : *proto.mutable_dim()) {
    if (random->Chance(15)) dim.set_size(-1);
    if (random->Chance(3)) dim.set_size(RandomInteger(random));
  }
  if (random->Chance(2)) {
    for (int i = 0; i < 300; ++i) proto.add_dim()->set_size(1);
  }
  return proto;
}

std::string RandomText(RandomSource* random) {
  std::string text(random->Pick(kTexts));
  if (random->Chance(5)) {
    const std::string once = text;
    for (int i = 0; i < 50; ++i) text += once;
  }
  return random->Chance(25) ? MutatedText(random, text) : text;
}

std::string MutatedText(RandomSource* random, std::string text) {
  for (int64_t changes = 1 + random->Below(4); changes > 0; --changes) {
    const size_t at = static_cast<size_t>(random->Below(static_cast<int64_t>(text.size()) + 1));
    const size_t length = static_cast<size_t>(random->Below(8));
    switch (random->Below(6)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random->Bits()));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random->Bits());
        break;
      case 3:
        if (at < text.size()) text.erase(at, length);
        break;
      case 4:
        if (at < text.size()) text[at] = random->Chance(50) ? '\xff' : '\0';
        break;
      default:
        text.insert(at, text.substr(at, length));
        break;
    }
  }
  // No file outside the current folder.
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

int64_t RandomInteger(RandomSource* random) {
  const int64_t draw = random->Below(100);
  if (draw < 60) return random->Below(6);
  if (draw < 75) return random->Below(64) - 32;
  return random->Pick(kBoundaries);
}

bool HasValues(ElementType type) {
  return type == ElementType::kString || (IsPlain(type) && ElementSize(type) > 0);
}

Tensor RandomTensor(RandomSource* random, ElementType type, const Shape& shape) {
  Tensor tensor = Tensor::Uninitialized(type, shape);
  ElementMaker maker(random, type);
  for (int64_t i = 0; i < shape.num_elements(); ++i) maker.Make(i, &tensor);
  return tensor;
}

Tensor Mutated(RandomSource* random, const Tensor& tensor) {
  if (!HasValues(tensor.type())) return tensor;
  if (random->Chance(35)) return WithShape(random, tensor);
  if (random->Chance(10) && tensor.num_elements() <= kMaxElements) {
    return RandomTensor(random, tensor.type(), tensor.shape());
  }
  absl::StatusOr<Tensor> copy = tensor.Clone();
  if (!copy.ok() || copy->num_elements() == 0) return tensor;
  for (int64_t changes = 1 + random->Below(3); changes > 0; --changes) {
    const int64_t i = random->Below(copy->num_elements());
    if (copy->type() == ElementType::kString && random->Chance(80)) {
      std::string* text = copy->mutable_data<std::string>() + i;
      *text = MutatedText(random, *text);
    } else {
      ElementMaker(random, copy->type()).Make(i, &*copy);
    }
  }
  return *std::move(copy);
}

AttrValue RandomAttr(RandomSource* random, const OpDef::AttrDef& definition) {
  AttrValue value;
  if (definition.has_default_value() && random->Chance(40)) return definition.default_value();
  const std::string& kind = definition.type();
  const AttrValue::ListValue& allowed = definition.allowed_values().list();
  const auto type = [&] {
    if (allowed.type_size() == 0 || random->Chance(3)) return RandomType(random);
    const DataType usual = random->Pick(kUsualTypes);
    const bool fits = std::count(allowed.type().begin(), allowed.type().end(), usual) > 0;
    return fits ? usual : static_cast<DataType>(random->Pick(allowed.type()));
  };
  const auto text = [&] {
    return allowed.s_size() == 0 || random->Chance(3) ? RandomText(random)
                                                      : random->Pick(allowed.s());
  };
  const auto integer = [&] {
    if (random->Chance(80))
      return (definition.has_minimum() ? definition.minimum() : 0) + random->Below(4);
    return RandomInteger(random);
  };
  const auto number = [&] {
    const double number = random->Pick(kSpecialNumbers);
    return random->Chance(50)        ? static_cast<float>(random->Below(100)) / 50
           : std::abs(number) > 1e38 ? std::numeric_limits<float>::infinity()
                                     : static_cast<float>(number);
  };
  const int64_t length = random->Chance(90) ? random->Below(5) : random->Below(12);
  if (kind == "type") {
    value.set_type(type());
  } else if (kind == "string") {
    value.set_s(text());
  } else if (kind == "int") {
    value.set_i(integer());
  } else if (kind == "float") {
    value.set_f(number());
  } else if (kind == "bool") {
    value.set_b(random->Chance(50));
  } else if (kind == "shape") {
    *value.mutable_shape() = RandomShapeProto(random);
  } else if (kind == "tensor") {
    const ElementType element = static_cast<ElementType>(RandomType(random));
    if (HasValues(element)) {
      TensorToProto(RandomTensor(random, element, RandomShape(random)), value.mutable_tensor());
    }
  } else if (kind == "func") {
    value.mutable_func()->set_name(random->Chance(50) ? "Twice" : RandomText(random));
  } else {
    AttrValue::ListValue* list = value.mutable_list();
    for (int64_t i = 0; i < length; ++i) {
      if (kind == "list(type)") list->add_type(type());
      if (kind == "list(string)") list->add_s(text());
      if (kind == "list(int)") list->add_i(random->Chance(50) ? 1 : integer());
      if (kind == "list(float)") list->add_f(number());
      if (kind == "list(bool)") list->add_b(random->Chance(50));
      if (kind == "list(shape)") *list->add_shape() = RandomShapeProto(random);
      if (kind == "list(func)") list->add_func()->set_name("Twice");
    }
  }
  return value;
}

void MutateAttr(RandomSource* random, const OpDef::AttrDef* definition, AttrValue* value) {
  if (definition != nullptr && random->Chance(30)) {
    *value = RandomAttr(random, *definition);
    return;
  }
  const auto near = [&](int64_t i) {
    // Wraps, rather than overflows.
    const uint64_t step = static_cast<uint64_t>(random->Below(5)) - 2;
    return random->Chance(70) ? static_cast<int64_t>(static_cast<uint64_t>(i) + step)
                              : RandomInteger(random);
  };
  switch (value->value_case()) {
    case AttrValue::kI:
      value->set_i(near(value->i()));
      break;
    case AttrValue::kB:
      value->set_b(!value->b());
      break;
    case AttrValue::kF:
      value->set_f(random->Chance(50) ? -value->f() : static_cast<float>(random->Below(3)));
      break;
    case AttrValue::kS:
      value->set_s(MutatedText(random, value->s()));
      break;
    case AttrValue::kType:
      value->set_type(RandomType(random));
      break;
    case AttrValue::kShape:
      *value->mutable_shape() = RandomShapeProto(random);
      break;
    case AttrValue::kTensor: {
      const absl::StatusOr<Tensor> tensor = TensorFromProto(value->tensor());
      if (tensor.ok()) {
        value->clear_tensor();
        TensorToProto(Mutated(random, *tensor), value->mutable_tensor());
      }
      break;
    }
    case AttrValue::kFunc:
      value->mutable_func()->set_name(MutatedText(random, value->func().name()));
      break;
    case AttrValue::kList: {
      AttrValue::ListValue* list = value->mutable_list();
      const auto change = [&](auto* field, const auto& one) {
        if (field->empty()) return;
        if (random->Chance(20)) return field->RemoveLast();
        if (random->Chance(20)) {
          const auto first = field->Get(0);
          *field->Add() = first;
          return;
        }
        auto* element = field->Mutable(static_cast<int>(random->Below(field->size())));
        *element = one(*element);
      };
      change(list->mutable_i(), near);
      change(list->mutable_s(), [&](const std::string& s) { return MutatedText(random, s); });
      change(list->mutable_type(), [&](int) { return static_cast<int>(RandomType(random)); });
      change(list->mutable_f(), [&](float) { return static_cast<float>(random->Below(3)) - 1; });
      change(list->mutable_shape(),
             [&](const TensorShapeProto&) { return RandomShapeProto(random); });
      break;
    }
    default:
      break;
  }
}

}  // namespace troupe::random_ops
