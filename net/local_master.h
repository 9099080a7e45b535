/// The way from a client to a master in the same process: no sockets, no bytes.
#ifndef TROUPE_NET_LOCAL_MASTER_H_
#define TROUPE_NET_LOCAL_MASTER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "net/node_shell.h"

namespace troupe {

/// A client in the process of its master. Its functions are called by any thread, outside of locks.
class LocalClient {
 public:
  virtual ~LocalClient() = default;
  virtual void OnMessage(cluster::Message message) = 0;
  /// The master is no more; nothing comes afterwards.
  virtual void OnStopped() = 0;
};

/// How clients in its own process reach a task. The task opens it when it serves and closes it
/// before it goes; who holds it may outlive the task. Thread-safe.
class LocalMaster : public std::enable_shared_from_this<LocalMaster> {
 public:
  /// The task of this process that serves at `address` with the same certificate, or none.
  static std::shared_ptr<LocalMaster> Find(const std::string& address, const std::string& tls);

  // The task.

  /// `tls` names its certificate; empty: it has none.
  static std::shared_ptr<LocalMaster> Open(const std::string& address, const std::string& tls,
                                           NodeShell* shell);
  /// Lets nobody in any more, tells the clients, and waits for threads that are inside; false if
  /// they did not leave within `patience`: then the shell must live on.
  bool Close(std::chrono::milliseconds patience);

  // Clients. All are false once it is closed.

  bool Attach(PeerId id, std::shared_ptr<LocalClient> client);
  /// Closes the client's sessions.
  bool Detach(PeerId id);
  /// The calling thread plays the master, and what `player` says of its task's part of a step that
  /// is thereby begun.
  bool Send(PeerId from, cluster::Message message, Player player);
  /// Runs `job` on a thread of the actor system.
  bool Post(std::function<void()> job);

 private:
  template <typename F>
  bool Visit(F visit);

  std::string address_, tls_;
  NodeShell* shell_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool closed_ = false;
  std::map<PeerId, std::shared_ptr<LocalClient>> clients_;
};

}  // namespace troupe

#endif  // TROUPE_NET_LOCAL_MASTER_H_
