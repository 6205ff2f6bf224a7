// Evaluates a network: computes exact means of loss and metrics over a split of the data on all ranks together.
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

// The results of an evaluation, by the name of the loss or metric.
struct Evaluation {
  std::map<std::string, double> values;
  std::map<std::string, Table> tables;
  double weight = 0;                           // sum of the weights of all samples
  std::map<std::string, std::string> remarks;  // what a reader must know of some values (MetricMeans::remarks)
};

// Makes one pass over the source, up to the last batch of its epoch. `stop_requested` is called before each batch and
// may be null. If it returns true on any rank, the pass ends early and returns an empty value; the source's position is
// then unspecified. Sums over batches and ranks are exact (ExactSum), so that they do not depend on the order. `watch`
// (may be null) records its samples of the pass. All ranks must call this function; the result is equal on all ranks.
std::optional<Evaluation> evaluate(Engine& engine, const RunPrograms& programs, BatchSource& source,
                                   Communicator& world, Stream& stream,
                                   const std::function<bool()>& stop_requested = {}, SampleWatch* watch = nullptr);

}  // namespace trainctl
