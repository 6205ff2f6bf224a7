// Converts ranks to positions in the mesh and back.
#include "core/graph/mesh.h"

#include <array>
#include <ranges>

namespace trainctl {
namespace {

// The name of an axis, and pointers to the members of Mesh and Mesh::Position that belong to the axis.
struct AxisEntry {
  std::string_view name;
  int Mesh::*size;
  int Mesh::Position::*along;
};

constexpr std::array<AxisEntry, mesh_axes> entries = {{{"data", &Mesh::data, &Mesh::Position::data},
                                                       {"pipeline", &Mesh::pipeline, &Mesh::Position::pipeline},
                                                       {"tensor", &Mesh::tensor, &Mesh::Position::tensor}}};

constexpr const AxisEntry& entry(MeshAxis axis) { return entries[static_cast<std::size_t>(axis)]; }

}  // namespace

std::string_view name_of(MeshAxis axis) { return entry(axis).name; }

int Mesh::Position::along(MeshAxis axis) const { return this->*entry(axis).along; }

Mesh::Position Mesh::Position::with(MeshAxis axis, int along) const {
  Position other = *this;
  other.*entry(axis).along = along;
  return other;
}

int Mesh::size(MeshAxis axis) const { return this->*entry(axis).size; }

Mesh Mesh::with(MeshAxis axis, int size) const {
  Mesh other = *this;
  other.*entry(axis).size = size;
  return other;
}

int Mesh::ranks() const {
  int product = 1;
  for (const MeshAxis axis : all_mesh_axes) product *= size(axis);
  return product;
}

Mesh::Position Mesh::position(int rank) const {
  Position position;
  for (const MeshAxis axis : all_mesh_axes | std::views::reverse) {
    position = position.with(axis, rank % size(axis));
    rank /= size(axis);
  }
  return position;
}

int Mesh::rank(const Position& position) const {
  int rank = 0;
  for (const MeshAxis axis : all_mesh_axes) rank = rank * size(axis) + position.along(axis);
  return rank;
}

}  // namespace trainctl
