// Ranks and their positions in the mesh.
#include "parallel/mesh/mesh.h"

namespace trainctl {

Mesh::Position Mesh::position(int rank) const {
  return {rank / (pipeline * tensor), rank / tensor % pipeline, rank % tensor};
}

int Mesh::rank(const Position& position) const {
  return (position.data * pipeline + position.pipeline) * tensor + position.tensor;
}

}  // namespace trainctl
