// Shapes, placements and gradients of collectives.
#include "core/graph/ops/collectives.h"

#include "core/expression/scalar_graph.h"
#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reshaping/columns.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// The type of one rank's shard of a tensor that is split along dimension 0.
TensorType shard_of(TensorType type, int ranks, std::string_view kind) {
  require(type.shape.rank() > 0 && type.shape[0] % ranks == 0,
          format("{}: dimension 0 is not a multiple of the number of ranks", kind));
  type.shape[0] /= ranks;
  return type;
}

// Contributes the gradient with respect to an op's only input, which `def` computes from the gradient with respect to
// its output.
void contribute_through(std::shared_ptr<const OpDef> def, const Op& op, Differentiator& differentiator) {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(def), {dy}, op)[0]);
}

void pass_gradient(const Op& op, Differentiator& differentiator) {
  differentiator.contribute(op.inputs[0], differentiator.gradient_of(op.outputs[0]));
}

AttributeText text_of(const Collective& collective) {
  return AttributeText().word(std::string(name_of(collective.axis))).flag("asynchronous", collective.asynchronous);
}

// The output placement of a collective that turns placement `from` into `to` along its own axis and keeps the placement
// of its input along the other axes.
OutputPlacements from_to(MeshAxis axis, const PlacementQuery& query, const Placement& from, const Placement& to) {
  const Placement& x = query.inputs[0];
  if (query.axis != axis) return {{x}, {}};
  if (x == from) return {{to}, {}};
  return {{}, format("{} is {} and not {}", query.input_name(0), to_string(x), to_string(from))};
}

int last_dimension(const PlacementQuery& query) { return static_cast<int>(query.input_types[0].shape.rank()) - 1; }

// The output has the placement of the input. A tensor that is received from another rank has no input and counts as
// replicated.
OutputPlacements pass(const PlacementQuery& query) {
  return {{query.inputs.empty() ? replicated : query.inputs[0]}, {}};
}

// Computes zeros of the shape and placement of a tensor.
std::shared_ptr<const OpDef> zeros_like(DType dtype) {
  ScalarGraph graph;
  const int zero[] = {graph.of_constant(0)};
  ElementwiseProgram program = graph.program(zero);
  program.inputs = 1;
  auto def = std::make_shared<Elementwise>(std::move(program), std::vector{dtype});
  def->linear = {0};
  return def;
}

// The gradient of the op's output, for which peers wait even if no op of this rank passes one back. It is zero then.
TensorId gradient_or_zeros(const Op& op, Differentiator& differentiator) {
  const TensorId y = op.outputs[0], dy = differentiator.gradient_of(y);
  if (dy != no_tensor) return dy;
  return differentiator.emit(zeros_like(differentiator.tensor(y).type.dtype), {y}, op)[0];
}

}  // namespace

std::string Collective::attributes() const { return text_of(*this).text(); }

OutputPlacements AllReduce::placements(const PlacementQuery& query) const {
  return from_to(axis, query, partial, replicated);
}

void AllReduce::differentiate(const Op& op, Differentiator& differentiator) const { pass_gradient(op, differentiator); }

std::string Identity::attributes() const { return AttributeText().word(std::string(name_of(axis))).text(); }

OutputPlacements Identity::placements(const PlacementQuery& query) const {
  return from_to(axis, query, replicated, replicated);
}

// The gradient of a parameter is written, or added to its value, by ops; an op that reads the identity of a parameter
// computes this rank's summand.
void Identity::differentiate(const Op& op, Differentiator& differentiator) const {
  if (differentiator.tensor(op.inputs[0]).role != Role::parameter) {
    return contribute_through(std::make_shared<AllReduce>(axis), op, differentiator);
  }
  const TensorId summand = differentiator.gradient_of(op.outputs[0]);
  const TensorId gradient = differentiator.parameter_gradient(op.inputs[0]);
  if (!differentiator.accumulate()) {
    differentiator.emit_into(std::make_shared<AllReduce>(axis), {summand}, {gradient}, op);
    return;
  }
  differentiator.emit_into(std::make_shared<AllReduce>(axis), {summand}, {summand}, op);
  differentiator.emit_into(std::make_shared<Add>(), {gradient, summand}, {gradient}, op);
}

std::vector<TensorType> ReduceScatter::outputs(std::span<const TensorType> inputs) const {
  return {shard_of(inputs[0], ranks, kind())};
}

OutputPlacements ReduceScatter::placements(const PlacementQuery& query) const {
  return from_to(axis, query, partial, split_along(0));
}

void ReduceScatter::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute_through(std::make_shared<AllGather>(axis, ranks), op, differentiator);
}

std::vector<TensorType> AllGather::outputs(std::span<const TensorType> inputs) const {
  TensorType type = inputs[0];
  type.shape[0] = checked_multiply(type.shape[0], ranks);
  return {type};
}

OutputPlacements AllGather::placements(const PlacementQuery& query) const {
  if (query.axis == axis && query.inputs[0] == varying) return {{replicated}, {}};
  return from_to(axis, query, split_along(0), replicated);
}

void AllGather::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute_through(std::make_shared<ReduceScatter>(axis, ranks), op, differentiator);
}

std::string AllGatherColumns::attributes() const {
  return text_of(*this).value("columns", columns).flag("summands", use == GatheredUse::summands).text();
}

std::vector<TensorType> AllGatherColumns::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.back() == shard.size_of(columns),
          format("all_gather_columns: x {} is not shard {} of {} columns", to_string(inputs[0].shape), shard.index,
                 columns));
  return {{inputs[0].shape.with_back(columns), inputs[0].dtype}};
}

// Along other axes, the last dimension must not be split.
OutputPlacements AllGatherColumns::placements(const PlacementQuery& query) const {
  if (query.axis != axis) return place_rows(query, true);
  return from_to(axis, query, split_along(last_dimension(query)), replicated);
}

std::int64_t AllGatherColumns::workspace_bytes(std::span<const TensorType> inputs) const {
  return inputs[0].shape.rows() * shard.count * largest_width() * size_of(inputs[0].dtype);
}

void AllGatherColumns::differentiate(const Op& op, Differentiator& differentiator) const {
  if (use == GatheredUse::summands) {
    contribute_through(std::make_shared<ReduceScatterColumns>(axis, shard), op, differentiator);
  } else {
    contribute_through(std::make_shared<TakeColumns>(axis, shard), op, differentiator);
  }
}

std::vector<TensorType> ReduceScatterColumns::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() > 0 && x.back() % shard.count == 0,
          "reduce_scatter_columns: the last dimension is not a multiple of the number of ranks");
  return {{x.with_back(x.back() / shard.count), inputs[0].dtype}};
}

// Along other axes, the last dimension must not be split.
OutputPlacements ReduceScatterColumns::placements(const PlacementQuery& query) const {
  if (query.axis != axis) return place_rows(query, true);
  return from_to(axis, query, partial, split_along(last_dimension(query)));
}

void ReduceScatterColumns::differentiate(const Op& op, Differentiator& differentiator) const {
  const std::int64_t columns = differentiator.tensor(op.inputs[0]).type.shape.back();
  contribute_through(std::make_shared<AllGatherColumns>(axis, shard, columns), op, differentiator);
}

std::vector<TensorType> AllToAll::outputs(std::span<const TensorType> inputs) const {
  shard_of(inputs[0], ranks, kind());
  return {inputs[0]};
}

OutputPlacements AllToAll::placements(const PlacementQuery& query) const {
  if (query.axis == axis && query.inputs[0] == partial) return {{varying}, {}};
  return from_to(axis, query, split_along(0), split_along(0));
}

void AllToAll::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute_through(std::make_shared<AllToAll>(axis, ranks), op, differentiator);
}

std::string Broadcast::attributes() const { return text_of(*this).value("root", root).text(); }

OutputPlacements Broadcast::placements(const PlacementQuery& query) const { return pass(query); }

void Broadcast::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = gradient_or_zeros(op, differentiator);
  const TensorId sum = differentiator.emit(std::make_shared<AllReduce>(axis), {dy}, op)[0];
  if (!op.inputs.empty() && differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], sum);
}

std::string Send::attributes() const { return text_of(*this).value("peer", peer).text(); }

OutputPlacements Send::placements(const PlacementQuery& query) const { return pass(query); }

void Send::differentiate(const Op& op, Differentiator& differentiator) const {
  const Tensor& x = differentiator.tensor(op.inputs[0]);
  auto receive = std::make_shared<Receive>(axis, peer, x.type);
  receive->placed = x.placements;
  receive->channel = opposite(channel);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(receive), {}, op)[0]);
}

std::string Receive::attributes() const { return text_of(*this).value("peer", peer).text(); }

OutputPlacements Receive::placements(const PlacementQuery& query) const {
  const auto a = static_cast<std::size_t>(query.axis);
  return {{a < placed.size() ? placed[a] : replicated}, {}};
}

void Receive::differentiate(const Op& op, Differentiator& differentiator) const {
  auto send = std::make_shared<Send>(axis, peer);
  send->channel = opposite(channel);
  differentiator.emit(std::move(send), {gradient_or_zeros(op, differentiator)}, op);
}

OutputPlacements Wait::placements(const PlacementQuery& query) const { return pass(query); }

void Wait::differentiate(const Op& op, Differentiator& differentiator) const { pass_gradient(op, differentiator); }

}  // namespace trainctl
