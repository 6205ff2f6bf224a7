// Makes the communicators of one rank along the axes of the mesh, from the communicator of all ranks.
#pragma once

#include <array>
#include <memory>

#include "core/exec/collectives.h"

namespace trainctl {

class MeshAxes {
 public:
  // All ranks of `world`, which must outlive this object, must call this constructor. Each axis with several ranks gets
  // its own communicator; an axis with all ranks uses `world`. With `own_backward` the pipeline axis has a second
  // communicator for its backward channel. It is needed on CPUs, where an unread message blocks the next message of the
  // same communicator. GPUs use a single communicator, whose messages are ordered, since two NCCL communicators are not
  // guaranteed to make progress at the same time.
  MeshAxes(Communicator& world, const Mesh& mesh, bool own_backward);

  MeshCommunicators communicators() const { return MeshCommunicators(axes_, backward_.get()); }

 private:
  std::array<std::unique_ptr<Communicator>, mesh_axes> owned_;
  std::array<Communicator*, mesh_axes> axes_{};
  std::unique_ptr<Communicator> backward_;  // backward channel of the pipeline axis; null without one
};

}  // namespace trainctl
