// Builds the lists of communications of all ranks and finds equal ones.
#include "parallel/strategies/communication_check/rank_lists.h"

#include <algorithm>
#include <map>

#include "core/base/format.h"
#include "core/base/table.h"
#include "core/program/placements.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

bool are_equal(const Communication& a, const Communication& b) {
  return a.kind == b.kind && a.axis == b.axis && a.ranks == b.ranks && a.peer == b.peer && a.count == b.count &&
         a.dtype == b.dtype && a.asynchronous == b.asynchronous && a.awaited == b.awaited && a.op->name == b.op->name;
}
bool are_equal(const RankList& a, const RankList& b) {
  return std::equal(a.all.begin(), a.all.end(), b.all.begin(), b.all.end(),
                    [](const Communication& x, const Communication& y) { return are_equal(x, y); });
}

bool addresses_ranks(const RankList& list, MeshAxis axis) {
  return std::any_of(list.along_axis[index(axis)].begin(), list.along_axis[index(axis)].end(),
                     [&](int i) { return !list.all[index(i)].is_collective(); });
}

}  // namespace

RankList::RankList(const Program& of) : program(&of), all(communications_of(of)), number(all.size(), 0) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind == Kind::wait) continue;
    std::vector<int>& axis = along_axis[index(all[i].axis)];
    number[i] = static_cast<int>(axis.size());
    axis.push_back(static_cast<int>(i));
  }
}

RankLists::RankLists(const Mesh& mesh, const std::vector<const Program*>& programs) : mesh_(mesh) {
  require(static_cast<int>(programs.size()) == mesh.ranks(), "a rank of the mesh has no program");
  std::map<const Program*, const RankList*> known;
  for (const Program* program : programs) {
    const RankList*& list = known[program];
    if (list == nullptr) list = add(*program);
    of_ranks_.push_back(list);
  }
}

Mesh RankLists::different() const {
  Mesh mesh = mesh_;
  for (const MeshAxis axis : all_mesh_axes) {
    if (all_alike(axis)) mesh = mesh.with(axis, 1);
  }
  return mesh;
}

const RankList* RankLists::add(const Program& program) {
  RankList& list = lists_.emplace_back(program);
  const auto first = std::find_if(different_.begin(), different_.end(),
                                  [&](const RankList* other) { return are_equal(*other, list); });
  if (first != different_.end()) {
    list.alike = *first;
  } else {
    check(list);
    different_.push_back(&list);
  }
  return &list;
}

bool RankLists::all_alike(MeshAxis axis) const {
  const auto addresses = [axis](const RankList* list) { return addresses_ranks(*list, axis); };
  if (std::any_of(different_.begin(), different_.end(), addresses)) return false;
  for (int rank = 0; rank < mesh_.ranks(); ++rank) {
    const int first = mesh_.rank(mesh_.position(rank).with(axis, 0));
    if (of(rank).alike != of(first).alike) return false;
  }
  return true;
}

// Checks the numbers of ranks and the peers that ops specify.
void RankLists::check(const RankList& list) const {
  for (const Communication& c : list.all) {
    const int size = mesh_.size(c.axis);
    const auto fail = [&](const std::string& problem) {
      throw Error(ErrorKind::internal, location_of(*list.program, *c.op),
                  format("{}: {}, and the {} axis has {}", describe(*list.program, c), problem, name_of(c.axis),
                         size == 1 ? "one rank" : format("{} ranks", size)));
    };
    if (c.ranks != 0 && c.ranks != size) fail(format("it is made for {}", counted(c.ranks, "rank")));
    const bool names_rank = c.kind == Kind::broadcast || c.kind == Kind::send || c.kind == Kind::receive;
    if (names_rank && (c.peer < 0 || c.peer >= size)) fail(format("it names rank {} along the axis", c.peer));
  }
}

}  // namespace trainctl
