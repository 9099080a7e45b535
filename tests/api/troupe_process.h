/// The program `troupe`, for tests.
#ifndef TROUPE_TESTS_API_TROUPE_PROCESS_H_
#define TROUPE_TESTS_API_TROUPE_PROCESS_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe {

/// The program beside this one, running. Killed at the end.
class TroupeProcess {
 public:
  explicit TroupeProcess(std::vector<std::string> arguments) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "troupe";
    arguments.insert(arguments.begin(), program.string());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~TroupeProcess() {
    if (pid_ > 0) End(SIGKILL);
    close(output_);
  }
  TroupeProcess(const TroupeProcess&) = delete;
  TroupeProcess& operator=(const TroupeProcess&) = delete;

  /// The next line of what it prints; waits for it.
  std::string Line() {
    std::string line;
    char c;
    while (read(output_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  void Signal(int number) { kill(pid_, number); }
  /// The status with which it ends, as `waitpid` gives it.
  int Wait() {
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  int End(int signal_number) {
    Signal(signal_number);
    return Wait();
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_API_TROUPE_PROCESS_H_
