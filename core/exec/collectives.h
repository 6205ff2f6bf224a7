// Makes the kernels of collectives, which call communicators instead of the backend.
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
  // Constructor for a mesh that has only the data axis.
  MeshCommunicators(Communicator& data) : axes_{&data, nullptr, nullptr} {}
  // `axes` are the communicators by axis; null if the axis has one rank. `backward` is the communicator of the pipeline
  // axis for messages on the backward channel; null if both channels share a communicator, which sends messages one
  // after the other.
  explicit MeshCommunicators(const std::array<Communicator*, mesh_axes>& axes, Communicator* backward = nullptr)
      : axes_(axes), backward_(backward) {}

  // The communicator of an axis; null if the axis has one rank and no communicator was given.
  Communicator* find(MeshAxis axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  // The communicator of the pipeline's backward channel, or null.
  Communicator* backward() const { return backward_; }
  // The rank's flight record; null: none.
  FlightRecord* flight() const;
  // Whether any axis has more than one rank.
  bool has_peers() const;
  // Whether all ranks of the mesh must record the same steps, because communications with peers are recorded, too.
  bool record_together() const;
  // Returns whether the value is true on all ranks of the mesh, which must all call this function.
  bool true_on_all(bool value) const;

 private:
  std::array<Communicator*, mesh_axes> axes_;
  Communicator* backward_ = nullptr;
};

// Binds the collectives of a rank's programs. All calls on one communicator run on one stream, in the order of the
// program. The communicator has a stream of its own if any program has an asynchronous collective on it; otherwise the
// calls run on the compute stream. Communicators that do not run beside others share a stream. If a pipeline's messages
// are not larger than Communicator::bytes_in_turn(), they run on the compute stream, too: a send runs immediately, a
// receive runs at its Wait.
class CollectiveBinder {
 public:
  CollectiveBinder(Backend& backend, const MeshCommunicators& communicators,
                   const std::vector<PlacedProgram>& programs);

  // Returns the kernel of an op with trait collective.
  std::unique_ptr<Kernel> bind(const PlacedProgram& program, const Op& op, const Binding& binding);
  // Whether the kernel of an op with trait collective can be part of a Recording.
  bool recordable(const PlacedProgram& program, const Op& op);
  // The streams of collectives, except the compute stream.
  const std::vector<Stream*>& streams() const { return streams_; }

 private:
  // A communicator and the stream on which it is called.
  struct Lane {
    Communicator* communicator = nullptr;
    Stream* stream = nullptr;                    // null: the compute stream
    std::unique_ptr<DeferredReceives> receives;  // receives on the compute stream; null: none
  };
  // The end of an asynchronous collective. The Wait op of its output waits for this end.
  struct Ended {
    std::unique_ptr<Event> event;  // null: the collective runs on the compute stream
    Communicator* communicator = nullptr;
    DeferredReceives* receives = nullptr;  // null unless it is a receive on the compute stream
    std::uint64_t receive = 0;             // number of the receive under way
  };
  class Receiving;
  class Received;
  Lane& lane(const Collective& collective);
  void choose_turns(const std::vector<PlacedProgram>& programs);
  void prepare(const PlacedProgram& program, const Op& op, Lane& used);
  Stream* make_stream();
  void share_stream();

  Backend& backend_;
  std::array<Lane, mesh_axes> lanes_;
  Lane backward_;  // lane of the pipeline's backward channel; no communicator if it shares the axis' lane
  std::vector<std::unique_ptr<Stream>> owned_streams_;
  std::vector<Stream*> streams_;                                      // the streams of all lanes
  std::map<std::pair<const PlacedProgram*, TensorId>, Ended> ended_;  // key: program and output of the collective
};

}  // namespace trainctl
