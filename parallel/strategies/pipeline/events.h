// Computes the order in which a stage of a pipeline computes micro-batches and exchanges tensors with other stages.
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

// An action of a stage for a micro-batch: a pass, or the sending or receiving of a message.
struct PipelineEvent {
  enum class Kind { forward, backward, message };
  Kind kind = Kind::forward;
  int micro_batch = 0;
  int message = -1;  // for Kind::message, the number of the message
};

// Returns the events of stage `own` of `stages` in a step of `micro_batches` micro-batches. `messages`: the messages
// that the stage sends or receives. With `training` each micro-batch also has a backward pass, in the order of the
// schedule. All stages order their messages in the same way, by a simulated step in which a backward pass takes twice
// as long as a forward pass: activations are sent when their reader begins, gradients when they are computed, gradients
// first. A stage's events are a subsequence of this common order. Therefore stages never wait for each other in a
// circle, even if a send ends only with its receive, and a micro-batch has left a stage before the next micro-batch
// needs its memory.
std::vector<PipelineEvent> pipeline_events(PipelineSchedule schedule, int stages, int own, int micro_batches,
                                           bool training, const std::vector<StageMessage>& messages);

}  // namespace trainctl
