#include "api/data/root.h"

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "devices/exceptions.h"
#include "devices/log.h"
#include "devices/status_macros.h"
#include "devices/storage/coding.h"
#include "devices/storage/crc32c.h"
#include "graph/protos/stats.pb.h"

namespace troupe::data {
namespace {

constexpr std::string_view kMagic = "troupe dataset position 2";

/// Of those whose callbacks this thread calls just now, the last one.
constinit thread_local const Root* played_here = nullptr;

int ThreadsOf(const DatasetIteratorOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Ends iterators that are let go of by one of their own callbacks.
class Ending final : public PoolTask {
 public:
  static void Later(std::shared_ptr<Root> root) {
    static auto* const thread = new ComputePool(/*threads=*/1, /*spin_microseconds=*/0);
    thread->SubmitLong(new Ending(std::move(root)));
  }

 private:
  explicit Ending(std::shared_ptr<Root> root) : root_(std::move(root)) {}
  void Run() noexcept override {
    Root::End(std::move(root_));
    delete this;
  }
  std::shared_ptr<Root> root_;
};

}  // namespace

Root::Root(const DatasetIteratorOptions& options)
    : OwnFlow{{ThreadsOf(options), TimeSource::System()}},
      Activity(&flow_of_root),
      options_(options),
      begin_ns_(flow()->clock()->NowNs()),
      log_every_ns_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(
          std::clamp(options.log_every, absl::Milliseconds(1), absl::Hours(10000))))),
      next_log_ns_(begin_ns_ + log_every_ns_) {}

absl::StatusOr<std::shared_ptr<Root>> Root::Make(const Plan& plan,
                                                 const DatasetIteratorOptions& options) {
  std::shared_ptr<Root> root(new Root(options));
  TROUPE_ASSIGN_OR_RETURN(root->stage_, plan.Make({root.get(), nullptr}));
  return root;
}

void Root::End(std::shared_ptr<Root> root) {
  root->Cancel();
  if (root->PlaysHere()) return Ending::Later(std::move(root));
  root->flow()->Stop();
}

bool Root::PlaysHere() const { return played_here == this || flow()->OnOwnThread(); }

// ---- Requests ----

absl::StatusOr<bool> Root::Next(Tensors* element) {
  const auto request = std::make_shared<Request>();
  std::unique_lock<std::mutex> lock(mutex_);
  if (!over_.ok()) return over_;
  line_.push_back(request);
  ++waiting_;
  lock.unlock();
  PlayHere();
  lock.lock();
  while (!request->over) {
    if (play_wanted_) {
      play_wanted_ = false;
      lock.unlock();
      Run();
      lock.lock();
      continue;
    }
    changed_.wait(lock);
  }
  // Somebody else must play if it was to be this thread.
  const bool hand_on = --waiting_ == 0 && std::exchange(play_wanted_, false);
  lock.unlock();
  if (hand_on) flow()->Submit(this);
  if (request->more.ok() && *request->more) *element = ToTensors(std::move(request->element));
  return request->more;
}

uint64_t Root::NextAsync(DatasetIterator::Done done) {
  auto request = std::make_shared<Request>();
  request->done = std::move(done);
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t id = request->id = ++last_id_;
  const absl::Status over = over_;
  if (!over.ok()) {
    lock.unlock();
    request->done(over, {});
    return id;
  }
  line_.push_back(std::move(request));
  lock.unlock();
  PlayHere();
  return id;
}

bool Root::Forget(uint64_t id) {
  std::shared_ptr<Request> forgotten;  // Goes without the lock.
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = line_.begin(); it != line_.end(); ++it) {
    if ((*it)->id != id) continue;
    forgotten = std::move(*it);
    line_.erase(it);
    return true;
  }
  return false;
}

void Root::Cancel() {
  flow()->BeginStop();
  std::unique_lock<std::mutex> lock(mutex_);
  if (over_.ok()) over_ = absl::CancelledError("the iterator is cancelled");
  while (!line_.empty()) Answer(&lock, over_, {});
}

void Root::Finish() {
  Cancel();
  if (PlaysHere()) return;
  std::lock_guard<std::mutex> one(positions_);
  flow()->Stop();
  stage_.reset();
  std::lock_guard<std::mutex> lock(mutex_);
  kept_.clear();
}

void Root::Answer(std::unique_lock<std::mutex>* lock, absl::StatusOr<bool> more, Element element) {
  const std::shared_ptr<Request> request = std::move(line_.front());
  line_.pop_front();
  if (request->done == nullptr) {
    request->more = std::move(more);
    request->element = std::move(element);
    request->over = true;
    changed_.notify_all();
    return;
  }
  lock->unlock();
  const Root* const before = std::exchange(played_here, this);
  KeepGoing([&] {
    Tensors tensors;
    const absl::Status made = CatchExceptions([&] {
      tensors = ToTensors(std::move(element));
      return absl::OkStatus();
    });
    if (!made.ok()) more = made;  // Memory has run out: whoever waits is told so.
    request->done(std::move(more), std::move(tensors));
  });
  request->done = nullptr;  // What it holds goes without the lock.
  played_here = before;
  lock->lock();
}

void Root::Schedule() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_ > 0) {
      play_wanted_ = true;
      changed_.notify_all();
      return;
    }
  }
  flow()->Submit(this);
}

absl::StatusOr<Progress> Root::PullOne(Block* out) {
  if (!started_) {
    started_ = true;
    stage_->Start(0);
  }
  Tick();
  return stage_->Pull(1, out);
}

void Root::Play() noexcept {
  Block block;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!line_.empty() && over_.ok()) {
    absl::StatusOr<Progress> progress = Progress::kSome;
    if (kept_.empty()) {
      lock.unlock();
      block.clear();
      progress = PullOne(&block);
      if (measuring()) LogSometimes();
      lock.lock();
    } else {
      block = std::exchange(kept_, {});
    }
    if (progress.ok() && *progress == Progress::kPending) return;
    const bool some = progress.ok() && *progress == Progress::kSome;
    if (line_.empty() || !over_.ok()) {  // Nobody wants it any more.
      if (some) kept_ = std::move(block);
      return;
    }
    if (!progress.ok()) {
      Answer(&lock, progress.status(), {});
    } else {
      Answer(&lock, some, some ? std::move(block[0]) : Element());
    }
  }
}

// ---- Positions ----

absl::StatusOr<std::string> Root::Save() {
  if (PlaysHere()) {
    return absl::FailedPreconditionError("a position is not saved by a function of the dataset");
  }
  std::lock_guard<std::mutex> one(positions_);
  flow()->Pause();
  absl::StatusOr<std::string> position = CatchExceptions([&]() -> absl::StatusOr<std::string> {
    PositionWriter to;
    to.Text(kMagic);
    to.Number(started_ ? 1 : 0);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      TROUPE_RETURN_IF_ERROR(over_);
      if (started_) TROUPE_RETURN_IF_ERROR(to.Put(kept_));
    }
    if (started_) TROUPE_RETURN_IF_ERROR(stage_->SavePosition(&to));
    std::string bytes = to.Take();
    AppendFixed(MaskCrc32c(Crc32c(bytes)), &bytes);
    return bytes;
  });
  flow()->Resume();
  return position;
}

absl::Status Root::Restore(std::string_view position) {
  if (PlaysHere()) {
    return absl::FailedPreconditionError("a position is not restored by a function of the dataset");
  }
  constexpr size_t kChecksum = sizeof(uint32_t);
  if (position.size() < kChecksum ||
      UnmaskCrc32c(DecodeFixed<uint32_t>(position.data() + position.size() - kChecksum)) !=
          Crc32c(position.substr(0, position.size() - kChecksum))) {
    return InvalidArgument("these are no bytes of a position, or they are damaged");
  }
  std::lock_guard<std::mutex> one(positions_);
  flow()->Pause();
  absl::Status status = CatchExceptions([&]() -> absl::Status {
    if (started_) {
      return absl::FailedPreconditionError("the iterator has been used; restore a new one");
    }
    {
      std::lock_guard<std::mutex> lock(mutex_);
      TROUPE_RETURN_IF_ERROR(over_);
    }
    PositionReader from(position.substr(0, position.size() - kChecksum));
    from.Expect(kMagic);
    Block kept;
    if (from.Flag()) {
      started_ = true;
      kept = from.TakeBlock();
      stage_->RestorePosition(&from);
    }
    if (from.status().ok() && (!from.at_end() || kept.size() > 1)) from.Refuse();
    std::unique_lock<std::mutex> lock(mutex_);
    TROUPE_RETURN_IF_ERROR(over_);
    kept_ = std::move(kept);
    if (!from.status().ok()) {
      over_ = from.status();
      flow()->BeginStop();                              // What is half restored is not played.
      while (!line_.empty()) Answer(&lock, over_, {});  // Asked for meanwhile.
    }
    return from.status();
  });
  flow()->Resume();
  return status;
}

// ---- Statistics ----

std::vector<StageStats> Root::Stats() {
  std::vector<StageStats> stats;
  std::map<const Meter*, size_t> places;
  flow()->ForEachMeter([&](const Meter* meter) {
    StageStats& stage = stats.emplace_back();
    stage.name = meter->name();
    stage.elements = meter->elements();
    stage.busy_seconds = static_cast<double>(meter->ns()) * 1e-9;
    stage.starved = meter->starved();
    stage.held = meter->held();
    stage.capacity = meter->capacity();
    stage.parallel = meter->parallel();
    stage.bad = meter->bad();
    places[meter] = stats.size() - 1;
    const auto parent = places.find(meter->parent());
    if (parent == places.end()) return;
    stage.depth = stats[parent->second].depth + 1;
    // The time of a pull has that of the pulls before it, if the same player did them.
    if (meter->parent()->player() == meter->player()) {
      double& busy = stats[parent->second].busy_seconds;
      busy = std::max(0.0, busy - stage.busy_seconds);
    }
  });
  return stats;
}

namespace {

std::string Describe(const StageStats& stage, double seconds) {
  std::string text =
      absl::StrFormat("%.0f/s, busy %.1f %%", static_cast<double>(stage.elements) / seconds,
                      100 * stage.busy_seconds / seconds);
  if (stage.capacity > 0) {
    absl::StrAppendFormat(&text, ", %d of %d ready, starved %d times", stage.held, stage.capacity,
                          stage.starved);
  }
  if (stage.parallel > 0) absl::StrAppendFormat(&text, ", %d calls at once", stage.parallel);
  if (stage.bad > 0) absl::StrAppendFormat(&text, ", %d bad", stage.bad);
  return text;
}

}  // namespace

std::string Root::StatsText() {
  const double seconds = static_cast<double>(flow()->clock()->NowNs() - begin_ns_) * 1e-9 + 1e-9;
  std::string text;
  for (const StageStats& stage : Stats()) {
    absl::StrAppend(&text, std::string(static_cast<size_t>(stage.depth), ' '), stage.name, ": ",
                    Describe(stage, seconds), "\n");
  }
  return text;
}

void Root::AddStatsTo(RunMetadata* metadata) {
  const double seconds = static_cast<double>(flow()->clock()->NowNs() - begin_ns_) * 1e-9 + 1e-9;
  const int64_t now = flow()->clock()->UnixNs();
  DeviceStepStats* const device = metadata->mutable_step_stats()->add_dev_stats();
  device->set_device(StrCat("/dataset:", options_.name));
  for (const StageStats& stage : Stats()) {
    NodeExecStats* const node = device->add_node_stats();
    node->set_node_name(stage.name);
    // What an element takes, as if it had just been made: a timeline has it beside the step.
    const auto each = static_cast<int64_t>(
        stage.busy_seconds * 1e9 / static_cast<double>(std::max<int64_t>(1, stage.elements)));
    node->set_all_start_nanos(now - each);
    node->set_all_start_micros((now - each) / 1000);
    node->set_op_end_rel_nanos(each);
    node->set_op_end_rel_micros(each / 1000);
    node->set_all_end_rel_nanos(each);
    node->set_all_end_rel_micros(each / 1000);
    node->set_timeline_label(Describe(stage, seconds));
  }
}

void Root::LogSometimes() {
  if (!Logs(LogLevel::kInfo)) return;
  const uint64_t now = flow()->clock()->NowNs();
  if (now < next_log_ns_) return;
  next_log_ns_ = now + log_every_ns_;
  WriteLog(LogLevel::kInfo, "", {"dataset_stats", options_.name}, "Dataset ", options_.name, ": ",
           StatsText());
}

}  // namespace troupe::data
