#include "kernels/dataset/published_datasets.h"

#include <utility>

#include "devices/status_macros.h"

namespace troupe {

PublishedDatasets* PublishedDatasets::Global() {
  static auto* const datasets = new PublishedDatasets;  // Steps may end after main.
  return datasets;
}

absl::Status PublishedDatasets::Add(const std::string& name, Make make) {
  if (name.empty()) return InvalidArgument("a dataset needs a name");
  std::lock_guard<std::mutex> lock(mutex_);
  if (datasets_.emplace(name, std::move(make)).second) return absl::OkStatus();
  return absl::AlreadyExistsError(StrCat("a dataset is published as \"", name, "\" already"));
}

void PublishedDatasets::Remove(const std::string& name) {
  Make removed;  // Ends without the lock.
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = datasets_.find(name);
  if (it == datasets_.end()) return;
  removed = std::move(it->second);
  datasets_.erase(it);
}

absl::StatusOr<PublishedDatasets::Make> PublishedDatasets::Find(const std::string& name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = datasets_.find(name);
  if (it != datasets_.end()) return it->second;
  return absl::NotFoundError(StrCat("no dataset is published as \"", name, "\" in this process"));
}

}  // namespace troupe
