// Collectives: ops that all ranks along one axis of the mesh execute together, in the same order.
//
// All shapes are the shapes of one rank's tensors. all_gather, reduce_scatter and all_to_all divide dimension 0 into
// consecutive shards. The gradient of a collective is a collective, too (for tensor parallelism: Narayanan et al.,
// 2021): an op that sums over ranks in the forward pass copies in the backward pass and vice versa, because the loss
// counts once, no matter how many ranks compute it.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// The channel of a message between pipeline stages: gradients use the channel `backward`. If each channel has its own
// communicator, its messages do not wait for messages of the other channel. The order of ops in a program is also valid
// with one communicator for both channels.
enum class Channel { forward, backward };
inline Channel opposite(Channel channel) { return channel == Channel::forward ? Channel::backward : Channel::forward; }

// The base class of collectives. An asynchronous collective runs concurrently with the ops after it until a Wait for
// its output; before that Wait, no op may read its output or write its input. Gradients are emitted as synchronous
// collectives.
struct Collective : OpDef {
  MeshAxis axis = MeshAxis::data;
  bool asynchronous = false;

  explicit Collective(MeshAxis a, bool async = false) : axis(a), asynchronous(async) {}
  OpTrait trait() const override { return OpTrait::collective; }
  std::string attributes() const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  // The channel of a Send or Receive; all other collectives use the forward channel.
  virtual Channel on_channel() const { return Channel::forward; }
  // The size of the workspace that the collective needs, in bytes.
  virtual std::int64_t workspace_bytes(std::span<const TensorType>) const { return 0; }
};

// y = the sum of x over the ranks. Inputs: x. Outputs: y, like x; in place. Its gradient is the identity, because each
// rank has the whole gradient of the sum.
struct AllReduce final : Collective {
  using Collective::Collective;
  std::string_view kind() const override { return "all_reduce"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = x, inserted before ops that each rank computes in part. Its gradient is the sum of the gradients of all ranks.
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

// y = this rank's shard of the sum of x over the ranks. Inputs: x [ranks * n, ...]. Outputs: y [n, ...], which may use
// the memory of this rank's shard of x if the op consumes x. Its gradient is an all_gather.
struct ReduceScatter final : Collective {
  int ranks = 1;          // number of ranks along the axis
  bool consumes = false;  // whether it works in the memory of x, overwriting x, without a workspace

  ReduceScatter(MeshAxis a, int r, bool async = false) : Collective(a, async), ranks(r) {}
  std::string_view kind() const override { return "reduce_scatter"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::int64_t workspace_bytes(std::span<const TensorType> inputs) const override {
    return consumes ? 0 : inputs[0].bytes();
  }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = the tensors x of all ranks, concatenated along dimension 0 in the order of the ranks. Inputs: x [n, ...].
// Outputs: y [ranks * n, ...]. Its gradient is a reduce_scatter.
struct AllGather final : Collective {
  int ranks = 1;  // number of ranks along the axis

  AllGather(MeshAxis a, int r, bool async = false) : Collective(a, async), ranks(r) {}
  std::string_view kind() const override { return "all_gather"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// What the ranks do with a gathered tensor, which determines the gradient of the gathering.
enum class GatheredUse {
  same,     // all ranks run the same ops on it, so that its gradient is equal on all ranks; each rank takes its columns
  summands  // each rank computes a share of the next ops, so that the gradient is the sum of those of the ranks
};

// y = the tensors x of all ranks, concatenated along the last dimension in the order of the ranks. Inputs: x [..., C].
// Outputs: y [..., columns]. Each rank has the columns that ShardPosition gives to it; their numbers may differ by one.
// The gradient is take_columns or, for GatheredUse::summands, reduce_scatter_columns; the latter requires that the
// number of ranks divides the columns.
struct AllGatherColumns final : Collective {
  ShardPosition shard;       // the number of ranks along the axis, and the index of this rank
  std::int64_t columns = 0;  // columns of y
  GatheredUse use = GatheredUse::same;

  AllGatherColumns(MeshAxis a, ShardPosition s, std::int64_t c, GatheredUse u = GatheredUse::same)
      : Collective(a), shard(s), columns(c), use(u) {}
  std::string_view kind() const override { return "all_gather_columns"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  // The largest number of columns of a rank. As many are exchanged for each rank.
  std::int64_t largest_width() const { return divide_up(columns, shard.count); }
  // Space for the tensors of all ranks, which arrive one after the other.
  std::int64_t workspace_bytes(std::span<const TensorType> inputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = this rank's columns of the sum of x over the ranks. Inputs: x [..., ranks * C]. Outputs: y [..., C]. Its gradient
// is all_gather_columns.
struct ReduceScatterColumns final : Collective {
  ShardPosition shard;  // the number of ranks along the axis, and the index of this rank

  ReduceScatterColumns(MeshAxis a, ShardPosition s) : Collective(a), shard(s) {}
  std::string_view kind() const override { return "reduce_scatter_columns"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  // Space for the summands of all shards, one shard after the other.
  std::int64_t workspace_bytes(std::span<const TensorType> inputs) const override { return inputs[0].bytes(); }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Shard i of y is shard k of rank i's x, where k is the index of this rank. If the tensors x are summands of a sum over
// ranks, y holds the summands of all ranks for this rank's shard of the sum. Inputs: x [ranks * n, ...]. Outputs: y,
// like x. Its gradient is an all_to_all.
struct AllToAll final : Collective {
  int ranks = 1;  // number of ranks along the axis

  AllToAll(MeshAxis a, int r, bool async = false) : Collective(a, async), ranks(r) {}
  std::string_view kind() const override { return "all_to_all"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = x of the rank `root` along the axis. Inputs: x on the root, none on other ranks. Outputs: y, of the type `type`.
// Its gradient is an all_reduce; only the root uses the result.
struct Broadcast final : Collective {
  int root = 0;
  TensorType type;
  bool differentiable = true;  // whether the root needs the gradient; equal on all ranks

  Broadcast(MeshAxis a, int r, TensorType t, bool d = true, bool async = false)
      : Collective(a, async), root(r), type(std::move(t)), differentiable(d) {}
  std::string_view kind() const override { return "broadcast"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {type}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  bool peers_need_gradient() const override { return differentiable; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Sends x to the rank `peer` along the axis. Inputs: x. Outputs: an alias of x, for a Wait; no op may change x before
// the Wait. Its gradient is a Receive on the opposite channel.
struct Send final : Collective {
  int peer = 0;
  Channel channel = Channel::forward;

  Send(MeshAxis a, int p, bool async = false) : Collective(a, async), peer(p) {}
  std::string_view kind() const override { return "send"; }
  Channel on_channel() const override { return channel; }
  std::string attributes() const override;
  bool output_is_input() const override { return true; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  bool begins_gradient() const override { return true; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Receives y from the rank `peer` along the axis. No inputs. Outputs: y, of the type `type`. Its gradient is a Send on
// the opposite channel.
struct Receive final : Collective {
  int peer = 0;
  Channel channel = Channel::forward;
  TensorType type;
  bool differentiable = true;     // whether the peer needs, and then receives, the gradient
  std::vector<Placement> placed;  // placements of the peer's x, and so of y, by axis; empty: replicated on all

  Receive(MeshAxis a, int p, TensorType t, bool d = true, bool async = false)
      : Collective(a, async), peer(p), type(std::move(t)), differentiable(d) {}
  std::string_view kind() const override { return "receive"; }
  Channel on_channel() const override { return channel; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {type}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  bool peers_need_gradient() const override { return differentiable; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Waits for an asynchronous collective: ops after the Wait run after the collective. Inputs: the output of the
// collective. Outputs: an alias of the input, or the same tensor.
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
