#include "actors/state/containers.h"

#include <utility>
#include <vector>

#include "actors/state/variable_role.h"
#include "actors/state/waiting_role.h"
#include "devices/status_macros.h"
#include "kernels/dataset/iterator_resource.h"
#include "kernels/queues/accumulator.h"
#include "kernels/queues/queue.h"

namespace troupe {

Containers::~Containers() { ResetAll(); }

Containers::Container* Containers::FindContainer(std::string_view name) {
  if (name.empty()) name = kDefault;
  auto it = containers_.find(name);
  if (it == containers_.end()) it = containers_.emplace(std::string(name), Container()).first;
  return &it->second;
}

absl::StatusOr<RefPtr<Resource>> Containers::FindOrCreate(
    std::string_view container, std::string_view name,
    const std::function<absl::StatusOr<RefPtr<Resource>>()>& make) {
  std::lock_guard<std::mutex> lock(mutex_);
  Container* resources = FindContainer(container);
  if (auto it = resources->find(name); it != resources->end()) return it->second;
  if (!make) {
    return absl::NotFoundError(StrCat("there is no resource ", container, "/", name,
                                      ": it was never created, or has been destroyed"));
  }
  TROUPE_ASSIGN_OR_RETURN(RefPtr<Resource> resource, make());
  resources->emplace(std::string(name), resource);
  used_.store(true, std::memory_order_relaxed);
  return resource;
}

absl::StatusOr<RefPtr<Variable>> Containers::FindOrCreateVariable(std::string_view container,
                                                                  std::string_view name,
                                                                  ElementType type,
                                                                  const PartialShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(
      RefPtr<Resource> resource,
      FindOrCreate(container, name, [&]() -> absl::StatusOr<RefPtr<Resource>> {
        return RefPtr<Resource>(MakeRef<VariableRole>(std::string(name), type, shape));
      }));
  auto* variable = dynamic_cast<Variable*>(resource.get());
  if (variable == nullptr || variable->type() != type) {
    return InvalidArgument("resource ", container, "/", name, " is ", resource->DebugString(),
                           ", but a variable of type ", ElementTypeName(type), " is asked for");
  }
  return RefPtr<Variable>::Share(variable);
}

RefPtr<Resource> Containers::MakeQueue(std::string name, const QueueOptions& options) {
  return MakeRef<WaitingRole<Queue>>(std::move(name), options);
}

RefPtr<Resource> Containers::MakeAccumulator(std::string name, const AccumulatorOptions& options) {
  return MakeRef<WaitingRole<Accumulator>>(std::move(name), options);
}

absl::Status Containers::Destroy(std::string_view container, std::string_view name) {
  Container removed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Container* resources = FindContainer(container);
    if (auto it = resources->find(name); it != resources->end()) {
      removed.insert(resources->extract(it));
    }
  }
  LetGo(removed);
  if (!removed.empty()) return absl::OkStatus();
  return absl::NotFoundError(StrCat("there is no resource ", container, "/", name));
}

void Containers::LetGo(const Container& removed) {
  for (const auto& [name, resource] : removed) {
    if (auto* variable = dynamic_cast<Variable*>(resource.get())) variable->set_destroyed();
    if (auto* waiting = dynamic_cast<WaitingResource*>(resource.get())) waiting->Abandon();
    if (auto* iterator = dynamic_cast<IteratorResource*>(resource.get())) iterator->Abandon();
  }
}

void Containers::Reset(std::string_view container) {
  Container removed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::swap(removed, *FindContainer(container));
  }
  LetGo(removed);
}

void Containers::ResetAll() {
  std::map<std::string, Container, std::less<>> removed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::swap(removed, containers_);
    used_.store(false, std::memory_order_relaxed);
  }
  for (const auto& [name, container] : removed) LetGo(container);
}

void Containers::ForEachVariable(absl::FunctionRef<void(Variable*)> what) const {
  std::vector<RefPtr<Variable>> variables;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [container, resources] : containers_) {
      for (const auto& [name, resource] : resources) {
        if (auto* const variable = dynamic_cast<Variable*>(resource.get())) {
          variables.push_back(RefPtr<Variable>::Share(variable));
        }
      }
    }
  }
  // Giving a variable back has others visit it, who may do anything.
  for (const RefPtr<Variable>& variable : variables) what(variable.get());
}

std::vector<std::string> Containers::List() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> result;
  for (const auto& [container, resources] : containers_) {
    for (const auto& [name, resource] : resources) {
      result.push_back(StrCat(container, "/", name, ": ", resource->DebugString()));
    }
  }
  return result;
}

}  // namespace troupe
