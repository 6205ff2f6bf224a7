// Windows of a series: each sample is several rows of another data set, at regular distances.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/keys.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// The windows of a series of rows that are sorted by time.
struct WindowOptions {
  std::int64_t sequence_length = 0;  // rows of a window
  std::int64_t sequence_stride = 1;  // distance of the first rows of consecutive windows
  std::int64_t sampling_rate = 1;    // distance of consecutive rows of a window
  std::int64_t horizon = 1;          // distance of the target's row from the window's last row

  // The distance of a window's last row from its first row.
  std::int64_t span() const { return (sequence_length - 1) * sampling_rate; }

  static Keys<WindowOptions> keys();
};

// Makes a data set of the windows of `rows`, a data set with a sample for each time, in the order of time. Window i
// begins at row first = i * sequence_stride. Its sample [sequence_length, ...] holds the rows first + k *
// sampling_rate, read when the sample is read; rows of one token each make a sample [sequence_length]. Its target and
// weight are those of row first + span() + horizon. Without `with_targets` windows have no row for a target, so that
// the last window may end with the last row; weights, and targets that `rows` has nevertheless, are then those of the
// window's last row. Only windows whose rows all exist are samples. Throws Error{data} with `path` if there is none.
std::shared_ptr<const Dataset> windows_of(std::shared_ptr<const Dataset> rows, const WindowOptions& options,
                                          bool with_targets, const std::string& path);
// Makes the windows of each data set of a group; a data set that is listed twice is so in the result.
DatasetGroup windows_of(const DatasetGroup& rows, const WindowOptions& options, bool with_targets,
                        const std::string& path);

// The numbers of the rows up to the last one that the first `windows` windows read for samples and targets.
std::vector<std::int64_t> rows_of_windows(const WindowOptions& options, std::int64_t windows, bool with_targets);

// Throws Error{config} if windows are read from several files, in which they would cross from one file to the next.
void require_one_series(const std::optional<WindowOptions>& options, std::size_t files);

}  // namespace trainctl
