// Costs of this machine from measurements on it.
#pragma once

#include <memory>
#include <string>

#include "parallel/plan/costs.h"
#include "parallel/plan/measured/measurements.h"

namespace trainctl {

// How a planned run would use this machine, and how it was measured.
struct MeasuredUse {
  int ranks = 1;     // ranks of the planned run on this machine
  int at_once = 1;   // ranks that computed at the same time in the measurement; in the run, other ranks wait for a core
  std::string data;  // `data` of loading_key(); empty: batches take no time
  bool on_host = true;  // whether ranks compute on the cores that they communicate and load data with
};

class MeasuredCosts final : public Costs {
 public:
  // `estimate`, which may be null, returns the times of ops that were not measured because the memory did not suffice
  // for their network.
  MeasuredCosts(Measurements measurements, const MeasuredUse& use, std::unique_ptr<Costs> estimate = {});

  // Returns 0 for an op that was not measured if there is no estimate: no step runs it.
  double op_seconds(const PlacedProgram& program, int segment, int op) const override;
  // For a number of ranks that was not measured, scales the measurement of another number of ranks: the transfer grows
  // as in a ring, the latency as in a tree.
  TrafficSeconds communication_seconds(const Traffic& traffic) const override;
  // Ranks that synchronize wait for the last rank. The median time of the last of N ranks is computed for normally
  // distributed steps. Their variation is derived from the additional seconds of the later of two ranks.
  HostSeconds host_seconds(const PlacedProgram& program) const override;
  bool communication_takes_cores() const override { return use_.on_host; }

 private:
  // The slowdown: the ratio of planned ranks to measured ranks.
  double slowdown() const { return static_cast<double>(use_.ranks) / use_.at_once; }

  Measurements measurements_;
  MeasuredUse use_;
  std::unique_ptr<Costs> estimate_;
};

}  // namespace trainctl
