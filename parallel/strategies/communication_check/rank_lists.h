// The communications of all ranks of a mesh, and which ranks have equal ones.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <vector>

#include "parallel/strategies/communication_check/communications.h"

namespace trainctl {

// The index of an axis in arrays with an element for each axis.
inline std::size_t index(MeshAxis axis) { return static_cast<std::size_t>(axis); }

// The communications of one program, all together and along each axis.
struct RankList {
  const Program* program = nullptr;
  const RankList* alike = this;  // the first list that is equal to this one
  std::vector<Communication> all;
  std::vector<int> number;  // for each communication, the number of earlier ones on its axis; 0 for waits
  std::array<std::vector<int>, mesh_axes> along_axis;  // indices in `all`, for each axis

  explicit RankList(const Program& of);
  RankList(const RankList&) = delete;
};

// The lists of all ranks, one for each program. The programs must outlive them.
class RankLists {
 public:
  // `programs`: the program of each rank. Throws Error{internal} if an op is made for a different number of ranks than
  // its axis has, or names a rank that does not exist.
  RankLists(const Mesh& mesh, const std::vector<const Program*>& programs);

  const RankList& of(int rank) const { return *of_ranks_[index(rank)]; }
  // Returns the mesh of the ranks that represent all ranks. If all ranks along an axis have equal lists without peers,
  // they do the same at the same time, so that the first rank represents the axis.
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
