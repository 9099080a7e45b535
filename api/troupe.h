/// Troupe's C++ interface: everything that an application needs.
///
///     #include <troupe/troupe.h>
///
///     troupe::Scope s = troupe::Scope::NewRoot();
///     troupe::Output x = troupe::ops::Placeholder(s, troupe::ElementType::kFloat);
///     troupe::Output y = troupe::ops::Mul(s, x, 2.0f);
///     auto session = troupe::Session::Create(s.graph());
///     auto values = (*session)->Run({{x, troupe::Tensor::Scalar(21.0f)}}, {y});
#ifndef TROUPE_API_TROUPE_H_
#define TROUPE_API_TROUPE_H_

#include "api/administration.h"
#include "api/cluster.h"
#include "api/config.h"
#include "api/control_flow.h"
#include "api/dataset.h"
#include "api/defaults.h"
#include "api/embedding.h"
#include "api/extension.h"
#include "api/freeze.h"
#include "api/functions.h"
#include "api/gradients.h"
#include "api/lookup.h"
#include "api/nn.h"
#include "api/ops.h"
#include "api/sampled_loss.h"
#include "api/saved_model.h"
#include "api/saved_model_builder.h"
#include "api/scope.h"
#include "api/session.h"
#include "api/summary.h"
#include "api/synchronization.h"
#include "api/tensor_access.h"
#include "api/termination_signals.h"
#include "api/training/accumulation.h"
#include "api/training/async_checkpointer.h"
#include "api/training/background_steps.h"
#include "api/training/basic_hooks.h"
#include "api/training/checkpoint_files.h"
#include "api/training/checkpoint_saver_hook.h"
#include "api/training/clipping.h"
#include "api/training/coordinator.h"
#include "api/training/initializers.h"
#include "api/training/learning_rate.h"
#include "api/training/monitored_session.h"
#include "api/training/monitored_training_session.h"
#include "api/training/moving_average.h"
#include "api/training/optimizer.h"
#include "api/training/optimizers.h"
#include "api/training/progress_hook.h"
#include "api/training/queue_runner.h"
#include "api/training/recoverable_session.h"
#include "api/training/replica_device_setter.h"
#include "api/training/save_slice_info.h"
#include "api/training/saveable.h"
#include "api/training/saver.h"
#include "api/training/scaffold.h"
#include "api/training/session_manager.h"
#include "api/training/summary_hooks.h"
#include "api/training/sync_replicas_optimizer.h"
#include "api/training/variables.h"
#include "api/training/warm_start.h"
#include "devices/log.h"
#include "devices/tensor.h"
#include "graph/graph.h"
#include "graph/graph_def.h"
#include "graph/meta_graph.h"
#include "graph/protos/graph.pb.h"
#include "graph/protos/meta_graph.pb.h"
#include "graph/protos/stats.pb.h"

#endif  // TROUPE_API_TROUPE_H_
