// This machine's ceilings as a roofline.
#include "parallel/plan/this_machine.h"

#include "parallel/bench/ceilings.h"
#include "parallel/plan/roofline.h"

namespace trainctl {

std::unique_ptr<Costs> costs_of_this_machine(Backend& backend, int threads, bool tf32) {
  const Ceilings ceilings = measure_ceilings(backend, threads);
  Machine machine;
  machine.device.kind = backend.on_host() ? MachineKind::cpu : MachineKind::gpu;
  machine.device.float32 = ceilings.peaks.float32_gflops / 1e3;
  machine.device.bfloat16 = ceilings.peaks.bfloat16_gflops / 1e3;
  machine.device.memory_bandwidth = ceilings.peaks.triad_gb_per_s;
  machine.device.compute_efficiency = machine.device.memory_efficiency = 1;  // they are measured
  machine.device.kernel_overhead = 1;
  machine.node.link = ceilings.copy_gb_per_s / 2;  // what is read and what is written count in that rate
  machine.node.link_latency = 2;
  return std::make_unique<RooflineCosts>(machine, RooflineUse{.tf32 = tf32});
}

}  // namespace trainctl
