// Adds up the sums of steps, and computes the values of losses and metrics over an epoch.
#include "core/metrics/means.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/metrics/output.h"

namespace trainctl {
namespace {

// The indices of the sums by which an output that counts itself divides its losses and its metrics; else empty.
struct OwnSums {
  std::optional<std::size_t> count, weight;
};

// Returns the sums of each output. `next`: the index of the first one; becomes that after the last one.
std::vector<OwnSums> own_sums(const std::vector<ResolvedOutput>& outputs, std::size_t& next) {
  std::vector<OwnSums> all;
  for (const ResolvedOutput& output : outputs) {
    all.emplace_back();
    if (!output.counts_itself) continue;
    all.back().count = next++;
    all.back().weight = next++;
  }
  return all;
}

// Returns the function that computes the weighted sum of all losses.
std::function<double(std::span<const double>, double)> total_loss(const std::vector<ResolvedOutput>& outputs,
                                                                  std::vector<OwnSums> own) {
  std::vector<double> scales;  // for each output: factor of its sum of losses, computed from its weight and rows
  for (const ResolvedOutput& output : outputs) {
    scales.push_back(output.weight / static_cast<double>(output.rows_counted));
  }
  return [scales, own = std::move(own)](std::span<const double> sums, double count) {
    double loss = 0, of_others = 0;
    for (std::size_t i = 0; i < scales.size(); ++i) {
      if (!own[i].count) {
        loss += scales[i] * sums[i];
      } else if (const double positions = sums[*own[i].count]; positions != 0) {
        of_others += scales[i] * sums[i] / positions;
      }
    }
    return loss / count + of_others;
  };
}

// The result that is e to the power of the mean of a sum of cross-entropies. `count`: the index of the output's own
// count.
MetricResult perplexity(const ResolvedOutput& output, std::size_t sum, std::optional<std::size_t> count) {
  const auto rows = static_cast<double>(output.rows_counted);
  const auto power = [rows](std::span<const double> sums, double count) { return std::exp(sums[0] / (count * rows)); };
  MetricResult result{output.prefixed("perplexity"), sum, 1, power};
  result.own_count = count;
  result.of_nothing = std::numeric_limits<double>::quiet_NaN();
  return result;
}

// Appends the results that follow from the cross-entropy without further terms, whose sum follows that of the tokens'
// bytes. `next`: the index of the first of these sums; becomes that after the last one.
void append_crossentropy_results(const ResolvedOutput& output, std::optional<std::size_t> count, std::size_t& next,
                                 std::vector<MetricResult>& results) {
  const bool has_bytes = output.token_bytes != nullptr;
  if (has_bytes) {
    const auto bits = [](std::span<const double> sums, double) { return sums[1] / std::numbers::ln2 / sums[0]; };
    results.push_back({output.prefixed("bits_per_byte"), next, 2, bits});
    results.back().wants = "tokens of text";
    ++next;
  }
  if (output.perplexity) {
    results.push_back(perplexity(output, next, count));
    results.back().derived = has_bytes;
  }
  ++next;
}

}  // namespace

std::vector<MetricResult> metric_results(const std::vector<ResolvedOutput>& all_outputs) {
  std::vector<ResolvedOutput> outputs;
  std::ranges::copy_if(all_outputs, std::back_inserter(outputs), &ResolvedOutput::has_loss);
  const bool has_parts =
      outputs.size() > 1 || outputs[0].is_added;  // parts of the loss, which are results of their own
  std::vector<MetricResult> results;
  std::size_t first = outputs.size();  // index of the next sum after the losses
  const std::vector<OwnSums> own = own_sums(outputs, first);
  results.push_back({"loss", 0, first, total_loss(outputs, own)});
  for (std::size_t i = 0; i < outputs.size() && has_parts; ++i) {
    const auto rows = static_cast<double>(outputs[i].rows_counted);
    const auto mean = [rows](std::span<const double> sums, double count) { return sums[0] / (count * rows); };
    results.push_back({outputs[i].name.empty() ? "output_loss" : outputs[i].prefixed("loss"), i, 1, mean, 0, true});
    results.back().own_count = own[i].count;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].plain_crossentropy || !outputs[i].perplexity) continue;
    results.push_back(perplexity(outputs[i], i, own[i].count));
    results.back().derived = true;
  }
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
                         own[i].weight,
                         std::string(wants_of(metric.rule)),
                         0,
                         [rule = metric.rule](std::span<const double> own) { return zero_division_of(rule, own); }});
      first += sums;
    }
    if (output.plain_crossentropy) {
      append_crossentropy_results(output, own[i].count, first, results);
    } else if (output.token_bytes) {
      const auto bits = [](std::span<const double> own, double) { return own[0] / std::numbers::ln2 / own[1]; };
      results.push_back({output.prefixed("bits_per_byte"), first++, 1, bits, 0, false, false, i, {}, "tokens of text"});
    }
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

std::map<std::string, std::string> MetricMeans::remarks() const {
  std::map<std::string, std::string> remarks;
  if (count_ == 0) return remarks;
  for (const MetricResult& result : results_) {
    if (result.columns > 0 || (result.by_weight && weight_of(result) == 0)) continue;
    std::string remark = result.zero_division ? result.zero_division(sums(result)) : "";
    if (remark.empty() && !result.wants.empty() && std::isnan(result.of(sums_, count_))) {
      remark = "is not defined, since it requires " + result.wants;
    }
    if (!remark.empty()) remarks.emplace(result.name, std::move(remark));
  }
  return remarks;
}

double MetricMeans::weight_of(const MetricResult& result) const {
  return result.own_count ? sums_[*result.own_count] : sums_.back();
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
