// The communicators along the axes of a mesh whose other ranks are not there.
#pragma once

#include <array>
#include <memory>

#include "core/compile/placed_program.h"
#include "core/exec/collectives.h"

namespace trainctl {

class SilentAxes {
 public:
  // Silent communicators of a rank for a training program of its; `memory` as in silent_communicator(). A stage of a
  // pipeline that counts no samples gets the count which the last stage would send: without samples its update would
  // do nothing. All arguments outlive this.
  SilentAxes(const MeshRank& rank, const PlacedProgram& program, Backend& backend, Communicator& memory);

  MeshCommunicators communicators() const { return MeshCommunicators(axes_); }

 private:
  std::array<std::unique_ptr<Communicator>, mesh_axes> owned_;
  std::array<Communicator*, mesh_axes> axes_{};
};

}  // namespace trainctl
