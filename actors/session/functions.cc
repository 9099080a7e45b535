#include "actors/session/functions.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "actors/executor/executor_role.h"
#include "devices/status_macros.h"
#include "graph/protos/graph.pb.h"

namespace troupe {

namespace {

// How many calls one thread's stack carries: about 1.5 KiB each, several times that in debug
// builds.
constexpr int kMaxNesting = 128;
// Enough to go on with at once; a burst of deeper or concurrent calls leaves no more.
constexpr size_t kKeptFrames = 64;

}  // namespace

// --- calls -------------------------------------------------------------------------------------

struct CompiledFunction::Frame final : StepCompletion {
  explicit Frame(CompiledFunction* f)
      : function(f),
        executor(f->plan_),
        args(std::make_unique<Tensor[]>(f->arg_types_.size())),
        results(std::make_unique<Tensor[]>(f->result_types_.size())),
        fetched(std::make_unique<Tensor[]>(f->plan_->fetch_slots().size())) {}

  void Start() noexcept { Play(/*begin=*/true); }
  void Over() noexcept override { Play(/*begin=*/false); }

  CompiledFunction* const function;
  ExecutorRole executor;
  StepContext step;
  std::unique_ptr<Tensor[]> args;
  std::unique_ptr<Tensor[]> results;  ///< Those that are arguments.
  std::unique_ptr<Tensor[]> fetched;
  // Where the results go: one of them.
  KernelContext* to_ctx = nullptr;
  Tensor* to_results = nullptr;
  KernelDone done{};
  bool begins = false;
  Frame* next = nullptr;

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

  void Begin() {
    executor.RunAsync(step, absl::MakeSpan(args.get(), function->arg_types_.size()), this);
  }

  void End() {
    const size_t num_fetches = function->plan_->fetch_slots().size();
    absl::Status status = executor.Finish(absl::MakeSpan(fetched.get(), num_fetches));
    const std::vector<Source>& sources = function->sources_;
    for (size_t i = 0; i < sources.size(); ++i) {
      Tensor& from = sources[i].is_arg ? results[i] : fetched[sources[i].index];
      if (!status.ok()) {
        from.Reset();
      } else if (to_ctx != nullptr) {
        to_ctx->set_output(static_cast<int>(i), std::move(from));
      } else {
        to_results[i] = std::move(from);
      }
    }
    const KernelDone tell = done;
    function->Release(this);
    tell(std::move(status));
  }
};

CompiledFunction::~CompiledFunction() { delete hot_.load(std::memory_order_acquire); }

absl::StatusOr<std::unique_ptr<CompiledFunction>> CompiledFunction::Create(
    FunctionBody body, const CompileOptions& options, Runtime* runtime) {
  std::unique_ptr<CompiledFunction> function(new CompiledFunction);
  StepSignature signature;
  signature.feeds = body.args;
  signature.targets = body.effects;
  for (const Output& arg : body.args) function->arg_types_.push_back(RemoveRef(arg.type()));
  for (const Output& result : body.results) {
    function->result_types_.push_back(RemoveRef(result.type()));
    Source source;
    for (size_t i = 0; i < body.args.size(); ++i) {
      if (body.args[i] == result) source = {true, static_cast<int>(i)};
    }
    if (!source.is_arg) {
      source.index = static_cast<int>(signature.fetches.size());
      signature.fetches.push_back(result);
    }
    function->sources_.push_back(source);
  }
  CompileOptions on_callers_device = options;
  on_callers_device.one_device = true;
  absl::StatusOr<CompiledStep> compiled =
      Compile(*body.graph, signature, on_callers_device, runtime, &function->stateful_);
  if (!compiled.ok()) {
    return absl::Status(
        compiled.status().code(),
        StrCat("function '", body.name, "': ", std::string(compiled.status().message())));
  }
  function->plan_ = compiled->plan;
  function->body_ = std::move(body);
  return function;
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
  frame->done = done;
  return frame;
}

void CompiledFunction::Start(Frame* frame, absl::FunctionRef<Tensor(int)> take) {
  try {
    const int n = num_args();
    for (int i = 0; i < n; ++i) frame->args[i] = take(i);
    for (size_t i = 0; i < sources_.size(); ++i) {
      if (sources_[i].is_arg) frame->results[i] = frame->args[sources_[i].index];
    }
  } catch (...) {
    for (int i = 0; i < num_args(); ++i) frame->args[i].Reset();
    for (size_t i = 0; i < sources_.size(); ++i) frame->results[i].Reset();
    Release(frame);
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

void CompiledFunction::Call(KernelContext& ctx, int first_input, KernelDone done) {
  Frame* frame = Acquire(ctx.step(), done);
  if (frame == nullptr) return;
  frame->to_ctx = &ctx;
  Start(frame, [&](int i) { return ctx.TakeInput(first_input + i); });
}

void CompiledFunction::Call(const StepContext& step, absl::Span<Tensor> args, Tensor* results,
                            KernelDone done) {
  Frame* frame = Acquire(step, done);
  if (frame == nullptr) return;
  frame->to_ctx = nullptr;
  frame->to_results = results;
  Start(frame, [&](int i) { return std::move(args[static_cast<size_t>(i)]); });
}

// --- the session's -----------------------------------------------------------------------------

namespace {

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

SessionFunctions::SessionFunctions(std::shared_ptr<const Graph> graph, Runtime* runtime,
                                   CompileOptions options)
    : graph_(std::move(graph)), runtime_(runtime), options_(std::move(options)) {}

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
  absl::StatusOr<FunctionBody> body = InstantiateFunction(*library_, canonical, graph_->producer());
  if (!body.ok() && Refresh()) {
    body = InstantiateFunction(*library_, canonical, graph_->producer());
  }
  if (!body.ok()) return body.status();
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<CompiledFunction> compiled,
                          CompiledFunction::Create(*std::move(body), options_, runtime_));
  return compiled_.emplace(std::move(key), std::move(compiled)).first->second.get();
}

}  // namespace troupe
