// The lines that people read while a run goes on, as pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// The values in the line of a step. Rates and shares are means since the last line.
struct ProgressState {
  std::int64_t step = 0;
  std::int64_t total_steps = 0;      // 0: unknown
  std::int64_t steps_per_epoch = 0;  // 0: unknown
  double epoch = 0;                  // 2.25: a quarter of the third is done
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;  // 0: unknown
  double data_wait_share = 0;
  double gpu_utilization = GpuReading::unknown;   // mean of the ranks, as seen last
  double gpu_memory_bytes = GpuReading::unknown;  // of the fullest GPU
  double seconds_left = -1;                       // negative: unknown
};

// Fills in what the readings of the ranks' GPUs come to; nothing without readings.
void set_gpus(ProgressState& state, std::span<const GpuSample> gpus);

// How many epochs so many steps are, a last one in part included; 0: unknown, as are counts of 0.
std::int64_t epoch_count(std::int64_t total_steps, std::int64_t steps_per_epoch);

// "45,123"; "12.3" and "0.52" for small rates.
std::string count_text(double count);
// "0.5 s", "12 s", "3:05", "2:03:04".
std::string time_text(double seconds);

// "epoch 2/5  1234/4690 [=====>     ]  loss 0.1234  45,123 samples/s  ETA 1:12", at most `width` columns: the bar
// shrinks, then parts are left out, the least needed first.
std::string bar_line(const ProgressState& state, int width);
// "step 1230/4690  epoch 0.26  loss 0.1234  lr 0.1  45,123 samples/s".
std::string step_line(const ProgressState& state);
// "epoch 2/5  loss 0.1234  accuracy 0.9611  val_loss 0.15  val_accuracy 0.953  (3.2 s)".
std::string epoch_line(const EpochEvent& event, std::int64_t epochs);
// Status, time and rate; final and best metrics; the hash of the weights; where the checkpoint lies (empty: nowhere).
std::vector<std::string> summary_lines(const EndEvent& event, double samples_per_second, const std::string& checkpoint);
// How busy the GPUs were, with what power, energy and memory; and which share of their data sheets' FLOP/s the
// network's layers came to at that rate (MFU). Lines of which nothing is known are left out.
std::vector<std::string> device_lines(const StartEvent& start, const EndEvent& end, double samples_per_second);

}  // namespace trainctl
