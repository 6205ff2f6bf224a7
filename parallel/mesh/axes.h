// Makes the communicators of one rank along the axes of the mesh, from the communicator of all ranks.
#pragma once

#include <array>
#include <memory>

#include "core/exec/collectives.h"

namespace trainctl {

// Whether the backward channel of a pipeline should have its own communicator. On CPUs an unread message blocks the
// next message of the same communicator. On GPUs the messages of one communicator run one after the other; those of
// another communicator run at the same time if the library orders their calls (Communicator::runs_beside_others()), and
// may otherwise block each other.
bool own_backward(const Backend& backend, const Communicator& peers);

class MeshAxes {
 public:
  // All ranks of `world`, which must outlive this object, must call this constructor. Each axis with several ranks gets
  // its own communicator; an axis with all ranks uses `world`. With `own_backward` the pipeline axis has a second
  // communicator for its backward channel, so that an activation that is sent and a gradient that is received do not
  // wait for each other (see own_backward()).
  MeshAxes(Communicator& world, const Mesh& mesh, bool own_backward);

  MeshCommunicators communicators() const { return MeshCommunicators(axes_, backward_.get()); }

 private:
  std::array<std::unique_ptr<Communicator>, mesh_axes> owned_;
  std::array<Communicator*, mesh_axes> axes_{};
  std::unique_ptr<Communicator> backward_;  // backward channel of the pipeline axis; null without one
};

}  // namespace trainctl
