// Counts the ranks and groups of communications by node.
#include "parallel/plan/traffic.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/graph/ops/collectives.h"
#include "core/graph/ops/whole_batch.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

// Returns the number of ranks on the rank's node that belong to its group along the axis.
int group_on_node(const MeshRank& rank, MeshAxis axis, const Nodes& nodes) {
  const int own = nodes.of(rank.mesh.rank(rank.position));
  int count = 0;
  for (int i = 0; i < rank.size(axis); ++i) {
    count += nodes.of(rank.mesh.rank(rank.position.with(axis, i))) == own ? 1 : 0;
  }
  return count;
}

// Returns the number of groups along the axis with ranks of this rank's stage on its node.
int groups_alike(const MeshRank& rank, MeshAxis axis, const Nodes& nodes) {
  const int first = nodes.of(rank.mesh.rank(rank.position)) * nodes.ranks_per_node;
  std::set<int> groups;  // the first rank of each group
  for (int r = first; r < std::min(first + nodes.ranks_per_node, rank.mesh.ranks()); ++r) {
    const Mesh::Position position = rank.mesh.position(r);
    if (axis != MeshAxis::pipeline && position.pipeline != rank.position.pipeline) continue;
    groups.insert(rank.mesh.rank(position.with(axis, 0)));
  }
  return static_cast<int>(groups.size());
}

// Returns the number of bytes that are copied to move `shard` to `begin` bytes after the start of `whole`; 0 if it is
// already stored there.
std::int64_t bytes_to_shard(const PlacedProgram& program, TensorId shard, TensorId whole, std::int64_t begin) {
  const PlacedTensor &from = program.tensor(shard), &to = program.tensor(whole);
  const bool in_place = from.region == to.region && from.offset == to.offset + begin;
  return in_place ? 0 : program.program.tensor(shard).type.bytes();
}

}  // namespace

int ranks_per_node(const std::vector<std::string>& hosts) {
  int common = 0;
  for (std::size_t first = 0, end = 0; first < hosts.size(); first = end) {
    while (end < hosts.size() && hosts[end] == hosts[first]) ++end;
    common = std::gcd(common, static_cast<int>(end - first));
  }
  return common;
}

Traffic traffic_of(const Communication& communication, const MeshRank& rank, const Nodes& nodes) {
  Traffic traffic{.kind = communication.kind, .axis = communication.axis, .dtype = communication.dtype};
  traffic.bytes = communication.count * size_of(communication.dtype);
  traffic.alike = groups_alike(rank, communication.axis, nodes);
  if (communication.is_collective()) {
    traffic.ranks = rank.size(communication.axis);
    traffic.ranks_per_node = group_on_node(rank, communication.axis, nodes);
    return traffic;
  }
  traffic.kind = Kind::send;
  traffic.ranks = 2;
  const Mesh::Position peer = rank.position.with(communication.axis, communication.peer);
  const bool same_node = nodes.of(rank.mesh.rank(peer)) == nodes.of(rank.mesh.rank(rank.position));
  traffic.ranks_per_node = same_node ? 2 : 1;
  return traffic;
}

void place_traffic(const PlacedProgram& program, const Op& op, const MeshRank& rank, bool on_host, Traffic& traffic) {
  const auto bytes_of = [&](TensorId id) { return program.program.tensor(id).type.bytes(); };
  const auto own_offset = [&](TensorId shard) { return rank.along(traffic.axis) * bytes_of(shard); };
  TensorId works_in = no_tensor;  // tensor that the op works in; no_tensor: the op's workspace
  if (const auto* scatter = op.get_if<ReduceScatter>()) {
    const TensorId whole = op.inputs[0], shard = op.outputs[0];
    if (scatter->consumes) works_in = whole;
    traffic.copied = scatter->consumes ? bytes_to_shard(program, shard, whole, own_offset(shard))
                                       : bytes_of(whole) + bytes_of(shard);
  } else if (op.get_if<AllGather>() != nullptr) {
    works_in = op.outputs[0];
    traffic.copied = bytes_to_shard(program, op.inputs[0], works_in, own_offset(op.inputs[0]));
  } else if (op.get_if<AllGatherColumns>() != nullptr || op.get_if<ReduceScatterColumns>() != nullptr ||
             op.get_if<GatherSamples>() != nullptr) {
    traffic.copied = bytes_of(op.inputs[0]) + bytes_of(op.outputs[0]);
  } else if (op.get_if<AllToAll>() != nullptr) {
    works_in = op.inputs[0];
  } else if (op.get_if<AllReduce>() != nullptr) {
    works_in = op.outputs[0];
    traffic.copied = bytes_to_shard(program, op.inputs[0], works_in, 0);
  }
  traffic.shared = traffic.axis == MeshAxis::data && works_in != no_tensor &&
                   is_exchanged(program.tensor(works_in).region, program.program.flat, on_host);
}

double bytes_sent(const Traffic& traffic) {
  const auto bytes = static_cast<double>(traffic.bytes);
  const double others = (traffic.ranks - 1.0) / traffic.ranks;
  switch (traffic.kind) {
    case Kind::all_reduce:
      return 2 * others * bytes;
    case Kind::reduce_scatter:
    case Kind::all_gather:
    case Kind::all_to_all:
      return others * bytes;
    default:
      return bytes;
  }
}

}  // namespace trainctl
