// Computes costs from the description of a machine.
#include "parallel/plan/roofline.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

constexpr double microseconds = 1e-6, gigabytes = 1e9, gigabits = 1e9 / 8, teraflops = 1e12;

// Returns the number of steps of a ring collective over n ranks; each step moves an n-th of the bytes.
double ring_steps(Kind kind, int ranks) { return (kind == Kind::all_reduce ? 2 : 1) * (ranks - 1.0); }

const TrafficSeconds& faster(const TrafficSeconds& a, const TrafficSeconds& b) {
  return a.alone() <= b.alone() ? a : b;
}

}  // namespace

double RooflineCosts::op_seconds(const PlacedProgram& program, int segment, int number) const {
  const Op& op = program.op(segment, number).op;
  const OpWork work = work_of(program, op);
  const MachineDevice& device = machine_.device;
  const TensorId data = op.inputs.empty() ? op.outputs[0] : op.inputs[0];
  const double peak = teraflops * peak_of(device, program.program.tensor(data).type.dtype, use_.tf32);
  const double computed = work.flops / (peak * device.compute_efficiency);
  const double moved =
      static_cast<double>(work.bytes) / (gigabytes * device.memory_bandwidth * device.memory_efficiency);
  return std::max(computed, moved) + microseconds * device.kernel_overhead;
}

TrafficSeconds RooflineCosts::communication_seconds(const Traffic& traffic) const {
  if (traffic.ranks <= 1) return {};
  return traffic.within_node() ? within_node(traffic) : across_nodes(traffic);
}

TrafficSeconds RooflineCosts::within_node(const Traffic& traffic) const {
  const double latency = microseconds * machine_.node.link_latency;
  const double seconds = static_cast<double>(traffic.bytes) / (gigabytes * machine_.node.link);
  switch (traffic.kind) {
    case Kind::send:
      return {latency, seconds};
    case Kind::broadcast:
      return {(traffic.ranks - 1) * latency, seconds};
    default: {
      const double steps = ring_steps(traffic.kind, traffic.ranks);
      return {steps * latency, steps / traffic.ranks * seconds};
    }
  }
}

TrafficSeconds RooflineCosts::across_nodes(const Traffic& traffic) const {
  require(machine_.network.has_value(), "there is no network between the nodes of the ranks");
  const MachineNetwork& network = *machine_.network;
  const auto bytes = static_cast<double>(traffic.bytes);
  const double latency = microseconds * network.latency, link_latency = microseconds * machine_.node.link_latency;
  const double card = gigabits * network.rate * network.efficiency, node = network.cards * card;
  const int local = traffic.kind == Kind::send ? 1 : traffic.ranks_per_node;  // ranks of the group on a node
  // This group's bandwidth in the node's network: at most one card for each of its ranks, and an equal share for each
  // of the `alike` groups.
  const double own = std::min(local * card, node / traffic.alike);
  const double share = std::min(1.0, own * traffic.alike / node);
  if (traffic.kind == Kind::send) return {latency, bytes / own, share};

  const int nodes = (traffic.ranks + local - 1) / local;
  const double link = gigabytes * machine_.node.link;
  if (traffic.kind == Kind::broadcast) {
    return {std::ceil(std::log2(nodes)) * latency + (local - 1) * link_latency, bytes / std::min(own, link), share};
  }
  const double times = traffic.kind == Kind::all_reduce ? 2 : 1;
  const double hops = times * (nodes - 1), inside = times * (local - 1);
  // A ring through all ranks, which uses the node's cards in parallel.
  const TrafficSeconds ring{hops * latency + (times * (traffic.ranks - 1) - hops) * link_latency,
                            times * (traffic.ranks - 1) / traffic.ranks * bytes / std::min(own, link * local), share};
  // Each rank of a node exchanges its share of the bytes in its own ring over the nodes.
  const double within = inside / local * bytes / link;
  const TrafficSeconds stages{hops * latency + inside * link_latency, within + hops / nodes * bytes / own, share};
  if (traffic.kind != Kind::all_reduce) return faster(ring, stages);
  // All bytes go up the trees and down again in one stream through the nodes' ranks and cards.
  const TrafficSeconds trees{2 * std::ceil(std::log2(nodes)) * latency + inside * link_latency,
                             2 * bytes / std::min(own, link), share};
  return faster(faster(ring, stages), trees);
}

HostSeconds RooflineCosts::host_seconds(const PlacedProgram&) const {
  HostSeconds host;
  if (use_.decodes) host.sample = use_.ranks_per_node / machine_.host.samples;
  host.overlaps_loading = machine_.device.kind == MachineKind::gpu;
  return host;
}

}  // namespace trainctl
