#include "actors/session/step_stats.h"

#include <set>

#include "actors/session/functions.h"
#include "devices/status_macros.h"
#include "graph/protos/config.pb.h"
#include "kernels/function_runner.h"
#include "kernels/kernel.h"
#include "kernels/traced_kernel.h"

namespace troupe {
namespace {

/// Of the plan, and of the functions that its kernels call, each once.
void AddTracedKernels(const Plan& plan, std::set<const CallableFunction*>* seen,
                      RunMetadata* metadata) {
  for (const PlanNode& node : plan.nodes) {
    const auto* traced = dynamic_cast<const TracedKernel*>(node.kernel);
    if (traced != nullptr) traced->AddStatsTo(metadata);
    const auto* caller = dynamic_cast<const FunctionCaller*>(node.kernel);
    if (caller == nullptr) continue;
    for (const CallableFunction* called : caller->Called()) {
      const auto* function = dynamic_cast<const CompiledFunction*>(called);
      if (function == nullptr || !seen->insert(called).second) continue;
      for (const Plan* body : function->Plans()) AddTracedKernels(*body, seen, metadata);
    }
  }
}

}  // namespace

void AddStepStats(const Plan& plan, const std::vector<NodeTrace>& trace, RunMetadata* metadata) {
  // The time of day is what processes, and TensorFlow's tools, have in common.
  const int64_t ahead = plan.spec.clock->UnixNs() - static_cast<int64_t>(plan.spec.clock->NowNs());
  DeviceStepStats* device = metadata->mutable_step_stats()->add_dev_stats();
  device->set_device(plan.spec.device_name);
  DeviceStepStats* stream = nullptr;  // As TensorFlow calls it.
  for (const NodeTrace& node : trace) {
    const bool on_stream = node.thread == NodeTrace::kDeviceStream;
    if (on_stream && stream == nullptr) {
      stream = metadata->mutable_step_stats()->add_dev_stats();
      stream->set_device(StrCat(plan.spec.device_name, "/stream:all"));
    }
    NodeExecStats* stats = (on_stream ? stream : device)->add_node_stats();
    stats->set_node_name(plan.name(node.node));
    stats->set_timeline_label(StrCat(plan.name(node.node), " = ", plan.op(node.node)));
    stats->set_all_start_nanos(static_cast<int64_t>(node.start_ns) + ahead);
    stats->set_all_start_micros(stats->all_start_nanos() / 1000);
    stats->set_op_end_rel_nanos(static_cast<int64_t>(node.end_ns - node.start_ns));
    stats->set_op_end_rel_micros(static_cast<int64_t>((node.end_ns - node.start_ns) / 1000));
    stats->set_all_end_rel_nanos(stats->op_end_rel_nanos());
    stats->set_all_end_rel_micros(stats->op_end_rel_micros());
    stats->set_thread_id(static_cast<uint32_t>(node.thread));
  }
  std::set<const CallableFunction*> seen;
  AddTracedKernels(plan, &seen, metadata);
}

}  // namespace troupe
