#include "net/local_master.h"

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

std::shared_ptr<LocalMaster> LocalMaster::Find(const std::string& address, const std::string& tls) {
  Registry* registry = Registry::Get();
  std::lock_guard<std::mutex> lock(registry->mutex);
  auto it = registry->masters.find(address);
  return it != registry->masters.end() && it->second->tls_ == tls ? it->second : nullptr;
}

std::shared_ptr<LocalMaster> LocalMaster::Open(const std::string& address, const std::string& tls,
                                               NodeShell* shell) {
  auto master = std::make_shared<LocalMaster>();
  master->address_ = address;
  master->tls_ = tls;
  master->shell_ = shell;
  Registry* registry = Registry::Get();
  std::lock_guard<std::mutex> lock(registry->mutex);
  registry->masters[address] = master;
  return master;
}

bool LocalMaster::Close(std::chrono::milliseconds patience) {
  {
    Registry* registry = Registry::Get();
    std::lock_guard<std::mutex> lock(registry->mutex);
    auto it = registry->masters.find(address_);
    if (it != registry->masters.end() && it->second.get() == this) registry->masters.erase(it);
  }
  std::map<PeerId, std::shared_ptr<LocalClient>> clients;
  bool empty = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    closed_ = true;
    clients.swap(clients_);
    empty = changed_.wait_for(lock, patience, [this] { return inside_ == 0; });
  }
  for (auto& [id, client] : clients) client->OnStopped();
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
  bool attached = false;
  Visit([&] {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_) return;
      clients_[id] = client;
    }
    attached = true;
    shell_->AddLocalClient(
        id, [client](cluster::Message message) { client->OnMessage(std::move(message)); });
  });
  return attached;
}

bool LocalMaster::Detach(PeerId id) {
  return Visit([&] {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      clients_.erase(id);
    }
    shell_->RemoveLocalClient(id);
  });
}

bool LocalMaster::Send(PeerId from, cluster::Message message, Player player) {
  return Visit([&] { shell_->OnMessage(from, std::move(message), player); });
}

bool LocalMaster::Post(std::function<void()> job) {
  return Visit([&] { shell_->Post(std::move(job)); });
}

}  // namespace troupe
