// A cluster for demonstrations: starts a process per task on this machine, and starts those again
// that are killed.

#ifndef TROUPE_EXAMPLES_LOCAL_CLUSTER_H_
#define TROUPE_EXAMPLES_LOCAL_CLUSTER_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace local_cluster {

/// Ports of the loopback address that nobody uses at the moment.
inline std::vector<int> FreePorts(size_t count) {
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

/// A task of a job.
struct Task {
  std::string job;
  int number = 0;
};

/// Runs this program once for each of `ps` parameter servers and `workers` workers, each with
/// `arguments`, `--cluster FILE --job J --task N`, and, in its first life, `first_life` if it is
/// worker `dying`. Starts processes that were killed again. Returns the exit status of the whole
/// when all workers have ended, or one has failed.
inline int Run(int ps, int workers, const std::vector<std::string>& arguments, int dying,
               const std::vector<std::string>& first_life) {
  const std::vector<int> ports = FreePorts(static_cast<size_t>(ps + workers));
  std::vector<Task> tasks;
  std::string json = "{";
  for (int i = 0; i < ps + workers; ++i) {
    tasks.push_back({i < ps ? "ps" : "worker", i < ps ? i : i - ps});
    if (tasks[i].number == 0) json += (i == 0 ? "\"" : "], \"") + tasks[i].job + "\": [";
    json += (tasks[i].number == 0 ? "\"127.0.0.1:" : ", \"127.0.0.1:") + std::to_string(ports[i]) +
            "\"";
  }
  std::string file = std::filesystem::temp_directory_path() / "troupe_cluster_XXXXXX";
  const int opened = mkstemp(file.data());
  if (opened < 0) return std::cerr << "cannot write " << file << "\n", 1;
  close(opened);
  std::ofstream(file) << json << "]}";

  std::map<pid_t, Task> running;
  const auto start = [&](const Task& task, bool first) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // No process outlives the demonstration.
      std::vector<std::string> all = {"/proc/self/exe"};
      all.insert(all.end(), arguments.begin(), arguments.end());
      const std::string number = std::to_string(task.number);
      all.insert(all.end(), {"--cluster", file, "--job", task.job, "--task", number});
      if (first && task.job == "worker" && task.number == dying) {
        all.insert(all.end(), first_life.begin(), first_life.end());
      }
      std::vector<char*> argv;
      for (std::string& argument : all) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv("/proc/self/exe", argv.data());
      _exit(127);
    }
    running[child] = task;
  };
  for (const Task& task : tasks) start(task, true);

  int result = 0;
  for (int left = workers; left > 0 && result == 0;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended < 0) break;
    const Task task = running[ended];
    running.erase(ended);
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "\n%s %d was killed; it is started again\n", task.job.c_str(),
                   task.number);
      start(task, false);
    } else if (task.job == "worker" && WEXITSTATUS(status) == 0) {
      --left;
    } else {
      result = WEXITSTATUS(status) == 0 ? 1 : WEXITSTATUS(status);
    }
  }
  for (const auto& [child, task] : running) kill(child, SIGKILL);
  for (const auto& [child, task] : running) waitpid(child, nullptr, 0);
  std::remove(file.c_str());
  return result;
}

}  // namespace local_cluster

#endif  // TROUPE_EXAMPLES_LOCAL_CLUSTER_H_
