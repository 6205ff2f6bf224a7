// The mesh: the ranks of a run as a grid data x pipeline x tensor. The tensor axis is innermost, so that its ranks are
// neighbours on one host. To add an axis, add an enumerator, a name and a member of Mesh and Mesh::Position; code that
// handles all axes iterates over all_mesh_axes.
#pragma once

#include <iterator>
#include <string_view>

namespace trainctl {

// The axes of the mesh from the outermost to the innermost, in the order of Tensor::placements.
enum class MeshAxis { data, pipeline, tensor };
inline constexpr MeshAxis all_mesh_axes[] = {MeshAxis::data, MeshAxis::pipeline, MeshAxis::tensor};
inline constexpr int mesh_axes = static_cast<int>(std::size(all_mesh_axes));

// Returns "data", "pipeline" or "tensor".
std::string_view name_of(MeshAxis axis);

struct Mesh {
  int data = 1;      // number of replicas, each with its share of every batch
  int pipeline = 1;  // number of stages of consecutive layers
  int tensor = 1;    // number of ranks that split each layer

  struct Position {
    int data = 0;
    int pipeline = 0;
    int tensor = 0;

    int along(MeshAxis axis) const;
    // Returns a copy of this position with the coordinate `along` on the axis.
    Position with(MeshAxis axis, int along) const;
    bool operator==(const Position&) const = default;
  };

  int ranks() const;
  int ranks_of_replica() const { return ranks() / data; }
  // The number of ranks along an axis.
  int size(MeshAxis axis) const;
  // Returns a copy of this mesh with `size` ranks along the axis.
  Mesh with(MeshAxis axis, int size) const;
  Position position(int rank) const;
  int rank(const Position& position) const;
  bool operator==(const Mesh&) const = default;
};

// One rank's position in the mesh, which decides its share of the data, its programs and its communicators.
struct MeshRank {
  Mesh mesh;
  Mesh::Position position;

  MeshRank() = default;  // a mesh of one rank
  // The position of a rank of the world.
  MeshRank(const Mesh& of, int rank) : mesh(of), position(of.position(rank)) {}

  int size(MeshAxis axis) const { return mesh.size(axis); }
  int along(MeshAxis axis) const { return position.along(axis); }
  // This rank's index within its replica. The data axis is the outermost, so that the ranks of a replica are
  // contiguous.
  int index_in_replica() const { return mesh.rank(position.with(MeshAxis::data, 0)); }
  bool operator==(const MeshRank&) const = default;
};

// The position of a replica in a mesh with only the data axis.
inline MeshRank replica(int rank, int ranks) { return MeshRank(Mesh{.data = ranks}, rank); }

}  // namespace trainctl
