// Where a rank's parameters lie, and what lies like them: gradients, optimizer states and moving averages. Replicas may
// share these: then a rank holds a shard of each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/graph/ops/optimizers/update_range.h"

namespace trainctl {

struct Backward;
struct Graph;
struct GraphParameter;

// Parameters begin at multiples of this many float32 elements (16 bytes, which kernels read and write at once), or of
// ParameterLayout::alignment; zeros fill the gaps.
inline constexpr std::int64_t flat_alignment = 4;

// One parameter in the layout, in backward order; those that several stages of a pipeline hold come last, in an order
// that these stages have in common.
struct FlatEntry {
  TensorId parameter = no_tensor;
  TensorId gradient = no_tensor;  // no_tensor for a frozen parameter
  std::int64_t offset = 0;        // elements
  std::int64_t count = 0;
  bool decay = true;             // whether weight decay applies
  std::vector<int> stages = {};  // of the pipeline, that hold the parameter, ascending, where several do
  Factors factors = {};          // where the optimizer's state holds factors
};

// A tensor in a flat region: running statistics, and the sums after the gradients. The offset counts elements.
struct FlatTensor {
  TensorId tensor = no_tensor;
  std::int64_t offset = 0;
};

// A tensor that lies in another slot of the gradients as `like` lies in slot 0, from an element of it on.
struct TensorInSlot {
  TensorId tensor = no_tensor;
  TensorId like = no_tensor;
  int slot = 0;
  std::int64_t offset = 0;  // elements
};

// Parameters that lie side by side in the layout and are updated together. Replicas that share the update divide each
// bucket into equal shards, one for each replica; otherwise one bucket holds all parameters that train, and the shard
// is the bucket. The tensors are no_tensor in programs that do not train.
struct FlatBucket {
  int entries = 0;                 // parameters of the layout, after those of the bucket before
  std::int64_t offset = 0;         // in the layout, in elements
  std::int64_t count = 0;          // elements, gaps included
  TensorId gradient = no_tensor;   // this rank's shard of the summed gradient
  TensorId parameter = no_tensor;  // this rank's shard of the parameters
  std::vector<TensorId> states;    // this rank's shards of the optimizer's states
  TensorId average = no_tensor;    // this rank's shard of the moving averages, if it holds no more of them
  std::vector<Op> after_update;    // the ops that follow the update of the shard, for example to gather the bucket
};

// What lies like the trainable parameters. Replicas that share one of these share those before it, too (Rajbhandari et
// al., 2020: stages 1 to 3 of ZeRO). Moving averages are shared as the parameters are.
enum class Quantity { states, gradients, parameters };

// The elements of a trainable parameter that a rank holds, or updates: a range of it.
struct LocalExtent {
  const FlatEntry* entry = nullptr;
  std::size_t bucket = 0;   // its number
  std::int64_t offset = 0;  // of the range in the bucket's shard, in elements
  std::int64_t first = 0;   // element of the parameter
  std::int64_t count = 0;
};

// The contents of the flat regions, equal in all programs of a run whatever their batch size. A strategy decides what
// replicas share by calling share(); others ask what this rank holds.
class ParameterLayout {
 public:
  std::vector<FlatEntry> parameters;  // trainable ones first, in backward order; then frozen ones
  std::int64_t parameter_count = 0;   // elements of all parameters, gaps included
  std::int64_t trainable_count = 0;   // elements of the trainable ones, gaps included
  std::vector<FlatBucket> buckets;    // of all trainable parameters
  // Parameters and shards begin at multiples of this number of elements.
  std::int64_t alignment = flat_alignment;
  std::vector<FlatTensor> statistics;
  std::int64_t statistic_count = 0;
  std::vector<FlatTensor> reduced;  // sums after the gradients: offsets count from the start of all gradients
  std::int64_t gradient_count = 0;  // elements of all gradients and sums
  std::vector<std::string> states;  // names of optimizer states: "momentum", or "m", "v"
  bool factored = false;            // the states hold factors of parameters, and not a value for each of theirs
  std::int64_t factor_count = 0;    // elements of a state that holds factors, gaps included
  bool averages = false;            // there are moving averages of trainable parameters, which evaluation reads
  // Memory for several sets of gradients and sums, each like the gradient region, which is slot 0.
  int gradient_slots = 1;
  std::vector<TensorInSlot> in_slots;
  bool sums_are_reduced = false;  // a strategy reduces `reduced`, apart from what finish_training adds to it

  // Divides each of the buckets, which hold all trainable parameters, among the replicas. `replica` is this rank's
  // number among them. Of every quantity up to `last` the rank then holds its own shards alone. A bucket's count must
  // be a multiple of `replicas` times the alignment.
  void share(int replicas, int replica, Quantity last, std::vector<FlatBucket> of_parameters);
  // Whether this rank holds its shards alone of a quantity; shares(Quantity::states): whether it updates only these.
  bool shares(Quantity quantity) const { return replicas_ > 1 && quantity <= last_shared_; }

  // Elements that this rank holds of a quantity: of each optimizer state, or of trainable parameters or gradients.
  std::int64_t local_count(Quantity quantity) const;
  // Elements of this rank's shard of a bucket, and the shard's offset in the layout.
  std::int64_t shard_count(const FlatBucket& bucket) const { return bucket.count / replicas_; }
  std::int64_t shard_offset(const FlatBucket& bucket) const { return bucket.offset + replica_ * shard_count(bucket); }
  // The offset of this rank's shard of a bucket in the region that holds a quantity.
  std::int64_t shard_offset(const FlatBucket& bucket, Quantity quantity) const;
  // The offset of a bucket, by its offset in the layout, in the region that holds a quantity: where the rank's shard
  // begins if it holds no more of it.
  std::int64_t bucket_offset(std::int64_t offset, Quantity quantity) const {
    return shares(quantity) ? offset / replicas_ : offset;
  }
  // The offset of a frozen parameter in the region of parameters, where it follows those that train.
  std::int64_t frozen_offset(const FlatEntry& entry) const {
    return entry.offset - trainable_count + local_count(Quantity::parameters);
  }

  // The ranges of trainable parameters that lie in this rank's shards, in the order of the layout: what the rank
  // updates. A parameter has at most one.
  std::vector<LocalExtent> local_extents() const;
  // The ranges of a bucket's shard that the optimizer updates alike, from the start of the shard; with `by_parameter`
  // one range for each parameter.
  std::vector<UpdateRange> update_ranges(const FlatBucket& bucket, bool by_parameter) const;

  // Elements of all states that the optimizer keeps of a trainable parameter, and of the moving averages.
  std::int64_t kept_of(const FlatEntry& entry) const;
  // The offset of a gradient or a sum from the start of its slot, in elements, and its slot.
  std::int64_t gradient_offset(TensorId tensor) const;
  int gradient_slot(TensorId tensor) const;

  // Adds the states that the optimizer keeps of the trainable parameters, by their names: a value for each element, or
  // factors. `tensors`: the program's.
  void keep_states(std::vector<std::string> names, bool with_factors, const std::vector<Tensor>& tensors);
  // Assigns the offset of every entry, bucket and sum.
  void assign_offsets(const std::vector<Tensor>& tensors);

 private:
  int replicas_ = 1;  // that share the update; 1: each updates all parameters
  int replica_ = 0;
  Quantity last_shared_ = Quantity::states;
};

// The layout of a training graph, without offsets: trainable parameters in the order in which the backward ops finish
// their gradients, those last that several stages hold, then frozen parameters; running statistics in the graph's
// order; the sums `reduced`. `decays` says whether weight decay applies to a parameter.
ParameterLayout order_parameters(const Graph& graph, const Backward& backward, std::vector<TensorId> reduced,
                                 const std::function<bool(const GraphParameter&)>& decays);

}  // namespace trainctl
