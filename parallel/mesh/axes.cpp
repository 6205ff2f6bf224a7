// Splits the world along the axes of the mesh.
#include "parallel/mesh/axes.h"

#include "core/base/error.h"

namespace trainctl {

namespace {

// The communicator of the ranks that differ from this one only in their position along the axis; the lowest of them is
// their color.
std::unique_ptr<Communicator> along(Communicator& world, const Mesh& mesh, MeshAxis axis) {
  const Mesh::Position own = mesh.position(world.rank());
  return world.split(mesh.rank(own.with(axis, 0)), own.along(axis));
}

}  // namespace

MeshAxes::MeshAxes(Communicator& world, const Mesh& mesh, bool own_backward) {
  require(mesh.ranks() == world.size(), "the mesh and the communicator differ in the number of ranks");
  for (MeshAxis axis : all_mesh_axes) {
    const auto a = static_cast<std::size_t>(axis);
    if (mesh.size(axis) == world.size()) {
      // If several axes have one rank each, only the data axis uses the world, whose memory gradients are allocated in.
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
