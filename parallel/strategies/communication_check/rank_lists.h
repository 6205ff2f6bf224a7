// The communications of all ranks of a mesh, and which ranks do the same.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "parallel/strategies/communication_check/communications.h"

namespace trainctl {

inline std::size_t index(int number) { return static_cast<std::size_t>(number); }
inline std::size_t index(MeshAxis axis) { return static_cast<std::size_t>(axis); }

// What one program communicates, as a whole and along each axis.
struct RankList {
  const Program* program = nullptr;
  const RankList* alike = this;  // the first one that is equal
  std::vector<Communication> all;
  std::vector<int> number;                             // of each communication but waits: how many precede on its axis
  std::array<std::vector<int>, mesh_axes> along_axis;  // places in `all`

  explicit RankList(const Program& of);
  RankList(const RankList&) = delete;
};

// The lists of all ranks, those of one program once. Programs outlive them.
class RankLists {
 public:
  // `programs`: of each rank. Throws Error{internal} where an op is made for another number of ranks than its axis has,
  // or names a rank that is not there.
  RankLists(const Mesh& mesh, const std::vector<const Program*>& programs);

  const RankList& of(int rank) const { return *of_ranks_[index(rank)]; }
  // The ranks that stand for all: along an axis on which all ranks have equal lists and address nobody by number, each
  // of them does what the first one does at the same time, so that the axis has one rank.
  Mesh different() const;

 private:
  const RankList* add(const Program& program);
  bool all_alike(MeshAxis axis) const;
  void check(const RankList& list) const;

  const Mesh mesh_;
  std::deque<RankList> lists_;
  std::vector<const RankList*> different_;
  std::vector<const RankList*> of_ranks_;
};

}  // namespace trainctl
