// `trainctl bench data`: what reading, decoding, transforming and augmenting a sample take, and what the loader gives.
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
  std::array<double, stage_count> stages{};  // seconds of a sample on one thread, by Stage
  double worker = 0, loader = 0;             // samples/s of a loader with one worker, and of the stated one
  double step = 0;                           // samples/s that the training step takes where it waits for none
  int workers = 1;                           // that the loader has at most
  int ranks = 1;                             // whose samples all rates count together

  // Seconds of one worker for a sample beside its stages: the order of samples, and batches passed on.
  double rest() const;
  // What bounds training: "step", a stage's name, or "batch".
  std::string bound() const;
};

// Measures a loader of a split for about `seconds`. The rates are those of this rank; the caller sets `step`.
// Calls `together` before each measurement: all ranks measure at the same time.
DataBench bench_data(const std::shared_ptr<const DataSplit>& split, const LoaderOptions& options, double seconds,
                     const std::function<void()>& together);

// One JSON document of a line, and a table for people.
std::string to_json(const DataBench& bench);
std::string to_text(const DataBench& bench);

}  // namespace trainctl
