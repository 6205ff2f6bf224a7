// Ranks and their positions in the mesh.
#include "core/graph/mesh.h"

namespace trainctl {

std::string_view name_of(MeshAxis axis) {
  constexpr std::string_view names[] = {"data", "pipeline", "tensor"};
  return names[static_cast<int>(axis)];
}

int Mesh::Position::along(MeshAxis axis) const {
  const int places[] = {data, pipeline, tensor};
  return places[static_cast<int>(axis)];
}

Mesh::Position Mesh::Position::with(MeshAxis axis, int along) const {
  Position other = *this;
  (axis == MeshAxis::data ? other.data : axis == MeshAxis::pipeline ? other.pipeline : other.tensor) = along;
  return other;
}

int Mesh::size(MeshAxis axis) const {
  const int sizes[] = {data, pipeline, tensor};
  return sizes[static_cast<int>(axis)];
}

Mesh::Position Mesh::position(int rank) const {
  return {rank / (pipeline * tensor), rank / tensor % pipeline, rank % tensor};
}

int Mesh::rank(const Position& position) const {
  return (position.data * pipeline + position.pipeline) * tensor + position.tensor;
}

}  // namespace trainctl
