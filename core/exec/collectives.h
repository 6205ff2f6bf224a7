// The kernels of collectives, which the executor runs with communicators in place of the backend.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/backend/kernel.h"
#include "core/compile/placed_program.h"
#include "core/exec/deferred_receives.h"

namespace trainctl {

struct Collective;

// One rank's communicators, one for each axis of the mesh. They must outlive the objects made with them.
class MeshCommunicators {
 public:
  // A mesh whose only axis is data.
  MeshCommunicators(Communicator& data) : axes_{&data, nullptr, nullptr} {}
  // By axis; null where the axis has one rank. `backward`: of the pipeline axis, for messages on the backward channel;
  // null where both channels share a communicator, on which messages then follow each other.
  explicit MeshCommunicators(const std::array<Communicator*, mesh_axes>& axes, Communicator* backward = nullptr)
      : axes_(axes), backward_(backward) {}

  // The communicator of an axis; null where the axis has one rank and no communicator was given.
  Communicator* find(MeshAxis axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  // The communicator of the pipeline's backward channel, or null.
  Communicator* backward() const { return backward_; }
  // Whether any axis has more than one rank.
  bool has_peers() const;

 private:
  std::array<Communicator*, mesh_axes> axes_;
  Communicator* backward_ = nullptr;
};

// Binds the collectives of a rank's programs. All calls on one communicator run on one stream, in the order of the
// program: a stream beside the compute stream where any program has an asynchronous collective on it, else the compute
// stream. Messages of a pipeline for which that is better (Communicator::bytes_in_turn()) run on the compute stream
// too: sends at once, receives at the wait for them.
class CollectiveBinder {
 public:
  CollectiveBinder(Backend& backend, const MeshCommunicators& communicators,
                   const std::vector<PlacedProgram>& programs);

  // Returns the kernel of an op with trait collective.
  std::unique_ptr<Kernel> bind(const PlacedProgram& program, const Op& op, const Binding& places);
  // Whether the kernel of such an op can be part of a Recording.
  bool recordable(const PlacedProgram& program, const Op& op);
  // The streams of collectives, without the compute stream.
  const std::vector<Stream*>& streams() const { return streams_; }

 private:
  struct Lane {
    Communicator* communicator = nullptr;
    std::unique_ptr<Stream> stream;              // null: the compute stream
    std::unique_ptr<DeferredReceives> receives;  // of messages in turn; null: none
  };
  // The end of an asynchronous collective, on which the Wait for its output waits.
  struct Ended {
    std::unique_ptr<Event> event;  // null: the collective runs in turn
    Communicator* communicator = nullptr;
    DeferredReceives* receives = nullptr;  // null: it is no receive in turn
    std::uint64_t receive = 0;             // the number of the one under way
  };
  class Receiving;
  class Received;
  Lane& lane(const Collective& collective);
  void choose_turns(const std::vector<PlacedProgram>& programs);
  void prepare(const PlacedProgram& program, const Op& op, Lane& used);

  Backend& backend_;
  std::array<Lane, mesh_axes> lanes_;
  Lane backward_;  // of the pipeline's backward channel; without a communicator where it shares the axis' lane
  std::vector<Stream*> streams_;                                      // the streams of all lanes
  std::map<std::pair<const PlacedProgram*, TensorId>, Ended> ended_;  // by program and output of the collective
};

}  // namespace trainctl
