// Splits the world along the axes of the mesh.
#include "parallel/mesh/axes.h"

#include "core/base/error.h"

namespace trainctl {

namespace {

// Returns the communicator of the ranks that differ from this one only in their position along the axis. The color of
// the split is the lowest of these ranks.
std::unique_ptr<Communicator> along(Communicator& world, const Mesh& mesh, MeshAxis axis) {
  const Mesh::Position own = mesh.position(world.rank());
  return world.split(mesh.rank(own.with(axis, 0)), own.along(axis));
}

}  // namespace

bool own_backward(const Backend& backend, const Communicator& peers) {
  return backend.on_host() || peers.runs_beside_others();
}

MeshAxes::MeshAxes(Communicator& world, const Mesh& mesh, bool own_backward) {
  require(mesh.ranks() == world.size(), "the mesh and the communicator differ in the number of ranks");
  for (MeshAxis axis : all_mesh_axes) {
    const auto a = static_cast<std::size_t>(axis);
    if (mesh.size(axis) == world.size()) {
      // In a world of one rank, only the data axis uses its communicator, from which the gradients' memory is
      // allocated.
      if (world.size() > 1 || axis == MeshAxis::data) axes_[a] = &world;
      continue;
    }
    if (mesh.size(axis) == 1) continue;
    owned_[a] = along(world, mesh, axis);
    axes_[a] = owned_[a].get();
  }
  if (own_backward && mesh.pipeline > 1) backward_ = along(world, mesh, MeshAxis::pipeline);
}

}  // namespace trainctl
