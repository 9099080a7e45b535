/// The optimizers. Their rules, defaults and slots are those of TensorFlow 1.x (`tf.train`);
/// hyper-parameters may be numbers or tensors of the graph (a learning-rate schedule). g is the
/// gradient; sparse gradients update the rows that they have, by the same rule unless it says
/// otherwise.
#ifndef TROUPE_API_TRAINING_OPTIMIZERS_H_
#define TROUPE_API_TRAINING_OPTIMIZERS_H_

#include <string>
#include <utility>
#include <vector>

#include "api/training/optimizer.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// var -= learning_rate * g.
class GradientDescentOptimizer : public Optimizer {
 public:
  explicit GradientDescentOptimizer(Input learning_rate, std::string name = "GradientDescent")
      : Optimizer(std::move(name)), learning_rate_(std::move(learning_rate)) {}

 protected:
  Node* Apply(const Update& update) override;
  bool TakesRepeatedRows() const override { return true; }

 private:
  Input learning_rate_;
};

/// accumulator = momentum * accumulator + g; var -= learning_rate * accumulator. With Nesterov:
/// var -= learning_rate * (g + momentum * accumulator). Slot "momentum". (Sutskever et al. 2013.)
class MomentumOptimizer : public Optimizer {
 public:
  MomentumOptimizer(Input learning_rate, Input momentum, bool use_nesterov = false,
                    std::string name = "Momentum")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        momentum_(std::move(momentum)),
        use_nesterov_(use_nesterov) {}

 protected:
  std::vector<Slot> Slots() const override { return {{"momentum"}}; }
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_, momentum_;
  bool use_nesterov_;
};

/// accumulator += g^2; var -= learning_rate * g / sqrt(accumulator). Slot "accumulator".
/// (Duchi et al. 2011.)
class AdagradOptimizer : public Optimizer {
 public:
  explicit AdagradOptimizer(Input learning_rate, double initial_accumulator_value = 0.1,
                            std::string name = "Adagrad")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        initial_(initial_accumulator_value) {}

 protected:
  std::vector<Slot> Slots() const override { return {{"accumulator", initial_}}; }
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_;
  double initial_;
};

/// Adagrad with dual averaging, for sparse linear models: the variable is computed anew from the
/// sums of all gradients and of their squares, with L1 and L2 regularisation. Needs the step's
/// number. Slots "gradient_accumulator", "gradient_squared_accumulator". (Duchi et al. 2011.)
class AdagradDAOptimizer : public Optimizer {
 public:
  AdagradDAOptimizer(Input learning_rate, ModelVariable global_step,
                     double initial_gradient_squared_accumulator_value = 0.1, Input l1 = 0.0f,
                     Input l2 = 0.0f, std::string name = "AdagradDA")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        l1_(std::move(l1)),
        l2_(std::move(l2)),
        global_step_(std::move(global_step)),
        initial_(initial_gradient_squared_accumulator_value) {}

 protected:
  std::vector<Slot> Slots() const override {
    return {{"gradient_accumulator"}, {"gradient_squared_accumulator", initial_}};
  }
  void Prepare(const Scope& scope) override;
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_, l1_, l2_;
  ModelVariable global_step_;
  Output step_;
  double initial_;
};

/// accumulator = rho * accumulator + (1 - rho) * g^2;
/// update = sqrt((update_accumulator + epsilon) / (accumulator + epsilon)) * g;
/// update_accumulator = rho * update_accumulator + (1 - rho) * update^2;
/// var -= learning_rate * update. Slots "accum", "accum_update". (Zeiler 2012.)
class AdadeltaOptimizer : public Optimizer {
 public:
  explicit AdadeltaOptimizer(Input learning_rate = 0.001f, Input rho = 0.95f, Input epsilon = 1e-8f,
                             std::string name = "Adadelta")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        rho_(std::move(rho)),
        epsilon_(std::move(epsilon)) {}

 protected:
  std::vector<Slot> Slots() const override { return {{"accum"}, {"accum_update"}}; }
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_, rho_, epsilon_;
};

/// rms = decay * rms + (1 - decay) * g^2;
/// momentum_slot = momentum * momentum_slot + learning_rate * g / sqrt(rms + epsilon);
/// var -= momentum_slot. Centred: rms less the square of the gradients' mean, which is the slot
/// "mg". Slots "rms" (starts at 1), "mg" if centred, "momentum". (Tieleman and Hinton 2012.)
class RMSPropOptimizer : public Optimizer {
 public:
  explicit RMSPropOptimizer(Input learning_rate, Input decay = 0.9f, Input momentum = 0.0f,
                            Input epsilon = 1e-10f, bool centered = false,
                            std::string name = "RMSProp")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        decay_(std::move(decay)),
        momentum_(std::move(momentum)),
        epsilon_(std::move(epsilon)),
        centered_(centered) {}

 protected:
  std::vector<Slot> Slots() const override;
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_, decay_, momentum_, epsilon_;
  bool centered_;
};

/// m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
/// var -= learning_rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon). Slots "m",
/// "v"; the powers of step t are variables "beta1_power", "beta2_power" under the caller's scope.
/// Sparse gradients count as zero in rows that they do not have: all of m, v and var change.
/// (Kingma and Ba 2015, the form just before section 2.1.)
class AdamOptimizer : public Optimizer {
 public:
  explicit AdamOptimizer(Input learning_rate = 0.001f, Input beta1 = 0.9f, Input beta2 = 0.999f,
                         Input epsilon = 1e-8f, std::string name = "Adam")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        beta1_(std::move(beta1)),
        beta2_(std::move(beta2)),
        epsilon_(std::move(epsilon)) {}

 protected:
  std::vector<Slot> Slots() const override { return {{"m"}, {"v"}}; }
  void Prepare(const Scope& scope) override;
  Node* Apply(const Update& update) override;
  std::vector<Node*> Finish(const Scope& scope, const std::vector<Node*>& updates) override;

 private:
  Node* ApplySparse(const Update& update) const;

  Input learning_rate_, beta1_, beta2_, epsilon_;
  ModelVariable beta1_power_, beta2_power_;
};

/// Adam by the maximum norm: v = max(beta2 * v, |g|);
/// var -= learning_rate / (1 - beta1^t) * m / (v + epsilon). Slots "m", "v"; variable
/// "beta1_power". Sparse gradients update the rows that they have. (Kingma and Ba 2015, section 7.)
class AdaMaxOptimizer : public Optimizer {
 public:
  explicit AdaMaxOptimizer(Input learning_rate = 0.001f, Input beta1 = 0.9f, Input beta2 = 0.999f,
                           Input epsilon = 1e-8f, std::string name = "AdaMax")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        beta1_(std::move(beta1)),
        beta2_(std::move(beta2)),
        epsilon_(std::move(epsilon)) {}

 protected:
  std::vector<Slot> Slots() const override { return {{"m"}, {"v"}}; }
  void Prepare(const Scope& scope) override;
  Node* Apply(const Update& update) override;
  std::vector<Node*> Finish(const Scope& scope, const std::vector<Node*>& updates) override;

 private:
  Node* ApplySparse(const Update& update) const;

  Input learning_rate_, beta1_, beta2_, epsilon_;
  ModelVariable beta1_power_;
};

/// Options of `FtrlOptimizer`.
struct FtrlOptions {
  Input learning_rate_power = -0.5f;  ///< Zero or less.
  double initial_accumulator_value = 0.1;
  Input l1 = 0.0f;
  Input l2 = 0.0f;
  /// An L2 penalty on the loss, added to the gradient: unlike `l2` no shrinking of the weights.
  double l2_shrinkage = 0.0;
};

/// Follow the regularised leader. Slots "accum", "linear". (McMahan et al. 2013.)
class FtrlOptimizer : public Optimizer {
 public:
  explicit FtrlOptimizer(Input learning_rate, FtrlOptions options = {}, std::string name = "Ftrl")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        options_(std::move(options)) {}

 protected:
  std::vector<Slot> Slots() const override {
    return {{"accum", options_.initial_accumulator_value}, {"linear"}};
  }
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_;
  FtrlOptions options_;
};

/// Gradient descent, then the proximal step of L1 and L2 penalties:
/// p = var - learning_rate * g;
/// var = sign(p) * max(|p| - learning_rate * l1, 0) / (1 + learning_rate * l2).
/// (Duchi and Singer 2009.)
class ProximalGradientDescentOptimizer : public Optimizer {
 public:
  explicit ProximalGradientDescentOptimizer(Input learning_rate, Input l1 = 0.0f, Input l2 = 0.0f,
                                            std::string name = "ProximalGradientDescent")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        l1_(std::move(l1)),
        l2_(std::move(l2)) {}

 protected:
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_, l1_, l2_;
};

/// Adagrad with the proximal step: learning_rate / sqrt(accumulator) in place of the rate. Slot
/// "accumulator".
class ProximalAdagradOptimizer : public Optimizer {
 public:
  explicit ProximalAdagradOptimizer(Input learning_rate, double initial_accumulator_value = 0.1,
                                    Input l1 = 0.0f, Input l2 = 0.0f,
                                    std::string name = "ProximalAdagrad")
      : Optimizer(std::move(name)),
        learning_rate_(std::move(learning_rate)),
        l1_(std::move(l1)),
        l2_(std::move(l2)),
        initial_(initial_accumulator_value) {}

 protected:
  std::vector<Slot> Slots() const override { return {{"accumulator", initial_}}; }
  Node* Apply(const Update& update) override;

 private:
  Input learning_rate_, l1_, l2_;
  double initial_;
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_TRAINING_OPTIMIZERS_H_
