#include "actors/session/kept_resources.h"

#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "kernels/data/element_memory.h"
#include "kernels/sync/staging_area.h"
#include "kernels/sync/staging_map.h"
#include "kernels/sync/synchronizer_options.h"

namespace troupe {
namespace {

using Found = std::pair<ResourcePlace, RefPtr<Resource>>;

RefPtr<Resource> Find(DeviceRole* device, const ResourcePlace& place) {
  auto found = device->containers.FindOrCreate(place.container, place.name, nullptr);
  return found.ok() ? *std::move(found) : RefPtr<Resource>();
}

bool IsStage(const Resource& resource) {
  return dynamic_cast<const TupleStage*>(&resource) != nullptr ||
         dynamic_cast<const StagingMap*>(&resource) != nullptr;
}

std::vector<DeviceRole*> DevicesOf(const Runtime& runtime, const StatefulKernels& kernels,
                                   const ResourcePlace& place) {
  std::vector<DeviceRole*> devices;
  if (place.device == ResourcePlace::kAnyDevice) {
    for (const auto& device : runtime.devices()) devices.push_back(device.get());
    return devices;
  }
  DeviceRole* device = kernels.DeviceOf(place.node);
  if (device == nullptr) device = runtime.FindDevice(place.device);
  if (device != nullptr) devices.push_back(device);
  return devices;
}

std::vector<Found> Find(const Runtime& runtime, const StatefulKernels& kernels,
                        const std::vector<ResourcePlace>& wanted) {
  std::vector<Found> all;
  std::set<const Resource*> seen;
  for (const ResourcePlace& place : wanted) {
    for (DeviceRole* const device : DevicesOf(runtime, kernels, place)) {
      RefPtr<Resource> resource = Find(device, place);
      if (!resource || !seen.insert(resource.get()).second) continue;
      // Something else may have the name on another device.
      if (place.device == ResourcePlace::kAnyDevice && !IsStage(*resource)) continue;
      all.emplace_back(place, std::move(resource));
      all.back().first.device = device->device->name();
    }
  }
  return all;
}

/// Gives `done` the state with all that is in the device's memory copied to the host.
void Download(Device* device, ResourceState state, SaveDone<ResourceState> done) {
  const auto kept = std::make_shared<ResourceState>(std::move(state));
  DownloadTensors(device, TensorsOf(kept.get()),
                  [kept, done = std::move(done)](absl::Status status) {
                    status.ok() ? done(std::move(*kept)) : done(std::move(status));
                  });
}

/// Counts the answers of resources, which come on any threads.
struct Answers {
  std::mutex mutex;
  size_t left = 0;
  absl::Status status;
  std::vector<KeptResource> saved;
  SaveDone<std::vector<KeptResource>> done;

  void Add(size_t i, absl::StatusOr<ResourceState> state) {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (state.ok()) {
        saved[i].state = *std::move(state);
      } else {
        status.Update(WithContext(StrCat("'", saved[i].place.node, "': "), state.status()));
      }
      if (--left > 0) return;
    }
    Tell();
  }
  void Tell() {
    if (status.ok()) {
      done(std::move(saved));
    } else {
      done(status);
    }
  }
};

/// NotFound: nodes make such a resource, and have not.
absl::StatusOr<RefPtr<Resource>> MakeStage(const std::string& name, const ResourceState& state) {
  if (const auto* area = std::get_if<StagingAreaState>(&state)) {
    return MakeSynchronizer(name, {area->options});
  }
  if (const auto* map = std::get_if<StagingMapState>(&state)) {
    return MakeSynchronizer(name, {map->options});
  }
  return absl::NotFoundError(StrCat("there is nothing of the name '", name, "' here"));
}

}  // namespace

std::vector<ResourcePlace> FindResources(const Runtime& runtime, const StatefulKernels& kernels,
                                         const std::vector<ResourcePlace>& wanted) {
  std::vector<ResourcePlace> places;
  for (const auto& [place, resource] : Find(runtime, kernels, wanted)) places.push_back(place);
  return places;
}

void SaveResources(const Runtime& runtime, const StatefulKernels& kernels,
                   const std::vector<ResourcePlace>& wanted,
                   SaveDone<std::vector<KeptResource>> done) {
  const std::vector<Found> found = Find(runtime, kernels, wanted);
  const auto answers = std::make_shared<Answers>();
  answers->done = std::move(done);
  answers->left = found.size();
  for (const auto& [place, resource] : found) answers->saved.push_back({place, {}});
  if (found.empty()) return answers->Tell();
  for (size_t i = 0; i < found.size(); ++i) {
    Device* const device = runtime.FindDevice(found[i].first.device)->device.get();
    SaveResource(found[i].second.get(), [answers, i, device](absl::StatusOr<ResourceState> state) {
      state.ok() ? Download(device, *std::move(state),
                            [answers, i](absl::StatusOr<ResourceState> here) {
                              answers->Add(i, std::move(here));
                            })
                 : answers->Add(i, std::move(state));
    });
  }
}

void RestoreKeptResource(const Runtime& runtime, KeptResource resource, RestoreDone done) {
  const ResourcePlace& place = resource.place;
  DeviceRole* const device = runtime.FindDevice(place.device);
  if (device == nullptr) {
    return done(absl::NotFoundError(StrCat("there is no device ", place.device, " here")));
  }
  RefPtr<Resource> found = Find(device, place);
  if (!found) {
    auto made = device->containers.FindOrCreate(
        place.container, place.name, [&] { return MakeStage(place.name, resource.state); });
    if (!made.ok()) return done(made.status());
    found = *std::move(made);
  }
  RestoreResource(found.get(), std::move(resource.state), std::move(done));
}

}  // namespace troupe
