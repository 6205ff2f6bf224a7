// Formats the lines that show the progress of a run, as pure functions.
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
  double epoch = 0;                  // 2.25: a quarter of the third epoch is done
  double loss = 0;
  double learning_rate = 0;
  double samples_per_second = 0;  // 0: unknown
  double data_wait_share = 0;
  double gpu_utilization = GpuReading::unknown;   // last mean over the ranks
  double gpu_memory_bytes = GpuReading::unknown;  // memory in use on the fullest GPU
  double seconds_left = -1;                       // negative: unknown
};

// Sets the state's values of GPUs from the readings of all ranks; does nothing without readings.
void set_gpus(ProgressState& state, std::span<const GpuSample> gpus);

// Returns the number of epochs in `total_steps`, including a last partial one; 0 (unknown) if an argument is 0.
std::int64_t epoch_count(std::int64_t total_steps, std::int64_t steps_per_epoch);

// Returns text such as "45,123"; "12.3" or "0.52" for small rates.
std::string count_text(double count);
// Returns text such as "0.5 s", "12 s", "3:05" or "2:03:04".
std::string time_text(double seconds);

// Returns "epoch 2/5  1234/4690 [=====>     ]  loss 0.1234  45,123 samples/s  ETA 1:12" in at most `width` columns: the
// bar is shortened, then values are left out, the least important first.
std::string bar_line(const ProgressState& state, int width);
// "step 1230/4690  epoch 0.26  loss 0.1234  lr 0.1  45,123 samples/s".
std::string step_line(const ProgressState& state);
// "epoch 2/5  loss 0.1234  accuracy 0.9611  val_loss 0.15  val_accuracy 0.953  (3.2 s)".
std::string epoch_line(const EpochEvent& event, std::int64_t epochs);
// Returns status, time and rate; final and best metrics; the hash of the weights; the path of the checkpoint unless it
// is empty.
std::vector<std::string> summary_lines(const EndEvent& event, double samples_per_second, const std::string& checkpoint);
// Returns utilization, power, energy and memory of the GPUs, and the share of the FLOP/s in their data sheets that the
// network's layers reached at this rate (MFU). Lines without known values are left out.
std::vector<std::string> device_lines(const StartEvent& start, const EndEvent& end, double samples_per_second);

}  // namespace trainctl
