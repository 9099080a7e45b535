#include "tests/faults/network.h"

#include <fcntl.h>
#include <unistd.h>

namespace troupe::faults {

Network::Machine Network::Hold() {
  Machine machine;
  // The echo says that the namespace is there.
  machine.holder = std::make_unique<Process>(Process::Options{
      .arguments = {"/usr/bin/unshare", "--net", "/bin/sh", "-c", "echo held; exec sleep 3600"},
      .network = -1,
      .log = ""});
  if (machine.holder->Line(Seconds(60)) != "held") return machine;
  const std::string file = "/proc/" + std::to_string(machine.holder->pid()) + "/ns/net";
  machine.fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  return machine;
}

bool Network::Available(std::string* why) {
  if (!Shell("command -v ip && command -v tc && command -v unshare")) {
    *why = "the programs ip, tc and unshare are needed";
    return false;
  }
  Network probe(1);
  if (!probe.ok() || !probe.Slow(0, 100)) {
    *why = "this user may not make network namespaces, links or queues here";
    return false;
  }
  return true;
}

bool Network::Permitted() { return Shell("unshare --net true"); }

Network::Network(int machines) : switch_(Hold()) {
  if (switch_.fd < 0) return;
  std::string script = "set -e; ip link add br0 type bridge; ip link set br0 up";
  for (int i = 0; i < machines; ++i) {
    machines_.push_back(Hold());
    if (machines_.back().fd < 0) return;
    const std::string port = "v" + std::to_string(i);
    script += "; ip link add " + port + " type veth peer name eth0 netns " +
              std::to_string(machines_.back().holder->pid()) + "; ip link set " + port +
              " master br0 up";
  }
  if (!Shell(script, switch_.fd)) return;
  for (int i = 0; i < machines; ++i) {
    if (!Shell("set -e; ip link set lo up; ip address add " + Address(i) +
                   "/24 dev eth0; ip link set eth0 up",
               machine(i))) {
      return;
    }
  }
  ok_ = true;
}

Network::~Network() {
  for (Machine& machine : machines_) close(machine.fd);
  close(switch_.fd);
}

bool Network::Cut(int index) {
  return Shell("ip link set v" + std::to_string(index) + " nomaster", switch_.fd);
}

bool Network::Join(int index) {
  return Shell("ip link set v" + std::to_string(index) + " master br0", switch_.fd);
}

bool Network::CutBetween(int one, int other) {
  return Shell("ip route add blackhole " + Address(other) + "/32", machine(one)) &&
         Shell("ip route add blackhole " + Address(one) + "/32", machine(other));
}

bool Network::JoinBetween(int one, int other) {
  return Shell("ip route del blackhole " + Address(other) + "/32", machine(one)) &&
         Shell("ip route del blackhole " + Address(one) + "/32", machine(other));
}

bool Network::ResetPort(int index, int port) {
  const std::string number = std::to_string(port);
  return Shell("ss -K state established '( sport = :" + number + " or dport = :" + number + " )'",
               machine(index));
}

bool Network::Slow(int index, int megabits) {
  const std::string queue =
      " root tbf rate " + std::to_string(megabits) + "mbit burst 256kb latency 50ms";
  return Shell("tc qdisc replace dev v" + std::to_string(index) + queue, switch_.fd) &&
         Shell("tc qdisc replace dev eth0" + queue, machine(index));
}

bool Network::Restore(int index) {
  return Shell("tc qdisc del dev v" + std::to_string(index) + " root", switch_.fd) &&
         Shell("tc qdisc del dev eth0 root", machine(index));
}

}  // namespace troupe::faults
