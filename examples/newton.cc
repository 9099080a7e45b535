// Newton's method: where second derivatives pay.
//
//     build/release/bin/newton
//
// Gradient descent knows the slope where it stands; Newton's method also knows how the slope
// changes, and steps to where it would be zero: w -= H^-1 g, with the gradient g and the matrix H
// of second derivatives. The gradient is nodes of the graph like any other, so that its own
// gradients are to be had in the same way.
//
// The problem is logistic regression on points of two kinds that overlap, with inputs of very
// different scales, which is hard on gradient descent.

#include <cmath>
#include <cstdio>
#include <random>

#include "examples/shared/text_corpus.h"

namespace {

using namespace troupe;  // NOLINT: a tutorial

constexpr int kInputs = 4;  // The last one is always 1: its weight is the bias.

/// n points [n, kInputs] and their kinds [n], 0 or 1.
void MakePoints(int64_t n, int64_t seed, std::vector<double>* points, std::vector<double>* kinds) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < n; ++i) {
    const double a = normal(random), b = normal(random), c = normal(random);
    points->insert(points->end(), {a, 10 * b + 3 * a, 0.1 * c, 1.0});
    kinds->push_back(a - 2 * b + c + 0.5 + normal(random) > 0 ? 1.0 : 0.0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const corpus::Options options = corpus::ParseOptions(
      argc, argv, "Newton's method beside gradient descent.", {.steps = 1000, .batch = 500});
  std::vector<double> points, kinds;
  MakePoints(options.batch, options.seed, &points, &kinds);

  const Scope s = Scope::NewRoot();
  const Output x = Const(s, Tensor::FromValues<double>(points, {options.batch, kInputs}).value());
  const Output y = Const(s, Tensor::Vector<double>(kinds));
  const ModelVariable w(s, {kInputs}, ZerosInitializer(), "w", true, ElementType::kDouble);

  // loss = mean of log(1 + exp(z)) - y z, where z = x w; and a little of |w|^2, so that there is
  // one best w however the points lie.
  const Output column = ops::Reshape(s, w.value(), {kInputs, 1});
  const Output z = ops::Reshape(s, ops::MatMul(s, x, column), {-1});
  const Output misfit = ReduceMean(s, ops::Sub(s, ops::Softplus(s, z), ops::Mul(s, y, z)));
  const Output loss = ops::Add(s, misfit, ops::Mul(s, ops::L2Loss(s, w.value()), 1e-3));

  // First derivatives, then the derivatives of each of them: the rows of H.
  const Output gradient = Gradients(s, {loss}, {w.value()})[0];
  corpus::OrDie(s.status());
  const std::vector<Output> elements = ops::Unpack(s, gradient, kInputs);
  std::vector<Output> rows;
  for (const Output& element : elements) {
    rows.push_back(Gradients(s, {element}, {w.value()})[0]);
  }
  corpus::OrDie(s.status());
  const Output hessian = ops::Pack(s, rows);
  const Output newton_step = ops::Reshape(
      s, ops::MatrixSolve(s, hessian, ops::Reshape(s, gradient, {kInputs, 1})), {kInputs});
  Node* newton = w.AssignSub(s, newton_step);

  // The rival. A larger rate diverges.
  GradientDescentOptimizer optimizer(0.02);
  Node* descent = optimizer.Minimize(s, loss);
  const Output slope = ops::Sqrt(s, ReduceSum(s, ops::Square(s, gradient)));
  Node* init = GlobalVariablesInitializer(s);
  corpus::OrDie(s.status());

  SessionOptions session_options;
  session_options.threads = options.threads;
  auto session = corpus::OrDie(Session::Create(s.graph(), session_options));
  auto report = [&](const char* method, int64_t steps) {
    const auto values = corpus::OrDie(session->Run({loss, slope}));
    std::printf("%-16s after %5lld steps: loss %.12f, length of the gradient %.1e\n", method,
                static_cast<long long>(steps), values[0].scalar<double>().value(),
                values[1].scalar<double>().value());
    return values[1].scalar<double>().value();
  };

  corpus::OrDie(session->RunTargets({init}));
  int64_t newton_steps = 0;
  while (report("Newton", newton_steps) > 1e-12 && newton_steps < 20) {
    corpus::OrDie(session->RunTargets({newton}));
    ++newton_steps;
  }

  corpus::OrDie(session->RunTargets({init}));
  for (int64_t i = 0; i < options.steps; ++i) {
    if (i == 1 || i == 10 || i == 100) report("gradient descent", i);
    corpus::OrDie(session->RunTargets({descent}));
  }
  report("gradient descent", options.steps);
  std::printf("Newton needed %lld steps\n", static_cast<long long>(newton_steps));
  return 0;
}
