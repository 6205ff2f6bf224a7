// Looks up the costs in the measurements.
#include "parallel/plan/measured/measured_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "parallel/plan/measured/measure_communication.h"
#include "parallel/plan/measured/measure_loading.h"
#include "parallel/plan/measured/measure_step.h"

namespace trainctl {
namespace {

// Returns the median of the maximum of `values` values of a standard normal distribution.
double median_of_largest(int values) {
  const double probability = std::pow(0.5, 1.0 / values);
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return low;
}

}  // namespace

MeasuredCosts::MeasuredCosts(Measurements measurements, const MeasuredUse& use, std::unique_ptr<Costs> estimate)
    : measurements_(std::move(measurements)), use_(use), estimate_(std::move(estimate)) {}

double MeasuredCosts::op_seconds(const PlacedProgram& program, int segment, int op) const {
  const auto* measured = measurements_.find(op_key(use_.at_once, program, program.op(segment, op)));
  if (measured != nullptr) return slowdown() * measured->front();
  return estimate_ == nullptr ? 0 : slowdown() * estimate_->op_seconds(program, segment, op);
}

TrafficSeconds MeasuredCosts::communication_seconds(const Traffic& traffic) const {
  if (traffic.ranks < 2) return {};
  const auto bytes = static_cast<double>(traffic.bytes);
  for (int measured = std::max(use_.at_once, traffic.ranks); measured >= 2; --measured) {
    const auto model = communication_model(measurements_, communication_key(measured, traffic.kind, traffic.shared));
    if (!model) continue;
    const double ring = (1 - 1.0 / traffic.ranks) / (1 - 1.0 / measured);
    const double tree = std::log2(traffic.ranks) / std::log2(measured);
    const double latency = slowdown() * tree * model->latency();
    double transfer = ring * std::max(model->seconds(bytes) - model->latency(), 0.0);
    if (traffic.copied > 0) {
      const auto copies = communication_model(measurements_, copy_key(measured));
      if (copies) transfer += copies->seconds(static_cast<double>(traffic.copied));
    }
    return {latency, slowdown() * transfer};
  }
  return {};
}

HostSeconds MeasuredCosts::host_seconds(const PlacedProgram& program) const {
  HostSeconds host{.overlaps_loading = !use_.on_host};
  const std::int64_t samples = program.program.micro_batch_samples * program.program.micro_batches;
  const auto* loading = measurements_.find(loading_key(use_.at_once, use_.data, samples));
  if (loading != nullptr) host.sample = slowdown() * loading->front();
  const auto* measured = measurements_.find(step_key(use_.at_once, program));
  if (measured == nullptr) return host;
  host.step = measured->at(0);
  if (use_.ranks > 1) host.step += measured->at(1) * median_of_largest(use_.ranks) / median_of_largest(2);
  host.step *= slowdown();
  return host;
}

}  // namespace trainctl
