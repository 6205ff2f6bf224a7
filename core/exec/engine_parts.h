// What an engine keeps for each program and for each turn.
#pragma once

#include "core/exec/engine.h"

namespace trainctl {

// What a batch brings, in the order of StepInputs; no_tensor for the scalars, which are none of its, and for what the
// program does not read.
inline std::array<TensorId, step_inputs> batch_parts(const BatchTensors& batch) {
  return {no_tensor, batch.inputs, batch.targets, batch.weights, batch.samples};
}

// A program bound to its places.
struct Engine::Bound {
  std::unique_ptr<StepWork> work;
  std::vector<std::vector<std::unique_ptr<Kernel>>> kernels;  // [segment][op]; null: nothing to run
  std::vector<StepUnit> copies;                               // write its compute copies, in their order
  bool trains = false;                                        // it changes the weights
};

// Where the values of one step lie while it is under way.
struct Engine::Turn {
  Memory host;     // the scalars, and on asynchronous devices the batch behind them; page-locked
  Memory device;   // the same on the device; empty where the host's memory is read
  Memory results;  // in the host's memory: the scalars, then the reduced tail of the gradient region
  std::array<std::int64_t, step_inputs> offsets{};  // of the parts in `host` and `device`
  StepSources sources{};
  std::unique_ptr<Event> brought;  // the copy to the device is done
  std::unique_ptr<Event> done;
  int program = 0;
  PartSeconds seconds{};

  const std::byte* on_device(std::size_t part) const {
    return (device.get() != nullptr ? device : host).get() + offsets[part];
  }
};

}  // namespace trainctl
