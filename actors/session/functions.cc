#include "actors/session/functions.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "devices/device.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/passes/lower_step.h"
#include "graph/protos/graph.pb.h"
#include "kernels/argument_spaces.h"
#include "kernels/data/element_memory.h"
#include "kernels/late_errors.h"
#include "kernels/registered_kernels.h"

namespace troupe {

namespace {

// How many calls one thread's stack carries: about 1.5 KiB each, several times that in debug
// builds.
constexpr int kMaxNesting = 128;
// Enough to go on with at once; a burst of deeper or concurrent calls leaves no more.
constexpr size_t kKeptFrames = 64;

/// Whether nodes ask for devices, or cannot run on the one that is meant for all.
bool NeedsPlacement(const Graph& graph, const CompileOptions& options) {
  const std::vector<Node*> nodes = graph.nodes();
  const auto lacks_kernel = RegisteredKernels(graph);
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node* node) {
    if (!node->requested_device().empty()) return true;
    if (options.device == nullptr || FlowOpOf(*node) != FlowOp::kNone) return false;
    const bool computes = node->op() != "_Arg" && node->op() != "NoOp";
    return computes && !node->IsSource() && !node->IsSink() &&
           lacks_kernel(*node, options.device->device->type()) != nullptr;
  });
}

}  // namespace

// --- calls -------------------------------------------------------------------------------------

struct CompiledFunction::Frame final : PoolTask {
  explicit Frame(CompiledFunction* f)
      : function(f),
        args(std::make_unique<Tensor[]>(f->arg_types_.size())),
        results(std::make_unique<Tensor[]>(f->result_types_.size())),
        fetched(std::make_unique<Tensor[]>(f->num_fetches_)),
        executors(f->partitions_, f->arg_types_.size()) {}

  void Start() noexcept { Play(/*begin=*/true); }
  /// Arguments have been copied to the host.
  void Run() noexcept override { Play(/*begin=*/true); }

  CompiledFunction* const function;
  absl::Status status;  ///< Of the body.
  StepContext step;
  std::unique_ptr<Tensor[]> args;
  std::unique_ptr<Tensor[]> results;  ///< Those that are arguments.
  std::unique_ptr<Tensor[]> fetched;
  PartitionedStep executors;
  // Where the results go: one of them.
  KernelContext* to_ctx = nullptr;
  Tensor* to_results = nullptr;
  KernelDone done{};
  bool begins = false;
  Frame* next = nullptr;
  // Arguments that are copied to the host.
  std::atomic<size_t> copies_left{0};
  bool copied = false;
  std::mutex copy_mutex;
  absl::Status copy_status;

 private:
  /// What this thread's stack holds, and what it has been spared.
  struct Nesting {
    int depth = 0;
    Frame* put_off = nullptr;  ///< The newest first, so that a tree of calls is walked in depth.
  };
  static Nesting& OfThisThread() {
    static constinit thread_local Nesting nesting;
    return nesting;
  }

  void Play(bool begin) noexcept {
    Nesting& nesting = OfThisThread();
    begins = begin;
    if (nesting.depth >= kMaxNesting) {
      next = nesting.put_off;
      nesting.put_off = this;
      return;
    }
    ++nesting.depth;
    Go();
    if (nesting.depth == 1) {
      while (Frame* frame = nesting.put_off) {
        nesting.put_off = frame->next;
        frame->Go();
      }
    }
    --nesting.depth;
  }

  void Go() { begins ? Begin() : End(); }

  /// One copy less to wait for; true: it was the last one.
  bool CopyOver(const absl::Status& status) {
    {
      std::lock_guard<std::mutex> lock(copy_mutex);
      copy_status.Update(status);
    }
    return copies_left.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  /// False: the arguments are on their way to the host, and whoever has them there goes on.
  bool CopyArguments() {
    const size_t n = function->arg_types_.size();
    copied = true;
    copy_status = absl::OkStatus();
    copies_left.store(n + 1, std::memory_order_relaxed);
    for (size_t i = 0; i < n; ++i) {
      const Tensor arg = args[i];
      const auto arrives = [this, i](absl::StatusOr<Tensor> here) {
        const absl::Status status = here.status();
        if (status.ok()) args[i] = *std::move(here);
        if (!CopyOver(status)) return;
        // Who tells must not play: the device waits for it.
        if (step.pool != nullptr && CatchExceptions([this] {
                                      step.pool->SubmitLong(this);
                                      return absl::OkStatus();
                                    }).ok()) {
          return;
        }
        Play(/*begin=*/true);
      };
      const absl::Status begun = CatchExceptions([&] {
        DownloadValue(function->device(), arg, arrives);
        return absl::OkStatus();
      });
      if (!begun.ok()) CopyOver(begun);
    }
    return CopyOver(absl::OkStatus());
  }

  void Begin() {
    if (function->crosses_) {
      if (!copied && !CopyArguments()) return;
      if (copy_status.ok() && step.late_errors != nullptr && step.late_errors->any()) {
        copy_status = absl::CancelledError("what the call was given has failed");
      }
      if (!copy_status.ok()) {
        status = copy_status;
        return End();
      }
    }
    try {
      executors.RunAsync(step, absl::MakeSpan(args.get(), function->arg_types_.size()),
                         absl::MakeSpan(fetched.get(), function->num_fetches_),
                         [this](absl::Status result) {
                           status = std::move(result);
                           Play(/*begin=*/false);
                         });
    } catch (...) {  // Nothing has begun.
      status = StatusOfException();
      End();
    }
  }

  void End() {
    for (size_t i = 0; i < function->arg_types_.size(); ++i) args[i].Reset();
    copied = false;
    const std::vector<Source>& sources = function->sources_;
    for (size_t i = 0; i < sources.size(); ++i) {
      Tensor& from = sources[i].is_arg ? results[i] : fetched[sources[i].index];
      if (status.ok() && function->crosses_ && function->options_.results_in_place &&
          LivesOnDevice(from.type())) {
        absl::StatusOr<Tensor> there =
            CatchExceptions([&] { return Upload(function->device(), from); });
        status = there.status();
        if (there.ok()) from = *std::move(there);
      }
      if (!status.ok()) {
        from.Reset();
      } else if (to_ctx != nullptr) {
        to_ctx->set_output(static_cast<int>(i), std::move(from));
      } else {
        to_results[i] = std::move(from);
      }
    }
    const KernelDone tell = done;
    absl::Status result = std::exchange(status, {});
    function->Release(this);
    tell(std::move(result), Player::kPlays);  // This thread has played the body.
  }
};

CompiledFunction::CompiledFunction(const CompileOptions& options, Runtime* runtime)
    : options_(options), runtime_(runtime) {}

CompiledFunction::~CompiledFunction() { delete hot_.load(std::memory_order_acquire); }

absl::StatusOr<std::unique_ptr<CompiledFunction>> CompiledFunction::Create(
    FunctionBody body, const CompileOptions& options, Runtime* runtime) {
  std::unique_ptr<CompiledFunction> function(new CompiledFunction(options, runtime));
  StepSignature signature;
  signature.feeds = body.args;
  signature.targets = body.effects;
  for (const Output& arg : body.args) function->arg_types_.push_back(RemoveRef(arg.type()));
  for (const Output& result : body.results) {
    function->result_types_.push_back(RemoveRef(result.type()));
    Source source;
    // An argument that is wanted in another memory is fetched.
    const bool moves = options.args_in_place && !options.results_in_place &&
                       MayBeOnDevice(function->result_types_.back());
    for (size_t i = 0; i < body.args.size() && !moves; ++i) {
      if (body.args[i] == result) source = {true, static_cast<int>(i)};
    }
    if (!source.is_arg) {
      source.index = static_cast<int>(signature.fetches.size());
      signature.fetches.push_back(result);
    }
    function->sources_.push_back(source);
  }
  CompileOptions placed = options;
  placed.one_device = runtime->devices().size() == 1 || !NeedsPlacement(*body.graph, options);
  absl::StatusOr<CompiledStep> compiled =
      Compile(*body.graph, signature, placed, runtime, &function->stateful_);
  if (!compiled.ok()) {
    return WithContext(StrCat("function '", body.name, "': "), compiled.status());
  }
  function->num_fetches_ = compiled->num_fetches;
  function->partitions_ = std::move(compiled->partitions);
  if (placed.one_device) function->partitions_[0].device = nullptr;  // The caller's.
  function->crosses_ = options.args_in_place && !placed.one_device;
  function->body_ = std::move(body);
  return function;
}

absl::StatusOr<CompiledFunction*> CompiledFunction::For(const StepContext& step, ResultsIn where) {
  const Device* device = step.device;
  if (device == nullptr || device->memory_space() == MemorySpace::kHost) return this;
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<CompiledFunction>& there = on_devices_[{device, where}];
  if (there == nullptr) {
    CompileOptions options = options_;
    options.device = runtime_->FindDevice(device->name());
    options.args_in_place = true;
    options.results_in_place = where == ResultsIn::kPlace;
    TROUPE_ASSIGN_OR_RETURN(there, Create(body_, options, runtime_));
  }
  return there.get();
}

std::vector<const Plan*> CompiledFunction::Plans() const {
  std::vector<const Plan*> plans;
  for (const LocalPartition& part : partitions_) plans.push_back(part.plan.get());
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [key, there] : on_devices_) {
    if (there == nullptr) continue;  // It could not be compiled.
    const std::vector<const Plan*> more = there->Plans();
    plans.insert(plans.end(), more.begin(), more.end());
  }
  return plans;
}

CompiledFunction::Frame* CompiledFunction::Acquire(const StepContext& step, KernelDone done) {
  if (step.call_depth >= kMaxDepth) {
    done(absl::ResourceExhaustedError(
        StrCat("function '", body_.name, "' is called with more than ", kMaxDepth,
               " calls around it: does it call itself without end?")));
    return nullptr;
  }
  Frame* frame = hot_.exchange(nullptr, std::memory_order_acquire);
  if (frame == nullptr) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      frame = free_.back().release();
      free_.pop_back();
    }
  }
  if (frame == nullptr) {
    auto made = std::make_unique<Frame>(this);
    std::lock_guard<std::mutex> lock(mutex_);
    free_.reserve(kKeptFrames);  // `Release` needs no memory.
    frame = made.release();
  }
  frame->step = step;
  ++frame->step.call_depth;
  // The caller may be a kernel that works in the device's memory.
  if (device() != nullptr) frame->step.allocator = device()->allocator(MemorySpace::kHost);
  frame->done = done;
  return frame;
}

void CompiledFunction::Start(Frame* frame, absl::FunctionRef<Tensor(int)> take) {
  const auto give_up = [&] {
    for (int i = 0; i < num_args(); ++i) frame->args[i].Reset();
    for (size_t i = 0; i < sources_.size(); ++i) frame->results[i].Reset();
    Release(frame);
  };
  try {
    const int n = num_args();
    for (int i = 0; i < n; ++i) {
      frame->args[i] = take(i);
      if (device() == nullptr || crosses_ || !LivesOnDevice(arg_types_[i])) continue;
      absl::StatusOr<Tensor> there = Upload(device(), frame->args[i]);
      if (!there.ok()) {
        const KernelDone tell = frame->done;
        give_up();
        return tell(there.status());
      }
      frame->args[i] = *std::move(there);
    }
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i].is_arg) frame->results[i] = frame->args[sources_[i].index];
    }
  } catch (...) {
    give_up();
    throw;
  }
  frame->Start();
}

void CompiledFunction::Release(Frame* frame) noexcept {
  Frame* none = nullptr;
  if (hot_.compare_exchange_strong(none, frame, std::memory_order_release,
                                   std::memory_order_relaxed)) {
    return;
  }
  std::unique_ptr<Frame> owned(frame);
  std::lock_guard<std::mutex> lock(mutex_);
  if (free_.size() < kKeptFrames) free_.push_back(std::move(owned));
}

void CompiledFunction::Call(KernelContext& ctx, const StepContext& step, int first_input,
                            ResultsIn where, KernelDone done) {
  absl::StatusOr<CompiledFunction*> function = For(step, where);
  if (!function.ok()) return done(function.status());
  Frame* frame = (*function)->Acquire(step, done);
  if (frame == nullptr) return;
  frame->to_ctx = &ctx;
  (*function)->Start(frame, [&](int i) { return ctx.TakeInput(first_input + i); });
}

void CompiledFunction::Call(const StepContext& step, absl::Span<Tensor> args, Tensor* results,
                            ResultsIn where, KernelDone done) {
  absl::StatusOr<CompiledFunction*> function = For(step, where);
  if (!function.ok()) return done(function.status());
  Frame* frame = (*function)->Acquire(step, done);
  if (frame == nullptr) return;
  frame->to_ctx = nullptr;
  frame->to_results = results;
  (*function)->Start(frame, [&](int i) { return std::move(args[static_cast<size_t>(i)]); });
}

// --- the session's -----------------------------------------------------------------------------

namespace {

/// Before the names of the nodes of a function, which no node's name begins with.
constexpr char kFunctionMark[] = "@";
std::string StatePrefix(const std::string& key) { return StrCat(kFunctionMark, key, "\n"); }

/// The same for the same function with the same attributes.
std::string KeyOf(const NameAttrList& function) {
  std::string key;
  google::protobuf::io::StringOutputStream stream(&key);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  function.SerializeToCodedStream(&coded);
  coded.Trim();
  return key;
}

}  // namespace

SessionFunctions::SessionFunctions(std::shared_ptr<Graph> graph, Runtime* runtime,
                                   CompileOptions options)
    : graph_(std::move(graph)), runtime_(runtime), options_(options) {}

SessionFunctions::~SessionFunctions() = default;

bool SessionFunctions::Refresh() {
  if (definitions_ != nullptr &&
      definitions_->function_size() == graph_->library().function_size()) {
    return false;
  }
  auto definitions = std::make_unique<FunctionDefLibrary>(graph_->library());
  library_ = std::make_unique<FunctionLibrary>(*definitions, *graph_->ops());
  definitions_ = std::move(definitions);
  return true;
}

absl::Status SessionFunctions::AddLibrary(const FunctionDefLibrary& library) {
  std::lock_guard<std::mutex> lock(mutex_);
  return graph_->AddLibrary(library);
}

absl::StatusOr<FunctionBody> SessionFunctions::Instantiate(const NameAttrList& function) {
  const bool several_devices = runtime_->devices().size() > 1;
  const auto is_lowered = [&](const NodeDef& node) {
    return IsLowered(*library_, node, several_devices);
  };
  const FunctionLibrary::Follow lowered = is_lowered;
  return InstantiateFunction(*library_, function, graph_->producer(), &lowered);
}

absl::StatusOr<CallableFunction*> SessionFunctions::Find(const NameAttrList& function) {
  NameAttrList canonical;
  canonical.set_name(function.name());
  for (const auto& [name, value] : function.attr()) {
    // What other attributes say is for placers and optimisers.
    if (name.empty() || name[0] != '_') (*canonical.mutable_attr())[name] = value;
  }
  std::string key = KeyOf(canonical);
  std::lock_guard<std::mutex> lock(mutex_);
  if (auto found = compiled_.find(key); found != compiled_.end()) return found->second.get();
  if (library_ == nullptr) Refresh();
  absl::StatusOr<FunctionBody> body = Instantiate(canonical);
  if (!body.ok() && Refresh()) body = Instantiate(canonical);
  if (!body.ok()) return body.status();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<CompiledFunction> compiled,
                          CompiledFunction::Create(*std::move(body), options_, runtime_));
  compiled->stateful()->RestoreStates(StatePrefix(key), restored_);
  return compiled_.emplace(std::move(key), std::move(compiled)).first->second.get();
}

void SessionFunctions::SaveStates(KernelStates* states, bool of_others) {
  std::vector<std::pair<std::string, CompiledFunction*>> compiled;  // They stay.
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (of_others) states->insert(restored_.begin(), restored_.end());
    for (const auto& [key, function] : compiled_) compiled.emplace_back(key, function.get());
  }
  // Without the lock: an iterator's state waits for functions of its dataset, which may call these.
  for (const auto& [key, function] : compiled) {
    function->stateful()->SaveStates(StatePrefix(key), states, of_others);
  }
}

void SessionFunctions::RestoreStates(const KernelStates& states) {
  std::lock_guard<std::mutex> lock(mutex_);
  restored_.clear();
  for (auto at = states.lower_bound(kFunctionMark);
       at != states.end() && absl::StartsWith(at->first, kFunctionMark); ++at) {
    restored_.insert(*at);
  }
  for (const auto& [key, function] : compiled_) {
    function->stateful()->RestoreStates(StatePrefix(key), restored_);
  }
}

absl::StatusOr<StepContext> SessionFunctions::OnDevice(const StepContext& step,
                                                       const std::string& device) {
  TROUPE_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(device));
  if (step.device->parsed_name().Matches(wanted)) return step;
  for (const auto& role : runtime_->devices()) {
    if (!role->device->parsed_name().Matches(wanted)) continue;
    StepContext there = step;
    SetDevice(role.get(), &there);
    return there;
  }
  if (options_.soft_placement) return step;
  return InvalidArgument("there is no device ", device, " in this process, which runs on ",
                         step.device->name(),
                         "; a device of another task can be named by a constant only");
}

}  // namespace troupe
