// TensorFlow's ConfigProto, RunOptions and ServerDef become options of sessions, runs and servers.

#include "api/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "api/internal/not_honored.h"
#include "api/troupe.h"
#include "devices/status_macros.h"

namespace troupe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Code = absl::StatusCode;

/// Keeps what is logged while it lives.
class Log {
 public:
  Log() {
    SetLogSink([this](const LogRecord& record) {
      std::lock_guard<std::mutex> lock(mutex_);
      lines_.push_back(record.text);
    });
  }
  ~Log() { SetLogSink(nullptr); }
  std::vector<std::string> lines() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

SessionOptions Options(const std::string& text) {
  const auto config = ReadConfigProto(text);
  EXPECT_TRUE(config.ok()) << config.status();
  const auto options = SessionOptionsFrom(*config);
  EXPECT_TRUE(options.ok()) << options.status();
  return *options;
}

TEST(ReadConfigProto, TextAndFilesOfBothForms) {
  const std::string text = "allow_soft_placement: true device_count { key: 'CPU' value: 3 }";
  auto config = ReadConfigProto(text);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->device_count().at("CPU"), 3);
  const std::string file = testing::TempDir() + "troupe_config_proto";
  for (const std::string& bytes : {text, config->SerializeAsString()}) {
    std::ofstream(file, std::ios::binary) << bytes;
    const auto read = ReadConfigProto(file);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->DebugString(), config->DebugString());
  }
  for (const char* bad : {"allow_soft_placement: maybe", "no_such_field: 1", "device_count {"}) {
    const absl::Status as_text = ReadConfigProto(bad).status();
    EXPECT_EQ(as_text.code(), Code::kInvalidArgument) << as_text;
    std::ofstream(file, std::ios::binary) << bad;
    const absl::Status in_file = ReadConfigProto(file).status();
    EXPECT_EQ(in_file.code(), Code::kInvalidArgument) << in_file;
    EXPECT_THAT(std::string(in_file.message()), HasSubstr(file));
  }
  std::remove(file.c_str());
  EXPECT_TRUE(ReadConfigProto("").ok());
  EXPECT_EQ(ReadConfigProto("/no/such/file").status().code(), Code::kInvalidArgument);
}

TEST(SessionOptionsFrom, WhatIsHonored) {
  SessionOptions options = Options(
      "device_count { key: 'CPU' value: 2 } intra_op_parallelism_threads: 3 "
      "inter_op_parallelism_threads: 2 allow_soft_placement: true device_filters: '/job:ps' "
      "device_filters: '/job:worker/task:1' operation_timeout_in_ms: 1500 "
      "log_device_placement: true graph_options { optimizer_options { opt_level: L0 } "
      "enable_bfloat16_sendrecv: true }");
  EXPECT_EQ(options.num_cpu_devices, 2);
  EXPECT_EQ(options.threads, 3);
  EXPECT_TRUE(options.allow_soft_placement);
  EXPECT_THAT(options.device_filters, ElementsAre("/job:ps", "/job:worker/task:1"));
  EXPECT_EQ(options.operation_timeout, absl::Milliseconds(1500));
  EXPECT_TRUE(options.log_device_placement);
  EXPECT_FALSE(options.optimize);
  EXPECT_TRUE(options.lossy_transfers);

  options = Options("");
  EXPECT_EQ(options.num_cpu_devices, 1);
  EXPECT_EQ(options.threads, 0);
  EXPECT_TRUE(options.optimize);
  EXPECT_FALSE(options.allow_soft_placement);
  EXPECT_EQ(options.operation_timeout, absl::InfiniteDuration());
  // Of two pools the larger one; a negative one between ops is the caller's thread.
  EXPECT_EQ(Options("inter_op_parallelism_threads: 5").threads, 5);
  EXPECT_EQ(Options("inter_op_parallelism_threads: -1").threads, 0);
  EXPECT_FALSE(
      Options("graph_options { rewrite_options { disable_meta_optimizer: true } }").optimize);
}

TEST(SessionOptionsFrom, KeepsWhatTheMessageDoesNotSet) {
  SessionOptions base;
  base.threads = 7;
  base.device_filters = {"/job:ps"};
  base.optimize = false;
  const auto options = SessionOptionsFrom(config::ConfigProto(), base);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->threads, 7);
  EXPECT_FALSE(options->optimize);
  EXPECT_THAT(options->device_filters, ElementsAre("/job:ps"));
}

TEST(SessionOptionsFrom, DevicesThatAreNotThereAreLeftOut) {
  const Log log;
  const SessionOptions options = Options(
      "device_count { key: 'NOBODYS' value: 2 } device_count { key: 'GPU' value: 0 } "
      "gpu_options { allow_growth: true }");
  EXPECT_THAT(options.devices, IsEmpty());
  EXPECT_THAT(log.lines(), Contains(HasSubstr("no NOBODYS devices")));
  // Such a session can be made.
  EXPECT_TRUE(Session::Create(Scope::NewRoot().graph(), options).ok());
}

TEST(SessionOptionsFrom, RefusesWhatCannotBe) {
  for (const char* text :
       {"intra_op_parallelism_threads: -2", "device_count { key: 'GPU' value: -1 }",
        "operation_timeout_in_ms: -5", "gpu_options { visible_device_list: '0,x' }",
        "gpu_options { per_process_gpu_memory_fraction: 1.5 }"}) {
    const absl::Status status = SessionOptionsFrom(*ReadConfigProto(text)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text << ": " << status;
  }
}

TEST(SessionOptionsFrom, SaysOnceWhatIsNotHonored) {
  const std::string text =
      "placement_period: 9 gpu_options { polling_active_delay_usecs: 3 allow_growth: true } "
      "experimental { use_tfrt: true } session_inter_op_thread_pool { num_threads: 2 } "
      "isolate_session_state: true";
  {
    const Log log;
    Options(text);
    ASSERT_EQ(log.lines().size(), 1);
    EXPECT_EQ(log.lines()[0],
              "ConfigProto: not honored here: experimental.use_tfrt, "
              "gpu_options.polling_active_delay_usecs, isolate_session_state, placement_period, "
              "session_inter_op_thread_pool.num_threads");
  }
  const Log log;
  Options(text);
  EXPECT_THAT(log.lines(), IsEmpty());
  Options(text + " cluster_def { job { name: 'a' } }");
  EXPECT_THAT(log.lines(), ElementsAre("ConfigProto: not honored here: cluster_def.job.name"));
}

TEST(FieldsNotHonored, KnowsWhatANewerWriterSets) {
  config::ConfigProto config;
  config.GetReflection()->MutableUnknownFields(&config)->AddVarint(999, 1);
  EXPECT_THAT(FieldsNotHonored(config, {}), ElementsAre("field 999"));
}

TEST(RunOptionsFrom, TimeoutAndTrace) {
  auto given = ReadRunOptions("timeout_in_ms: 250 trace_level: FULL_TRACE");
  ASSERT_TRUE(given.ok());
  auto options = RunOptionsFrom(*given);
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->timeout, absl::Milliseconds(250));
  EXPECT_TRUE(options->trace);
  options = RunOptionsFrom(config::RunOptions());
  EXPECT_EQ(options->timeout, absl::InfiniteDuration());
  EXPECT_FALSE(options->trace);
  given->set_timeout_in_ms(-1);
  EXPECT_EQ(RunOptionsFrom(*given).status().code(), Code::kInvalidArgument);
  const Log log;
  EXPECT_TRUE(RunOptionsFrom(*ReadRunOptions("inter_op_thread_pool: 1")).ok());
  EXPECT_THAT(log.lines(), ElementsAre("RunOptions: not honored here: inter_op_thread_pool"));
}

TEST(OperationTimeout, CountsForRunsWithoutOne) {
  Scope s = Scope::NewRoot();
  const Output queue = ops::FIFOQueueV2(s, {ElementType::kFloat});
  const Output never = ops::QueueDequeueV2(s, queue, {ElementType::kFloat})[0];
  ASSERT_TRUE(s.ok()) << s.status();
  const auto session = Session::Create(s.graph(), Options("operation_timeout_in_ms: 20"));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ((*session)->Run({never}).status().code(), Code::kDeadlineExceeded);
  const auto call = (*session)->MakeCallable(absl::Span<const Output>(), {never});
  ASSERT_TRUE(call.ok());
  Tensor value;
  EXPECT_EQ((*call)({}, absl::MakeSpan(&value, 1)).code(), Code::kDeadlineExceeded);
  const absl::Time start = absl::Now();
  RunOptions longer;
  longer.timeout = absl::Milliseconds(120);
  EXPECT_EQ((*session)->Run({}, {never}, {}, longer).status().code(), Code::kDeadlineExceeded);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(100));
}

TEST(LogDevicePlacement, NamesEveryNode) {
  Scope s = Scope::NewRoot();
  const Output x = ops::Placeholder(s.WithOpName("x"), ElementType::kFloat);
  const Output y = ops::Neg(s.WithOpName("y").WithDevice("/device:CPU:1"), x);
  ASSERT_TRUE(s.ok());
  for (const int devices : {1, 2}) {
    const Log log;
    SessionOptions options = Options("log_device_placement: true allow_soft_placement: true");
    options.num_cpu_devices = devices;
    const auto session = Session::Create(s.graph(), options);
    ASSERT_TRUE((*session)->Run({{x, Tensor::Scalar(1.0F)}}, {y}).ok());
    EXPECT_THAT(log.lines(),
                Contains(testing::AllOf(
                    HasSubstr(StrCat("placed on /job:localhost/replica:0/task:0/device:CPU:",
                                     devices - 1, ": ")),
                    HasSubstr("y (Neg)"))));
  }
}

TEST(ServerOptionsFrom, DescribesATask) {
  const auto def = ReadServerDef(
      "cluster { job { name: 'ps' tasks { key: 0 value: '127.0.0.1:7100' } } "
      "job { name: 'worker' tasks { key: 1 value: '127.0.0.1:7102' } "
      "tasks { key: 0 value: '127.0.0.1:7101' } } } job_name: 'worker' task_index: 1 "
      "protocol: 'grpc' port: 7102 default_session_config { intra_op_parallelism_threads: 2 "
      "device_count { key: 'CPU' value: 3 } }");
  ASSERT_TRUE(def.ok()) << def.status();
  const Log log;
  const auto options = ServerOptionsFrom(*def);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->job, "worker");
  EXPECT_EQ(options->task, 1);
  EXPECT_EQ(options->threads, 2);
  EXPECT_EQ(options->num_cpu_devices, 3);
  EXPECT_EQ(options->cluster.num_tasks("worker"), 2);
  EXPECT_THAT(log.lines(), IsEmpty());

  const auto refused = [&](const std::function<void(config::ServerDef*)>& change) {
    config::ServerDef bad = *def;
    change(&bad);
    const absl::Status status = ServerOptionsFrom(bad).status();
    EXPECT_FALSE(status.ok());
    return status.code();
  };
  EXPECT_EQ(refused([](auto* d) { d->set_port(7101); }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto* d) { d->set_replica(1); }), Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto* d) { d->set_task_index(2); }), Code::kNotFound);
  EXPECT_EQ(refused([](auto* d) { d->set_job_name("nobody"); }), Code::kNotFound);
  EXPECT_EQ(refused([](auto* d) {
              (*d->mutable_cluster()->mutable_job(0)->mutable_tasks())[2] = "127.0.0.1:7109";
            }),
            Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto* d) { *d->mutable_cluster()->add_job() = d->cluster().job(0); }),
            Code::kInvalidArgument);
  EXPECT_EQ(refused([](auto* d) { d->mutable_cluster()->clear_job(); }), Code::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
