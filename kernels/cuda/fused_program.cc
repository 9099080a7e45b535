#include "kernels/cuda/fused_program.h"

#include <algorithm>
#include <array>

namespace troupe::cuda {
namespace {

/// A step whose operands and result are values.
struct Named {
  FusedStep step;
  int result;
  int a = -1, b = -1, c = -1;
};

/// The steps in their order, after `early` loads. Other operands are loaded where they are used
/// first, or, if `again`, for each function.
std::vector<Named> OrderSteps(const std::vector<Number>& types,
                              const std::vector<FusedFunction>& functions,
                              const std::vector<int>& outputs, int early, bool again) {
  const int num_operands = static_cast<int>(types.size());
  std::vector<char> needed(types.size() + functions.size());
  for (const int output : outputs) needed[output] = 1;
  for (int f = static_cast<int>(functions.size()) - 1; f >= 0; --f) {
    if (!needed[num_operands + f]) continue;
    for (const int value : {functions[f].a, functions[f].b, functions[f].c}) {
      if (value >= 0) needed[value] = 1;
    }
  }
  std::vector<Named> steps;
  std::vector<char> loaded(types.size());
  const auto load = [&](int value) {
    if (value < 0 || value >= num_operands || loaded[value]) return;
    loaded[value] = again && static_cast<int>(steps.size()) >= early ? 0 : 1;
    FusedStep step{FusedOp::kLoad, types[value]};
    step.memory = static_cast<uint8_t>(value);
    steps.push_back({step, value});
  };
  const auto each_needed = [&](auto fn) {
    for (int f = 0; f < static_cast<int>(functions.size()); ++f) {
      if (needed[num_operands + f]) fn(functions[f], num_operands + f);
    }
  };
  each_needed([&](const FusedFunction& function, int) {
    for (const int value : {function.a, function.b, function.c}) {
      if (static_cast<int>(steps.size()) < early) load(value);
    }
  });
  each_needed([&](const FusedFunction& function, int result) {
    load(function.a);
    if (function.b != function.a) load(function.b);
    if (function.c != function.a && function.c != function.b) load(function.c);
    FusedStep step{function.op, function.type};
    const auto output = std::find(outputs.begin(), outputs.end(), result);
    if (output != outputs.end()) step.memory = static_cast<uint8_t>(output - outputs.begin());
    steps.push_back({step, result, function.a, function.b, function.c});
  });
  return steps;
}

/// Says where each result is kept until it is used the last time; those of the `early` first steps
/// are all in slots.
std::optional<FusedProgram> AssignSlots(std::vector<Named> steps, int early) {
  if (steps.size() > FusedProgram::kMostSteps) return std::nullopt;
  const int count = static_cast<int>(steps.size());
  // Per step: the last one that uses its result. A value that is loaded again is another result.
  std::vector<int> last_use(count, -1);
  const auto use = [&](int value, int by) {
    if (value < 0) return -1;
    int from = by - 1;
    while (steps[from].result != value) --from;
    last_use[from] = by;
    return from;
  };
  std::vector<std::array<int, 3>> from(count);
  for (int s = 0; s < count; ++s) {
    from[s] = {use(steps[s].a, s), use(steps[s].b, s), use(steps[s].c, s)};
  }

  FusedProgram program;
  program.num_steps = count;
  program.num_early = early;
  std::vector<int> holder(FusedProgram::kSlots, -1);  // The step whose result is in a slot.
  for (int s = 0; s < count; ++s) {
    FusedStep& step = steps[s].step;
    const auto place = [&](int maker) {
      if (maker < 0) return FusedStep::kNone;
      return maker == s - 1 && maker >= early ? FusedStep::kLast : steps[maker].step.to;
    };
    step.a = place(from[s][0]);
    step.b = place(from[s][1]);
    step.c = place(from[s][2]);
    if (last_use[s] > s + 1 || s < early) {
      // A slot that no later step reads, or that this one has read last.
      const auto free = std::find_if(holder.begin(), holder.end(),
                                     [&](int held) { return held < 0 || last_use[held] <= s; });
      if (free == holder.end()) return std::nullopt;
      *free = s;
      step.to = static_cast<uint8_t>(free - holder.begin());
    }
    program.steps[s] = step;
  }
  return program;
}

}  // namespace

std::optional<FusedProgram> MakeFusedProgram(const std::vector<Number>& types,
                                             const std::vector<FusedFunction>& functions,
                                             const std::vector<int>& outputs) {
  if (types.size() > FusedProgram::kMostOperands || outputs.size() > FusedProgram::kMostOutputs) {
    return std::nullopt;
  }
  for (const bool again : {false, true}) {
    for (int early = static_cast<int>(types.size()); early >= 0; --early) {
      std::vector<Named> steps = OrderSteps(types, functions, outputs, early, again);
      const auto loads = std::find_if(steps.begin(), steps.end(), [](const Named& named) {
        return named.step.op != FusedOp::kLoad;
      });
      std::optional<FusedProgram> program =
          AssignSlots(std::move(steps), std::min(early, static_cast<int>(loads - steps.begin())));
      if (program.has_value()) return program;
    }
  }
  return std::nullopt;
}

int LastLoad(const FusedProgram& program, int operand) {
  int s = program.num_steps - 1;
  while (s >= 0 && (program.steps[s].op != FusedOp::kLoad || program.steps[s].memory != operand)) {
    --s;
  }
  return s;
}

int StoreOf(const FusedProgram& program, int output) {
  int s = 0;
  while (program.steps[s].op == FusedOp::kLoad || program.steps[s].memory != output) ++s;
  return s;
}

}  // namespace troupe::cuda
