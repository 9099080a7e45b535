/// Replicas of a small model in one process, for tests of synchronous training.
#ifndef TROUPE_TESTS_API_TRAINING_REPLICAS_H_
#define TROUPE_TESTS_API_TRAINING_REPLICAS_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/troupe.h"

namespace troupe {

/// Makes the optimizer that a replica wraps.
using OptimizerMaker = std::function<std::unique_ptr<Optimizer>()>;

/// x * w + b is to be y: rows x [n, 2] and y [n] are fed.
struct LinearModel {
  explicit LinearModel(const Scope& s)
      : w(s, {2, 1}, ConstantInitializer(0.5), "w", true, ElementType::kDouble),
        b(s, {1}, ZerosInitializer(), "b", true, ElementType::kDouble) {
    x = ops::Placeholder(s, ElementType::kDouble, {.shape = PartialShape({-1, 2})});
    y = ops::Placeholder(s, ElementType::kDouble, {.shape = PartialShape({-1})});
    const Output guess = ops::Add(s, ops::MatMul(s, x, w.value()), b.value());
    const Output difference = ops::Sub(s, ops::Reshape(s, guess, {-1}), y);
    loss = ReduceMean(s, ops::Square(s, difference));
    step = GlobalStep(s);
  }
  ModelVariable w, b, step;
  Output x, y, loss;
};

/// Rows of a problem that has a solution (w = 1, -2; b = 3), other ones for every step.
inline FeedMap Batch(const LinearModel& model, int step, int begin, int end) {
  std::vector<double> x, y;
  for (int i = begin; i < end; ++i) {
    const double a = (step * 7 + i * 3) % 11 / 5.0 - 1, b = (step * 5 + i * 4) % 13 / 6.0 - 1;
    x.insert(x.end(), {a, b});
    y.push_back(a - 2 * b + 3);
  }
  const Tensor rows = Tensor::Vector<double>(absl::MakeConstSpan(x));
  return {{model.x, rows.Reshaped(Shape({end - begin, 2}))},
          {model.y, Tensor::Vector<double>(absl::MakeConstSpan(y))}};
}

/// Variables on the first device of a process, the rest on another.
inline Scope ReplicaScope(int device) {
  return Scope::NewRoot().WithDeviceFunction([device](const NodeToPlace& node) {
    return "/device:CPU:" + std::to_string(node.op == "VarHandleOp" ? 0 : device);
  });
}

/// One replica, with a graph and a session of its own.
struct Replica {
  Replica(int number, const OptimizerMaker& optimizer, SyncReplicasOptions options,
          std::shared_ptr<Runtime> runtime)
      : s(ReplicaScope(number + 1)), model(s), sync(optimizer(), Numbered(options, number)) {
    train = sync.Minimize(s, model.loss, model.step);
    init = GlobalVariablesInitializer(s);
    uninitialized = ReportUninitializedVariables(s);
    EXPECT_TRUE(s.ok()) << s.status();
    session_options.runtime = std::move(runtime);
    auto created = Session::Create(s.graph(), session_options);
    EXPECT_TRUE(created.ok()) << created.status();
    session = *std::move(created);
  }
  std::unique_ptr<BackgroundSteps> StartUpdates() {
    RecoverableSessionOptions options;
    options.session = session_options;
    options.uninitialized = uninitialized;
    options.local_init = sync.chief_init();
    auto started = BackgroundSteps::Start(s.graph(), options, sync.sync());
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? *std::move(started) : nullptr;
  }
  absl::Status Train(int step, int begin, int end, absl::Duration timeout = absl::Seconds(60)) {
    RunOptions options;
    options.timeout = timeout;
    return session->Run(Batch(model, step, begin, end), {}, {train}, options).status();
  }
  /// Of any variable: "w".
  Tensor Value(const std::string& name) {
    std::vector<Tensor> values;
    const absl::Status status = session->Run({}, {name + "/read:0"}, {}, &values);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? values[0] : Tensor::Scalar<double>(0);
  }
  int64_t GlobalStepNow() { return Value("global_step").unchecked_scalar<int64_t>(); }
  int64_t LocalStepNow() { return Value("sync_replicas/local_step").unchecked_scalar<int64_t>(); }

  static SyncReplicasOptions Numbered(SyncReplicasOptions options, int number) {
    options.replica = number;
    return options;
  }

  Scope s;
  LinearModel model;
  SyncReplicasOptimizer sync;
  Node *train = nullptr, *init = nullptr;
  Output uninitialized;
  SessionOptions session_options;
  std::unique_ptr<Session> session;
};

/// Replicas that share the containers of one process.
inline std::vector<std::unique_ptr<Replica>> MakeReplicas(int count,
                                                          const OptimizerMaker& optimizer,
                                                          const SyncReplicasOptions& options) {
  SessionOptions session;
  session.num_cpu_devices = count + 1;
  auto owner = Session::Create(std::make_shared<Graph>(), session);
  EXPECT_TRUE(owner.ok()) << owner.status();
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int i = 0; i < count; ++i) {
    replicas.push_back(std::make_unique<Replica>(i, optimizer, options, (*owner)->runtime()));
  }
  EXPECT_TRUE(replicas[0]->session->RunTargets({replicas[0]->init}).ok());
  for (auto& replica : replicas) {
    EXPECT_TRUE(replica->session->RunTargets({replica->sync.local_init()}).ok());
  }
  return replicas;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_API_TRAINING_REPLICAS_H_
