// Replaces the data and the other ranks while the step of one rank is measured alone.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/backend/backend.h"
#include "core/compile/placed_program.h"
#include "core/exec/collectives.h"
#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

// A batch of random samples, used instead of reading the data.
class RandomBatch {
 public:
  // Creates the samples of one step of the program. Integers are less than the number of rows of the embedding, or of
  // classes of the loss, that reads them, so that losses stay finite.
  RandomBatch(const Program& program, Backend& backend);

  const Batch& batch() const { return batch_; }

 private:
  View add(const Program& program, TensorId tensor, std::int64_t below, Backend& backend);

  std::vector<Memory> memory_;
  Batch batch_;
};

// The communicators along the axes of a mesh whose other ranks do not exist.
class LoopbackAxes {
 public:
  // Creates communicators without peers for a rank's training program; `memory`: as in loopback_communicator(). A
  // pipeline stage that counts no samples receives the count that the last stage would send, since an update without
  // samples would be skipped. All arguments must outlive this object.
  LoopbackAxes(const MeshRank& rank, const PlacedProgram& program, Backend& backend, Communicator& memory);

  MeshCommunicators communicators() const { return MeshCommunicators(axes_); }

 private:
  std::array<std::unique_ptr<Communicator>, mesh_axes> owned_;
  std::array<Communicator*, mesh_axes> axes_{};
};

}  // namespace trainctl
