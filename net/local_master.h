/// The way from a client to a master in the same process: no sockets, no bytes.
#ifndef TROUPE_NET_LOCAL_MASTER_H_
#define TROUPE_NET_LOCAL_MASTER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "net/node_shell.h"

namespace troupe {

/// How clients in its own process reach a task. The task opens it when it serves and closes it
/// before it goes; who holds it may outlive the task. Thread-safe.
class LocalMaster {
 public:
  /// What both sides must have alike: the name of the certificate's file, and the secret.
  using Credentials = std::pair<std::string, std::string>;
  /// The task of this process that serves at `address` with these credentials; nullptr: none does.
  static std::shared_ptr<LocalMaster> Find(const std::string& address, const Credentials& both);

  // The task.

  LocalMaster(std::string address, Credentials own, NodeShell* shell)
      : address_(std::move(address)), credentials_(std::move(own)), shell_(shell) {}
  /// From now on clients find it.
  static std::shared_ptr<LocalMaster> Open(std::string address, Credentials own, NodeShell* shell);
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

  const std::string address_;
  const Credentials credentials_;
  NodeShell* const shell_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool closed_ = false;
};

}  // namespace troupe

#endif  // TROUPE_NET_LOCAL_MASTER_H_
