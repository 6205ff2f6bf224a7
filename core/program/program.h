// Program: the exact list of operations that one rank executes in one step.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/layers/model/layer_line.h"
#include "core/metrics/result.h"
#include "core/metrics/target_encoding.h"
#include "core/program/logical_shards.h"
#include "core/program/parameter_layout.h"

namespace trainctl {

// The phase of a step that a segment belongs to. `prepare` changes or gathers parameters before the first forward pass.
// `count` counts the positions of outputs in all micro-batches before the first forward pass. `exchange` moves tensors
// of a micro-batch between stages of the pipeline, or adds the values of replicas and compute streams; `copies` makes
// compute copies of parameters.
enum class Phase { prepare, count, forward, backward, exchange, update, copies };

// The micro-batches that a backward segment is for: `first` overwrites the gradients, and `accumulate` adds to them.
// `last` replaces either variant at the last micro-batch if that micro-batch needs other ops (reducing each gradient as
// soon as it is complete). The forward segment `empty` zeroes the inputs of a micro-batch without samples. A segment
// that counts has variants, too: `first` overwrites the counts, `accumulate` adds to them, `empty` sets them to zero,
// and `last` adds those of all ranks. Segments of other phases only have the variant `first`.
enum class Variant { first, accumulate, last, empty };

// A list of ops that run in order.
struct Segment {
  Phase phase = Phase::forward;
  Variant variant = Variant::first;
  std::vector<Op> ops;
};

// Returns the name that dumps and messages print, such as "forward", "backward" or "backward_accumulate".
std::string_view name_of(Phase phase, Variant variant);
inline std::string_view name_of(const Segment& segment) { return name_of(segment.phase, segment.variant); }

// Runs the segment at index `segment` for a micro-batch, in a slot: a copy of the arena, one for each micro-batch in
// flight.
struct ScheduleItem {
  int segment = 0;
  int micro_batch =
      0;  // Program::micro_batches: the smaller micro-batch (rest_samples); -1: a micro-batch without samples
  int slot = 0;
  // Number of the compute stream (Program::streams): items of one stream run in order, items of different streams run
  // at the same time. An item that waits, and all items after it, start when all items before it have run. Between two
  // waiting items, items are ordered by stream, from the highest to stream 0.
  int stream = 0;
  bool waits = false;
};

// The scalars of one update of a player (core/program/players.h), which the host writes before a step or reads after
// it.
struct PlayerUpdate {
  TensorId learning_rate = no_tensor, updates = no_tensor, agree = no_tensor, gradient_norm = no_tensor;
  double rate = 1;  // factor of the run's learning rate
  int number = 0;   // number of the update among the player's `steps` updates of a step
  int steps = 1;
};

// The tensors that the host writes before a step and reads after it; no_tensor if the program has no such tensor.
struct StepTensors {
  TensorId learning_rate = no_tensor;  // float32
  TensorId step = no_tensor;           // int64
  TensorId updates = no_tensor;        // int64: number of earlier updates; `step` unless updates may be left out
  TensorId stop_request = no_tensor;   // float32
  TensorId loss_scale = no_tensor;     // float32; float16 programs only
  TensorId gradient_norm = no_tensor;  // float32, read by the host
  TensorId agree = no_tensor;          // float32 [agree_flags], reduced over the ranks, read by the host
  TensorId count = no_tensor;    // float32, reduced, read by the host: divisor of the sums of losses and gradients
  TensorId samples = no_tensor;  // float32, reduced: number of samples, the divisor of the sums of statistics; may be
                                 // `count`
  std::vector<TensorId> losses;  // float32, reduced, read by the host: for each output, the sum of weighted losses
  // Float32, reduced, read by the host: the counts of outputs that count themselves, the sums of metrics by output, in
  // the order of the config, then the sum of the weights, which is their divisor.
  std::vector<TensorId> metrics;
  std::vector<TensorId> predictions;  // for each output: float32 predictions, for eval and predict; no_tensor if unused
  TensorId gradients = no_tensor;     // the whole region; `gradients` and `states` exist only in training programs
  TensorId sums = no_tensor;  // evaluation only: the region of the sums, which follows the gradients in training
  TensorId parameters = no_tensor;
  std::vector<TensorId> states;
  TensorId averages = no_tensor;  // only in training programs: moving averages of the trainable parameters
  // With players: the scalars of each update, in order, instead of the learning rate, `updates`, the gradient norm and
  // `agree` above, which are those of the first update.
  std::vector<PlayerUpdate> players;
};

// The tensors of a micro-batch, in the order of the model's inputs and outputs. They have role input, and are no_tensor
// if the program does not read them. Weights belong to samples, or to positions that all outputs have.
struct BatchTensors {
  std::vector<TensorId> inputs;   // [n, ...], float32, uint8 or int32
  std::vector<TensorId> targets;  // int32 [n, P...] or float32 [n, P..., K]; empty in prediction programs
  TensorId weights = no_tensor;   // float32 [n] or [n, P...]
  TensorId samples = no_tensor;   // int64 [n]: numbers of the samples (core/tensor/sample_numbers.h)
};

struct Program {
  std::string name;                      // "train 64", "train 32 (last)", "evaluate 100"
  std::int64_t micro_batch_samples = 0;  // samples of one micro-batch on this rank
  int micro_batches = 1;
  std::int64_t rest_samples = 0;  // samples of a smaller micro-batch after the others; 0: no such micro-batch
  std::vector<Tensor> tensors;
  std::vector<Segment> segments;
  std::vector<ScheduleItem> schedule;
  int slots = 1;
  int streams = 1;  // compute streams
  ParameterLayout flat;
  StepTensors step;
  BatchTensors batch;
  BatchTensors rest;  // tensors of the micro-batch of rest_samples
  ShardedStep shards;
  std::map<std::string, Penalty>
      penalties;  // key: name of a trainable parameter; only on the first stage that holds it
  std::vector<TargetEncoding> target_encodings;  // encodings of batch.targets; equal in all programs of a run
  std::vector<MetricResult> results;             // results computed from the sums of step.losses and step.metrics
  std::vector<std::string> warnings;             // likely mistakes in the network
  double chance_loss = 0;                        // expected loss before any training: ln(classes); 0: unknown
  std::vector<LayerLine> layers;                 // one line for each layer that the user wrote
  std::set<std::string> blocks;                  // paths of residual blocks and of the bodies of repeats

  // The samples of this rank in a step.
  std::int64_t samples() const { return micro_batch_samples * micro_batches + rest_samples; }
  bool is_rest(const ScheduleItem& item) const { return rest_samples > 0 && item.micro_batch == micro_batches; }
  // The numbers of the segments that the micro-batch of rest_samples runs.
  std::set<int> segments_of_rest() const;
  const BatchTensors& batch_of(const ScheduleItem& item) const { return is_rest(item) ? rest : batch; }
  const Segment& segment(int number) const { return segments[static_cast<std::size_t>(number)]; }
  // The number of the first segment of a phase, or -1.
  int find(Phase phase) const;
  const Tensor& tensor(TensorId id) const { return tensors[index(id)]; }
  TensorId add(std::string name, Shape shape, DType dtype, Role role);
  // Adds a segment of the phase `prepare`, which runs before all others.
  void prepare(std::vector<Op> ops);
};

}  // namespace trainctl
