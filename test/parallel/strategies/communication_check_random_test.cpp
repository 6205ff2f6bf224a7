// Compares the communication check on random communications with a slow check that is written in another way.
#include <algorithm>
#include <array>
#include <random>

#include "parallel/strategies/communication_check/communications.h"
#include "test/parallel/strategies/communication_script.h"

namespace trainctl::communication_check_random_test {
namespace {

using Kind = Communication::Kind;
constexpr MeshAxis data_axis = MeshAxis::data, pipeline_axis = MeshAxis::pipeline;

// An action of a rank in a random step, for the script and for the reference.
struct Action {
  Kind kind = Kind::all_reduce;
  MeshAxis axis = data_axis;
  int peer = 0;
  std::int64_t count = 0;
  int number = 0;  // of the communication; for a wait, of the awaited one
  bool asynchronous = false;
};
using Actions = std::vector<Action>;

// Matching steps of all ranks: each communication is added to all ranks that take part in it.
std::vector<Actions> random_step(std::mt19937& random, const Mesh& mesh) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Actions> ranks(static_cast<std::size_t>(mesh.ranks()));
  std::vector<Actions> open(ranks.size());
  const auto add = [&](int rank, Action action) {
    action.asynchronous = below(3) == 0;
    ranks[static_cast<std::size_t>(rank)].push_back(action);
    if (action.asynchronous) open[static_cast<std::size_t>(rank)].push_back({Kind::wait, {}, 0, 0, action.number});
  };
  const auto wait_for_some = [&](std::size_t r, int keep) {
    while (!open[r].empty() && below(3) >= keep) {
      ranks[r].push_back(open[r].back());
      open[r].pop_back();
    }
  };
  for (int number = 0; number < 12; ++number) {
    MeshAxis axis = all_mesh_axes[below(3)];
    while (mesh.size(axis) == 1) axis = all_mesh_axes[below(3)];
    const std::int64_t count = 1 + below(2);
    const auto in_group = [&, first = mesh.position(below(mesh.ranks()))](int along) {
      Mesh::Position position = first;
      (axis == data_axis ? position.data : axis == pipeline_axis ? position.pipeline : position.tensor) = along;
      return mesh.rank(position);
    };
    if (below(2) == 0) {
      for (int i = 0; i < mesh.size(axis); ++i) add(in_group(i), {Kind::all_reduce, axis, 0, count, number});
    } else {
      const int from = below(mesh.size(axis)), to = (from + 1 + below(mesh.size(axis) - 1)) % mesh.size(axis);
      add(in_group(from), {Kind::send, axis, to, count, number});
      add(in_group(to), {Kind::receive, axis, from, count, number});
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) wait_for_some(r, 1);
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) wait_for_some(r, 0);
  return ranks;
}

Script script_of(const Actions& actions) {
  Script script;
  for (const Action& action : actions) {
    const std::string name = "n" + std::to_string(action.number);
    if (action.kind == Kind::wait) script.wait(name);
    if (action.kind == Kind::all_reduce) script.reduce(name, action.axis, action.count, action.asynchronous);
    if (action.kind == Kind::send) script.send(name, action.axis, action.peer, action.count, action.asynchronous);
    if (action.kind == Kind::receive) {
      script.receive(name, action.axis, action.peer, action.count, action.asynchronous);
    }
  }
  return script;
}

// Whether all ranks finish, found by a slow simulation: every action that can proceed does, until none can. An
// all_reduce matches those of the same number and count, a send matches a receive of the same count.
bool all_ranks_finish(const Mesh& mesh, const std::vector<Actions>& ranks) {
  const auto size = ranks.size();
  std::vector<std::vector<bool>> ended(size);
  for (std::size_t r = 0; r < size; ++r) ended[r].resize(ranks[r].size());
  // Whether rank r has begun its action i and no earlier action on the same axis is still running.
  const auto runs = [&](std::size_t r, std::size_t i) {
    if (ended[r][i] || ranks[r][i].kind == Kind::wait) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (ended[r][j]) continue;
      if (!ranks[r][j].asynchronous || ranks[r][j].axis == ranks[r][i].axis) return false;
    }
    return true;
  };
  const auto same_group = [&](std::size_t a, std::size_t b, MeshAxis axis) {
    for (MeshAxis other : all_mesh_axes) {
      if (other == axis) continue;
      if (mesh.position(static_cast<int>(a)).along(other) != mesh.position(static_cast<int>(b)).along(other)) {
        return false;
      }
    }
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < size; ++r) {
      for (std::size_t i = 0; i < ranks[r].size(); ++i) {
        const Action& mine = ranks[r][i];
        if (mine.kind == Kind::wait && !ended[r][i]) {
          bool reached = true, awaited_ended = false;
          for (std::size_t j = 0; j < i; ++j) {
            reached = reached && (ended[r][j] || ranks[r][j].asynchronous);
            awaited_ended =
                awaited_ended || (ranks[r][j].number == mine.number && ranks[r][j].asynchronous && ended[r][j]);
          }
          if (reached && awaited_ended) ended[r][i] = moved = true;
          continue;
        }
        if (!runs(r, i)) continue;
        std::vector<std::pair<std::size_t, std::size_t>> partners;  // matching actions that run now
        for (std::size_t o = 0; o < size; ++o) {
          if (!same_group(r, o, mine.axis)) continue;
          for (std::size_t k = 0; k < ranks[o].size(); ++k) {
            const Action& other = ranks[o][k];
            if (other.axis != mine.axis || !runs(o, k) || other.count != mine.count) continue;
            const bool matches = mine.kind == Kind::all_reduce
                                     ? other.kind == mine.kind && other.number == mine.number
                                     : mine.kind == Kind::send && other.kind == Kind::receive &&
                                           mesh.position(static_cast<int>(o)).along(mine.axis) == mine.peer &&
                                           mesh.position(static_cast<int>(r)).along(mine.axis) == other.peer;
            if (matches) partners.emplace_back(o, k);
          }
        }
        const int needed = mine.kind == Kind::all_reduce ? mesh.size(mine.axis) : 1;
        if (static_cast<int>(partners.size()) < needed) continue;
        for (const auto& [o, k] : partners) ended[o][k] = true;
        ended[r][i] = moved = true;
      }
    }
  }
  for (const std::vector<bool>& rank : ended) {
    if (std::find(rank.begin(), rank.end(), false) != rank.end()) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the check agrees with the slow simulation on random steps and on changed ones") {
  std::mt19937 random(11);
  int refused = 0, accepted = 0;
  for (int round = 0; round < 300; ++round) {
    const Mesh mesh = std::array{Mesh{.data = 2, .tensor = 2}, Mesh{.data = 3}, Mesh{.data = 2, .pipeline = 2},
                                 Mesh{.data = 2, .pipeline = 2, .tensor = 2}}[round % 4];
    std::vector<Actions> ranks = random_step(random, mesh);
    const auto verdict = [&] {
      std::vector<Script> scripts;
      for (const Actions& actions : ranks) scripts.push_back(script_of(actions));
      return problem_of(mesh, scripts).text.empty();
    };
    CAPTURE(round);
    CHECK(all_ranks_finish(mesh, ranks));
    CHECK(verdict());
    // Swaps two consecutive actions on some ranks, but never a communication and its wait.
    for (int change = 0; change < 2; ++change) {
      Actions& actions = ranks[random() % ranks.size()];
      if (actions.size() < 2) continue;
      const std::size_t at = random() % (actions.size() - 1);
      if (actions[at].number != actions[at + 1].number) std::swap(actions[at], actions[at + 1]);
    }
    const bool fits = all_ranks_finish(mesh, ranks);
    CHECK(verdict() == fits);
    ++(fits ? accepted : refused);
  }
  CHECK(refused > 60);
  CHECK(accepted > 60);
}

}  // namespace trainctl::communication_check_random_test
