/// The registry of ops: what an op is called, what it takes and gives, how shapes follow.
///
///     REGISTER_OP("BiasAdd")
///         .Signature("value: T, bias: T -> output: T")
///         .Attr("T: numbertype")
///         .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
///         .SetShapeFn(BiasAddShape)
///         .Doc("Adds `bias` to the last (NHWC) or second (NCHW) dimension of `value`.");
///
/// `Signature` lists inputs, and after `->` outputs, as `Input` and `Output` take them one by one.
/// The definition language is TensorFlow's: `name: type` or `name: N * type` or `name: attr`,
/// `Ref(type)` for references; attributes `name: kind >= minimum = default` with kinds string, int,
/// float, bool, type, shape, tensor, func, list(kind), `{'a', 'b'}`, `{int32, float}`,
/// `numbertype`, `realnumbertype`, `quantizedtype`.
#ifndef TROUPE_GRAPH_OP_REGISTRY_H_
#define TROUPE_GRAPH_OP_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/status_macros.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

class InferenceContext;
class OpDef;

/// Computes the shapes of an op's outputs, or refuses the inputs (InvalidArgument).
using ShapeFn = absl::Status (*)(InferenceContext* context);

/// A registered op. Immutable once looked up.
struct OpRegistration {
  std::unique_ptr<OpDef> def;
  ShapeFn shape_fn = nullptr;  ///< nullptr: outputs of unknown shape.
  OpRegistration();
  ~OpRegistration();
};

/// Collects one op definition as text; parsed when the op is first looked up. What is large is not
/// inline, for every file of ops would compile it again.
class OpDefBuilder {
 public:
  explicit OpDefBuilder(std::string_view name);
  OpDefBuilder(const OpDefBuilder&);
  OpDefBuilder(OpDefBuilder&&) noexcept;
  OpDefBuilder& operator=(const OpDefBuilder&);
  OpDefBuilder& operator=(OpDefBuilder&&) noexcept;
  ~OpDefBuilder();

  OpDefBuilder& Signature(std::string_view text);
  OpDefBuilder& Input(std::string_view spec) { return Add(&inputs_, spec); }
  OpDefBuilder& Output(std::string_view spec) { return Add(&outputs_, spec); }
  OpDefBuilder& Attr(std::string_view spec) { return Add(&attrs_, spec); }
  OpDefBuilder& SetIsStateful() { return Set(&stateful_); }
  OpDefBuilder& SetIsCommutative() { return Set(&commutative_); }
  OpDefBuilder& SetIsAggregate() { return Set(&aggregate_); }
  OpDefBuilder& SetAllowsUninitializedInput() { return Set(&allows_uninitialized_); }
  OpDefBuilder& SetIsDistributedCommunication() { return Set(&distributed_); }
  OpDefBuilder& Deprecated(int version, std::string_view explanation);
  OpDefBuilder& SetShapeFn(ShapeFn fn) {
    shape_fn_ = fn;
    return *this;
  }
  /// First sentence: what it computes; then shapes and meanings of inputs and outputs.
  OpDefBuilder& Doc(std::string_view text);

  const std::string& name() const { return name_; }
  /// Parses the specifications. InvalidArgument quotes the specification that is wrong.
  absl::Status Build(OpRegistration* registration) const;

 private:
  OpDefBuilder& Add(std::vector<std::string>* list, std::string_view spec);
  OpDefBuilder& Set(bool* flag) {
    *flag = true;
    return *this;
  }

  std::string name_;
  std::vector<std::string> inputs_, outputs_, attrs_;
  bool stateful_ = false, commutative_ = false, aggregate_ = false, allows_uninitialized_ = false,
       distributed_ = false;
  int deprecated_version_ = 0;
  std::string deprecation_, doc_;
  ShapeFn shape_fn_ = nullptr;
};

/// Names to op definitions. Thread-safe.
class OpRegistry {
 public:
  /// The registry that REGISTER_OP fills.
  static OpRegistry* Global();

  OpRegistry();
  ~OpRegistry();

  /// AlreadyExists (found when the op is looked up) if a different op has the name.
  void Register(OpDefBuilder builder);
  /// NotFound for an unknown op. The result lives as long as the registry.
  absl::StatusOr<const OpRegistration*> LookUp(std::string_view op) const;
  /// Sorted.
  std::vector<std::string> Names() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

namespace internal {
struct OpRegistrar {
  OpRegistrar(OpDefBuilder& builder);                            // NOLINT: conversion is the point
  OpRegistrar(OpDefBuilder&& builder) : OpRegistrar(builder) {}  // NOLINT: the same
};
}  // namespace internal

#define REGISTER_OP(NAME)                                                      \
  [[maybe_unused]] static const ::troupe::internal::OpRegistrar TROUPE_CONCAT( \
      troupe_op_registrar_, __COUNTER__) = ::troupe::OpDefBuilder(NAME)

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_GRAPH_OP_REGISTRY_H_
