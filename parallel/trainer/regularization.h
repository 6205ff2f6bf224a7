// The sum of the penalties on a network's parameters, which the reported loss does not contain.
#pragma once

#include <map>
#include <span>
#include <string>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/program/program.h"

namespace trainctl {

// What the penalties of l1 and l2 come to on all ranks together, each value of a parameter counted once, whichever
// ranks hold it.
class RegularizationLoss {
 public:
  // Collective. `world` and `stream` outlive the object.
  RegularizationLoss(const Program& program, const MeshRank& rank, Communicator& world, Stream& stream);

  // Whether a parameter of the network that trains has a penalty. Equal on all ranks.
  bool any() const { return any_; }
  // The sum, of the weights that this rank holds. Collective; equal on all ranks.
  double of(std::span<const NamedTensor> weights) const;

 private:
  double sum_over_ranks(double own) const;

  Communicator& world_;
  Stream& stream_;
  std::map<std::string, Penalty> counted_;  // by the names of the parameters that this rank counts
  bool any_ = false;
};

}  // namespace trainctl
