// The engine's interface for the training loop: starts and finishes steps, and returns their results and the weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/backend/memory.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

class OpObserver;  // core/exec/step_work.h

// The results of a step. Sums are over all ranks after a training step, over this rank after an evaluation step.
struct StepResult {
  double count = 0;          // divisor of the sums of losses
  std::vector<double> sums;  // losses by output, then metrics, in the order of Program::results; then weights
  double gradient_norm = 0;  // training only
  bool not_finite = false;   // a loss of the first update that was skipped was NaN or Inf on some rank
  bool stop = false;         // some rank was asked to stop
  bool abandoned = false;    // some rank was asked to stop and had no data for this step: the update was skipped
};

class StepEngine {
 public:
  virtual ~StepEngine() = default;

  // The scalars of a step; evaluation programs ignore them.
  struct StepInput {
    double learning_rate = 0;
    std::int64_t step = 0;    // number of the step, from 0
    bool stop = false;        // this rank was asked to stop
    double loss_scale = 1.0;  // factor of the gradients in the backward pass, in float16
    bool abandons = false;    // this rank was asked to stop and has no data: the batch is not complete
    // Number of earlier steps with a skipped update, in float16; the optimizer does not count these steps.
    std::int64_t left_out = 0;
  };
  // Queues a step of a program on this rank's share of a batch. At most steps_at_once() steps may be under way.
  virtual void start(int program, const Batch& batch, const StepInput& input) = 0;
  // Waits for the oldest step under way; fills `result`.
  virtual void finish(StepResult& result) = 0;
  // The largest number of steps that may be under way.
  virtual int steps_at_once() const = 0;

  // The seconds of each phase of the step that finished last; set while timing is on. On devices with a clock of their
  // own, `communication` counts only the time that the computation waited for it.
  struct Phases {
    double forward = 0, backward = 0, communication = 0, update = 0, upload = 0;
  };
  virtual void set_timing(bool on) = 0;
  virtual const Phases& phases() const = 0;
  // Sets the observer of all further steps, which then run op by op; null: none.
  virtual void set_observer(OpObserver* observer) = 0;

  // Parameters and running statistics, or the optimizer's state, bytewise by name: views of host memory, which
  // download() fills from the device. Steps may change the values in that memory (core/exec/engine.h).
  virtual void download() = 0;
  virtual const std::vector<NamedTensor>& weights() const = 0;
  virtual const std::vector<NamedTensor>& state() const = 0;

  // Allocates host memory that copy() fills fast (page-locked on CUDA) and that exists until the engine ends. Throws
  // Error{resource}.
  virtual Memory allocate_host(std::int64_t bytes) = 0;
  // Copies tensors of weights() and state() from the device to `to`, one after the other in the order given, and
  // returns when the copies are complete. No step may be under way. The views' own memory is neither read nor written.
  virtual void copy(std::span<const NamedTensor> tensors, std::byte* to) = 0;
};

}  // namespace trainctl
