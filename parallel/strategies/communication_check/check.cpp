// Simulates the communications of all ranks. A communication ends when all of its ranks have reached it.
#include "parallel/strategies/communication_check/check.h"

#include <algorithm>
#include <array>
#include <deque>

#include "core/base/format.h"
#include "core/program/placements.h"
#include "parallel/strategies/communication_check/rank_lists.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

class Simulation {
 public:
  Simulation(const Mesh& mesh, const RankLists& lists) : whole_(mesh), mesh_(lists.different()) {
    for (int r = 0; r < mesh_.ranks(); ++r) {
      const int number = mesh.rank(mesh_.position(r));
      ranks_.push_back({number, &lists.of(number)});
    }
    for (auto& groups : groups_) groups.resize(ranks_.size());
  }

  void run() {
    for (int r = 0; r < mesh_.ranks(); ++r) ready_.push_back(r);
    while (!ready_.empty()) {
      const int r = ready_.front();
      ready_.pop_front();
      advance(r);
    }
    check_all_ended();
  }

 private:
  struct Rank {
    int number = 0;  // number of this rank in the whole mesh
    const RankList* list = nullptr;
    std::size_t next = 0;                   // index of the communication that it has reached and waits for
    std::array<int, mesh_axes> done{};      // number of ended communications along each axis
    std::array<bool, mesh_axes> arrived{};  // whether the next communication along the axis waits for other ranks

    bool ended() const { return next == list->all.size(); }
    bool is_done(int communication) const {
      return list->number[index(communication)] < done[index(list->all[index(communication)].axis)];
    }
    // Returns the next communication along an axis.
    const Communication& at(MeshAxis axis) const {
      return list->all[index(list->along_axis[index(axis)][index(done[index(axis)])])];
    }
  };
  // A group of ranks along an axis, which is identified by its first rank.
  struct Group {
    int arrived = 0;  // number of ranks that have reached the collective
    int first = 0;    // the first rank that has reached it
  };

  void advance(int r) {
    Rank& rank = ranks_[index(r)];
    for (; !rank.ended(); ++rank.next) {
      const Communication& c = rank.list->all[rank.next];
      if (c.asynchronous) continue;
      if (!rank.is_done(c.kind == Kind::wait ? c.awaited : static_cast<int>(rank.next))) break;
    }
    for (MeshAxis axis : all_mesh_axes) {
      const std::vector<int>& all = rank.list->along_axis[index(axis)];
      const auto next = index(rank.done[index(axis)]);
      if (rank.arrived[index(axis)] || next == all.size() || index(all[next]) > rank.next) continue;
      rank.arrived[index(axis)] = true;
      if (rank.at(axis).is_collective()) {
        meet_group(r, axis);
      } else {
        meet_peer(r, axis);
      }
    }
  }

  void meet_group(int r, MeshAxis axis) {
    Group& group = groups_[index(axis)][index(member(r, axis, 0))];
    if (group.arrived++ == 0) group.first = r;
    check_match(group.first, r, axis);
    if (group.arrived < mesh_.size(axis)) return;
    group.arrived = 0;
    for (int i = 0; i < mesh_.size(axis); ++i) finish(member(r, axis, i), axis);
  }

  void meet_peer(int r, MeshAxis axis) {
    const int peer = member(r, axis, ranks_[index(r)].at(axis).peer);
    if (!ranks_[index(peer)].arrived[index(axis)] || !answers(r, axis, ranks_[index(peer)].at(axis))) return;
    check_match(std::min(r, peer), std::max(r, peer), axis);
    finish(r, axis);
    finish(peer, axis);
  }

  void finish(int r, MeshAxis axis) {
    ++ranks_[index(r)].done[index(axis)];
    ranks_[index(r)].arrived[index(axis)] = false;
    ready_.push_back(r);
  }

  int member(int r, MeshAxis axis, int along) const { return mesh_.rank(mesh_.position(r).with(axis, along)); }

  // Returns whether `other` is the kind of communication that rank `r` waits for. `other` is a communication of one of
  // the ranks that `r` waits for.
  bool answers(int r, MeshAxis axis, const Communication& other) const {
    const Communication& mine = ranks_[index(r)].at(axis);
    if (mine.is_collective()) return other.is_collective();
    return other.kind == (mine.kind == Kind::send ? Kind::receive : Kind::send) &&
           other.peer == mesh_.position(r).along(axis);
  }

  void check_match(int a, int b, MeshAxis axis) const {
    const Communication &x = ranks_[index(a)].at(axis), &y = ranks_[index(b)].at(axis);
    const bool collective = x.is_collective();
    const std::string_view differs = collective && x.kind != y.kind           ? "kinds"
                                     : x.count != y.count                     ? "sizes"
                                     : x.dtype != y.dtype                     ? "dtypes"
                                     : collective && x.peer != y.peer         ? "roots"
                                     : collective && x.op->name != y.op->name ? "names"
                                                                              : "";
    if (differs.empty()) return;
    fail(a, axis,
         format("the {} of communications that meet on the {} axis differ: {}, and {}", differs, name_of(axis),
                state_text(a, axis), state_text(b, axis)));
  }

  void check_all_ended() const {
    int waiting = -1;
    for (int r = 0; r < mesh_.ranks(); ++r) {
      if (ranks_[index(r)].ended()) continue;
      if (waiting < 0) waiting = r;
      for (int other : awaited(r)) {
        if (!ever_answers(r, other)) fail_left_over(r, other);
      }
    }
    if (waiting >= 0) fail_deadlock(waiting);
  }

  MeshAxis awaited_axis(int r) const { return ranks_[index(r)].list->all[ranks_[index(r)].next].axis; }

  // Returns the ranks that a waiting rank waits for.
  std::vector<int> awaited(int r) const {
    const MeshAxis axis = awaited_axis(r);
    const Communication& mine = ranks_[index(r)].at(axis);
    if (!mine.is_collective()) return {member(r, axis, mine.peer)};
    std::vector<int> missing;
    for (int i = 0; i < mesh_.size(axis); ++i) {
      const Rank& other = ranks_[index(member(r, axis, i))];
      if (!other.arrived[index(axis)] || !other.at(axis).is_collective()) missing.push_back(member(r, axis, i));
    }
    return missing;
  }

  // Returns whether rank `other` has a later communication that `r` waits for.
  bool ever_answers(int r, int other) const {
    const MeshAxis axis = awaited_axis(r);
    const Rank& rank = ranks_[index(other)];
    const std::vector<int>& all = rank.list->along_axis[index(axis)];
    return std::any_of(all.begin() + rank.done[index(axis)], all.end(),
                       [&](int i) { return answers(r, axis, rank.list->all[index(i)]); });
  }

  [[noreturn]] void fail_left_over(int r, int other) const {
    const MeshAxis axis = awaited_axis(r);
    const Communication& mine = ranks_[index(r)].at(axis);
    const std::string_view answer = mine.is_collective() ? "collective" : mine.kind == Kind::send ? "receive" : "send";
    fail(r, axis,
         format("{} and waits for rank {}, whose program '{}' has no {} for it on the {} axis", wait_text(r),
                ranks_[index(other)].number, ranks_[index(other)].list->program->name, answer, name_of(axis)));
  }

  // Each rank waits for another waiting rank, so the path from a rank to the rank that it awaits ends in a cycle.
  [[noreturn]] void fail_deadlock(int r) const {
    constexpr std::size_t max_shown = 8;
    std::vector<int> path;
    auto again = path.end();
    for (; again == path.end(); again = std::find(path.begin(), path.end(), r)) {
      path.push_back(r);
      r = awaited(r).front();
    }
    path.erase(path.begin(), again);
    std::string text = "the ranks wait for each other: ";
    for (std::size_t i = 0; i < std::min(path.size(), max_shown); ++i) {
      text += format("{}{} and waits for rank {}", i == 0 ? "" : "; ", wait_text(path[i]),
                     ranks_[index(path[(i + 1) % path.size()])].number);
    }
    if (path.size() > max_shown) text += format("; and so on, in a cycle of {} ranks", path.size());
    fail(path.front(), awaited_axis(path.front()), text);
  }

  // Returns, for example, "rank 1 is at send 'cut' in forward of 'train 8' (100 float32 to rank 2)".
  std::string state_text(int r, MeshAxis axis) const {
    return format("rank {} is at {}", ranks_[index(r)].number, communication_text(r, axis));
  }
  std::string communication_text(int r, MeshAxis axis) const {
    const Rank& rank = ranks_[index(r)];
    const Communication& c = rank.at(axis);
    std::string text = format("{} ({} {}", describe(*rank.list->program, c), c.count, name_of(c.dtype));
    if (c.peer >= 0) {
      const std::string_view direction = c.kind == Kind::send ? " to" : " from";
      text += format("{} rank {}", direction, whole_.rank(whole_.position(rank.number).with(axis, c.peer)));
    }
    return text + ")";
  }
  // Returns the text of state_text(); if the rank is at a wait, the text also names the wait.
  std::string wait_text(int r) const {
    const Rank& rank = ranks_[index(r)];
    const Communication& at = rank.list->all[rank.next];
    if (at.kind != Kind::wait) return state_text(r, at.axis);
    return format("rank {} is at {} for {}", rank.number, describe(*rank.list->program, at),
                  communication_text(r, at.axis));
  }

  [[noreturn]] void fail(int r, MeshAxis axis, const std::string& problem) const {
    const Rank& rank = ranks_[index(r)];
    throw Error(ErrorKind::internal, location_of(*rank.list->program, *rank.at(axis).op), problem);
  }

  const Mesh& whole_;
  const Mesh mesh_;  // mesh of the ranks that are simulated
  std::vector<Rank> ranks_;
  std::array<std::vector<Group>, mesh_axes> groups_;
  std::deque<int> ready_;  // ranks that may advance, since one of their communications has ended
};

}  // namespace

void check_communications(const Mesh& mesh, const std::vector<const Program*>& programs) {
  const RankLists lists(mesh, programs);
  Simulation(mesh, lists).run();
}

}  // namespace trainctl
