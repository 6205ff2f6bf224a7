// Makes the kernels of collectives from a communicator's calls.
#include "core/exec/collectives.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/format.h"
#include "core/exec/observe/op_text.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/ops/whole_batch.h"

namespace trainctl {
namespace {

// The memory of a tensor: its address, dtype, number of elements, and size of the last dimension (`width`).
struct PlacedView {
  Address address;
  DType dtype = DType::float32;
  std::int64_t count = 0;
  std::int64_t width = 1;

  View at(const Slot& slot) const { return {address.at(slot), dtype, count}; }
};

using Call = std::function<void(Stream&, const Slot&)>;

// The calls of a collective: `before` runs on the compute stream, then `communicate` calls the communicator and
// processes the received data.
struct Calls {
  Call before;  // may be empty
  Call communicate;
};

class CollectiveKernel final : public Kernel {
 public:
  // Constructor for a collective that runs on the compute stream.
  explicit CollectiveKernel(Calls calls) : calls_(std::move(calls)) {}
  // Constructor for a collective on a stream of its own. `ended` is recorded at its end for a Wait; if it is null, the
  // compute stream waits for the collective immediately.
  CollectiveKernel(Calls calls, Backend& backend, Stream& stream, Event* ended)
      : calls_(std::move(calls)), stream_(&stream), ready_(backend.event()), ended_(ended) {
    if (ended_ == nullptr) own_ended_ = backend.event();
  }

  void run(Stream& compute, const Slot& slot) override {
    if (calls_.before) calls_.before(compute, slot);
    if (stream_ == nullptr) return calls_.communicate(compute, slot);
    ready_->record(compute);
    ready_->wait(*stream_);
    calls_.communicate(*stream_, slot);
    if (ended_ != nullptr) return ended_->record(*stream_);
    own_ended_->record(*stream_);
    own_ended_->wait(compute);
  }

 private:
  Calls calls_;
  Stream* stream_ = nullptr;  // null: the compute stream
  std::unique_ptr<Event> ready_;
  Event* ended_ = nullptr;
  std::unique_ptr<Event> own_ended_;
};

class WaitKernel final : public Kernel {
 public:
  explicit WaitKernel(Event& ended) : ended_(ended) {}
  void run(Stream& compute, const Slot&) override { ended_.wait(compute); }

 private:
  Event& ended_;
};

// Copies a tensor; empty if both addresses are equal.
Call copy(Backend& backend, PlacedView from, PlacedView to) {
  if (from.address == to.address) return {};
  return [&backend, from, to](Stream& stream, const Slot& slot) {
    const View view = from.at(slot);
    backend.copy(to.at(slot).data, view.data, view.bytes(), stream);
  };
}

// The piece of a tensor with this index, `count` elements long.
PlacedView piece(const PlacedView& whole, int index, std::int64_t count) {
  return {whole.address + index * count * size_of(whole.dtype), whole.dtype, count};
}

// The columns of each rank, in a tensor of which they are a part and one after the other in the workspace. There, each
// rank has the same number of elements, `each`.
struct ColumnShards {
  PlacedView all;  // the workspace
  std::int64_t each = 0, rows = 0;
  ShardPosition shard;
  std::int64_t columns = 0;

  // Calls visit with the address of each rank's columns in the whole tensor and in the workspace, and with the bytes of
  // a row of these columns.
  template <class Visit>
  void for_each(const PlacedView& whole, const Slot& slot, const Visit& visit) const {
    const std::int64_t bytes = size_of(all.dtype);
    auto* of_whole = static_cast<std::byte*>(whole.at(slot).data);
    for (ShardPosition rank{shard.count, 0}; rank.index < rank.count; ++rank.index) {
      const std::int64_t width = rank.size_of(columns) * bytes;
      visit(of_whole, static_cast<std::byte*>(all.at(slot).slice(rank.index * each, each).data), width);
      of_whole += width;
    }
  }
};

// Joins the shards of all ranks, which lie in the workspace, to the whole tensor.
void join_columns(Backend& backend, const ColumnShards& shards, const PlacedView& whole, Stream& stream,
                  const Slot& slot) {
  const std::int64_t stride = whole.width * size_of(whole.dtype);
  shards.for_each(whole, slot, [&](std::byte* to, std::byte* from, std::int64_t width) {
    backend.copy_rows(to, stride, from, width, width, shards.rows, stream);
  });
}

// Copies the columns of each rank from the whole tensor to the workspace.
void divide_columns(Backend& backend, const ColumnShards& shards, const PlacedView& whole, Stream& stream,
                    const Slot& slot) {
  const std::int64_t stride = whole.width * size_of(whole.dtype);
  shards.for_each(whole, slot, [&](std::byte* from, std::byte* to, std::int64_t width) {
    backend.copy_rows(to, width, from, stride, width, shards.rows, stream);
  });
}

Calls gather_columns(const AllGatherColumns& def, const PlacedView& x, const PlacedView& y, const Address& workspace,
                     Backend& backend, Communicator& communicator) {
  const std::int64_t rows = y.count / def.columns, each = rows * def.largest_width();
  const ColumnShards shards{{workspace, x.dtype, each * def.shard.count}, each, rows, def.shard, def.columns};
  return {copy(backend, x, piece(shards.all, def.shard.index, each)),
          [&backend, &communicator, shards, y](Stream& stream, const Slot& slot) {
            communicator.all_gather(shards.all.at(slot), stream);
            join_columns(backend, shards, y, stream, slot);
          }};
}

// Each rank sends as many samples as the largest rank; the rest of its piece is not used.
Calls gather_samples(const GatherSamples& def, const PlacedView& x, const PlacedView& y, const Address& workspace,
                     Backend& backend, Communicator& communicator) {
  const SampleShares& shares = def.shares;
  const std::int64_t row = x.count / shares.count(), each = row * shares.largest();
  const PlacedView all{workspace, x.dtype, each * std::ssize(shares.counts)};
  std::vector<Call> copies;
  for (int rank = 0; rank < static_cast<int>(std::ssize(shares.counts)); ++rank) {
    const std::int64_t count = row * shares.counts[static_cast<std::size_t>(rank)], size = size_of(x.dtype);
    copies.push_back(copy(backend, {all.address + rank * each * size, x.dtype, count},
                          {y.address + row * shares.first_of(rank) * size, x.dtype, count}));
  }
  return {copy(backend, x, {all.address + shares.own * each * size_of(x.dtype), x.dtype, x.count}),
          [&communicator, all, copies](Stream& stream, const Slot& slot) {
            communicator.all_gather(all.at(slot), stream);
            for (const Call& take : copies) take(stream, slot);
          }};
}

Calls scatter_columns(const ReduceScatterColumns& def, const PlacedView& x, const PlacedView& y,
                      const Address& workspace, Backend& backend, Communicator& communicator) {
  const std::int64_t rows = x.count / x.width;
  const ColumnShards shards{{workspace, x.dtype, x.count}, y.count, rows, def.shard, x.width};
  const Call take = copy(backend, piece(shards.all, def.shard.index, y.count), y);
  return {[&backend, shards, x](Stream& stream, const Slot& slot) { divide_columns(backend, shards, x, stream, slot); },
          [&communicator, shards, take](Stream& stream, const Slot& slot) {
            communicator.reduce_scatter(shards.all.at(slot), Reduction::sum, stream);
            take(stream, slot);
          }};
}

Calls calls_of(const Op& op, const std::vector<PlacedView>& x, const std::vector<PlacedView>& y,
               const Address& workspace, Backend& backend, Communicator& communicator) {
  const auto in_place = [&](auto call) -> Call {
    return
        [&communicator, to = y[0], call](Stream& stream, const Slot& slot) { call(communicator, to.at(slot), stream); };
  };
  const Call x_to_y = x.empty() || y.empty() ? Call{} : copy(backend, x[0], y[0]);
  if (op.get_if<AllReduce>() != nullptr) {
    return {x_to_y, in_place([](Communicator& ranks, View data, Stream& stream) {
              ranks.all_reduce(data, Reduction::sum, stream);
            })};
  }
  if (op.get_if<AllGather>() != nullptr) {
    return {copy(backend, x[0], piece(y[0], communicator.rank(), x[0].count)),
            in_place([](Communicator& ranks, View data, Stream& stream) { ranks.all_gather(data, stream); })};
  }
  if (const auto* columns = op.get_if<AllGatherColumns>()) {
    return gather_columns(*columns, x[0], y[0], workspace, backend, communicator);
  }
  if (const auto* samples = op.get_if<GatherSamples>()) {
    return gather_samples(*samples, x[0], y[0], workspace, backend, communicator);
  }
  if (const auto* columns = op.get_if<ReduceScatterColumns>()) {
    return scatter_columns(*columns, x[0], y[0], workspace, backend, communicator);
  }
  if (const auto* scatter = op.get_if<ReduceScatter>()) {
    const PlacedView all = scatter->consumes ? x[0] : PlacedView{workspace, x[0].dtype, x[0].count};
    const Call take = copy(backend, piece(all, communicator.rank(), y[0].count), y[0]);
    return {copy(backend, x[0], all), [&communicator, all, take](Stream& stream, const Slot& slot) {
              communicator.reduce_scatter(all.at(slot), Reduction::sum, stream);
              if (take) take(stream, slot);
            }};
  }
  if (op.get_if<AllToAll>() != nullptr) {
    return {{}, [&communicator, from = x[0], to = y[0]](Stream& stream, const Slot& slot) {
              communicator.all_to_all(from.at(slot), to.at(slot), stream);
            }};
  }
  if (const auto* broadcast = op.get_if<Broadcast>()) {
    return {x_to_y, in_place([root = broadcast->root](Communicator& ranks, View data, Stream& stream) {
              ranks.broadcast(data, root, stream);
            })};
  }
  if (const auto* send = op.get_if<Send>()) {
    return {{}, in_place([peer = send->peer](Communicator& ranks, View data, Stream& stream) {
              ranks.send(data, peer, stream);
            })};
  }
  return {{}, in_place([peer = op.as<Receive>().peer](Communicator& ranks, View data, Stream& stream) {
            ranks.receive(data, peer, stream);
          })};
}

// The call, described in the flight record.
Call described(std::string text, Communicator& communicator, Call call) {
  return [text = std::move(text), &communicator, call = std::move(call)](Stream& stream, const Slot& slot) {
    communicator.describe_next(text);
    call(stream, slot);
  };
}

}  // namespace

FlightRecord* MeshCommunicators::flight() const {
  for (Communicator* communicator : axes_) {
    if (communicator != nullptr) return communicator->attendance().flight();
  }
  return nullptr;
}

bool MeshCommunicators::has_peers() const {
  for (const Communicator* communicator : axes_) {
    if (communicator != nullptr && communicator->size() > 1) return true;
  }
  return false;
}

bool MeshCommunicators::record_together() const {
  return std::any_of(axes_.begin(), axes_.end(), [](const Communicator* communicator) {
    return communicator != nullptr && communicator->size() > 1 && communicator->recordable();
  });
}

// After the exchange along an axis, all ranks along it have the same value, so that one exchange for each axis
// suffices.
bool MeshCommunicators::true_on_all(bool value) const {
  for (Communicator* communicator : axes_) {
    if (communicator != nullptr && communicator->size() > 1) value = communicator->true_on_all(value);
  }
  return value;
}

CollectiveBinder::CollectiveBinder(Backend& backend, const MeshCommunicators& communicators,
                                   const std::vector<PlacedProgram>& programs)
    : backend_(backend) {
  for (MeshAxis axis : all_mesh_axes) {
    lanes_[static_cast<std::size_t>(axis)].communicator = communicators.find(axis);
  }
  backward_.communicator = communicators.backward();
  choose_turns(programs);
  for (const PlacedProgram& program : programs) {
    for (const PlacedSegment& segment : program.segments) {
      for (const PlacedOp& op : segment.ops) {
        if (const auto* collective = op.op.get_if<Collective>(); collective != nullptr && collective->asynchronous) {
          prepare(program, op.op, lane(*collective));
        }
      }
    }
  }
  share_stream();
}

Stream* CollectiveBinder::make_stream() {
  owned_streams_.push_back(backend_.asynchronous_stream());
  streams_.push_back(owned_streams_.back().get());
  return streams_.back();
}

// Moves all lanes whose communicators do not run beside others to the first of their streams.
void CollectiveBinder::share_stream() {
  std::vector<Lane*> together;
  Stream* shared = nullptr;
  for (std::size_t i = 0; i <= lanes_.size(); ++i) {
    Lane& lane = i < lanes_.size() ? lanes_[i] : backward_;
    if (lane.communicator == nullptr || lane.communicator->runs_beside_others()) continue;
    together.push_back(&lane);
    if (shared == nullptr) shared = lane.stream;
  }
  if (shared == nullptr) return;  // all of them run on the compute stream
  for (Lane* lane : together) lane->stream = shared;
}

// A receive on the compute stream, which is only queued here; the Wait for it runs it.
class CollectiveBinder::Receiving final : public Kernel {
 public:
  Receiving(Call receive, Ended& end) : receive_(std::move(receive)), end_(end) {}
  void run(Stream&, const Slot& slot) override { end_.receive = end_.receives->add(receive_, slot); }

 private:
  Call receive_;
  Ended& end_;
};

// The Wait for a receive on the compute stream.
class CollectiveBinder::Received final : public Kernel {
 public:
  explicit Received(const Ended& end) : end_(end) {}
  void run(Stream& compute, const Slot&) override {
    if (end_.receives != nullptr) end_.receives->run_until(end_.receive, compute);
  }

 private:
  const Ended& end_;
};

// Lets the pipeline's messages run on the compute stream if the largest of them is not larger than bytes_in_turn(). A
// message of several tensors runs on a stream of its own: the buffer that the first tensor is sent through may be too
// small for the next tensor. The send of the next tensor would then wait for its receive.
void CollectiveBinder::choose_turns(const std::vector<PlacedProgram>& programs) {
  std::int64_t largest = 0;
  for (const PlacedProgram& program : programs) {
    for (const PlacedSegment& segment : program.segments) {
      int tensors = 0;
      for (const PlacedOp& op : segment.ops) {
        const auto* collective = op.op.get_if<Collective>();
        if (collective == nullptr || collective->axis != MeshAxis::pipeline || !collective->asynchronous) continue;
        if (op.op.get_if<Send>() == nullptr && op.op.get_if<Receive>() == nullptr) return;
        if (++tensors > 1) return;
        largest = std::max(largest, program.program.tensor(op.op.outputs[0]).type.bytes());
      }
    }
  }
  for (Lane* lane : {&lanes_[static_cast<std::size_t>(MeshAxis::pipeline)], &backward_}) {
    const bool in_turn = lane->communicator != nullptr && lane->communicator->bytes_in_turn() >= largest;
    if (in_turn && largest > 0) lane->receives = std::make_unique<DeferredReceives>();
  }
}

CollectiveBinder::Lane& CollectiveBinder::lane(const Collective& collective) {
  const bool backward = collective.axis == MeshAxis::pipeline && collective.on_channel() == Channel::backward;
  return backward && backward_.communicator != nullptr ? backward_ : lanes_[static_cast<std::size_t>(collective.axis)];
}

// Makes the stream of an asynchronous collective, and the event of its end, in advance: the Wait for its output may be
// bound before the collective.
void CollectiveBinder::prepare(const PlacedProgram& program, const Op& op, Lane& used) {
  require(used.communicator != nullptr, "a collective has a communicator along its axis");
  if (used.receives != nullptr) {
    DeferredReceives* receives = op.get_if<Receive>() == nullptr ? nullptr : used.receives.get();
    ended_[{&program, op.outputs[0]}] = {nullptr, used.communicator, receives};
    return;
  }
  if (used.stream == nullptr) used.stream = make_stream();
  Ended& end = ended_[{&program, op.outputs[0]}];
  if (end.event == nullptr) end = {backend_.event(), used.communicator};
}

std::unique_ptr<Kernel> CollectiveBinder::bind(const PlacedProgram& program, const Op& op, const Binding& binding) {
  if (op.get_if<Wait>() != nullptr) {
    const auto found = ended_.find({&program, op.inputs[0]});
    require(found != ended_.end(), format("an asynchronous collective comes before the wait '{}'", op.name));
    if (found->second.event == nullptr) return std::make_unique<Received>(found->second);
    return std::make_unique<WaitKernel>(*found->second.event);
  }
  const auto& collective = op.as<Collective>();
  Lane& used = lane(collective);
  require(used.communicator != nullptr, "a collective has a communicator along its axis");
  const auto placed = [&](const std::vector<TensorId>& ids, const std::vector<Address>& addresses) {
    std::vector<PlacedView> tensors;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const TensorType& type = program.program.tensor(ids[i]).type;
      const std::int64_t width = type.shape.rank() > 0 ? type.shape.back() : 1;
      tensors.push_back({addresses[i], type.dtype, type.shape.count(), width});
    }
    return tensors;
  };
  Calls calls = calls_of(op, placed(op.inputs, binding.inputs), placed(op.outputs, binding.outputs), binding.workspace,
                         backend_, *used.communicator);
  calls.communicate = described(collective_text(program.program, op), *used.communicator, std::move(calls.communicate));
  if (collective.asynchronous && used.receives != nullptr && op.get_if<Receive>() != nullptr) {
    return std::make_unique<Receiving>(std::move(calls.communicate), ended_.at({&program, op.outputs[0]}));
  }
  if (used.stream == nullptr) return std::make_unique<CollectiveKernel>(std::move(calls));
  Event* ended = collective.asynchronous ? ended_.at({&program, op.outputs[0]}).event.get() : nullptr;
  return std::make_unique<CollectiveKernel>(std::move(calls), backend_, *used.stream, ended);
}

bool CollectiveBinder::recordable(const PlacedProgram& program, const Op& op) {
  if (op.get_if<Wait>() != nullptr) return ended_.at({&program, op.inputs[0]}).communicator->recordable();
  return lane(op.as<Collective>()).communicator->recordable();
}

}  // namespace trainctl
