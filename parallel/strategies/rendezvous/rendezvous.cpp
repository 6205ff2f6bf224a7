// Communications of all ranks, played under rendezvous semantics.
#include "parallel/strategies/rendezvous/rendezvous.h"

#include <algorithm>
#include <array>
#include <deque>

#include "core/base/format.h"
#include "core/program/placements.h"
#include "parallel/strategies/rendezvous/rank_lists.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

class Play {
 public:
  Play(const Mesh& mesh, const RankLists& lists) : whole_(mesh), mesh_(lists.different()) {
    for (int r = 0; r < mesh_.ranks(); ++r) {
      const int number = mesh.rank(mesh_.position(r));
      ranks_.push_back({number, &lists.of(number)});
    }
    for (auto& groups : groups_) groups.resize(ranks_.size());
  }

  void run() {
    for (int r = 0; r < mesh_.ranks(); ++r) go_on_.push_back(r);
    while (!go_on_.empty()) {
      const int r = go_on_.front();
      go_on_.pop_front();
      advance(r);
    }
    check_nothing_is_left();
  }

 private:
  struct Rank {
    int number = 0;  // in the whole mesh
    const RankList* list = nullptr;
    std::size_t next = 0;               // what it has come to, and is held up by
    std::array<int, lanes> done{};      // in each lane
    std::array<bool, lanes> arrived{};  // whether what is next in the lane waits for others

    bool ended() const { return next == list->all.size(); }
    bool is_done(int communication) const {
      return list->number[index(communication)] < done[index(list->all[index(communication)].lane())];
    }
    // What is next in a lane.
    const Communication& at(int lane) const {
      return list->all[index(list->in_lane[index(lane)][index(done[index(lane)])])];
    }
  };
  // The ranks along an axis, by the first of them.
  struct Group {
    int arrived = 0;  // at a collective
    int first = 0;    // to arrive
  };

  void advance(int r) {
    Rank& rank = ranks_[index(r)];
    for (; !rank.ended(); ++rank.next) {
      const Communication& c = rank.list->all[rank.next];
      if (c.asynchronous) continue;
      if (!rank.is_done(c.kind == Kind::wait ? c.awaited : static_cast<int>(rank.next))) break;
    }
    for (int lane = 0; lane < lanes; ++lane) {
      const std::vector<int>& all = rank.list->in_lane[index(lane)];
      const auto next = index(rank.done[index(lane)]);
      if (rank.arrived[index(lane)] || next == all.size() || index(all[next]) > rank.next) continue;
      rank.arrived[index(lane)] = true;
      if (rank.at(lane).is_collective()) {
        meet_group(r, lane);
      } else {
        meet_peer(r, lane);
      }
    }
  }

  void meet_group(int r, int lane) {
    Group& group = groups_[index(lane)][index(member(r, lane, 0))];
    if (group.arrived++ == 0) group.first = r;
    check_match(group.first, r, lane);
    if (group.arrived < mesh_.size(axis_of(lane))) return;
    group.arrived = 0;
    for (int i = 0; i < mesh_.size(axis_of(lane)); ++i) finish(member(r, lane, i), lane);
  }

  void meet_peer(int r, int lane) {
    const int peer = member(r, lane, ranks_[index(r)].at(lane).peer);
    if (!ranks_[index(peer)].arrived[index(lane)] || !answers(r, lane, ranks_[index(peer)].at(lane))) return;
    check_match(std::min(r, peer), std::max(r, peer), lane);
    finish(r, lane);
    finish(peer, lane);
  }

  void finish(int r, int lane) {
    ++ranks_[index(r)].done[index(lane)];
    ranks_[index(r)].arrived[index(lane)] = false;
    go_on_.push_back(r);
  }

  int member(int r, int lane, int along) const { return mesh_.rank(mesh_.position(r).with(axis_of(lane), along)); }

  // Whether a communication of the ranks that `r` waits for is of the kind that it waits for.
  bool answers(int r, int lane, const Communication& other) const {
    const Communication& mine = ranks_[index(r)].at(lane);
    if (mine.is_collective()) return other.is_collective();
    return other.kind == (mine.kind == Kind::send ? Kind::receive : Kind::send) &&
           other.peer == mesh_.position(r).along(axis_of(lane));
  }

  void check_match(int a, int b, int lane) const {
    const Communication &x = ranks_[index(a)].at(lane), &y = ranks_[index(b)].at(lane);
    const bool collective = x.is_collective();
    const std::string_view differs = collective && x.kind != y.kind           ? "kinds"
                                     : x.count != y.count                     ? "sizes"
                                     : x.dtype != y.dtype                     ? "dtypes"
                                     : collective && x.peer != y.peer         ? "roots"
                                     : collective && x.op->name != y.op->name ? "names"
                                                                              : "";
    if (differs.empty()) return;
    fail(a, lane,
         format("the {} of what meets on the {} axis differ: {}, and {}", differs, name_of(axis_of(lane)),
                stand(a, lane), stand(b, lane)));
  }

  void check_nothing_is_left() const {
    int held_up = -1;
    for (int r = 0; r < mesh_.ranks(); ++r) {
      if (ranks_[index(r)].ended()) continue;
      if (held_up < 0) held_up = r;
      for (int other : awaited(r)) {
        if (!ever_answers(r, other)) fail_left_over(r, other);
      }
    }
    if (held_up >= 0) fail_deadlock(held_up);
  }

  int lane_of_hold(int r) const { return ranks_[index(r)].list->all[ranks_[index(r)].next].lane(); }

  // The ranks that one which is held up waits for.
  std::vector<int> awaited(int r) const {
    const int lane = lane_of_hold(r);
    const Communication& mine = ranks_[index(r)].at(lane);
    if (!mine.is_collective()) return {member(r, lane, mine.peer)};
    std::vector<int> missing;
    for (int i = 0; i < mesh_.size(axis_of(lane)); ++i) {
      const Rank& other = ranks_[index(member(r, lane, i))];
      if (!other.arrived[index(lane)] || !other.at(lane).is_collective()) missing.push_back(member(r, lane, i));
    }
    return missing;
  }

  // Whether the rest of a rank's list has something for what `r` waits for.
  bool ever_answers(int r, int other) const {
    const int lane = lane_of_hold(r);
    const Rank& rank = ranks_[index(other)];
    const std::vector<int>& all = rank.list->in_lane[index(lane)];
    return std::any_of(all.begin() + rank.done[index(lane)], all.end(),
                       [&](int i) { return answers(r, lane, rank.list->all[index(i)]); });
  }

  [[noreturn]] void fail_left_over(int r, int other) const {
    const int lane = lane_of_hold(r);
    const Communication& mine = ranks_[index(r)].at(lane);
    const std::string_view answer = mine.is_collective() ? "collective" : mine.kind == Kind::send ? "receive" : "send";
    fail(r, lane,
         format("{} and waits for rank {}, whose '{}' has no {} for it on the {} axis", hold(r),
                ranks_[index(other)].number, ranks_[index(other)].list->program->name, answer, name_of(axis_of(lane))));
  }

  // Everyone waits for somebody who is held up as well: whoever follows that comes back.
  [[noreturn]] void fail_deadlock(int r) const {
    constexpr std::size_t most_shown = 8;
    std::vector<int> path;
    auto again = path.end();
    for (; again == path.end(); again = std::find(path.begin(), path.end(), r)) {
      path.push_back(r);
      r = awaited(r).front();
    }
    path.erase(path.begin(), again);
    std::string text = "the ranks wait for each other: ";
    for (std::size_t i = 0; i < std::min(path.size(), most_shown); ++i) {
      text += format("{}{} and waits for rank {}", i == 0 ? "" : "; ", hold(path[i]),
                     ranks_[index(path[(i + 1) % path.size()])].number);
    }
    if (path.size() > most_shown) text += format("; and so on around {} ranks", path.size());
    fail(path.front(), lane_of_hold(path.front()), text);
  }

  // "rank 1 is at send 'cut' in forward of 'train 8' (100 float32 to rank 2)".
  std::string stand(int r, int lane) const {
    return format("rank {} is at {}", ranks_[index(r)].number, full(r, lane));
  }
  std::string full(int r, int lane) const {
    const Rank& rank = ranks_[index(r)];
    const Communication& c = rank.at(lane);
    std::string text = format("{} ({} {}", describe(*rank.list->program, c), c.count, name_of(c.dtype));
    if (c.peer >= 0) {
      const std::string_view how = c.kind == Kind::send ? " to" : " from";
      text += format("{} rank {}", how, whole_.rank(whole_.position(rank.number).with(axis_of(lane), c.peer)));
    }
    return text + ")";
  }
  // The same, behind the wait where it is one that holds the rank up.
  std::string hold(int r) const {
    const Rank& rank = ranks_[index(r)];
    const Communication& at = rank.list->all[rank.next];
    if (at.kind != Kind::wait) return stand(r, at.lane());
    return format("rank {} is at {} for {}", rank.number, describe(*rank.list->program, at), full(r, at.lane()));
  }

  [[noreturn]] void fail(int r, int lane, const std::string& problem) const {
    const Rank& rank = ranks_[index(r)];
    throw Error(ErrorKind::internal, place_of(*rank.list->program, *rank.at(lane).op), problem);
  }

  const Mesh& whole_;
  const Mesh mesh_;  // of the ranks that are played
  std::vector<Rank> ranks_;
  std::array<std::vector<Group>, lanes> groups_;
  std::deque<int> go_on_;  // ranks for which something has ended
};

}  // namespace

void check_rendezvous(const Mesh& mesh, const std::vector<const Program*>& programs) {
  const RankLists lists(mesh, programs);
  Play(mesh, lists).run();
}

}  // namespace trainctl
