// The sum of the penalties on a network's parameters, which the reported loss does not contain.
#pragma once

#include <map>
#include <span>
#include <string>

#include "core/exec/interfaces/snapshot.h"
#include "core/program/program.h"
#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class StepEngine;
class Stream;

// What the penalties of l1 and l2 come to on all ranks together, each value of a parameter counted once, whichever
// ranks hold it.
class RegularizationLoss final : public TrainingHook {
 public:
  // Collective. `program`: of the engine's first one, on this rank. What is referred to outlives the object.
  RegularizationLoss(StepEngine& engine, const Program& program, const MeshRank& rank, Communicator& world,
                     Stream& stream);

  // Adds "regularization_loss" to the values of training if a parameter that trains has a penalty.
  void on_evaluation(TrainingState& state) override;

 private:
  double of(std::span<const NamedTensor> weights) const;
  double sum_over_ranks(double own) const;

  StepEngine& engine_;
  Communicator& world_;
  Stream& stream_;
  std::map<std::string, Penalty> counted_;  // by the names of the parameters that this rank counts
  bool any_ = false;                        // a parameter that trains has a penalty; equal on all ranks
};

}  // namespace trainctl
