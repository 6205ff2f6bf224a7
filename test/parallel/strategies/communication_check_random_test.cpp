// The play of random communications comes to the verdict of a slow one that is written another way.
#include <algorithm>
#include <array>
#include <random>

#include "parallel/strategies/communication_check/communications.h"
#include "test/parallel/strategies/communication_script.h"

namespace trainctl::communication_check_random_test {
namespace {

using Kind = Communication::Kind;
constexpr MeshAxis data_axis = MeshAxis::data, stages = MeshAxis::pipeline;

// What a rank of a random step does, for the script and for the reference.
struct Action {
  Kind kind = Kind::all_reduce;
  MeshAxis axis = data_axis;
  int peer = 0;
  std::int64_t count = 0;
  int number = 0;  // of the communication, whose end a wait is for
  bool asynchronous = false;
};
using Actions = std::vector<Action>;

// Steps of all ranks that fit together: communication after communication is given to all that take part.
std::vector<Actions> random_step(std::mt19937& random, const Mesh& mesh) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<Actions> ranks(static_cast<std::size_t>(mesh.ranks()));
  std::vector<Actions> open(ranks.size());
  const auto give = [&](int rank, Action action) {
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
      (axis == data_axis ? position.data : axis == stages ? position.pipeline : position.tensor) = along;
      return mesh.rank(position);
    };
    if (below(2) == 0) {
      for (int i = 0; i < mesh.size(axis); ++i) give(in_group(i), {Kind::all_reduce, axis, 0, count, number});
    } else {
      const int from = below(mesh.size(axis)), to = (from + 1 + below(mesh.size(axis) - 1)) % mesh.size(axis);
      give(in_group(from), {Kind::send, axis, to, count, number});
      give(in_group(to), {Kind::receive, axis, from, count, number});
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

// Whether all ranks come to their ends, played the slow way: whatever may happen next does, until nothing may. Only
// equal communications of equal numbers match: an all_reduce by its name, sends and receives by count.
bool plays_to_the_end(const Mesh& mesh, const std::vector<Actions>& ranks) {
  const auto size = ranks.size();
  std::vector<std::vector<bool>> ended(size);
  for (std::size_t r = 0; r < size; ++r) ended[r].resize(ranks[r].size());
  // Whether the rank has begun its action i and nothing before it on its axis is under way.
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
          bool reached = true, over = false;
          for (std::size_t j = 0; j < i; ++j) {
            reached = reached && (ended[r][j] || ranks[r][j].asynchronous);
            over = over || (ranks[r][j].number == mine.number && ranks[r][j].asynchronous && ended[r][j]);
          }
          if (reached && over) ended[r][i] = moved = true;
          continue;
        }
        if (!runs(r, i)) continue;
        std::vector<std::pair<std::size_t, std::size_t>> partners;  // that run now
        for (std::size_t o = 0; o < size; ++o) {
          if (!same_group(r, o, mine.axis)) continue;
          for (std::size_t k = 0; k < ranks[o].size(); ++k) {
            const Action& other = ranks[o][k];
            if (other.axis != mine.axis || !runs(o, k) || other.count != mine.count) continue;
            const bool meets = mine.kind == Kind::all_reduce
                                   ? other.kind == mine.kind && other.number == mine.number
                                   : mine.kind == Kind::send && other.kind == Kind::receive &&
                                         mesh.position(static_cast<int>(o)).along(mine.axis) == mine.peer &&
                                         mesh.position(static_cast<int>(r)).along(mine.axis) == other.peer;
            if (meets) partners.emplace_back(o, k);
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

TEST_CASE("the verdict is that of the slow way, on random steps and on changed ones") {
  std::mt19937 random(11);
  int refused = 0, accepted = 0;
  for (int round = 0; round < 300; ++round) {
    const Mesh mesh = std::array{Mesh{2, 1, 2}, Mesh{3, 1, 1}, Mesh{2, 2, 1}, Mesh{2, 2, 2}}[round % 4];
    std::vector<Actions> ranks = random_step(random, mesh);
    const auto verdict = [&] {
      std::vector<Script> scripts;
      for (const Actions& actions : ranks) scripts.push_back(script_of(actions));
      return problem_of(mesh, scripts).text.empty();
    };
    CAPTURE(round);
    CHECK(plays_to_the_end(mesh, ranks));
    CHECK(verdict());
    // Two that follow each other change places on some ranks; a wait stays behind what it is for.
    for (int change = 0; change < 2; ++change) {
      Actions& actions = ranks[random() % ranks.size()];
      if (actions.size() < 2) continue;
      const std::size_t at = random() % (actions.size() - 1);
      if (actions[at].number != actions[at + 1].number) std::swap(actions[at], actions[at + 1]);
    }
    const bool fits = plays_to_the_end(mesh, ranks);
    CHECK(verdict() == fits);
    ++(fits ? accepted : refused);
  }
  CHECK(refused > 60);
  CHECK(accepted > 60);
}

}  // namespace trainctl::communication_check_random_test
