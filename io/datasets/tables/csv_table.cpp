// Measures the columns of a table, and converts its rows to samples.
#include "io/datasets/tables/csv_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/format.h"
#include "core/base/hash.h"
#include "io/datasets/tables/csv_tokens.h"

namespace trainctl {
namespace {

// Calls visit(value) for the column's value of each of `samples`; of all samples if `samples` is empty.
template <class Visit>
void for_each(const std::vector<float>& values, const std::vector<std::int64_t>& samples, Visit visit) {
  if (samples.empty()) {
    for (const float value : values) visit(value);
  } else {
    for (const std::int64_t i : samples) visit(values[static_cast<std::size_t>(i)]);
  }
}

TableInfo::Column measure(const std::string& path, const CsvColumn& column, const std::vector<std::int64_t>& samples,
                          const MissingValue& missing, bool standardize) {
  TableInfo::Column found{.name = column.name()};
  const std::vector<float>& values = column.values();
  double sum = 0;
  std::int64_t present = 0;
  for_each(values, samples, [&](float value) {
    if (std::isnan(value)) return;
    sum += value;
    ++present;
  });
  const auto* rule = std::get_if<MissingRule>(&missing);
  if (!rule) {
    found.fill = static_cast<float>(std::get<double>(missing));
  } else if (*rule == MissingRule::mean) {
    if (present == 0) {
      data_error(path, format("column '{}' holds no value, so it has no mean", column.name()),
                 "list the other columns in `columns`");
    }
    found.fill = static_cast<float>(sum / static_cast<double>(present));
  }
  if (!standardize) return found;
  double minimum = std::numeric_limits<double>::infinity(), maximum = -minimum, filled_sum = 0, squares = 0, count = 0;
  const auto filled = [&](float value) { return double{std::isnan(value) ? found.fill : value}; };
  for_each(values, samples, [&](float value) {
    minimum = std::min(minimum, filled(value));
    maximum = std::max(maximum, filled(value));
    filled_sum += filled(value);
    ++count;
  });
  // Rounding must not make a constant column vary.
  found.mean = minimum == maximum ? minimum : filled_sum / count;
  for_each(values, samples, [&](float value) {
    const double distance = filled(value) - found.mean;
    squares += distance * distance;
  });
  if (minimum < maximum) found.deviation = std::sqrt(squares / count);
  return found;
}

std::vector<float> boundaries_of(const CsvColumn& column, const std::vector<std::int64_t>& samples,
                                 const Discretization& bins) {
  if (!bins.num_bins) return {bins.bin_boundaries.begin(), bins.bin_boundaries.end()};
  std::vector<float> present;
  for_each(column.values(), samples, [&](float value) {
    if (!std::isnan(value)) present.push_back(value);
  });
  return quantile_boundaries(std::move(present), *bins.num_bins);
}

class TableDataset final : public Dataset {
 public:
  TableDataset(std::shared_ptr<const Dataset> stored, std::shared_ptr<const std::vector<float>> rows,
               std::shared_ptr<const TableInfo> table, const std::optional<Shape>& shape, std::int64_t tokens,
               std::string warning, std::shared_ptr<const TableRows> places)
      : stored_(std::move(stored)),
        rows_(std::move(rows)),
        places_(std::move(places)),
        info_(stored_->info()),
        columns_(table->columns) {
    std::int64_t width = 0;
    std::string words;
    for (const TableInfo::Column& column : columns_) {
      width += tokens > 0 ? 1 : column.width();
      for (const std::string& word : column.vocabulary) words += word + '\n';
      if (column.oov_values > 1) words += format("{} for other words\n", column.oov_values);
      if (column.hash_bins > 0) words += format("{} bins\n", column.hash_bins);
      for (const float boundary : column.boundaries) words += format("{}\n", boundary);
    }
    info_.sample = Shape{width};
    if (shape && shape->rank() != 1 && shape->count() == width) info_.sample = *shape;
    if (!words.empty()) info_.fingerprint += format(", words {:016x}", xxh3(words.data(), words.size()));
    info_.table = std::move(table);
    info_.warning = std::move(warning);
    if (tokens == 0) return;
    info_.dtype = DType::int32;
    tokens_ = tokens_of(*this, *rows_, columns_, tokens);
  }

  const DatasetInfo& info() const override { return info_; }
  std::int64_t size() const override { return stored_->size(); }
  bool in_memory() const override { return true; }
  std::string name_of(std::int64_t index) const override { return places_->place_of(index); }
  std::int32_t label(std::int64_t index) const override { return stored_->label(index); }
  void read_labels(std::int64_t index, std::int32_t* labels) const override { stored_->read_labels(index, labels); }
  void read_weights(std::int64_t index, float* weights) const override { stored_->read_weights(index, weights); }

  void read(std::int64_t index, Sample& sample) const override {
    stored_->read(index, sample);  // reads the target
    sample.shape = info_.sample;
    sample.dtype = info_.dtype;
    if (!tokens_.empty()) {
      sample.values = tokens_.data() + index * std::ssize(columns_);
      return;
    }
    sample.buffer.assign(static_cast<std::size_t>(info_.sample.count()) * sizeof(float), std::byte{0});
    auto* to = reinterpret_cast<float*>(sample.buffer.data());
    const float* row = rows_->data() + index * std::ssize(columns_);
    for (const TableInfo::Column& column : columns_) {
      const float value = *row++;
      if (column.words) {
        if (!std::isnan(value)) to[column.value_of(value)] = 1;
        to += column.width();
      } else if (const float filled = std::isnan(value) ? column.fill : value; column.is_binned) {
        to[static_cast<std::size_t>(bin_of(filled, column.boundaries))] = 1;
        to += column.width();
      } else {
        *to++ = static_cast<float>((double{filled} - column.mean) / column.deviation);
      }
    }
    sample.values = sample.buffer.data();
  }

 private:
  std::shared_ptr<const Dataset> stored_;
  std::shared_ptr<const std::vector<float>> rows_;
  std::shared_ptr<const TableRows> places_;
  DatasetInfo info_;
  const std::vector<TableInfo::Column>& columns_;  // columns of info_.table
  std::vector<std::int32_t> tokens_;               // [rows, columns]; empty: samples are values
};

}  // namespace

std::pair<const std::string&, std::int64_t> TableRows::location_of(std::int64_t row) const {
  const auto file = std::ranges::upper_bound(files, row, {}, [](const TableRows::File& each) { return each.end; });
  return {file->path, lines[static_cast<std::size_t>(row)]};
}

std::string TableRows::place_of(std::int64_t row) const {
  const auto [path, line] = location_of(row);
  return format("{}, line {}", path, line);
}

std::vector<TableInfo::Column> measure_columns(const std::string& path, const std::vector<CsvColumn>& columns,
                                               const std::vector<std::int64_t>& samples, const MissingValue& missing,
                                               bool standardize, bool out_of_vocabulary,
                                               const std::map<std::string, Discretization>& discretize) {
  std::vector<TableInfo::Column> measured;
  for (const CsvColumn& column : columns) {
    const auto bins = discretize.find(column.name());
    if (column.hash_bins() > 0) {
      measured.push_back({.name = column.name(), .words = true, .hash_bins = column.hash_bins()});
    } else if (bins != discretize.end()) {
      measured.push_back(measure(path, column, samples, missing, false));
      measured.back().is_binned = true;
      measured.back().boundaries = boundaries_of(column, samples, bins->second);
    } else if (column.holds_words()) {
      measured.push_back({.name = column.name(),
                          .words = true,
                          .vocabulary = column.vocabulary(),
                          .out_of_vocabulary = out_of_vocabulary,
                          .oov_values = column.other_bins()});
    } else {
      measured.push_back(measure(path, column, samples, missing, standardize));
    }
  }
  return measured;
}

std::shared_ptr<const std::vector<float>> rows_of(const std::vector<CsvColumn>& columns) {
  const std::size_t count = columns[0].values().size();
  auto rows = std::make_shared<std::vector<float>>(count * columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    for (std::size_t i = 0; i < count; ++i) (*rows)[i * columns.size() + c] = columns[c].values()[i];
  }
  return rows;
}

std::shared_ptr<const Dataset> table_dataset(std::shared_ptr<const Dataset> stored,
                                             std::shared_ptr<const std::vector<float>> rows,
                                             std::shared_ptr<const TableInfo> table, const std::optional<Shape>& shape,
                                             std::int64_t tokens, std::string warning,
                                             std::shared_ptr<const TableRows> places) {
  return std::make_shared<TableDataset>(std::move(stored), std::move(rows), std::move(table), shape, tokens,
                                        std::move(warning), std::move(places));
}

}  // namespace trainctl
