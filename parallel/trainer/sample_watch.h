// A few samples of every evaluation, always the same, with what the network takes them for.
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

// Looks at samples of the first replica: rank 0 has the pictures, and the predictions are on the rank there that holds
// the network's end. The network has one input of pictures, and one output that tells classes.
class SampleWatch {
 public:
  // `most` samples at most, spread evenly over those that `evaluated`, whose share of batches this rank computes, has
  // of a pass over `source`. `sink` is null on other ranks than 0. Does not read samples.
  SampleWatch(const BatchSource& source, const BatchDivision& evaluated, const ModelInput& input, std::int64_t most,
              DetailSink* sink);

  // Begins a pass.
  void begin();
  // Called with every batch of the pass before it is computed: whether it has samples to look at, so that predictions
  // must be read before anything else is computed.
  bool wants(const Batch& batch);
  // Called after such a batch was computed.
  void take(Engine& engine, int program, const Batch& batch);
  // Tells the sink what was taken. Called after the pass by all ranks; those of the first replica exchange predictions.
  void finish(std::int64_t step, Communicator& world, Stream& stream);

 private:
  bool holds_pictures() const { return sink_ != nullptr; }

  BatchDivision evaluated_;
  Shape picture_;
  std::int64_t samples_ = 0, most_ = 0;  // that the replica has of a pass, and that are looked at
  DetailSink* sink_;
  std::int64_t passed_ = 0;           // of the replica's samples, in this pass
  std::vector<std::int64_t> places_;  // in the batch that take() is called with
  std::vector<JudgedSample> judged_;
  std::vector<float> predictions_;  // of these samples, on the rank that has them
  std::vector<std::byte> bytes_;
};

}  // namespace trainctl
