// Splitting the world along the axes of the mesh.
#include "parallel/mesh/axes.h"

#include "core/base/error.h"

namespace trainctl {

MeshAxes::MeshAxes(Communicator& world, const Mesh& mesh) {
  require(mesh.ranks() == world.size(), "the mesh holds all ranks");
  for (MeshAxis axis : all_mesh_axes) {
    const auto a = static_cast<std::size_t>(axis);
    if (mesh.size(axis) == world.size()) {
      // Of several axes with one rank each, data takes the world, from whose memory gradients come.
      if (world.size() > 1 || axis == MeshAxis::data) axes_[a] = &world;
      continue;
    }
    if (mesh.size(axis) == 1) continue;
    // Ranks that differ along this axis alone have the lowest of them as their color.
    const Mesh::Position own = mesh.position(world.rank());
    owned_[a] = world.split(mesh.rank(own.with(axis, 0)), own.along(axis));
    axes_[a] = owned_[a].get();
  }
}

}  // namespace trainctl
