#include "net/local_master.h"

#include <map>
#include <utility>

namespace troupe {

namespace {

/// The masters of this process, by address.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<LocalMaster>> masters;

  static Registry* Get() {
    static auto* registry = new Registry;  // Sessions may end after main.
    return registry;
  }
};

}  // namespace

std::shared_ptr<LocalMaster> LocalMaster::Find(const std::string& address,
                                               const Credentials& both) {
  Registry* registry = Registry::Get();
  std::lock_guard<std::mutex> lock(registry->mutex);
  auto it = registry->masters.find(address);
  const bool found = it != registry->masters.end() && it->second->credentials_ == both;
  return found ? it->second : nullptr;
}

std::shared_ptr<LocalMaster> LocalMaster::Open(std::string address, Credentials own,
                                               NodeShell* shell) {
  auto master = std::make_shared<LocalMaster>(std::move(address), std::move(own), shell);
  Registry* registry = Registry::Get();
  std::lock_guard<std::mutex> lock(registry->mutex);
  return registry->masters[master->address_] = master;
}

bool LocalMaster::Close(std::chrono::milliseconds patience) {
  {
    Registry* registry = Registry::Get();
    std::lock_guard<std::mutex> lock(registry->mutex);
    auto it = registry->masters.find(address_);
    if (it != registry->masters.end() && it->second.get() == this) registry->masters.erase(it);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  closed_ = true;
  const bool empty = changed_.wait_for(lock, patience, [this] { return inside_ == 0; });
  lock.unlock();
  shell_->StopLocalClients();
  return empty;
}

template <typename F>
bool LocalMaster::Visit(F visit) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return false;
    ++inside_;
  }
  visit();
  std::lock_guard<std::mutex> lock(mutex_);
  if (--inside_ == 0) changed_.notify_all();
  return true;
}

bool LocalMaster::Attach(PeerId id, std::shared_ptr<LocalClient> client) {
  return Visit([&] { shell_->AddLocalClient(id, std::move(client)); });
}

bool LocalMaster::Detach(PeerId id) {
  return Visit([&] { shell_->RemoveLocalClient(id); });
}

bool LocalMaster::Send(PeerId from, cluster::Message message, Player player) {
  return Visit([&] { shell_->OnMessage(from, std::move(message), player); });
}

bool LocalMaster::Post(std::function<void()> job) {
  return Visit([&] { shell_->Post(std::move(job)); });
}

}  // namespace troupe
