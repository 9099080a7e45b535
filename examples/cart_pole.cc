// Reinforcement learning: environments in two processes, a learner in a third.
//
//     build/release/bin/cart_pole
//
// A pole stands on a cart; pushed left or right fifty times a second, the cart has to keep it
// upright. Each environment is an actor in a process of its own, which joins the learner's cluster
// and publishes it. The learner's graph asks the environments for episodes, sending them its
// policy, and puts what they answer into a queue; the training step takes it out again. So the
// environments play while the learner learns, and a graph's node waits for a simulation in another
// process as it does for any other input.
//
// The policy is logistic, and is learned by its gradient (REINFORCE): what was done before a pole
// stood longer than usual is made more likely.

#include <atomic>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <thread>

#include "api/actors.h"
#include "api/cluster.h"
#include "api/program/child_process.h"
#include "api/program/command_line.h"
#include "api/troupe.h"
#include "examples/shared/local_cluster.h"
#include "examples/shared/options.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial
using examples::OrDie;

constexpr int kObserved = 4;   // Place and speed of the cart, angle and speed of the pole.
constexpr int kLongest = 200;  // Steps of an episode: four seconds.
constexpr int kEpisodes = 5;   // That an environment plays when it is asked.
constexpr double kDiscount = 0.98;

// ---- An environment ----

/// The cart-pole of Barto, Sutton and Anderson (1983).
struct CartPole {
  double x = 0, speed = 0, angle = 0, turn = 0;

  bool upright() const { return std::abs(x) < 2.4 && std::abs(angle) < 12 * M_PI / 180; }
  void Push(bool right) {
    constexpr double kGravity = 9.8, kPole = 0.1, kMass = 1.1, kHalf = 0.5, kTime = 0.02;
    const double force = right ? 10 : -10, s = std::sin(angle), c = std::cos(angle);
    const double total = (force + kPole * kHalf * turn * turn * s) / kMass;
    const double turning = (kGravity * s - c * total) / (kHalf * (4.0 / 3 - kPole * c * c / kMass));
    const double speeding = total - kPole * kHalf * turning * c / kMass;
    x += kTime * speed;
    speed += kTime * speeding;
    angle += kTime * turn;
    turn += kTime * turning;
  }
};

/// Asked with a policy (weights [4], bias []), it answers episodes: what was seen [n, 4], what was
/// done [n], how much better it went than on average [n], and how long each episode was [5].
caf::behavior Environment(caf::event_based_actor*, uint32_t seed) {
  auto random = std::make_shared<std::mt19937>(seed);
  return {
      [random](ask_atom, const std::vector<Tensor>& policy) -> caf::result<std::vector<Tensor>> {
        const auto weights = policy.at(0).values<float>(), bias = policy.at(1).values<float>();
        if (!weights.ok() || weights->size() != kObserved || !bias.ok() || bias->size() != 1) {
          return ToCafError(absl::InvalidArgumentError("this is no policy"));
        }
        std::uniform_real_distribution<double> uniform;
        std::vector<float> seen, done, gain;
        std::vector<int32_t> lengths;
        for (int episode = 0; episode < kEpisodes; ++episode) {
          const auto some = [&] { return 0.1 * uniform(*random) - 0.05; };
          CartPole pole{some(), some(), some(), some()};
          int steps = 0;
          for (; steps < kLongest && pole.upright(); ++steps) {
            const double now[] = {pole.x, pole.speed, pole.angle, pole.turn};
            double logit = bias->front();
            for (size_t i = 0; i < kObserved; ++i) logit += (*weights)[i] * now[i];
            const bool right = uniform(*random) < 1 / (1 + std::exp(-logit));
            seen.insert(seen.end(), std::begin(now), std::end(now));
            done.push_back(right ? 1.f : 0.f);
            pole.Push(right);
          }
          double return_ = 0;
          std::vector<float> returns(static_cast<size_t>(steps));
          for (size_t i = returns.size(); i > 0; --i) {
            returns[i - 1] = static_cast<float>(return_ = 1 + kDiscount * return_);
          }
          gain.insert(gain.end(), returns.begin(), returns.end());
          lengths.push_back(steps);
        }
        const float count = static_cast<float>(gain.size());
        const float mean = std::accumulate(gain.begin(), gain.end(), 0.f) / count;
        float square = 0;
        for (float g : gain) square += (g - mean) * (g - mean);
        const float deviation = std::sqrt(square / count) + 1e-6f;
        for (float& g : gain) g = (g - mean) / deviation;
        const int64_t n = static_cast<int64_t>(gain.size());
        return std::vector<Tensor>{Tensor::FromValues<float>(seen, {n, kObserved}).value(),
                                   Tensor::Vector<float>(done), Tensor::Vector<float>(gain),
                                   Tensor::Vector<int32_t>(lengths)};
      }};
}

std::string NameOf(int environment) { return "environment/" + std::to_string(environment); }

/// A process with an environment, until the learner is gone.
int Simulate(const std::string& target, int number, int64_t seed) {
  const auto node = ClusterNode::Join({.target = target});
  OrDie(node.status());
  caf::actor_system& system = (*node)->system();
  const auto published = (*node)->Publish(
      NameOf(number), system.spawn(Environment, static_cast<uint32_t>(seed * 1000 + number)));
  OrDie(published.status());
  const auto learner = (*node)->Find<TaskActor>("/job:learner/task:0", "");
  OrDie(learner.status());
  caf::scoped_actor self(system);
  self->monitor(*learner);
  self->receive([](const caf::down_msg&) {});
  return 0;
}

// ---- The learner ----

struct Learner {
  Node* init = nullptr;
  std::vector<Node*> play;  ///< For each environment: asks it, and puts the answer into the queue.
  Node* train = nullptr;
  Output lengths;  ///< Of the episodes that it was trained with.
};

Learner BuildLearner(const Scope& s, int environments) {
  Learner learner;
  const ModelVariable weights(s, {kObserved}, ZerosInitializer(), "weights");
  const ModelVariable bias(s, {1}, ZerosInitializer(), "bias");
  const std::vector<ElementType> types = {ElementType::kFloat, ElementType::kFloat,
                                          ElementType::kFloat, ElementType::kInt32};
  const std::vector<PartialShape> shapes = {PartialShape({-1, kObserved}), PartialShape({-1}),
                                            PartialShape({-1}), PartialShape({kEpisodes})};
  const Output queue = ops::FIFOQueueV2(s, types, {.shapes = {}, .capacity = 2});
  for (int i = 0; i < environments; ++i) {
    const OutputList answer = ops::AskActor(s, {weights.value(), bias.value()}, NameOf(i), types,
                                            {.timeout_ms = 10000, .shapes = shapes});
    learner.play.push_back(ops::QueueEnqueueV2(s, queue, answer));
  }
  const OutputList taken = ops::QueueDequeueV2(s, queue, types);
  const Output seen = ops::EnsureShape(s, taken[0], shapes[0]);
  learner.lengths = taken[3];
  const Output logits = ops::Add(
      s,
      ops::Reshape(s, ops::MatMul(s, seen, ops::Reshape(s, weights.value(), {kObserved, 1})), {-1}),
      bias.value());
  // -log of the probability of what was done.
  const Output surprise = ops::Sub(s, ops::Softplus(s, logits), ops::Mul(s, taken[1], logits));
  learner.train = AdamOptimizer(0.05f).Minimize(s, ReduceMean(s, ops::Mul(s, surprise, taken[2])));
  learner.init = GlobalVariablesInitializer(s);
  OrDie(s.status());
  return learner;
}

int Learn(int64_t most, int environments, int64_t seed) {
  const std::string address = "127.0.0.1:" + std::to_string(local_cluster::FreePorts(1).front());
  const auto cluster = ClusterSpec::Parse("{\"learner\": [\"" + address + "\"]}");
  OrDie(cluster.status());
  const auto server = Server::Start({.cluster = *cluster, .job = "learner", .task = 0});
  OrDie(server.status());
  std::vector<ChildProcess> processes;
  for (int i = 0; i < environments; ++i) {
    auto process = ChildProcess::Start(
        {.arguments = {ThisProgram(), "--target", (*server)->target(), "--environment",
                       std::to_string(i), "--seed", std::to_string(seed)}});
    OrDie(process.status());
    processes.push_back(*std::move(process));
  }
  const Scope s = Scope::NewRoot().WithDevice("/job:learner/task:0");
  const Learner learner = BuildLearner(s, environments);
  const auto session = Session::Create(s.graph(), {.target = (*server)->target()});
  OrDie(session.status());
  OrDie((*session)->RunTargets({learner.init}));

  // Each environment has a thread, which keeps it playing.
  std::atomic<bool> over{false};
  std::vector<std::thread> players;
  for (Node* play : learner.play) {
    players.emplace_back([&, play] {
      while (!over) {
        // Its process may still be starting.
        if (!(*session)->RunTargets({play}).ok()) absl::SleepFor(absl::Milliseconds(20));
      }
    });
  }
  int64_t step = 0;
  int balanced = 0;  // Episodes in succession that lasted to their end.
  RunOptions options;
  options.timeout = absl::Seconds(60);
  while (step < most && balanced < 20) {
    const auto lengths = (*session)->Run({}, {learner.lengths}, {learner.train}, options);
    OrDie(lengths.status());
    double sum = 0;
    const absl::Span<const int32_t> episodes = lengths->at(0).values<int32_t>().value();
    for (int32_t length : episodes) {
      balanced = length == kLongest ? balanced + 1 : 0;
      sum += length;
    }
    if (++step % 10 == 0) std::printf("step %4ld  balanced %.0f steps\n", step, sum / kEpisodes);
  }
  over = true;
  (*session)->Close().IgnoreError();  // Ends the players' steps.
  for (std::thread& player : players) player.join();
  std::printf("%s after %ld steps of training\n",
              balanced >= 20 ? "20 episodes in succession of 200 steps" : "not learned", step);
  return balanced >= 20 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t steps = 2000, environments = 2, seed = 1, environment = 0;
  std::string target;
  CommandLine line("cart_pole", "Learns to balance a pole, from environments in other processes.");
  AddValue(&line, "--steps N", &steps, "Steps of training at most")->check(WholeNumber(1, 1000000));
  AddValue(&line, "--environments N", &environments, "Processes that simulate")
      ->check(WholeNumber(1, 64));
  AddValue(&line, "--seed N", &seed, "Other episodes")->check(WholeNumber(0, 1000000));
  AddValue(&line, "--target T", &target, "Simulate for the learner that serves there");
  AddValue(&line, "--environment N", &environment, "Which of its environments");
  if (const std::optional<int> over = line.Read(argc, argv)) return *over;
  if (!target.empty()) return Simulate(target, static_cast<int>(environment), seed);
  return Learn(steps, static_cast<int>(environments), seed);
}
