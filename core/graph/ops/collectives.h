// Collectives: ops that all ranks along one axis of the mesh execute together, in the same order.
//
// Sizes are those of one rank's tensors. all_gather, reduce_scatter and all_to_all work on dimension 0, whose parts lie
// side by side. The gradient of each is a collective, too (Narayanan et al., 2021, for tensor parallelism's pairs): an
// op that sums in the forward pass copies in the backward pass, and the reverse, since the loss is counted once however
// many ranks hold it.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// Gradients travel back on a channel of their own. Where the channels have communicators of their own, messages of one
// do not wait for those of the other; the order of the program allows for one communicator.
enum class Channel { forward, backward };
inline Channel opposite(Channel channel) { return channel == Channel::forward ? Channel::backward : Channel::forward; }

// The base of all collectives. An asynchronous collective runs beside the ops that follow it until a Wait for its
// output; before that Wait no op may read its output or write its input. Gradients are emitted as synchronous
// collectives.
struct Collective : OpDef {
  MeshAxis axis = MeshAxis::data;
  bool asynchronous = false;

  explicit Collective(MeshAxis a, bool runs_beside = false) : axis(a), asynchronous(runs_beside) {}
  OpTrait trait() const override { return OpTrait::collective; }
  std::string attributes() const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  // The channel of a message; all other collectives use the first.
  virtual Channel on_channel() const { return Channel::forward; }
  // Bytes of workspace that the collective needs beside its tensors.
  virtual std::int64_t workspace_bytes(std::span<const TensorType>) const { return 0; }
};

// y = the sum of x over the ranks. Inputs: x. Outputs: y, like x; in place. Its gradient is the identity: each rank
// holds the whole gradient of the sum.
struct AllReduce final : Collective {
  using Collective::Collective;
  std::string_view kind() const override { return "all_reduce"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = x, in front of ops that each do one rank's part of the work: its gradient is the sum of the ranks' gradients.
// Inputs: x. Outputs: y, an alias of x; no kernel runs.
struct Identity final : OpDef {
  MeshAxis axis = MeshAxis::data;

  explicit Identity(MeshAxis a) : axis(a) {}
  std::string_view kind() const override { return "identity"; }
  OpTrait trait() const override { return OpTrait::alias; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = this rank's part of the sum of x over the ranks. Inputs: x [ranks * n, ...]. Outputs: y [n, ...], which may be
// this rank's part of x's memory where the op consumes x. Its gradient is an all_gather.
struct ReduceScatter final : Collective {
  int ranks = 1;          // along the axis
  bool consumes = false;  // it works in the memory of x, whose values are lost, and needs no workspace

  ReduceScatter(MeshAxis a, int r, bool runs_beside = false) : Collective(a, runs_beside), ranks(r) {}
  std::string_view kind() const override { return "reduce_scatter"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::int64_t workspace_bytes(std::span<const TensorType> inputs) const override {
    return consumes ? 0 : inputs[0].bytes();
  }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = the parts of all ranks, or values of their own, in their order. Inputs: x [n, ...]. Outputs: y [ranks * n, ...].
// Its gradient is a reduce_scatter.
struct AllGather final : Collective {
  int ranks = 1;  // along the axis

  AllGather(MeshAxis a, int r, bool runs_beside = false) : Collective(a, runs_beside), ranks(r) {}
  std::string_view kind() const override { return "all_gather"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = the parts of all ranks side by side along the last dimension, in their order. Inputs: x [..., C]. Outputs: y
// [..., ranks * C]. The ops behind y are the same on all ranks (behind all_gather, each rank does a part of the work),
// and so is the gradient by y, of which each rank takes its part: take_columns.
struct AllGatherColumns final : Collective {
  int ranks = 1;  // along the axis
  int index = 0;  // of this rank among them

  AllGatherColumns(MeshAxis a, int r, int i) : Collective(a), ranks(r), index(i) {}
  std::string_view kind() const override { return "all_gather_columns"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  // The parts one behind the other, as they arrive.
  std::int64_t workspace_bytes(std::span<const TensorType> inputs) const override { return ranks * inputs[0].bytes(); }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Part i of y = the part of rank i's x that is for this rank: where x are summands, all summands of this rank's part of
// the sum. Inputs: x [ranks * n, ...]. Outputs: y, like x. Its gradient is an all_to_all.
struct AllToAll final : Collective {
  int ranks = 1;  // along the axis

  AllToAll(MeshAxis a, int r, bool runs_beside = false) : Collective(a, runs_beside), ranks(r) {}
  std::string_view kind() const override { return "all_to_all"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = x of the rank `root` along the axis. Inputs: x at the root, none elsewhere. Outputs: y, of the type. Its gradient
// is an all_reduce, whose result only the root uses.
struct Broadcast final : Collective {
  int root = 0;
  TensorType type;
  bool differentiable = true;  // whether the root wants the gradient; equal on all ranks

  Broadcast(MeshAxis a, int r, TensorType t, bool d = true, bool runs_beside = false)
      : Collective(a, runs_beside), root(r), type(std::move(t)), differentiable(d) {}
  std::string_view kind() const override { return "broadcast"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {type}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  bool peers_want_gradient() const override { return differentiable; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Sends x to the rank `peer` along the axis. Inputs: x. Outputs: an alias of x, for a Wait: no op may change x before
// it. Its gradient is a Receive on the other channel.
struct Send final : Collective {
  int peer = 0;
  Channel channel = Channel::forward;

  Send(MeshAxis a, int p, bool runs_beside = false) : Collective(a, runs_beside), peer(p) {}
  std::string_view kind() const override { return "send"; }
  Channel on_channel() const override { return channel; }
  std::string attributes() const override;
  bool output_is_input() const override { return true; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  bool begins_gradient() const override { return true; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Receives y from the rank `peer` along the axis. No inputs. Outputs: y, of the type. Its gradient is a Send on the
// other channel.
struct Receive final : Collective {
  int peer = 0;
  Channel channel = Channel::forward;
  TensorType type;
  bool differentiable = true;     // whether the peer wants the gradient, which it then receives
  std::vector<Placement> placed;  // of y, which is that of the peer's x, one for each axis; empty: replicated on all

  Receive(MeshAxis a, int p, TensorType t, bool d = true, bool runs_beside = false)
      : Collective(a, runs_beside), peer(p), type(std::move(t)), differentiable(d) {}
  std::string_view kind() const override { return "receive"; }
  Channel on_channel() const override { return channel; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {type}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  bool peers_want_gradient() const override { return differentiable; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Ops behind a Wait run after the asynchronous collective whose output the Wait reads. Inputs: that output. Outputs: an
// alias of that output, or the same tensor.
struct Wait final : OpDef {
  std::string_view kind() const override { return "wait"; }
  OpTrait trait() const override { return OpTrait::collective; }
  bool output_is_input() const override { return true; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
