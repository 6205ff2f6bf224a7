// Collectives as kernels: what the executor runs with communicators instead of the backend.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/backend/kernel.h"
#include "core/compile/placed_program.h"

namespace trainctl {

// One rank's communicators, one for each axis of the mesh. They outlive what is made with them.
class MeshCommunicators {
 public:
  // Of a mesh whose only axis is data.
  MeshCommunicators(Communicator& data) : axes_{&data, nullptr, nullptr} {}
  // Null where an axis has one rank.
  explicit MeshCommunicators(const std::array<Communicator*, mesh_axes>& axes) : axes_(axes) {}

  // Null where the axis has one rank and no communicator was given.
  Communicator* find(MeshAxis axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  // Whether there is a peer on any axis.
  bool has_peers() const;

 private:
  std::array<Communicator*, mesh_axes> axes_;
};

// Binds the collectives of a rank's programs. All calls on one communicator run on one stream, in the order of the
// program: where a program has an asynchronous one, on a stream of its own, else on the compute stream.
class CollectiveBinder {
 public:
  CollectiveBinder(Backend& backend, const MeshCommunicators& communicators,
                   const std::vector<PlacedProgram>& programs);

  // The kernel of an op with trait collective.
  std::unique_ptr<Kernel> bind(const PlacedProgram& program, const Op& op, const Binding& places);
  // Whether such an op can be part of a Recording.
  bool recordable(const PlacedProgram& program, const Op& op) const;
  // The streams beside the compute stream.
  const std::vector<Stream*>& streams() const { return streams_; }

 private:
  struct Lane {
    Communicator* communicator = nullptr;
    std::unique_ptr<Stream> stream;  // null: the compute stream
  };
  // The end of an asynchronous collective, for the Waits that name its output.
  struct Ended {
    std::unique_ptr<Event> event;
    Communicator* communicator = nullptr;
  };
  Lane& lane(MeshAxis axis) { return lanes_[static_cast<std::size_t>(axis)]; }
  void prepare(const PlacedProgram& program, const Op& op, Lane& used);

  Backend& backend_;
  std::array<Lane, mesh_axes> lanes_;
  std::vector<Stream*> streams_;                                      // those of the lanes
  std::map<std::pair<const PlacedProgram*, TensorId>, Ended> ended_;  // by program and output
};

}  // namespace trainctl
