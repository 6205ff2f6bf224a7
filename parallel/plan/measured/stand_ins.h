// What stands in for data and for the other ranks while the step of one rank is measured alone.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/backend/backend.h"
#include "core/compile/placed_program.h"
#include "core/exec/collectives.h"
#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

// A batch of random samples for a program whose data is not read.
class RandomBatch {
 public:
  // As many samples as the program takes in a step. Whole numbers stay below the rows of the embeddings and the classes
  // that they are meant for, as far as the program tells, so that losses stay finite.
  RandomBatch(const Program& program, Backend& backend);

  const Batch& batch() const { return batch_; }

 private:
  View add(const Program& program, TensorId tensor, std::int64_t below, Backend& backend);

  std::vector<Memory> memory_;
  Batch batch_;
};

// The communicators along the axes of a mesh whose other ranks are not there.
class LoopbackAxes {
 public:
  // Silent communicators of a rank for a training program of its; `memory` as in loopback_communicator(). A stage of a
  // pipeline that counts no samples gets the count which the last stage would send: without samples its update would
  // do nothing. All arguments outlive this.
  LoopbackAxes(const MeshRank& rank, const PlacedProgram& program, Backend& backend, Communicator& memory);

  MeshCommunicators communicators() const { return MeshCommunicators(axes_); }

 private:
  std::array<std::unique_ptr<Communicator>, mesh_axes> owned_;
  std::array<Communicator*, mesh_axes> axes_{};
};

}  // namespace trainctl
