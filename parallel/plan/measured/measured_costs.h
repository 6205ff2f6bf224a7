// Costs of this machine from what was measured on it.
#pragma once

#include <memory>
#include <string>

#include "parallel/plan/costs.h"
#include "parallel/plan/measured/measurements.h"

namespace trainctl {

// How a planned run would lie on this machine, and how it was measured.
struct MeasuredUse {
  int ranks = 1;        // of the planned run, on this machine
  int at_once = 1;      // of them that computed at once while they were measured; the others wait for a core meanwhile
  std::string data;     // of loading_key(); empty: batches cost nothing
  bool on_host = true;  // ranks compute on the cores that they communicate and load data with
};

class MeasuredCosts final : public Costs {
 public:
  // `estimate`, which may be null, gives the times of ops that were not measured: their network found too little
  // memory.
  MeasuredCosts(Measurements measurements, const MeasuredUse& use, std::unique_ptr<Costs> estimate = {});

  // Without an estimate 0 for an op that was not measured: no step runs it.
  double op_seconds(const PlacedProgram& program, int segment, int op) const override;
  // Between numbers of ranks that were not measured: those of the nearest that was, with a transfer that grows as a
  // ring's does, and a latency that grows as a tree's.
  TrafficSeconds communication_seconds(const Traffic& traffic) const override;
  // Ranks that meet wait for the last of them: the median of the latest of N ranks' steps lies above the median step by
  // as much as that of normally distributed steps, with the spread that was measured.
  HostSeconds host_seconds(const PlacedProgram& program) const override;
  bool communication_takes_cores() const override { return use_.on_host; }

 private:
  // Ranks for each core that was measured.
  double slower() const { return static_cast<double>(use_.ranks) / use_.at_once; }

  Measurements measurements_;
  MeasuredUse use_;
  std::unique_ptr<Costs> estimate_;
};

}  // namespace trainctl
