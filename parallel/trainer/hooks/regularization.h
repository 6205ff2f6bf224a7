// Computes the sum of the penalties on a network's parameters, which the reported loss does not include.
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

// Sums the l1 and l2 penalties over all ranks. Each value of a parameter is counted once, even if several ranks hold
// it.
class RegularizationLoss final : public TrainingHook {
 public:
  // All ranks must call this constructor. `program`: the engine's first program on this rank. All arguments must
  // outlive the object.
  RegularizationLoss(StepEngine& engine, const Program& program, const MeshRank& rank, Communicator& world,
                     Stream& stream);

  // Adds "regularization_loss" to the training values if a trained parameter has a penalty.
  void on_evaluation(TrainingState& state) override;

 private:
  double of(std::span<const NamedTensor> weights) const;
  double sum_over_ranks(double own) const;

  StepEngine& engine_;
  Communicator& world_;
  Stream& stream_;
  std::map<std::string, Penalty> counted_;  // penalties of the parameters that this rank counts; key: name
  bool has_penalty_ = false;                // whether a trained parameter has a penalty; equal on all ranks
};

}  // namespace trainctl
