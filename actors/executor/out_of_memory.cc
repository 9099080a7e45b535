// What a step says that has failed for want of memory.
#include <set>
#include <utility>

#include "actors/executor/executor_role.h"
#include "actors/executor/flow.h"
#include "actors/state/containers.h"
#include "devices/exceptions.h"
#include "devices/memory_use.h"
#include "devices/status_macros.h"

namespace troupe {

namespace {

/// Values, each buffer once.
class Holdings {
 public:
  template <typename Holder>
  void Add(const Tensor& value, Holder holder) {
    if (!value.valid() || !IsPlain(value.type()) || value.bytes() == 0) return;
    if (!seen_.insert(value.raw_data()).second) return;
    values_.push_back({value.bytes(),
                       StrCat(ElementTypeName(value.type()), " ", value.shape().ToString()),
                       holder()});
  }
  std::string Describe() && { return DescribeLargest(std::move(values_)); }

 private:
  std::set<const void*> seen_;
  std::vector<LargeValue> values_;
};

}  // namespace

void ExecutorRole::TellWhatIsHeld() noexcept {
  try {
    Holdings holdings;
    // First, so that a value which nodes have as well is the variable's.
    if (auto* containers = dynamic_cast<Containers*>(step_.resources)) {
      containers->ForEachVariable([&](Variable* variable) {
        const Variable::Lease lease = variable->TryLend();
        if (!lease) return;  // Somebody else's step has it.
        holdings.Add(lease.value(), [&] { return StrCat("variable ", variable->name()); });
      });
    }
    const auto add_slots = [&](int frame, int32_t num_slots, const Slot* slots) {
      for (int32_t i = 0; i < num_slots; ++i) {
        const int node = slots[i].tensor.valid() ? plan_->ProducerOf(frame, i) : -1;
        if (node >= 0) holdings.Add(slots[i].tensor, [&] { return plan_->NodeText(node); });
      }
    };
    add_slots(0, plan_->num_slots, slots_.get());
    if (flow_ != nullptr) {
      for (const std::unique_ptr<Iteration>& block : flow_->all_blocks) {
        if (block->frame == nullptr) continue;
        const int frame = block->frame->frame;
        add_slots(frame, plan_->frames[frame].num_slots, block->slots);
      }
    }
    const std::string largest = std::move(holdings).Describe();
    if (largest.empty()) return;
    status_ = WithContext(
        "", status_, StrCat("\n\t The largest values of the step and of variables: ", largest));
  } catch (const std::bad_alloc&) {  // Then the status says it all.
  }
}

}  // namespace troupe
