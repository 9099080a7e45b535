/// Worker processes over which cases are spread.
#ifndef TROUPE_TESTS_GOLDEN_WORKERS_H_
#define TROUPE_TESTS_GOLDEN_WORKERS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "api/program/child_process.h"

namespace troupe::golden {

/// Tasks of one cluster on this machine, each a process of this program's own file, started with
/// `--serve`; that program's main passes its arguments to `ServeTask`. Ends them when destroyed;
/// they also end with the thread that started them. Thread-compatible.
class Workers {
 public:
  Workers() = default;
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Starts `count` tasks of the job "worker", at ports that the kernel chooses, and returns when
  /// all serve. Once.
  absl::Status Start(int count);
  /// "troupe://127.0.0.1:PORT", of the first task.
  std::string target() const;
  /// "/job:worker/task:I", or its device of the spread's type.
  std::vector<std::string> devices() const;
  /// What happened to tasks that have ended, one text each; those are started again.
  std::vector<std::string> Revive();

  /// Of a task, for tests.
  pid_t pid(int task) const { return children_[task].process->pid(); }

 private:
  struct Child {
    int held_port = -1;  ///< A socket that keeps the port from others.
    std::string address;
    std::optional<ChildProcess> process;
  };
  absl::Status Launch(int task);
  absl::Status WaitUntilServing(int task);

  std::vector<Child> children_;
};

/// True if the arguments are those of a worker process; then it has served, and `*status` is the
/// exit status.
bool ServeTask(int argc, char** argv, int* status);

}  // namespace troupe::golden

#endif  // TROUPE_TESTS_GOLDEN_WORKERS_H_
