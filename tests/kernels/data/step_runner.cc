#include "tests/kernels/data/step_runner.h"

#include "graph/op_registry.h"
#include "kernels/kernel_registry.h"

namespace troupe::testing {
namespace {

AttrValue& Slot(NodeDef* def, std::string_view name) {
  AttrValue& value = (*def->mutable_attr())[std::string(name)];
  value.Clear();
  return value;
}

}  // namespace

StepRunner& StepRunner::Attr(std::string_view name, ElementType value) {
  Slot(&def_, name).set_type(static_cast<DataType>(value));
  return *this;
}
StepRunner& StepRunner::Attr(std::string_view name, bool value) {
  Slot(&def_, name).set_b(value);
  return *this;
}
StepRunner& StepRunner::Attr(std::string_view name, int64_t value) {
  Slot(&def_, name).set_i(value);
  return *this;
}
StepRunner& StepRunner::Attr(std::string_view name, const std::string& value) {
  Slot(&def_, name).set_s(value);
  return *this;
}
StepRunner& StepRunner::Attr(std::string_view name, const PartialShape& value) {
  value.ToProto(Slot(&def_, name).mutable_shape());
  return *this;
}
StepRunner& StepRunner::Attr(std::string_view name, const std::vector<ElementType>& value) {
  auto* list = Slot(&def_, name).mutable_list();
  for (ElementType type : value) list->add_type(static_cast<DataType>(type));
  return *this;
}
StepRunner& StepRunner::Attr(std::string_view name, const std::vector<PartialShape>& value) {
  auto* list = Slot(&def_, name).mutable_list();
  for (const PartialShape& shape : value) shape.ToProto(list->add_shape());
  return *this;
}

absl::StatusOr<Kernel*> StepRunner::Make(std::string_view op,
                                         const std::vector<ElementType>& inputs,
                                         const std::vector<ElementType>& outputs) {
  auto registration = OpRegistry::Global()->LookUp(op);
  if (!registration.ok()) return registration.status();
  auto def = std::make_unique<NodeDef>(def_);
  def->set_name("node");
  def->set_op(std::string(op));
  for (const OpDef::AttrDef& attr : (*registration)->def->attr()) {
    if (def->attr().contains(attr.name())) continue;
    if (attr.has_default_value()) (*def->mutable_attr())[attr.name()] = attr.default_value();
  }
  types_.push_back(std::make_unique<std::vector<ElementType>>(inputs));
  const auto& in = *types_.back();
  types_.push_back(std::make_unique<std::vector<ElementType>>(outputs));
  KernelConstruction construction(def.get(), (*registration)->def.get(), nullptr, in,
                                  *types_.back());
  auto kernel = KernelRegistry::Global()->Create(construction, "CPU");
  if (!kernel.ok()) return kernel.status();
  defs_.push_back(std::move(def));
  kernels_.push_back(*std::move(kernel));
  return kernels_.back().get();
}

absl::StatusOr<StepRunner::Tensors> StepRunner::Run(Kernel* kernel, Tensors inputs,
                                                    int num_outputs) {
  StepContext context;
  context.allocator = HostAllocator();
  context.resources = &resources_;
  context.step_resources = &resources_;
  std::vector<::troupe::Slot> slots(inputs.size()), outputs(num_outputs);
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    slots[i].tensor = std::move(inputs[i]);
    numbers.push_back(static_cast<int32_t>(i));
  }
  KernelContext ctx(&context, slots.data(), numbers.data(), static_cast<int>(slots.size()),
                    outputs.data(), num_outputs, ~uint64_t{0});
  absl::Status status = kernel->Compute(ctx);
  if (!status.ok()) return status;
  Tensors results;
  for (::troupe::Slot& output : outputs) results.push_back(std::move(output.tensor));
  return results;
}

absl::StatusOr<StepRunner::Tensors> StepRunner::Run(std::string_view op, Tensors inputs,
                                                    const std::vector<ElementType>& outputs) {
  std::vector<ElementType> types;
  for (const Tensor& input : inputs) types.push_back(input.type());
  absl::StatusOr<Kernel*> kernel = Make(op, types, outputs);
  if (!kernel.ok()) return kernel.status();
  return Run(*kernel, std::move(inputs), static_cast<int>(outputs.size()));
}

absl::StatusOr<Tensor> StepRunner::One(std::string_view op, Tensors inputs, ElementType output) {
  absl::StatusOr<Tensors> outputs = Run(op, std::move(inputs), {output});
  if (!outputs.ok()) return outputs.status();
  return std::move((*outputs)[0]);
}

}  // namespace troupe::testing
