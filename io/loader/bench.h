// `trainctl bench data`: measures the time of reading, decoding, transforming and augmenting a sample, and the rate of
// the loader.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "io/loader/splits/stage_clock.h"

namespace trainctl {

class DataSplit;
struct LoaderOptions;

struct DataBench {
  std::array<double, stage_count> stages{};  // seconds per sample on one thread, by Stage
  double worker = 0, loader = 0;             // samples/s of a loader with one worker, and of the run's loader
  double step = 0;                           // samples/s of the training step if it never waits for data
  int workers = 1;                           // the largest number of workers of the loader
  int ranks = 1;                             // number of ranks; the rates are those of all ranks together

  // Seconds per sample that one worker needs in addition to the stages: for the order of samples, and for passing
  // batches on.
  double rest() const;
  // The bottleneck of training: "step", a stage's name, or "batch".
  std::string bound() const;
};

// Measures a loader of a split for about `seconds`. The rates are those of this rank; the caller sets `step`. Calls
// `together`, which synchronizes the ranks, before each measurement, so that all ranks measure at the same time.
DataBench bench_data(const std::shared_ptr<const DataSplit>& split, const LoaderOptions& options, double seconds,
                     const std::function<void()>& together);

// The results as one line of JSON, and as a table for people.
std::string to_json(const DataBench& bench);
std::string to_text(const DataBench& bench);

}  // namespace trainctl
