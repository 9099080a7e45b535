/// A process of a cluster, as scripts/bench-peers plays it: what Troupe's program (cluster_peer.cc)
/// and TensorFlow's (scripts/bench/tensorflow_cluster.cc) have in common, so that both are measured
/// alike. The standard library only.
///
///     [--cluster JOB=HOST:PORT,...]... [--job J --task N] [--master HOST:PORT] [--other HOST:PORT]
///     [--devices N] [--threads N] [--no-optimize]
///     [--graph FILE [--init NODE]... [--feed NAME=FILE.npy]... [--target NODE]... [--chief NODE]]
///
/// With --job it is that task of the cluster; its sessions have it, or else --master, as their
/// master, or are local if there is neither. It prints {"ready": 1} when it serves. Then each line
/// of the standard input is a command, answered by one line of JSON:
///
///     open         makes the session, runs the --init nodes
///     seconds S    steps for S seconds, after a warm-up
///     together S   the same for steps that wait for those of others, and --chief runs beside them
///     calls S      small calls to --other for S seconds, while steps go on
///
/// The end of the standard input is the end of the process, in bounded time, whatever it does.
#ifndef TROUPE_TESTS_BENCHMARKS_CLUSTER_PLAYER_H_
#define TROUPE_TESTS_BENCHMARKS_CLUSTER_PLAYER_H_

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iostream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cluster_player {

struct Options {
  std::vector<std::pair<std::string, std::vector<std::string>>> cluster;
  std::string job, master, other, graph, chief;
  int task = 0, devices = 1, threads = 0;
  bool optimize = true;
  std::vector<std::string> init, targets;
  std::vector<std::pair<std::string, std::string>> feeds;
};

[[noreturn]] inline void Fail(const std::string& message) {
  std::cerr << message << std::endl;
  _exit(1);
}

inline Options Parse(int argc, char** argv, int first) {
  Options options;
  for (int i = first; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--no-optimize") {
      options.optimize = false;
      continue;
    }
    if (i + 1 >= argc) Fail(option + " needs a value");
    const std::string value = argv[++i];
    const size_t equals = value.find('=');
    if (option == "--cluster") {
      std::stringstream list(value.substr(equals + 1));
      options.cluster.emplace_back(value.substr(0, equals), std::vector<std::string>());
      for (std::string address; std::getline(list, address, ',');) {
        options.cluster.back().second.push_back(address);
      }
    } else if (option == "--feed") {
      options.feeds.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    } else if (option == "--init") {
      options.init.push_back(value);
    } else if (option == "--target") {
      options.targets.push_back(value);
    } else if (option == "--job") {
      options.job = value;
    } else if (option == "--task") {
      options.task = std::stoi(value);
    } else if (option == "--master") {
      options.master = value;
    } else if (option == "--other") {
      options.other = value;
    } else if (option == "--graph") {
      options.graph = value;
    } else if (option == "--chief") {
      options.chief = value;
    } else if (option == "--devices") {
      options.devices = std::stoi(value);
    } else if (option == "--threads") {
      options.threads = std::stoi(value);
    } else {
      Fail("unknown option " + option);
    }
  }
  return options;
}

/// One side's part. Any failure ends the process with `Fail`.
class Player {
 public:
  virtual ~Player() = default;
  virtual void Serve() = 0;  ///< If it is a task.
  virtual void Open() = 0;
  virtual void Step() = 0;
  virtual void ChiefStep() = 0;
  /// Asks the master of another session, at --other, for the cluster's devices.
  virtual void SmallCall() = 0;
  virtual void Stop() = 0;  ///< Errors of steps that it cuts off do not count.
};

/// The standard input by lines. When it ends, the process has five seconds to do so too.
class Commands {
 public:
  Commands() {
    std::thread([this] {
      for (std::string line; std::getline(std::cin, line);) {
        std::lock_guard<std::mutex> lock(mutex_);
        lines_.push_back(line);
        changed_.notify_one();
      }
      {
        std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
        changed_.notify_one();
      }
      std::this_thread::sleep_for(std::chrono::seconds(5));
      _exit(1);
    }).detach();
  }

  bool Next(std::string* line) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return over_ || !lines_.empty(); });
    if (over_) return false;
    *line = lines_.front();
    lines_.pop_front();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool over_ = false;
};

using Clock = std::chrono::steady_clock;

inline double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline void Print(std::vector<double> micros, double seconds) {
  std::sort(micros.begin(), micros.end());
  const size_t n = micros.size();
  std::printf(
      "{\"runs\": %zu, \"seconds\": %.6f, \"min_us\": %.3f, \"median_us\": %.3f, \"p99_us\": "
      "%.3f}\n",
      n, seconds, micros[0], micros[n / 2], micros[std::min(n - 1, n * 99 / 100)]);
  std::fflush(stdout);
}

/// Times `run` again and again, while `more(runs, seconds)` says so, and at least once.
template <typename Run, typename More>
void Measure(const Run& run, const More& more) {
  std::vector<double> micros;
  const Clock::time_point start = Clock::now();
  Clock::time_point before = start;
  do {
    run();
    const Clock::time_point after = Clock::now();
    micros.push_back(std::chrono::duration<double, std::micro>(after - before).count());
    before = after;
  } while (more(micros.size(), std::chrono::duration<double>(before - start).count()));
  Print(std::move(micros), std::chrono::duration<double>(before - start).count());
}

inline void RunSeconds(Player* player, double seconds) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < 3 || SecondsSince(start) < seconds / 10; ++i) player->Step();
  Measure([&] { player->Step(); }, [&](size_t, double passed) { return passed < seconds; });
}

/// Steps that need those of other processes, and may wait for them when these have stopped: made by
/// threads that go on while they are told so.
class Together {
 public:
  Together(Player* player, bool chief) : player_(player), chief_(chief) {}

  void Run(double seconds) {
    if (!started_) {
      started_ = true;
      Loop([this] {
        player_->Step();
        ++steps_;
      });
      if (chief_) Loop([this] { player_->ChiefStep(); });
    }
    Set(true);
    const auto length = std::chrono::duration<double>(seconds);
    std::this_thread::sleep_for(length / 10);
    const int64_t before = steps_;
    const Clock::time_point start = Clock::now();
    std::this_thread::sleep_for(length);
    const int64_t runs = steps_ - before;
    const double passed = SecondsSince(start);
    Set(false);
    std::printf("{\"runs\": %lld, \"seconds\": %.6f}\n", static_cast<long long>(runs), passed);
    std::fflush(stdout);
  }

 private:
  template <typename F>
  void Loop(F run) {
    std::thread([this, run] {
      for (;;) {
        {
          std::unique_lock<std::mutex> lock(mutex_);
          changed_.wait(lock, [this] { return going_; });
        }
        run();
      }
    }).detach();
  }
  void Set(bool going) {
    std::lock_guard<std::mutex> lock(mutex_);
    going_ = going;
    changed_.notify_all();
  }

  Player* const player_;
  const bool chief_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool going_ = false, started_ = false;
  std::atomic<int64_t> steps_{0};
};

inline void RunCalls(Player* player, double seconds) {
  std::atomic<bool> over{false};
  std::thread load([&] {
    while (!over) player->Step();
  });
  player->SmallCall();
  std::vector<double> micros;
  const Clock::time_point start = Clock::now();
  while (micros.empty() || SecondsSince(start) < seconds) {
    // So that calls meet every part of a transfer, and are no load themselves.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const Clock::time_point before = Clock::now();
    player->SmallCall();
    micros.push_back(SecondsSince(before) * 1e6);
  }
  const double passed = SecondsSince(start);
  over = true;
  load.join();
  Print(std::move(micros), passed);
}

/// What `main` does.
[[noreturn]] inline void Play(Player* player, const Options& options) {
  Commands commands;
  Together together(player, !options.chief.empty());
  if (!options.job.empty()) player->Serve();
  std::printf("{\"ready\": 1}\n");
  std::fflush(stdout);
  for (std::string line; commands.Next(&line);) {
    std::stringstream words(line);
    std::string command;
    double number = 0;
    words >> command >> number;
    if (command == "open") {
      player->Open();
      std::printf("{\"open\": 1}\n");
      std::fflush(stdout);
    } else if (command == "seconds") {
      RunSeconds(player, number);
    } else if (command == "together") {
      together.Run(number);
    } else if (command == "calls") {
      RunCalls(player, number);
    } else {
      Fail("unknown command " + line);
    }
  }
  player->Stop();
  _exit(0);  // Steps that wait may have been left.
}

}  // namespace cluster_player

#endif  // TROUPE_TESTS_BENCHMARKS_CLUSTER_PLAYER_H_
