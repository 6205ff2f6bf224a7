// Compares the memory in which a plan assumes collectives to work with the memory in which the executor runs them.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "parallel/plan/measured/stand_ins.h"
#include "parallel/plan/traffic.h"
#include "parallel/trainer/initial_weights.h"
#include "test/catch.h"
#include "test/parallel/plan/measured/rank_of.h"

namespace trainctl::traffic_memory_test {
namespace {

// Records for each collective whether its data is in memory that this communicator allocated.
class Noting final : public Communicator {
 public:
  explicit Noting(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}
  std::vector<bool> own;  // for each call

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string_view name() const override { return "noting"; }
  bool recordable() const override { return false; }
  Memory allocate(std::int64_t bytes) override {
    Memory memory = inner_->allocate(bytes);
    ranges_.push_back({memory.get(), memory.get() + bytes});
    return memory;
  }
  void all_reduce(View data, Reduction reduction, Stream& stream) override {
    inner_->all_reduce(note(data), reduction, stream);
  }
  void reduce_scatter(View data, Reduction reduction, Stream& stream) override {
    inner_->reduce_scatter(note(data), reduction, stream);
  }
  void all_gather(View data, Stream& stream) override { inner_->all_gather(note(data), stream); }
  void all_to_all(View send, View receive, Stream& stream) override { inner_->all_to_all(note(send), receive, stream); }
  void broadcast(View data, int root, Stream& stream) override { inner_->broadcast(note(data), root, stream); }
  void send(View data, int peer, Stream& stream) override { inner_->send(note(data), peer, stream); }
  void receive(View data, int peer, Stream& stream) override { inner_->receive(note(data), peer, stream); }
  void barrier(Stream& stream) override { inner_->barrier(stream); }
  std::unique_ptr<Communicator> split(int color, int key) override { return inner_->split(color, key); }
  Attendance& attendance() override { return inner_->attendance(); }
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  View note(View data) {
    const auto* begin = data.as<std::byte>();
    own.push_back(std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
      return begin >= range.first && begin + data.bytes() <= range.second;
    }));
    return data;
  }

  std::unique_ptr<Communicator> inner_;
  std::vector<std::pair<const std::byte*, const std::byte*>> ranges_;
};

struct Case {
  Setup setup;
  bool scatters_in_place = true;  // false: the reduced shard of a bucket is copied to its own memory
  bool gathers_in_place = true;   // false: a rank's own shard is copied into the gathered bucket
};

}  // namespace

TEST_CASE("a collective uses the memory and copies the bytes that its traffic predicts") {
  const Case cases[] = {
      {{"replicas", convolutions, {.data = 4}, 3}},
      {{"sharded states", convolutions, {.data = 2}, 1, Shard::optimizer}},
      {{"sharded gradients", convolutions, {.data = 2}, 1, Shard::gradients}, false},
      {{"sharded parameters", convolutions, {.data = 2}, 1, Shard::parameters}, false, false},
      {{"split layers", convolutions, {.tensor = 2}, 1}},
  };
  for (const Case& of_case : cases) {
    CAPTURE(of_case.setup.name);
    const auto backend = make_cpu_backend({});
    const auto memory = solo_communicator();
    const RankOf of(of_case.setup);
    const Compiled ready = compiled(of, *backend);
    const PlacedProgram& placed = ready.programs[0];
    const MeshAxis axis = of_case.setup.mesh.data > 1 ? MeshAxis::data : MeshAxis::tensor;
    Noting noting(loopback_communicator(of.rank.along(axis), of.rank.size(axis), *backend, *memory));
    std::array<Communicator*, mesh_axes> axes{};
    axes[static_cast<std::size_t>(axis)] = &noting;
    Engine engine(*backend, MeshCommunicators(axes), ready);
    engine.download();
    initialize_weights(of.job.spec, 1, engine.weights());
    engine.upload();
    const RandomBatch batch(of.programs[0], *backend);
    StepResult result;
    engine.run(0, batch.batch(), {1e-3, 0, false}, result);

    std::vector<bool> shared;
    bool large = false;
    for (const ScheduleItem& item : placed.program.schedule) {
      for (const PlacedOp& op : placed.segment(item.segment).ops) {
        if (op.op.def->trait() != OpTrait::collective) continue;
        Traffic traffic{.axis = axis};
        place_traffic(placed, op.op, of.rank, true, traffic);
        shared.push_back(traffic.shared);
        const bool gathers = op.op.def->kind() == "all_gather", scatters = op.op.def->kind() == "reduce_scatter";
        if (gathers || scatters) {
          const TensorId shard = gathers ? op.op.inputs[0] : op.op.outputs[0];
          const bool in_place = gathers ? of_case.gathers_in_place : of_case.scatters_in_place;
          CHECK(traffic.shared);
          CHECK(traffic.copied == (in_place ? 0 : placed.program.tensor(shard).type.bytes()));
          large = true;
        }
      }
    }
    CHECK(shared == noting.own);
    CHECK(shared.size() > 0);
    CHECK(large == (of_case.setup.shard != Shard::none));
  }
}

}  // namespace trainctl::traffic_memory_test
