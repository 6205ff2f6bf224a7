// The options of an optimizer in a config, and the update op that they become.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/ops/optimizers/optimizers.h"
#include "core/optim/choices.h"
#include "core/spec/values.h"

namespace trainctl {

// The parameters that weight decay does not change. GraphParameter::decay is false for biases and for parameters of
// normalisation.
enum class DecayExclusion { none, biases_and_norms };
using NamePatterns = std::vector<Located<std::string>>;

// The options that all optimizers share. An optimizer adds the options of its rule (core/graph/ops/optimizers/).
struct OptimizerOptions : Options {
  double learning_rate = 0;
  double weight_decay = 0;
  std::variant<DecayExclusion, NamePatterns> exclude_from_weight_decay = DecayExclusion::none;
  // At most one of these limits is set; gradients are those of the mean loss.
  std::optional<double> clipnorm;         // largest norm of the gradient of each parameter
  std::optional<double> global_clipnorm;  // largest norm of the gradient of all parameters together
  std::optional<double> clipvalue;        // largest absolute value of an element of a gradient
  bool gradient_centralization = false;

  virtual OptimizerRule rule() const = 0;
  // Whether a step of the optimizer needs norms over each parameter.
  bool by_parameter() const;
  // Whether a limit on gradients is set.
  bool clips() const { return clipnorm || global_clipnorm || clipvalue; }
  // The op that updates all parameters. `ranges` cover the trainable parameters of the flat layout; `clip_norm` 0: no
  // clipping.
  std::shared_ptr<const OptimizerUpdate> update(std::vector<UpdateRange> ranges, double clip_norm) const;
  // Whether weight decay applies to the parameter with this name; `plain`: whether the parameter is neither a bias nor
  // a parameter of normalisation.
  bool decays(const std::string& name, bool plain) const;
  // Whether the rule orthogonalizes the steps of the parameter with this name and shape.
  virtual bool orthogonalizes(const std::string&, const Shape&) const { return false; }
  // Reports patterns of the options that match none of the parameters' names.
  virtual void check_patterns(const std::vector<std::string>& names, Reader& reader) const;
};

}  // namespace trainctl
