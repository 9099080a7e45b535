/// A variable and its container for tests: no actor behind them.
#ifndef TROUPE_TESTS_KERNELS_STATE_FAKE_VARIABLE_H_
#define TROUPE_TESTS_KERNELS_STATE_FAKE_VARIABLE_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "kernels/variable.h"

namespace troupe::testing {

class FakeVariable : public Variable {
 public:
  FakeVariable(std::string name, ElementType type, PartialShape shape = {})
      : Variable(std::move(name), type, std::move(shape)) {}
  FakeVariable(std::string name, Tensor value) : FakeVariable(std::move(name), value.type()) {
    TryLend().set_value(std::move(value));
  }

  Lease TryLend() override {
    if (lent_ || busy_) return Lease();
    return Make();
  }
  void Lend(std::function<void(Lease)> visit) override {
    if (on_lend) on_lend();
    if (lent_) ++conflicts;
    visit(Make());
  }

  /// `TryLend` gives nothing, so that kernels have to ask.
  void set_busy(bool busy) { busy_ = busy; }
  Tensor value() { return Make().value(); }

  std::function<void()> on_lend;  ///< Called before a visit that had to wait.
  int conflicts = 0;              ///< Leases given while there was one.

 protected:
  void GiveBack() override { lent_ = false; }

 private:
  Lease Make() {
    lent_ = true;
    return Lease(RefPtr<Variable>::Share(this));
  }
  bool lent_ = false, busy_ = false;
};

class FakeResources : public ResourceProvider {
 public:
  absl::StatusOr<RefPtr<Variable>> FindOrCreateVariable(std::string_view container,
                                                        std::string_view name, ElementType type,
                                                        const PartialShape& shape) override {
    RefPtr<Resource>& slot = resources_[Key(container, name)];
    if (!slot) slot = MakeRef<FakeVariable>(std::string(name), type, shape);
    auto* variable = static_cast<Variable*>(slot.get());
    if (variable->type() != type) return absl::InvalidArgumentError("another type");
    return RefPtr<Variable>::Share(variable);
  }
  absl::StatusOr<RefPtr<Resource>> FindOrCreate(
      std::string_view container, std::string_view name,
      const std::function<absl::StatusOr<RefPtr<Resource>>()>&) override {
    const auto found = resources_.find(Key(container, name));
    if (found == resources_.end()) return absl::NotFoundError("no such resource");
    return found->second;
  }
  RefPtr<Resource> MakeQueue(std::string, const QueueOptions&) override { return nullptr; }
  RefPtr<Resource> MakeAccumulator(std::string, const AccumulatorOptions&) override {
    return nullptr;
  }
  absl::Status Destroy(std::string_view container, std::string_view name) override {
    const auto found = resources_.find(Key(container, name));
    if (found == resources_.end()) return absl::NotFoundError("no such resource");
    static_cast<Variable*>(found->second.get())->set_destroyed();
    resources_.erase(found);
    return absl::OkStatus();
  }

 private:
  static std::pair<std::string, std::string> Key(std::string_view container,
                                                 std::string_view name) {
    return {std::string(container), std::string(name)};
  }
  std::map<std::pair<std::string, std::string>, RefPtr<Resource>> resources_;
};

}  // namespace troupe::testing

#endif  // TROUPE_TESTS_KERNELS_STATE_FAKE_VARIABLE_H_
