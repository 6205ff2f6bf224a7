// The order in which a stage of a pipeline computes micro-batches and exchanges tensors with other stages.
#pragma once

#include <vector>

#include "parallel/strategies/options.h"

namespace trainctl {

// The tensors that one stage sends another for a micro-batch: activations forward, or gradients backward.
struct StageMessage {
  bool forward = true;
  int from = 0, to = 0;  // stages

  bool operator==(const StageMessage&) const = default;
};

// What a stage does next for a micro-batch: a pass, or its part in a message.
struct PipelineEvent {
  enum class Kind { forward, backward, message };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  int message = -1;  // its number, of Kind::message
};

// The events of stage `own` of `stages` in a step of so many micro-batches; `messages` are those that the stage sends
// or receives. With `training` each forward pass is followed by a backward pass, in the order of the schedule.
//
// All stages order what they exchange alike, by a simulated step in which a backward pass takes twice as long as a
// forward pass: activations travel when their reader begins, gradients when they are made, gradients first. A stage's
// events are a part of that one order, so that stages never wait for each other in a circle, even where a send ends
// with its receive; and a micro-batch has left a stage before the next one needs its memory.
std::vector<PipelineEvent> pipeline_events(PipelineSchedule schedule, int stages, int own, int micro_batches,
                                           bool training, const std::vector<StageMessage>& messages);

}  // namespace trainctl
