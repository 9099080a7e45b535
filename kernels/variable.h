/// What kernels know of variables: actors that hold a tensor and lend it to one party at a time.
#ifndef TROUPE_KERNELS_VARIABLE_H_
#define TROUPE_KERNELS_VARIABLE_H_

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "devices/export.h"
#include "devices/resource_handle.h"
#include "devices/tensor.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// A variable as an actor: messages to it are handled one at a time. A message is a visit: while a
/// visitor holds the `Lease` the variable's state is its alone, and other messages wait in the
/// mailbox; nobody blocks a thread. Thread-safe.
class Variable : public Resource {
 public:
  /// Exclusive access to a variable's state; given back when destroyed (which may run the next
  /// visitor on this thread). Move-only.
  class Lease {
   public:
    Lease() = default;
    explicit Lease(RefPtr<Variable> variable) : variable_(std::move(variable)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      Release();
      variable_ = std::move(other.variable_);
      return *this;
    }
    ~Lease() { Release(); }
    explicit operator bool() const { return static_cast<bool>(variable_); }
    Variable* variable() const { return variable_.get(); }
    /// The current value; an invalid tensor if not initialised.
    const Tensor& value() const { return variable_->value_; }
    /// For updates in place: the value, if nobody else holds its buffer, else first replaced by a
    /// copy (ResourceExhausted). FailedPrecondition, naming the variable, if not initialised.
    absl::StatusOr<Tensor*> mutable_value();
    /// Replaces the value; readers of the old one keep it.
    void set_value(Tensor value) { variable_->value_ = std::move(value); }
    void Release() {
      if (variable_) {
        RefPtr<Variable> v = std::move(variable_);
        v->GiveBack();
      }
    }

   private:
    RefPtr<Variable> variable_;
  };

  /// The state at once if the variable is idle, else an empty lease.
  virtual Lease TryLend() = 0;
  /// Calls `visit` with the state: now, on this thread, if the variable is idle; otherwise when
  /// those before are done, on the thread of the one who gives it back; hence `visit` must not
  /// throw. If this throws itself, `visit` will not be called.
  virtual void Lend(std::function<void(Lease)> visit) = 0;

  const std::string& name() const { return name_; }
  ElementType type() const { return type_; }
  const PartialShape& shape() const { return shape_; }
  std::string DebugString() const override;

  /// Set when the variable is removed from its container (destroyed or reset): handles to it are
  /// stale.
  bool destroyed() const { return destroyed_.load(std::memory_order_acquire); }
  void set_destroyed() { destroyed_.store(true, std::memory_order_release); }

 protected:
  Variable(std::string name, ElementType type, PartialShape shape)
      : name_(std::move(name)), type_(type), shape_(std::move(shape)) {}
  virtual void GiveBack() = 0;

 private:
  std::string name_;
  ElementType type_;
  PartialShape shape_;
  std::atomic<bool> destroyed_{false};
  Tensor value_;  ///< Touched only by the holder of the lease.
};

struct AccumulatorOptions;
struct QueueOptions;

/// Named containers of resources, as kernels see them. Thread-safe.
class ResourceProvider {
 public:
  virtual ~ResourceProvider() = default;
  /// The variable, made by the first call. InvalidArgument if it exists with another type.
  virtual absl::StatusOr<RefPtr<Variable>> FindOrCreateVariable(std::string_view container,
                                                                std::string_view name,
                                                                ElementType type,
                                                                const PartialShape& shape) = 0;
  /// Any resource; NotFound. Other kinds than variables are made by `make` if it is given.
  virtual absl::StatusOr<RefPtr<Resource>> FindOrCreate(
      std::string_view container, std::string_view name,
      const std::function<absl::StatusOr<RefPtr<Resource>>()>& make) = 0;
  /// For `make`: a new `Queue` or `Accumulator`, behind a mailbox.
  virtual RefPtr<Resource> MakeQueue(std::string name, const QueueOptions& options) = 0;
  virtual RefPtr<Resource> MakeAccumulator(std::string name, const AccumulatorOptions& options) = 0;
  /// NotFound if there is no such resource.
  virtual absl::Status Destroy(std::string_view container, std::string_view name) = 0;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_KERNELS_VARIABLE_H_
