// Adds synchronized batch normalization to a graph.
#include "parallel/strategies/table.h"

#include <utility>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/normalization/synchronized_batch_norm.h"

namespace trainctl {
namespace {

// Appends the ops that compute the outputs of a BatchNorm from the samples of all replicas.
void append_synchronized(Graph& graph, const Op& op, int ranks) {
  const auto append = [&](std::shared_ptr<const OpDef> def, std::vector<TensorId> inputs, const std::string& name) {
    return graph.add_op(std::move(def), std::move(inputs), op.name, op.location, {name})[0];
  };
  const BatchNormAttributes& a = op.as<BatchNorm>().a;
  std::vector<TensorId> samples{op.inputs[0], graph.samples};
  if (a.masked) samples.push_back(op.inputs[std::size_t{1} + a.scale + a.center]);
  const TensorId own = append(std::make_shared<BatchMoments>(a.masked), std::move(samples), "moments");
  const TensorId gathered = append(std::make_shared<AllGather>(MeshAxis::data, ranks), {own}, "moments_of_all");
  Tensor share;
  share.name = op.name + "/share";
  share.location = op.location;
  // The share takes the place of the number of positions that a padding mask shows, which no other op reads.
  const TensorId of_one = a.masked ? op.outputs[3] : graph.add_tensor(share);
  if (a.masked) graph.tensors[static_cast<std::size_t>(of_one)].name = share.name;
  const TensorId mean = op.outputs[1], variance = op.outputs[2];
  graph.ops.push_back(
      {std::make_shared<MergeMoments>(), {gathered, own}, {mean, variance, of_one}, op.name, op.location});

  std::vector<TensorId> inputs = op.inputs;
  inputs.insert(inputs.end(), {mean, variance, of_one});
  auto def = std::make_shared<SynchronizedBatchNorm>(a, MeshAxis::data, ranks);
  graph.ops.push_back({std::move(def), std::move(inputs), {op.outputs[0]}, op.name, op.location});
}

// Replicas that take steps independently do not exchange moments, and in reproducible mode each logical shard has its
// own moments.
void refuse_with(const Graph& graph, const StrategyOptions& options) {
  for (const Op& op : graph.ops) {
    const auto* norm = op.get_if<BatchNorm>();
    if (norm == nullptr || !norm->synchronized) continue;
    if (options.reproducible) {
      throw Error(ErrorKind::config, op.location,
                  format("batch_normalization '{}' is synchronized, but strategy.reproducible computes the statistics "
                         "of each logical shard alone",
                         op.name),
                  "leave `synchronized` or `reproducible` out");
    }
    throw Error(ErrorKind::config, op.location,
                format("batch_normalization '{}' is synchronized in every step, and strategy.sync_every is {}", op.name,
                       options.sync_every.value),
                "use `sync_every: 1`, or leave `synchronized` out");
  }
}

}  // namespace

Graph synchronize_statistics(Graph graph, const MeshRank& rank, const Strategy& strategy) {
  if (strategy.options.sync_every.value > 1 || strategy.options.reproducible) refuse_with(graph, strategy.options);
  if (rank.size(MeshAxis::data) == 1) return graph;
  for (Op& op : std::exchange(graph.ops, {})) {
    const auto* norm = op.get_if<BatchNorm>();
    if (norm != nullptr && norm->synchronized) {
      append_synchronized(graph, op, rank.size(MeshAxis::data));
    } else {
      graph.ops.push_back(std::move(op));
    }
  }
  return graph;
}

}  // namespace trainctl
