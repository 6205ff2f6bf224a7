// The layout of a rank's parameters, and of the gradients, optimizer states and moving averages that have the same
// layout. Replicas may share these: a rank then holds a shard of each.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/ops/optimizers/update_range.h"

namespace trainctl {

struct Backward;
struct Graph;
struct GraphParameter;

// Parameters begin at multiples of this number of float32 elements (16 bytes, which kernels read and write in one
// access), or at multiples of ParameterLayout::alignment. Zeros fill the gaps.
inline constexpr std::int64_t flat_alignment = 4;

// One parameter in the layout, in backward order; parameters that several stages of a pipeline hold come last, in an
// order that these stages have in common.
struct FlatEntry {
  TensorId parameter = no_tensor;
  TensorId gradient = no_tensor;  // no_tensor for a frozen parameter
  std::int64_t offset = 0;        // elements
  std::int64_t count = 0;
  bool decay = true;             // whether weight decay applies
  std::vector<int> stages = {};  // pipeline stages that hold the parameter, ascending; empty if it is on one stage only
  Factors factors = {};          // if the optimizer's state holds factors
  Shape matrix = {};             // [rows, columns] if the optimizer orthogonalizes the parameter's steps
};

// A tensor in a flat region: a running statistic, or a sum after the gradients. The offset counts elements.
struct FlatTensor {
  TensorId tensor = no_tensor;
  std::int64_t offset = 0;
};

// A tensor in a slot of the gradients at the position that `like` has in slot 0, plus an offset.
struct TensorInSlot {
  TensorId tensor = no_tensor;
  TensorId like = no_tensor;
  int slot = 0;
  std::int64_t offset = 0;  // elements
};

// Neighbouring parameters in the layout that are updated together. Replicas that share the update divide each bucket
// into equal shards, one for each replica; otherwise one bucket holds all parameters that train, or those of a player,
// and the shard is the bucket. The tensors are no_tensor in programs that do not train.
struct FlatBucket {
  int entries = 0;          // number of parameters, which follow the parameters of the previous bucket in the layout
  std::int64_t offset = 0;  // offset in the layout, in elements
  std::int64_t count = 0;   // elements, gaps included
  TensorId gradient = no_tensor;   // this rank's shard of the summed gradient
  TensorId parameter = no_tensor;  // this rank's shard of the parameters
  std::vector<TensorId> states;    // this rank's shards of the optimizer's states
  TensorId average = no_tensor;    // this rank's shard of the moving averages, if the rank holds only its shard
  std::vector<Op> after_update;    // the ops that follow the update of the shard, for example to gather the bucket
  std::string player = {};         // the player that trains the parameters (core/program/players); else ""
  std::vector<std::string> state_names = {};  // names of the states of the player's optimizer
};

// The quantities with the layout of the trainable parameters. Replicas that share any of them share the states
// (Rajbhandari et al., 2020: stages 1 to 3 of ZeRO). Moving averages are shared if the parameters are shared.
enum class Quantity { states, gradients, parameters };

// The range of a trainable parameter that a rank holds or updates.
struct LocalExtent {
  const FlatEntry* entry = nullptr;
  std::size_t bucket = 0;   // number of the bucket
  std::int64_t offset = 0;  // offset of the range in the bucket's shard, in elements
  std::int64_t first = 0;   // first element of the parameter in the range
  std::int64_t count = 0;
};

// The contents of the flat regions, equal in all programs of a run for any batch size. A strategy decides what replicas
// share by calling share(); others ask what this rank holds.
class ParameterLayout {
 public:
  std::vector<FlatEntry> parameters;  // first the trainable parameters, in backward order; then the frozen parameters
  std::int64_t parameter_count = 0;   // elements of all parameters, gaps included
  std::int64_t trainable_count = 0;   // elements of the trainable parameters, gaps included
  std::vector<FlatBucket> buckets;    // buckets of all trainable parameters
  bool by_player = false;             // whether each bucket has the parameters of a player
  // Parameters and shards begin at multiples of this number of elements.
  std::int64_t alignment = flat_alignment;
  std::vector<FlatTensor> statistics;
  std::int64_t statistic_count = 0;
  std::vector<FlatTensor> reduced;  // sums after the gradients: offsets count from the start of all gradients
  std::int64_t gradient_count = 0;  // elements of all gradients and sums
  std::vector<std::string> states;  // names of optimizer states: "momentum", or "m", "v"; of players: the longest list
  bool factored = false;            // whether states hold factors of parameters instead of a value for each element
  std::int64_t factor_count = 0;    // elements of a state that holds factors, gaps included
  bool averages = false;            // whether there are moving averages of trainable parameters, which evaluation reads
  // Number of sets of gradients and sums; the gradient region is slot 0, and the others have its layout.
  int gradient_slots = 1;
  std::vector<TensorInSlot> in_slots;
  bool sums_are_reduced = false;  // whether a strategy reduces `reduced`, except the sums that finish_training adds

  // Divides each of the buckets, which hold all trainable parameters, among the replicas. `replica` is this rank's
  // number among the replicas. The rank then holds only its own shards of the `quantities`, which contain the states. A
  // bucket's count must be a multiple of `replicas` times the alignment.
  void share(int replicas, int replica, std::set<Quantity> quantities, std::vector<FlatBucket> of_parameters);
  // Whether this rank holds only its shards of a quantity; shares(Quantity::states): whether it updates only its
  // shards.
  bool shares(Quantity quantity) const { return replicas_ > 1 && shared_.contains(quantity); }

  // Elements that this rank holds of a quantity: of each optimizer state, or of trainable parameters or gradients.
  std::int64_t local_count(Quantity quantity) const;
  // Elements of this rank's shard of a bucket, and the shard's offset in the layout.
  std::int64_t shard_count(const FlatBucket& bucket) const { return bucket.count / replicas_; }
  std::int64_t shard_offset(const FlatBucket& bucket) const { return bucket.offset + replica_ * shard_count(bucket); }
  // The offset of this rank's shard of a bucket in the region that holds a quantity.
  std::int64_t shard_offset(const FlatBucket& bucket, Quantity quantity) const;
  // The offset of a bucket, given by its offset in the layout, in the region that holds a quantity. If the rank holds
  // only its shard of the bucket, the shard begins there.
  std::int64_t bucket_offset(std::int64_t offset, Quantity quantity) const {
    return shares(quantity) ? offset / replicas_ : offset;
  }
  // The offset of a frozen parameter in the region of parameters, after the trainable ones.
  std::int64_t frozen_offset(const FlatEntry& entry) const {
    return entry.offset - trainable_count + local_count(Quantity::parameters);
  }

  // The ranges of trainable parameters in this rank's shards, which the rank updates, in the order of the layout. A
  // parameter has at most one range.
  std::vector<LocalExtent> local_extents() const;
  // The ranges of a bucket's shard that the optimizer updates in the same way; offsets count from the start of the
  // shard. With `by_parameter`, one range for each parameter.
  std::vector<UpdateRange> update_ranges(const FlatBucket& bucket, bool by_parameter) const;

  // Number of elements of all optimizer states and moving averages of a trainable parameter.
  std::int64_t kept_of(const FlatEntry& entry) const;
  // The bucket whose parameters this program trains, in a player's program; null without players.
  const FlatBucket* own_bucket() const;
  FlatBucket* own_bucket();
  // The name of state number `state` of a trainable parameter; "" if the player's optimizer has fewer states.
  std::string state_name(const FlatEntry& entry, std::size_t state) const;
  // The offset of a gradient or a sum from the start of its slot, in elements; and the number of its slot.
  std::int64_t gradient_offset(TensorId tensor) const;
  int gradient_slot(TensorId tensor) const;

  // Adds the optimizer's states of the trainable parameters: their names, and whether they hold factors instead of a
  // value for each element. `tensors` are the program's tensors.
  void keep_states(std::vector<std::string> names, bool with_factors, const std::vector<Tensor>& tensors);
  // Assigns the offset of every entry, bucket and sum.
  void assign_offsets(const std::vector<Tensor>& tensors);

 private:
  int replicas_ = 1;  // number of replicas that share the update; 1: each replica updates all parameters
  int replica_ = 0;
  std::set<Quantity> shared_;
};

// The layout of a training graph, without offsets: trainable parameters in the order in which the backward ops finish
// their gradients, with those that several stages hold at the end; frozen parameters; running statistics in the graph's
// order; the sums `reduced`. `decays` returns whether weight decay applies to a parameter.
ParameterLayout order_parameters(const Graph& graph, const Backward& backward, std::vector<TensorId> reduced,
                                 const std::function<bool(const GraphParameter&)>& decays);

}  // namespace trainctl
