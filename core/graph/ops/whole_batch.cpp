// Shapes, placements and gradients of the ops on the samples of all replicas.
#include "core/graph/ops/whole_batch.h"

#include <algorithm>
#include <numeric>

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {
namespace {

std::string text_of(const SampleShares& shares) { return format("{} of {}", shares.own, shares.counts.size()); }

TensorType with_samples(TensorType type, std::int64_t samples) {
  type.shape[0] = samples;
  return type;
}

// Turns placement `from` into `to` along the data axis. Along other axes, dimension 0 must not be split.
OutputPlacements along_data(const PlacementQuery& query, const Placement& from, const Placement& to) {
  const Placement& x = query.inputs[0];
  if (query.axis == MeshAxis::data ? x == from : x != split_along(0)) {
    return {{query.axis == MeshAxis::data ? to : x}, {}};
  }
  return {{}, format("{} is {}", query.input_name(0), to_string(x))};
}

void contribute(std::shared_ptr<const OpDef> def, const Op& op, Differentiator& differentiator) {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(def), {dy}, op)[0]);
}

}  // namespace

std::int64_t SampleShares::first_of(int rank) const {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
}

std::int64_t SampleShares::largest() const { return *std::ranges::max_element(counts); }

std::string GatherSamples::attributes() const { return text_of(shares); }

std::vector<TensorType> GatherSamples::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape[0] == shares.count(), "gather_samples: the input has another number of samples");
  return {with_samples(inputs[0], shares.total())};
}

OutputPlacements GatherSamples::placements(const PlacementQuery& query) const {
  return along_data(query, split_along(0), replicated);
}

std::int64_t GatherSamples::workspace_bytes(std::span<const TensorType> inputs) const {
  return with_samples(inputs[0], shares.largest() * std::ssize(shares.counts)).bytes();
}

void GatherSamples::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute(std::make_shared<TakeSamples>(shares), op, differentiator);
}

std::string TakeSamples::attributes() const { return text_of(shares); }

std::vector<TensorType> TakeSamples::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape[0] == shares.total(), "take_samples: the input does not have the samples of all ranks");
  return {with_samples(inputs[0], shares.count())};
}

OutputPlacements TakeSamples::placements(const PlacementQuery& query) const {
  return along_data(query, replicated, split_along(0));
}

void TakeSamples::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute(std::make_shared<GatherSamples>(shares), op, differentiator);
}

}  // namespace trainctl
