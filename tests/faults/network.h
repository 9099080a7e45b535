/// Machines that are network namespaces, joined by a switch whose links can be cut and slowed down.
#ifndef TROUPE_TESTS_FAULTS_NETWORK_H_
#define TROUPE_TESTS_FAULTS_NETWORK_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/faults/process.h"

namespace troupe::faults {

/// Namespaces without names: they end with the processes that hold them, however this one ends.
class Network {
 public:
  /// Whether all that is needed is there; otherwise `*why` says what is missing.
  static bool Available(std::string* why);
  /// Whether this user on this machine may have network namespaces.
  static bool Permitted();

  explicit Network(int machines);
  ~Network();

  bool ok() const { return ok_; }
  /// A file descriptor of the machine's namespace, for `Process`.
  int machine(int index) const { return machines_[index].fd; }
  static std::string Address(int index) { return "10.77.0." + std::to_string(index + 1); }

  /// The machine hears and reaches nobody any more; nobody is told (no carrier is lost).
  bool Cut(int index);
  bool Join(int index);
  /// No packet goes from one of the two machines to the other; with others they go on talking.
  bool CutBetween(int one, int other);
  bool JoinBetween(int one, int other);
  /// Ends the machine's connections from and to a TCP port, as a firewall does that forgets them.
  bool ResetPort(int index, int port);
  /// Both directions carry so many megabits a second.
  bool Slow(int index, int megabits);
  bool Restore(int index);

 private:
  struct Machine {
    std::unique_ptr<Process> holder;
    int fd = -1;
  };
  static Machine Hold();

  Machine switch_;
  std::vector<Machine> machines_;
  bool ok_ = false;
};

}  // namespace troupe::faults

#endif  // TROUPE_TESTS_FAULTS_NETWORK_H_
