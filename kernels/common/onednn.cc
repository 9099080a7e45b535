#include "kernels/common/onednn.h"

#include <omp.h>

#include "devices/cpu/instruction_set.h"

namespace troupe {

namespace {

// oneDNN makes its code for the best set of the machine unless TROUPE_ISA names one.
dnnl::cpu_isa GivenInstructionSet() {
  switch (ActiveInstructionSet()) {
    case InstructionSet::kV2:
      return dnnl::cpu_isa::sse41;
    case InstructionSet::kV3:
      return dnnl::cpu_isa::avx2;
    case InstructionSet::kV4:
      return dnnl::cpu_isa::avx512_core;
  }
  return dnnl::cpu_isa::all;
}

}  // namespace

ScopedOpenMpAlone::ScopedOpenMpAlone() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}

ScopedOpenMpAlone::~ScopedOpenMpAlone() {
  if (before_ != 1) omp_set_num_threads(before_);
}

const dnnl::engine& OneDnnEngine() {
  static const auto* engine = [] {
    // oneDNN refuses once it has made code for somebody else in this process, who is then served.
    if (InstructionSetIsGiven()) dnnl::set_max_cpu_isa(GivenInstructionSet());
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *engine;
}

dnnl::cpu_isa OneDnnInstructionSet() {
  OneDnnEngine();  // says which it may use
  return dnnl::get_effective_cpu_isa();
}

bool OneDnnHasBfloat16() {
  static const bool has =
      OneDnnHasAmx() || OneDnnInstructionSet() == dnnl::cpu_isa::avx512_core_bf16;
  return has;
}

bool OneDnnHasAmx() {
  static const bool has = OneDnnInstructionSet() == dnnl::cpu_isa::avx512_core_amx;
  return has;
}

struct OneDnnPrimitive::Binding {
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

OneDnnPrimitive::OneDnnPrimitive(const dnnl::primitive& primitive,
                                 std::vector<OneDnnArgument> arguments)
    : primitive_(primitive), arguments_(std::move(arguments)) {}

std::shared_ptr<OneDnnPrimitive> MakeOneDnnMatMul(const dnnl::memory::desc& a,
                                                  const dnnl::memory::desc& b,
                                                  const dnnl::memory::desc& c) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc made({a, b, c}, attributes, OneDnnEngine());
  return std::make_shared<OneDnnPrimitive>(
      dnnl::matmul(made),
      std::vector<OneDnnArgument>{{DNNL_ARG_SRC, a},
                                  {DNNL_ARG_WEIGHTS, b},
                                  {DNNL_ARG_DST, c},
                                  {DNNL_ARG_SCRATCHPAD, made.scratchpad_desc()}});
}

OneDnnPrimitive::~OneDnnPrimitive() {
  delete spare_.load();
  for (Binding* binding : free_) delete binding;
}

OneDnnPrimitive::Binding* OneDnnPrimitive::Acquire() {
  Binding* binding = spare_.exchange(nullptr, std::memory_order_acquire);
  if (binding != nullptr) return binding;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      binding = free_.back();
      free_.pop_back();
      return binding;
    }
  }
  auto made = std::make_unique<Binding>();
  for (const OneDnnArgument& a : arguments_) {
    made->memories.push_back(dnnl::memory(a.layout, OneDnnEngine(), nullptr));
    made->arguments.push_back({a.id, made->memories.back().get()});
  }
  return made.release();
}

void OneDnnPrimitive::Release(Binding* binding) {
  Binding* none = nullptr;
  if (spare_.compare_exchange_strong(none, binding, std::memory_order_release)) return;
  std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(binding);
}

absl::Status OneDnnPrimitive::Execute(absl::Span<void* const> data) {
  const ScopedOpenMpAlone alone;
  try {
    static thread_local const dnnl::stream stream(OneDnnEngine());
    Binding* binding = Acquire();
    dnnl_status_t status = dnnl_success;
    for (size_t i = 0; i < data.size() && status == dnnl_success; ++i) {
      status = dnnl_memory_set_data_handle(binding->memories[i].get(), data[i]);
    }
    if (status == dnnl_success) {
      status = dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(data.size()),
                                      binding->arguments.data());
    }
    Release(binding);
    if (status == dnnl_success) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("oneDNN refused to run a primitive: status ", static_cast<int>(status)));
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat("oneDNN: ", e.what()));
  }
}

}  // namespace troupe
