#include "actors/state/containers.h"

#include <utility>
#include <vector>

#include "actors/state/variable_role.h"
#include "devices/status_macros.h"

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

absl::Status Containers::Destroy(std::string_view container, std::string_view name) {
  RefPtr<Resource> removed;  // Destroyed outside the lock, as in `Reset`.
  std::lock_guard<std::mutex> lock(mutex_);
  Container* resources = FindContainer(container);
  auto it = resources->find(name);
  if (it == resources->end()) {
    return absl::NotFoundError(StrCat("there is no resource ", container, "/", name));
  }
  MarkDestroyed(it->second.get());
  removed = std::move(it->second);
  resources->erase(it);
  return absl::OkStatus();
}

void Containers::MarkDestroyed(Resource* resource) {
  if (auto* variable = dynamic_cast<Variable*>(resource)) variable->set_destroyed();
}

void Containers::Reset(std::string_view container) {
  Container removed;  // Destroyed outside the lock: a resource's destructor may be anything.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::swap(removed, *FindContainer(container));
  }
  for (auto& [name, resource] : removed) MarkDestroyed(resource.get());
}

void Containers::ResetAll() {
  std::map<std::string, Container, std::less<>> removed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::swap(removed, containers_);
    used_.store(false, std::memory_order_relaxed);
  }
  for (auto& [name, container] : removed) {
    for (auto& [key, resource] : container) MarkDestroyed(resource.get());
  }
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
