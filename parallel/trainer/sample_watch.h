// Records the same few samples in every evaluation, with the network's predictions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/detail_sink.h"
#include "core/tensor/shape.h"

namespace trainctl {

class Communicator;
class Engine;
class Stream;
struct ModelInput;

// Records samples of the first replica: rank 0 has the images, and the rank of that replica with the network's last
// stage has the predictions. The network must have one input of images and one output with classes.
class SampleWatch {
 public:
  // Records at most `max_samples` samples, spread evenly over the replica's samples of a pass over `source`.
  // `evaluated`: the division of batches for this rank. `sink`: null on all ranks but rank 0. Does not read samples.
  SampleWatch(const BatchSource& source, const BatchDivision& evaluated, const ModelInput& input,
              std::int64_t max_samples, DetailSink* sink);

  // Begins a pass.
  void begin();
  // Called with every batch of the pass before it is computed. Returns whether the batch has samples to record, so that
  // predictions must be read before anything else is computed.
  bool select(const Batch& batch);
  // Called after a batch with samples to record was computed.
  void record(Engine& engine, int program, const Batch& batch);
  // Passes the recorded samples to the sink. Called on all ranks after the pass; the ranks of the first replica
  // exchange predictions.
  void finish(std::int64_t step, Communicator& world, Stream& stream);

 private:
  bool has_images() const { return sink_ != nullptr; }

  BatchDivision evaluated_;
  Shape image_shape_;
  std::int64_t samples_ = 0;         // number of the replica's samples in a pass
  std::int64_t recorded_count_ = 0;  // number of samples that are recorded
  DetailSink* sink_;
  std::int64_t passed_ = 0;            // number of the replica's samples so far in this pass
  std::vector<std::int64_t> indices_;  // samples to record in the current batch
  std::vector<JudgedSample> judged_;
  std::vector<float> predictions_;  // predictions of these samples, on the rank that has them
  std::vector<std::byte> bytes_;
};

}  // namespace trainctl
