#include "examples/shared/local_cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "api/program/child_process.h"

namespace local_cluster {

namespace {

/// A task of a job.
struct Task {
  std::string job;
  int number = 0;
};

/// A task's process, and how it ended.
struct Running {
  Task task;
  troupe::ChildProcess process;
  troupe::ExitStatus status = {};
};

/// Waits until one has ended and takes it out.
Running TakeOneThatEnds(std::vector<Running>* running) {
  while (true) {
    for (size_t i = 0; i < running->size(); ++i) {
      const auto status = (*running)[i].process.Wait(absl::ZeroDuration());
      if (!status.has_value()) continue;
      Running ended = std::move((*running)[i]);
      running->erase(running->begin() + static_cast<std::ptrdiff_t>(i));
      ended.status = *status;
      return ended;
    }
    // Several processes cannot be waited for without all others of this one.
    absl::SleepFor(absl::Milliseconds(10));
  }
}

}  // namespace

std::vector<int> FreePorts(size_t count) {
  std::vector<int> sockets, ports;
  for (size_t i = 0; i < count; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    sockets.push_back(socket(AF_INET, SOCK_STREAM, 0));
    if (bind(sockets[i], reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        getsockname(sockets[i], reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::cerr << "there is no free port\n";
      std::exit(1);
    }
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets) close(fd);
  return ports;
}

int Run(const std::vector<Job>& jobs, const std::vector<std::string>& arguments, int dying,
        const std::vector<std::string>& first_life) {
  std::vector<Task> tasks;
  int left = 0;  // Workers that have not ended.
  for (const Job& job : jobs) {
    for (int i = 0; i < job.tasks; ++i) tasks.push_back({job.name, i});
    if (job.name == "worker") left = job.tasks;
  }
  const std::vector<int> ports = FreePorts(tasks.size());
  std::string json = "{";
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].number == 0) json += (i == 0 ? "\"" : "], \"") + tasks[i].job + "\": [";
    json += (tasks[i].number == 0 ? "\"127.0.0.1:" : ", \"127.0.0.1:") + std::to_string(ports[i]) +
            "\"";
  }
  std::string file = std::filesystem::temp_directory_path() / "troupe_cluster_XXXXXX";
  const int opened = mkstemp(file.data());
  if (opened < 0) return std::cerr << "cannot write " << file << "\n", 1;
  close(opened);
  std::ofstream(file) << json << "]}";

  std::vector<Running> running;
  const auto start = [&](const Task& task, bool first) {
    std::vector<std::string> all = {troupe::ThisProgram()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string number = std::to_string(task.number);
    all.insert(all.end(), {"--cluster", file, "--job", task.job, "--task", number});
    if (first && task.job == "worker" && task.number == dying) {
      all.insert(all.end(), first_life.begin(), first_life.end());
    }
    auto process = troupe::ChildProcess::Start({.arguments = all});
    if (!process.ok()) {
      std::cerr << process.status() << "\n";
      return false;
    }
    running.push_back({task, *std::move(process)});
    return true;
  };
  int result = 0;
  for (const Task& task : tasks) {
    if (!start(task, true)) result = 1;
  }
  while (left > 0 && result == 0) {
    const Running ended = TakeOneThatEnds(&running);
    const troupe::ExitStatus status = ended.status;
    if (!status.code.has_value()) {
      std::cerr << "\n"
                << ended.task.job << " " << ended.task.number
                << " was killed; it is started again\n";
      if (!start(ended.task, false)) result = 1;
    } else if (ended.task.job == "worker" && status.ok()) {
      --left;
    } else {
      result = status.ok() ? 1 : *status.code;
    }
  }
  running.clear();  // Ends the others.
  std::remove(file.c_str());
  return result;
}

}  // namespace local_cluster
