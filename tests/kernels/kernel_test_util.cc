#include "tests/kernels/kernel_test_util.h"

#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>

#include "devices/tensor_proto.h"
#include "graph/op_registry.h"
#include "gtest/gtest.h"
#include "kernels/cancellation.h"
#include "kernels/kernel_registry.h"
#include "kernels/type_switch.h"
#include "kernels/variable.h"

namespace troupe::testing {
namespace {

/// Calls f.operator()<T>() for a numeric or bool type.
template <typename F>
void ForNumeric(ElementType type, F&& f) {
  absl::Status status =
      SwitchType<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                 uint16_t, uint32_t, uint64_t, bool, complex64, complex128>(
          type, [&]<typename T>() {
            f.template operator()<T>();
            return absl::OkStatus();
          });
  if (!status.ok()) ADD_FAILURE() << status;
}

template <typename T>
T FromDouble(double v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v != 0;
  } else if constexpr (std::is_same_v<T, complex64>) {
    return T(static_cast<float>(v));
  } else {
    return static_cast<T>(v);
  }
}

bool Close(double got, double want, double rtol, double atol) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= atol + rtol * std::abs(want);
}

}  // namespace

OpTest::OpTest(std::string_view op, int threads) {
  def_.set_name("test");
  def_.set_op(std::string(op));
  if (threads > 1) pool_ = std::make_unique<ComputePool>(threads);
  step_.allocator = HostAllocator();
  step_.pool = pool_.get();
}

OpTest::~OpTest() = default;

OpTest& OpTest::Input(Tensor tensor, bool forwardable) {
  if (forwardable) forwardable_ |= uint64_t{1} << inputs_.size();
  Slot slot;
  slot.tensor = std::move(tensor);
  inputs_.push_back(std::move(slot));
  return *this;
}

OpTest& OpTest::ConstantInput(Tensor tensor) {
  Input(std::move(tensor));
  inputs_.back().uses = Slot::kConstant;
  return *this;
}

OpTest& OpTest::InputRef(Variable* variable) {
  Slot slot;
  slot.ref = variable;
  inputs_.push_back(std::move(slot));
  return *this;
}

OpTest& OpTest::Cancellation(CancellationToken* token) {
  step_.cancellation = token;
  return *this;
}

OpTest& OpTest::ClearInputs() {
  inputs_.clear();
  forwardable_ = 0;
  return *this;
}

OpTest& OpTest::Resources(ResourceProvider* resources) {
  step_.resources = resources;
  return *this;
}

OpTest& OpTest::Attr(std::string_view name, bool value) {
  (*def_.mutable_attr())[std::string(name)].set_b(value);
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, int64_t value) {
  (*def_.mutable_attr())[std::string(name)].set_i(value);
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, float value) {
  (*def_.mutable_attr())[std::string(name)].set_f(value);
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, const std::string& value) {
  (*def_.mutable_attr())[std::string(name)].set_s(value);
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, ElementType value) {
  (*def_.mutable_attr())[std::string(name)].set_type(static_cast<DataType>(value));
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, const Shape& value) {
  value.ToProto((*def_.mutable_attr())[std::string(name)].mutable_shape());
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, const Tensor& value) {
  TensorToProto(value, (*def_.mutable_attr())[std::string(name)].mutable_tensor());
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, std::initializer_list<int64_t> value) {
  auto* list = (*def_.mutable_attr())[std::string(name)].mutable_list();
  for (int64_t v : value) list->add_i(v);
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, const std::vector<float>& value) {
  auto* list = (*def_.mutable_attr())[std::string(name)].mutable_list();
  for (float v : value) list->add_f(v);
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, const std::vector<ElementType>& value) {
  auto* list = (*def_.mutable_attr())[std::string(name)].mutable_list();
  for (ElementType v : value) list->add_type(static_cast<DataType>(v));
  return *this;
}
OpTest& OpTest::Attr(std::string_view name, const std::vector<std::string>& value) {
  auto* list = (*def_.mutable_attr())[std::string(name)].mutable_list();
  for (const std::string& v : value) list->add_s(v);
  return *this;
}

absl::Status OpTest::InferAttrs() {
  TROUPE_ASSIGN_OR_RETURN(const OpRegistration* registration,
                          OpRegistry::Global()->LookUp(def_.op()));
  op_def_ = registration->def.get();
  auto& attrs = *def_.mutable_attr();
  // Inputs that are not of list arguments leave the rest to the (one) list whose length is not set.
  int single = 0;
  for (const OpDef::ArgDef& arg : op_def_->input_arg()) {
    if (!arg.type_list_attr().empty()) continue;
    if (arg.number_attr().empty()) {
      ++single;
    } else if (attrs.contains(arg.number_attr())) {
      single += static_cast<int>(attrs[arg.number_attr()].i());
    }
  }
  size_t next = 0;
  for (const OpDef::ArgDef& arg : op_def_->input_arg()) {
    int count = 1;
    if (!arg.number_attr().empty()) {
      if (!attrs.contains(arg.number_attr())) {
        attrs[arg.number_attr()].set_i(static_cast<int64_t>(inputs_.size()) - single);
        single = static_cast<int>(inputs_.size());
      }
      count = static_cast<int>(attrs[arg.number_attr()].i());
    } else if (!arg.type_list_attr().empty()) {
      if (!attrs.contains(arg.type_list_attr())) {
        auto* list = attrs[arg.type_list_attr()].mutable_list();
        for (size_t i = next; i < inputs_.size() - (single - next); ++i) {
          list->add_type(static_cast<DataType>(inputs_[i].tensor.type()));
        }
      }
      count = attrs[arg.type_list_attr()].list().type_size();
    }
    if (next + count > inputs_.size())
      return absl::InvalidArgumentError("the test gives too few inputs");
    if (!arg.type_attr().empty() && count > 0 && !attrs.contains(arg.type_attr())) {
      attrs[arg.type_attr()].set_type(static_cast<DataType>(
          inputs_[next].ref != nullptr ? inputs_[next].ref->type() : inputs_[next].tensor.type()));
    }
    next += count;
  }
  if (next != inputs_.size()) return absl::InvalidArgumentError("the test gives too many inputs");
  for (const OpDef::AttrDef& attr : op_def_->attr()) {
    if (attr.has_default_value() && !attrs.contains(attr.name())) {
      attrs[attr.name()] = attr.default_value();
    }
  }
  auto add_types = [&](const OpDef::ArgDef& arg, std::vector<ElementType>* types) {
    if (!arg.type_list_attr().empty()) {
      for (int type : attrs[arg.type_list_attr()].list().type()) {
        types->push_back(static_cast<ElementType>(type));
      }
      return;
    }
    const int64_t count = arg.number_attr().empty() ? 1 : attrs[arg.number_attr()].i();
    int type = arg.type_attr().empty() ? static_cast<int>(arg.type())
                                       : static_cast<int>(attrs[arg.type_attr()].type());
    if (arg.is_ref()) type += kRefOffset;
    for (int64_t i = 0; i < count; ++i) types->push_back(static_cast<ElementType>(type));
  };
  for (const OpDef::ArgDef& arg : op_def_->input_arg()) add_types(arg, &input_types_);
  for (const OpDef::ArgDef& arg : op_def_->output_arg()) add_types(arg, &output_types_);
  return absl::OkStatus();
}

absl::Status OpTest::Init() {
  if (kernel_ != nullptr) return absl::OkStatus();
  input_types_.clear();
  output_types_.clear();
  TROUPE_RETURN_IF_ERROR(InferAttrs());
  KernelConstruction construction(&def_, op_def_, nullptr, input_types_, output_types_);
  TROUPE_ASSIGN_OR_RETURN(kernel_, KernelRegistry::Global()->Create(construction, "CPU"));
  return absl::OkStatus();
}

absl::Status OpTest::Compute() {
  step_inputs_ = inputs_;
  if (forwardable_ != 0) {  // The step's slot must be the only holder: give it a copy of its own.
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if ((forwardable_ >> i) & 1) {
        TROUPE_ASSIGN_OR_RETURN(step_inputs_[i].tensor, inputs_[i].tensor.Clone());
      }
    }
  }
  input_slots_.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) input_slots_[i] = static_cast<int32_t>(i);
  outputs_.clear();
  outputs_.resize(output_types_.size());
  KernelContext ctx(&step_, step_inputs_.data(), input_slots_.data(),
                    static_cast<int>(inputs_.size()), outputs_.data(),
                    static_cast<int>(outputs_.size()), forwardable_);
  AsyncKernel* async = kernel_->async();
  if (async == nullptr) return kernel_->Compute(ctx);
  struct Waiter {
    std::mutex mutex;
    std::condition_variable condition;
    bool done = false;
    absl::Status status;
  } waiter;
  async->ComputeAsync(ctx, KernelDone{[](void* self, void*, absl::Status status, Player,
                                         std::unique_ptr<KernelRest> rest) {
                                        if (rest && status.ok()) status = rest->Finish();
                                        auto* w = static_cast<Waiter*>(self);
                                        std::lock_guard<std::mutex> lock(w->mutex);
                                        w->status = std::move(status);
                                        w->done = true;
                                        w->condition.notify_all();
                                      },
                                      &waiter, nullptr});
  std::unique_lock<std::mutex> lock(waiter.mutex);
  waiter.condition.wait(lock, [&] { return waiter.done; });
  return waiter.status;
}

absl::Status OpTest::Run() {
  TROUPE_RETURN_IF_ERROR(Init());
  return Compute();
}

absl::Status OpTest::RunRepeatedly(int n) {
  step_inputs_ = inputs_;
  for (int i = 0; i < n; ++i) {
    KernelContext ctx(&step_, step_inputs_.data(), input_slots_.data(),
                      static_cast<int>(inputs_.size()), outputs_.data(),
                      static_cast<int>(outputs_.size()), 0);
    TROUPE_RETURN_IF_ERROR(kernel_->Compute(ctx));
  }
  return absl::OkStatus();
}

double At(const Tensor& tensor, int64_t i) {
  double value = 0;
  ForNumeric(tensor.type(), [&]<typename T>() {
    if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
      value = tensor.unchecked_data<T>()[i].real();
    } else {
      value = static_cast<double>(tensor.unchecked_data<T>()[i]);
    }
  });
  return value;
}

void Set(Tensor* tensor, int64_t i, double value) {
  ForNumeric(tensor->type(),
             [&]<typename T>() { tensor->mutable_data<T>()[i] = FromDouble<T>(value); });
}

void ExpectNear(const Tensor& got, const Tensor& want, double rtol, double atol) {
  ASSERT_EQ(ElementTypeName(got.type()), ElementTypeName(want.type()));
  ASSERT_EQ(got.shape().ToString(), want.shape().ToString());
  if (want.type() == ElementType::kString) {
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      EXPECT_EQ(got.unchecked_data<std::string>()[i], want.unchecked_data<std::string>()[i])
          << "at " << i;
    }
    return;
  }
  int failures = 0;
  ForNumeric(want.type(), [&]<typename T>() {
    for (int64_t i = 0; i < want.num_elements() && failures < 5; ++i) {
      const T g = got.unchecked_data<T>()[i], w = want.unchecked_data<T>()[i];
      bool ok;
      if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
        ok = Close(g.real(), w.real(), rtol, atol) && Close(g.imag(), w.imag(), rtol, atol);
      } else if constexpr (std::is_integral_v<T>) {
        ok = g == w || ((rtol > 0 || atol > 0) && Close(g, w, rtol, atol));
      } else {
        ok = Close(g, w, rtol, atol);
      }
      if (!ok) {
        ++failures;
        ADD_FAILURE() << "element " << i << " of " << got.shape().ToString() << ": got "
                      << At(got, i) << ", want " << At(want, i);
      }
    }
  });
}

Tensor MakeTensor(ElementType type, const Shape& shape, absl::Span<const double> values) {
  Tensor tensor = Tensor::Uninitialized(type, shape);
  EXPECT_EQ(static_cast<int64_t>(values.size()), shape.num_elements());
  for (int64_t i = 0; i < shape.num_elements(); ++i) Set(&tensor, i, values[i]);
  return tensor;
}

Tensor RandomTensor(ElementType type, const Shape& shape, double low, double high, uint32_t seed) {
  Tensor tensor = Tensor::Uninitialized(type, shape);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  ForNumeric(type, [&]<typename T>() {
    T* data = tensor.mutable_data<T>();
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const double u = uniform(generator);
      if constexpr (std::is_same_v<T, bool>) {
        data[i] = u < 0.5;
      } else if constexpr (std::is_integral_v<T>) {
        data[i] = static_cast<T>(std::min(high, std::floor(low + u * (high - low + 1))));
      } else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
        data[i] = T(static_cast<typename T::value_type>(low + u * (high - low)),
                    static_cast<typename T::value_type>(low + uniform(generator) * (high - low)));
      } else {
        data[i] = static_cast<T>(low + u * (high - low));
      }
    }
  });
  return tensor;
}

}  // namespace troupe::testing
