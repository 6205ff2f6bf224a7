// Evaluation: exact means of loss and metrics over a part of the data, all ranks together.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics/result.h"

namespace trainctl {

class BatchSource;
class Communicator;
class Engine;
class RunPrograms;
class SampleWatch;
class Stream;

// What an evaluation found, by the name of the loss or metric.
struct Evaluation {
  std::map<std::string, double> values;
  std::map<std::string, Table> tables;
  double weight = 0;  // of all samples
};

// One pass over the source, to the batch that is the last of its epoch. Where
// `stop_requested` (asked before each batch; empty: never) is true on some rank it ends early and gives nothing; the
// source then stands somewhere in the pass. Sums over batches and ranks are exact (ExactSum), so that their order
// changes nothing. `watch` (null: none) takes its samples of the pass. Collective; the result is equal on all ranks.
std::optional<Evaluation> evaluate(Engine& engine, const RunPrograms& programs, BatchSource& source,
                                   Communicator& world, Stream& stream,
                                   const std::function<bool()>& stop_requested = {}, SampleWatch* watch = nullptr);

}  // namespace trainctl
