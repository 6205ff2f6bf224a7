// trainctl bench: step, ops and comm, one file each.
#pragma once

#include "cmd/rank.h"
#include "cmd/run_spec.h"

namespace trainctl {

struct BenchRequest {
  double seconds = 3;  // of measuring
  bool json = false;
};

// All collective; they print on rank 0 and return the exit code.
int bench_step(const RunSpec& spec, const BenchRequest& request, RankContext& context);
int bench_ops(const RunSpec& spec, const BenchRequest& request, RankContext& context);
int bench_comm(const RunSpec& spec, const BenchRequest& request, RankContext& context);

}  // namespace trainctl
