// Adds up the sums of steps, and computes the values of losses and metrics over an epoch.
#include "core/metrics/means.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "core/base/error.h"

namespace trainctl {

std::vector<MetricResult> metric_results(const std::vector<ResolvedOutput>& all_outputs) {
  std::vector<ResolvedOutput> outputs;
  std::ranges::copy_if(all_outputs, std::back_inserter(outputs), &ResolvedOutput::has_loss);
  const bool has_parts =
      outputs.size() > 1 || outputs[0].is_added;  // parts of the loss, which are results of their own
  std::vector<MetricResult> results;
  std::vector<double> scales;  // for each output: factor of its sum of losses, computed from its weight and rows
  for (const ResolvedOutput& output : outputs)
    scales.push_back(output.weight / static_cast<double>(output.rows_counted));
  results.push_back({"loss", 0, outputs.size(), [scales](std::span<const double> sums, double count) {
                       double loss = 0;
                       for (std::size_t i = 0; i < scales.size(); ++i) loss += scales[i] * sums[i];
                       return loss / count;
                     }});
  for (std::size_t i = 0; i < outputs.size() && has_parts; ++i) {
    const auto rows = static_cast<double>(outputs[i].rows_counted);
    const auto mean = [rows](std::span<const double> sums, double count) { return sums[0] / (count * rows); };
    results.push_back({outputs[i].name.empty() ? "output_loss" : outputs[i].prefixed("loss"), i, 1, mean, 0, true});
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].perplexity) continue;
    const auto rows = static_cast<double>(outputs[i].rows_counted);
    const auto power = [rows](std::span<const double> sums, double count) {
      return std::exp(sums[0] / (count * rows));
    };
    results.push_back({outputs[i].prefixed("perplexity"), i, 1, power, 0, true});
  }
  std::size_t first = outputs.size();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ResolvedOutput& output = outputs[i];
    const auto rows = static_cast<double>(output.rows_each);
    for (const ResolvedMetric& metric : output.metrics) {
      const auto sums = static_cast<std::size_t>(sums_of(metric.rule));
      results.push_back({output.prefixed(metric.name),
                         first,
                         sums,
                         [rows, rule = metric.rule](std::span<const double> own, double count) {
                           return value_of(rule, own, count * rows);
                         },
                         static_cast<std::size_t>(columns_of(metric.rule)),
                         false,
                         true,
                         {},
                         std::string(wants_of(metric.rule))});
      first += sums;
    }
    if (!output.token_bytes) continue;
    const auto bits = [](std::span<const double> own, double) { return own[0] / std::numbers::ln2 / own[1]; };
    results.push_back({output.prefixed("bits_per_byte"), first++, 1, bits, 0, false, false, i, "tokens of text"});
  }
  return results;
}

MetricMeans::MetricMeans(std::vector<MetricResult> results) : results_(std::move(results)) {
  std::size_t count = 0;
  for (const MetricResult& result : results_) count = std::max(count, result.first + result.sums);
  sums_.resize(count + 1);
}

void MetricMeans::add(std::span<const double> sums, double count) {
  require(sums.size() == sums_.size(), "a step does not have the sums of all results");
  for (std::size_t i = 0; i < sums.size(); ++i) sums_[i] += sums[i];
  count_ += count;
}

std::span<const double> MetricMeans::sums(const MetricResult& result) const {
  return std::span(sums_).subspan(result.first, result.sums);
}

std::map<std::string, double> MetricMeans::values() const {
  std::map<std::string, double> values;
  if (count_ == 0) return values;
  for (const MetricResult& result : results_) {
    if (result.columns == 0) values[result.name] = result.of(sums_, count_);
  }
  return values;
}

std::map<std::string, Table> MetricMeans::tables() const {
  std::map<std::string, Table> tables;
  if (count_ == 0) return tables;
  for (const MetricResult& result : results_) {
    if (result.columns == 0) continue;
    Table& table = tables[result.name];
    const std::span<const double> all = sums(result);
    for (std::size_t i = 0; i < all.size(); i += result.columns) {
      table.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i),
                         all.begin() + static_cast<std::ptrdiff_t>(i + result.columns));
    }
  }
  return tables;
}

void MetricMeans::clear() {
  sums_.assign(sums_.size(), 0.0);
  count_ = 0;
}

}  // namespace trainctl
