#include "tests/golden/isolate.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "devices/status_macros.h"

namespace troupe::golden {
namespace {

// The child writes lines: "F text" per failure, then "P", "X" (failed) or "S op" for the case.

void WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(3);  // nobody listens any more
    done += static_cast<size_t>(n);
  }
}

[[noreturn]] void RunChild(const std::vector<const Case*>& cases, size_t begin, int fd,
                           Runner runner) {
  for (size_t i = begin; i < cases.size(); ++i) {
    const Outcome outcome = runner(*cases[i]);
    std::string text;
    for (const std::string& failure : outcome.failures) text += StrCat("F ", failure, "\n");
    switch (outcome.verdict) {
      case Verdict::kPassed:
        text += "P\n";
        break;
      case Verdict::kFailed:
        text += "X\n";
        break;
      case Verdict::kSkipped:
        text += StrCat("S ", outcome.missing_op, "\n");
        break;
    }
    WriteAll(fd, text);
  }
  std::fflush(nullptr);
  _exit(0);
}

/// Splits what the child writes into outcomes.
class Listener {
 public:
  enum class Event { kOutcome, kEnd, kSilence };

  Listener(int fd, int milliseconds) : fd_(fd), milliseconds_(milliseconds) {}

  Event Next(Outcome* outcome) {
    *outcome = Outcome();
    while (true) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        const std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        if (Take(line, outcome)) return Event::kOutcome;
        continue;
      }
      pollfd waiting{fd_, POLLIN, 0};
      const int ready = poll(&waiting, 1, milliseconds_);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return Event::kSilence;
      char block[16 << 10];
      const ssize_t n = read(fd_, block, sizeof(block));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Event::kEnd;
      buffer_.append(block, static_cast<size_t>(n));
    }
  }

 private:
  /// True if the line ends an outcome.
  static bool Take(const std::string& line, Outcome* outcome) {
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    switch (line.empty() ? '\0' : line[0]) {
      case 'F':
        outcome->failures.push_back(rest);
        return false;
      case 'P':
        return true;
      case 'X':
        outcome->verdict = Verdict::kFailed;
        return true;
      case 'S':
        outcome->verdict = Verdict::kSkipped;
        outcome->missing_op = rest;
        return true;
      default:
        return false;
    }
  }

  int fd_;
  int milliseconds_;
  std::string buffer_;
};

std::string HowItEnded(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    return StrCat("killed by signal ", WTERMSIG(wait_status), " (",
                  strsignal(WTERMSIG(wait_status)), ")");
  }
  return StrCat("ended with exit status ", WEXITSTATUS(wait_status));
}

}  // namespace

void RunHere(const std::vector<const Case*>& cases, const Report& report) {
  for (const Case* test : cases) report(*test, RunCase(*test));
}

void RunIsolated(const std::vector<const Case*>& cases, int seconds, const Report& report,
                 Runner runner) {
  size_t next = 0;
  while (next < cases.size()) {
    int fds[2];
    std::fflush(nullptr);
    if (pipe(fds) != 0) std::abort();
    const pid_t child = fork();
    if (child < 0) std::abort();
    if (child == 0) {
      close(fds[0]);
      RunChild(cases, next, fds[1], runner);
    }
    close(fds[1]);
    Listener listener(fds[0], seconds * 1000);
    Outcome outcome;
    Listener::Event event;
    while ((event = listener.Next(&outcome)) == Listener::Event::kOutcome) {
      if (next < cases.size()) report(*cases[next++], outcome);
    }
    if (event == Listener::Event::kSilence) kill(child, SIGKILL);
    int wait_status = 0;
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
    }
    close(fds[0]);
    if (next >= cases.size()) continue;
    outcome.verdict = Verdict::kFailed;
    outcome.failures.push_back(event == Listener::Event::kSilence
                                   ? StrCat("no result within ", seconds, " s")
                                   : StrCat("the process was ", HowItEnded(wait_status)));
    report(*cases[next++], outcome);
  }
}

}  // namespace troupe::golden
