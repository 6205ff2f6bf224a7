// Reads windows of a series row by row, and divides them by time.
#include "io/datasets/windows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

// The number of the values start, start + stride, ... that are below `end`.
std::int64_t count_below(std::int64_t end, std::int64_t stride) { return end <= 0 ? 0 : (end + stride - 1) / stride; }

class Windows final : public Dataset {
 public:
  Windows(std::shared_ptr<const Dataset> rows, const WindowOptions& options, bool with_targets, std::string path)
      : rows_(std::move(rows)),
        info_(rows_->info()),
        options_(options),
        reach_(options.span() + (with_targets ? options.horizon : 0)),
        path_(std::move(path)) {
    size_ = count_below(rows_->size() - reach_, options_.sequence_stride);
    if (size_ == 0) {
      data_error(path_,
                 format("has {}, and a window{} needs {}", counted(rows_->size(), "row"),
                        with_targets ? " with its target" : "", grouped(reach_ + 1)),
                 "set a smaller `sequence_length`, `sampling_rate` or `horizon`");
    }
    const Shape row = info_.sample;
    has_samples_ = row.count() > 0;
    row_bytes_ = row.count() * size_of(info_.dtype);
    if (has_samples_) {
      const bool is_token = info_.dtype == DType::int32 && row == Shape{1};
      info_.sample = is_token ? Shape{options_.sequence_length} : row.with_front(options_.sequence_length);
    }
    info_.fingerprint += format(", windows of {} rows, stride {}, rate {}, reach {}", options_.sequence_length,
                                options_.sequence_stride, options_.sampling_rate, reach_);
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return size_; }
  bool in_memory() const override { return rows_->in_memory(); }
  std::string name_of(std::int64_t index) const override {
    return format("{}, the first row of window {}", rows_->name_of(first_row(index)), index);
  }
  std::string target_name_of(std::int64_t index) const override { return rows_->target_name_of(last_row(index)); }
  std::int32_t label(std::int64_t index) const override { return rows_->label(last_row(index)); }
  void read_labels(std::int64_t index, std::int32_t* labels) const override {
    rows_->read_labels(last_row(index), labels);
  }
  void read_weights(std::int64_t index, float* weights) const override {
    rows_->read_weights(last_row(index), weights);
  }

  void read(std::int64_t index, Sample& sample) const override {
    Sample row;
    if (has_samples_) {
      sample.shape = info_.sample;
      sample.dtype = info_.dtype;
      sample.buffer.resize(static_cast<std::size_t>(row_bytes_ * options_.sequence_length));
      std::byte* to = sample.buffer.data();
      for (std::int64_t k = 0; k < options_.sequence_length; ++k, to += row_bytes_) {
        rows_->read(first_row(index) + k * options_.sampling_rate, row);
        std::memcpy(to, row.values, static_cast<std::size_t>(row_bytes_));
      }
      sample.values = sample.buffer.data();
    }
    if (info_.classes > 0 || info_.target.count() == 0) return;
    rows_->read(last_row(index), row);
    sample.target_buffer.assign(row.target, row.target + info_.target.count());
    sample.target = sample.target_buffer.data();
  }

  std::optional<TimeSplit> split_by_time(double share) const override {
    const std::int64_t rows = rows_->size(), held_out = std::llround(share * static_cast<double>(rows));
    const TimeSplit split{count_below(rows - held_out - reach_, options_.sequence_stride),
                          count_below(rows - held_out, options_.sequence_stride)};
    if (split.training_end > 0 && split.validation_begin < size_) return split;
    data_error(path_,
               format("has {}; of the first {} and the last {}, one part is too short for a window, which needs "
                      "{} with its target",
                      counted(rows, "row"), grouped(rows - held_out), grouped(held_out), counted(reach_ + 1, "row")),
               "set another `split`, or a smaller `sequence_length`, `sampling_rate` or `horizon`");
  }

 private:
  std::int64_t first_row(std::int64_t index) const { return index * options_.sequence_stride; }
  // The row of the target.
  std::int64_t last_row(std::int64_t index) const { return first_row(index) + reach_; }

  std::shared_ptr<const Dataset> rows_;
  DatasetInfo info_;
  WindowOptions options_;
  std::int64_t reach_;  // distance of the target's row, or without targets of the last row, from the first row
  std::string path_;
  std::int64_t size_ = 0, row_bytes_ = 0;
  bool has_samples_ = true;  // false: a data set of targets alone
};

}  // namespace

Keys<WindowOptions> WindowOptions::keys() {
  constexpr std::int64_t longest = std::int64_t{1} << 31;
  return Keys<WindowOptions>("windows",
                             "Samples are windows of a series of rows that are sorted by time, as from Keras' "
                             "timeseries_dataset_from_array.")
      .required("sequence_length", &WindowOptions::sequence_length,
                "The number of rows of a window: a sample has the shape [sequence_length, values of a row].",
                between(1, longest))
      .key("sequence_stride", &WindowOptions::sequence_stride,
           "The distance, in rows, from the beginning of a window to that of the next window.", between(1, longest))
      .key("sampling_rate", &WindowOptions::sampling_rate,
           "The distance, in rows, between consecutive rows of a window: 6 reads every sixth row.", between(1, longest))
      .key("horizon", &WindowOptions::horizon,
           "How many rows after the last row of a window the row is that has its target and weight: 1 forecasts the "
           "next row; 0 is the last row of the window itself. Keras' targets are (sequence_length - 1) * sampling_rate "
           "+ horizon rows after the first row.",
           between(0, longest));
}

std::shared_ptr<const Dataset> windows_of(std::shared_ptr<const Dataset> rows, const WindowOptions& options,
                                          bool with_targets, const std::string& path) {
  return std::make_shared<Windows>(std::move(rows), options, with_targets, path);
}

DatasetGroup windows_of(const DatasetGroup& rows, const WindowOptions& options, bool with_targets,
                        const std::string& path) {
  std::map<const Dataset*, std::shared_ptr<const Dataset>> known;
  const auto all = [&](const std::vector<std::shared_ptr<const Dataset>>& datasets) {
    std::vector<std::shared_ptr<const Dataset>> found;
    for (const auto& dataset : datasets) {
      auto& windows = known[dataset.get()];
      if (!windows) windows = windows_of(dataset, options, with_targets, path);
      found.push_back(windows);
    }
    return found;
  };
  return {all(rows.inputs), all(rows.targets)};
}

std::vector<std::int64_t> rows_of_windows(const WindowOptions& options, std::int64_t windows, bool with_targets) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>((windows - 1) * options.sequence_stride + options.span() +
                                                          (with_targets ? options.horizon : 0) + 1));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

void require_one_series(const std::optional<WindowOptions>& options, std::size_t files) {
  if (!options || files == 1) return;
  throw Error(
      ErrorKind::config,
      format("`windows` reads one series, and {} files are given, whose windows would cross from one file to the "
             "next",
             files),
      "give one file, or join files that continue each other");
}

}  // namespace trainctl
