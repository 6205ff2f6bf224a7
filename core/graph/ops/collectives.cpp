// Rules of collectives.
#include "core/graph/ops/collectives.h"

#include "core/graph/graph.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {
namespace {

// A part of a tensor whose dimension 0 is cut among the ranks.
TensorType part_of(TensorType type, int ranks, std::string_view kind) {
  require(type.shape.rank() > 0 && type.shape[0] % ranks == 0, format("{}: the ranks divide dimension 0", kind));
  type.shape[0] /= ranks;
  return type;
}

// The gradient by an op's only input, made by a collective from that by its output.
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

}  // namespace

std::string Collective::attributes() const { return text_of(*this).text(); }

void AllReduce::differentiate(const Op& op, Differentiator& differentiator) const { pass_gradient(op, differentiator); }

std::string Identity::attributes() const { return AttributeText().word(std::string(name_of(axis))).text(); }

void Identity::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute_through(std::make_shared<AllReduce>(axis), op, differentiator);
}

std::vector<TensorType> ReduceScatter::outputs(std::span<const TensorType> inputs) const {
  return {part_of(inputs[0], ranks, kind())};
}

void ReduceScatter::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute_through(std::make_shared<AllGather>(axis, ranks), op, differentiator);
}

std::vector<TensorType> AllGather::outputs(std::span<const TensorType> inputs) const {
  TensorType type = inputs[0];
  type.shape[0] = checked_multiply(type.shape[0], ranks);
  return {type};
}

void AllGather::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute_through(std::make_shared<ReduceScatter>(axis, ranks), op, differentiator);
}

std::vector<TensorType> AllToAll::outputs(std::span<const TensorType> inputs) const {
  part_of(inputs[0], ranks, kind());
  return {inputs[0]};
}

void AllToAll::differentiate(const Op& op, Differentiator& differentiator) const {
  contribute_through(std::make_shared<AllToAll>(axis, ranks), op, differentiator);
}

std::string Broadcast::attributes() const { return text_of(*this).value("root", root).text(); }

void Broadcast::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const TensorId sum = differentiator.emit(std::make_shared<AllReduce>(axis), {dy}, op)[0];
  if (!op.inputs.empty() && differentiator.wants(op.inputs[0])) differentiator.contribute(op.inputs[0], sum);
}

std::string Send::attributes() const { return text_of(*this).value("peer", peer).text(); }

void Send::differentiate(const Op& op, Differentiator& differentiator) const {
  auto receive = std::make_shared<Receive>(axis, peer, differentiator.tensor(op.inputs[0]).type);
  differentiator.contribute(op.inputs[0], differentiator.emit(std::move(receive), {}, op)[0]);
}

std::string Receive::attributes() const { return text_of(*this).value("peer", peer).text(); }

void Receive::differentiate(const Op& op, Differentiator& differentiator) const {
  differentiator.emit(std::make_shared<Send>(axis, peer), {differentiator.gradient_of(op.outputs[0])}, op);
}

void Wait::differentiate(const Op& op, Differentiator& differentiator) const { pass_gradient(op, differentiator); }

}  // namespace trainctl
