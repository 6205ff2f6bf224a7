// The communicators of one rank along the axes of the mesh, made from the one of all ranks.
#pragma once

#include <array>
#include <memory>

#include "core/exec/collectives.h"

namespace trainctl {

class MeshAxes {
 public:
  // Collective over the world, which outlives this: each axis with several ranks becomes a communicator of its own,
  // but for one that joins all ranks, which is the world's. With `own_backward` the pipeline axis has a second one, for
  // its backward channel: on processors, where a message waits in its ring and the next one of the same communicator
  // behind it. GPUs have one, whose messages have an order, since nothing promises that two of them advance at once.
  MeshAxes(Communicator& world, const Mesh& mesh, bool own_backward);

  MeshCommunicators communicators() const { return MeshCommunicators(axes_, backward_.get()); }

 private:
  std::array<std::unique_ptr<Communicator>, mesh_axes> owned_;
  std::array<Communicator*, mesh_axes> axes_{};
  std::unique_ptr<Communicator> backward_;  // of the pipeline; null without one
};

}  // namespace trainctl
