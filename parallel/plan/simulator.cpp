// Simulates a step: stages advance through their actions, and a communication begins when all its ranks have reached
// it.
#include "parallel/plan/simulator.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/base/format.h"
#include "core/program/placements.h"
#include "parallel/plan/shared_work.h"
#include "parallel/plan/simulated_stage.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

class Simulation {
 public:
  Simulation(const std::vector<StageRank>& ranks, const Nodes& nodes, const Costs& costs, bool timeline)
      : nodes_(nodes), costs_(costs), keeps_timeline_(timeline), work_(5 * static_cast<int>(ranks.size())) {
    for (const StageRank& rank : ranks) stages_.emplace_back(rank, costs);
    for (const StageRank& rank : ranks) node_of_stage_.push_back(node_number(rank.rank));
  }

  SimulatedStep run() {
    for (int s = 0; s < count(); ++s) ready_.push_back(s);
    for (;;) {
      while (!ready_.empty()) {
        const int s = ready_.front();
        ready_.pop_front();
        advance(s);
      }
      const int piece = work_.next();
      if (piece < 0) break;
      end_of(piece);
    }
    for (SimulatedStage& stage : stages_) {
      if (stage.next < stage.actions.size()) fail(stage);
      stage.settle(work_.now());
    }
    return result();
  }

 private:
  // A running communication between the stages that represent its ranks; the first stage of a message is the sender.
  struct ActiveCommunication {
    int lane = 0;
    std::vector<int> stages;
    Traffic traffic;
    TrafficSeconds seconds;
    bool transfers = false;
    double began = 0;
  };

  int count() const { return static_cast<int>(stages_.size()); }

  // Each stage has a processor, a link in each direction, and a network of its node in each direction; these are the
  // capacities that work uses.
  enum class Direction { out, in };
  int processor(int stage) const { return stage; }
  int link(int stage, Direction direction) const { return (direction == Direction::out ? 1 : 2) * count() + stage; }
  int network(int stage, Direction direction) const {
    return (direction == Direction::out ? 3 : 4) * count() + node_of_stage_[index(stage)];
  }
  int node_number(const MeshRank& rank) {
    const int node = nodes_.of(rank.mesh.rank(rank.position));
    return node_numbers_.try_emplace(node, static_cast<int>(node_numbers_.size())).first->second;
  }

  void advance(int s) {
    SimulatedStage& stage = stages_[index(s)];
    if (stage.computes) return begin_communications(s);
    stage.settle(work_.now());
    for (; stage.next < stage.actions.size(); ++stage.next) {
      const StageAction& action = stage.actions[stage.next];
      if (action.kind == StageAction::Kind::compute) {
        stage.computes = true;
        stage.began = work_.now();
        computing_[work_.begin(action.seconds, 1, {processor(s)})] = s;
        break;
      }
      const Communication& at = stage.communication(action.communication);
      if (at.kind != Kind::wait) stage.reached = std::max(stage.reached, action.communication);
      if (at.asynchronous) continue;
      if (!stage.is_done(at.kind == Kind::wait ? at.awaited : action.communication)) break;
    }
    begin_communications(s);
  }

  // Begins the next communication of each lane if all its stages have reached it.
  void begin_communications(int s) {
    for (int lane = 0; lane < lane_count; ++lane) {
      if (!waits_in(s, lane)) continue;
      const Communication& at = head_of(s, lane);
      if (!at.is_collective()) {
        if (waits_in(at.peer, lane) && answers(at, s, at.peer, lane)) {
          begin(lane, at.kind == Kind::send ? std::vector<int>{s, at.peer} : std::vector<int>{at.peer, s});
        }
        continue;
      }
      std::vector<int> members{s};
      if (at.axis == MeshAxis::pipeline) {
        members.clear();
        for (int other = 0; other < count(); ++other) {
          if (waits_in(other, lane) && head_of(other, lane).is_collective()) members.push_back(other);
        }
        if (std::ssize(members) < count()) continue;
      }
      begin(lane, members);
    }
  }

  const Communication& head_of(int s, int lane) const {
    return stages_[index(s)].communication(stages_[index(s)].head(lane));
  }
  bool waits_in(int s, int lane) const { return stages_[index(s)].waits_in(lane); }
  bool answers(const Communication& mine, int s, int peer, int lane) const {
    const Communication& theirs = head_of(peer, lane);
    return theirs.kind == (mine.kind == Kind::send ? Kind::receive : Kind::send) && theirs.peer == s;
  }

  Traffic traffic_at(int s, int lane) const {
    const SimulatedStage& stage = stages_[index(s)];
    Traffic traffic = traffic_of(head_of(s, lane), stage.rank.rank, nodes_);
    place_traffic(*stage.rank.placed, *stage.placed[index(stage.head(lane))], stage.rank.rank,
                  costs_.communication_takes_cores(), traffic);
    return traffic;
  }

  void begin(int lane, const std::vector<int>& members) {
    const int first = members.front();
    const Traffic traffic = traffic_at(first, lane);
    ActiveCommunication active{lane, members, traffic, costs_.communication_seconds(traffic), false, work_.now()};
    for (const int s : members) {
      SimulatedStage& stage = stages_[index(s)];
      stage.settle(work_.now());
      stage.is_running[index(lane)] = true;
      if (head_of(s, lane).kind != Kind::receive) stage.bytes_sent += trainctl::bytes_sent(traffic);
    }
    active.transfers = active.seconds.latency == 0;
    continue_active(std::move(active));
  }

  // The links and networks that a transfer uses.
  std::vector<int> links_of(const ActiveCommunication& active) const {
    std::vector<int> links;
    for (const int s : active.stages) {
      for (const Direction direction : {Direction::out, Direction::in}) {
        const bool sends = s == active.stages.front();
        if (active.traffic.kind == Kind::send && sends != (direction == Direction::out)) continue;
        links.push_back(active.traffic.within_node() ? link(s, direction) : network(s, direction));
      }
    }
    return links;
  }

  // Begins the latency of a communication, or its transfer.
  void continue_active(ActiveCommunication active) {
    std::vector<int> used = active.transfers ? links_of(active) : std::vector<int>{};
    if (costs_.communication_takes_cores()) {
      for (const int s : active.stages) used.push_back(processor(s));
    }
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    const double share = active.transfers ? std::clamp(active.seconds.share, 1e-9, 1.0) : 1;
    const double seconds = active.transfers ? active.seconds.transfer : active.seconds.latency;
    const int piece = work_.begin(seconds, costs_.communication_takes_cores() ? 1 : share, used);
    active_[piece] = std::move(active);
  }

  void end_of(int piece) {
    if (const auto computing = computing_.find(piece); computing != computing_.end()) {
      const int s = computing->second;
      computing_.erase(computing);
      SimulatedStage& stage = stages_[index(s)];
      stage.settle(work_.now());
      stage.phases.compute += stage.actions[stage.next].seconds;
      keep(s, stage.actions[stage.next]);
      stage.computes = false;
      ++stage.next;
      ready_.push_back(s);
      return;
    }
    ActiveCommunication active = std::move(active_.extract(piece).mapped());
    if (!active.transfers) {
      active.transfers = true;
      return continue_active(std::move(active));
    }
    for (const int s : active.stages) {
      SimulatedStage& stage = stages_[index(s)];
      stage.settle(work_.now());
      keep(s, active);
      ++stage.done[index(active.lane)];
      stage.is_running[index(active.lane)] = false;
      ready_.push_back(s);
    }
  }

  // Adds a stretch of ops to the timeline, each with its share of the time that the stretch took.
  void keep(int s, const StageAction& action) {
    if (!keeps_timeline_) return;
    const SimulatedStage& stage = stages_[index(s)];
    const double slowdown = (work_.now() - stage.began) / action.seconds;
    double start = stage.began;
    for (int o = action.first; o < action.end; ++o) {
      const double seconds = stage.op_seconds.of(action.item.segment, o) * slowdown;
      if (seconds == 0) continue;
      const Op& op = stage.rank.placed->op(action.item.segment, o).op;
      timeline_.push_back({s, {}, start, start + seconds, &op, action.item});
      start += seconds;
    }
  }
  void keep(int s, const ActiveCommunication& active) {
    if (!keeps_timeline_) return;
    const SimulatedStage& stage = stages_[index(s)];
    const Communication& ended = stage.communication(stage.head(active.lane));
    timeline_.push_back({s, ended.axis, active.began, work_.now(), ended.op, ended.item});
  }

  SimulatedStep result() {
    SimulatedStep step;
    HostSeconds host;  // maxima over the stages
    double loading = 0;
    for (const SimulatedStage& stage : stages_) {
      const Program& program = *stage.rank.program;
      const HostSeconds own = costs_.host_seconds(*stage.rank.placed);
      host = {std::max(host.step, own.step), std::max(host.sample, own.sample), own.overlaps_loading};
      const auto samples = static_cast<double>(program.micro_batch_samples * program.micro_batches);
      loading = std::max(loading, samples * own.sample);
    }
    const double busy = work_.now() + host.step;
    const double data = host.overlaps_loading ? std::max(loading - busy, 0.0) : loading;
    for (SimulatedStage& stage : stages_) {
      stage.phases.communication += std::max(stage.busy - stage.phases.compute, 0.0);
      stage.phases.host = host.step;
      stage.phases.data = data;
      step.stages.push_back(stage.phases);
      step.bytes_sent.push_back(stage.bytes_sent);
    }
    step.seconds = busy + data;
    step.events = work_.ended();
    step.timeline = std::move(timeline_);
    return step;
  }

  [[noreturn]] static void fail(const SimulatedStage& stage) {
    const Communication& at = stage.communication(stage.actions[stage.next].communication);
    throw Error(ErrorKind::internal, location_of(*stage.rank.program, *at.op),
                format("{} never completes in the simulated step", describe(*stage.rank.program, at)));
  }

  const Nodes nodes_;
  const Costs& costs_;
  const bool keeps_timeline_;
  SharedWork work_;
  std::deque<SimulatedStage> stages_;
  std::map<int, int> node_numbers_;  // index of a node's network; key: the node
  std::vector<int> node_of_stage_;
  std::map<int, int> computing_;               // stage; key: number of the piece of work
  std::map<int, ActiveCommunication> active_;  // key: number of the piece of work
  std::deque<int> ready_;                      // stages that may advance, since their work has ended
  std::vector<SimulatedEvent> timeline_;
};

}  // namespace

StepSeconds SimulatedStep::phases() const {
  StepSeconds mean;
  for (const StepSeconds& stage : stages) {
    mean.compute += stage.compute / static_cast<double>(stages.size());
    mean.communication += stage.communication / static_cast<double>(stages.size());
    mean.bubble += stage.bubble / static_cast<double>(stages.size());
    mean.data += stage.data / static_cast<double>(stages.size());
    mean.host += stage.host / static_cast<double>(stages.size());
  }
  return mean;
}

SimulatedStep simulate_step(const std::vector<StageRank>& stages, const Nodes& nodes, const Costs& costs,
                            bool timeline) {
  require(!stages.empty() && std::ssize(stages) == stages.front().rank.mesh.pipeline,
          "a stage is not represented by one rank");
  return Simulation(stages, nodes, costs, timeline).run();
}

}  // namespace trainctl
