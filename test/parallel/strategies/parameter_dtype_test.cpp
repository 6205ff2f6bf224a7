// Tests that replicas that gather parameters as bfloat16 learn the same, and send half of the bytes of matrices.
#include <algorithm>

#include "core/backend/cpu/onednn/widening.h"
#include "core/graph/ops/collectives.h"
#include "parallel/strategies/communication_check/communications.h"
#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::parameter_dtype_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;

namespace {

constexpr Shard shards[] = {Shard::optimizer, Shard::gradients, Shard::parameters};

Setup setup_of(Shard shard, CommunicatedDType parameter_dtype, bool overlap = false) {
  return {.mesh = {.data = 2, .tensor = 2},
          .micro_batches = 2,
          .shard = shard,
          .overlap = overlap,
          .parameter_dtype = parameter_dtype,
          .compute = DType::bfloat16,
          .steps = 8,
          .clip_norm = 0};
}

const Case& case_of(const std::string& name) {
  return *std::find_if(std::begin(cases), std::end(cases), [&](const Case& which) { return which.name == name; });
}

}  // namespace

// The layers of these networks read all matrices as bfloat16, or round what they read. On processors without bfloat16
// they read matrices in float32, which differ from those that were gathered as bfloat16. Gradients are not clipped:
// their norm is a sum over the ranks' shards, which are not the same in both cases, so that its last bit may differ.
TEST_CASE("parameters that are gathered as bfloat16 change no bit of layers that compute in bfloat16") {
  for (const char* name : {"mlp", "cnn", "sequence", "transformer"}) {
    const Case& which = case_of(name);
    for (const Shard shard : shards) {
      const Outcome exact = train(which, setup_of(shard, CommunicatedDType::float32));
      CHECK(exact.losses.back() < exact.losses.front());
      for (const bool overlap : {false, true}) {
        CAPTURE(name, shard, overlap);
        const Outcome rounded = train(which, setup_of(shard, CommunicatedDType::bfloat16, overlap));
        if (!cpu::has_bfloat16()) {
          compare(rounded, exact, 0.05);
          continue;
        }
        CHECK(rounded.losses == exact.losses);
        CHECK(rounded.evaluated == exact.evaluated);
        CHECK(rounded.weights == exact.weights);
        CHECK(rounded.state == exact.state);
      }
    }
  }
}

TEST_CASE("stages of a pipeline gather their own parameters as bfloat16") {
  for (const Shard shard : shards) {
    CAPTURE(shard);
    Setup setup{.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2, .shard = shard, .compute = DType::bfloat16};
    setup.steps = 8;
    setup.clip_norm = 0;
    const Outcome exact = train(case_of("transformer"), setup);
    setup.parameter_dtype = CommunicatedDType::bfloat16;
    const Outcome rounded = train(case_of("transformer"), setup);
    if (!cpu::has_bfloat16()) {
      compare(rounded, exact, 0.05);
      continue;
    }
    CHECK(rounded.losses == exact.losses);
    CHECK(rounded.evaluated == exact.evaluated);
    CHECK(rounded.weights == exact.weights);
  }
}

TEST_CASE("parameters that are gathered as bfloat16 take half of the bytes, except vectors") {
  const Shard shard = GENERATE(Shard::optimizer, Shard::gradients, Shard::parameters);
  const auto bytes = [shard](CommunicatedDType dtype) {
    const Network network = case_of("transformer").make();
    Reader reader;
    const Setup setup{.mesh = {.data = 2}, .shard = shard, .parameter_dtype = dtype};
    const Program program = training_program(network.job.spec, {6, 1}, reader, parallelism(strategy_of(setup), 0));
    reader.throw_if_failed();
    std::int64_t sum = 0;
    for (const Communication& communication : communications_of(program)) {
      if (communication.kind != Communication::Kind::all_gather) continue;
      sum += communication.count * size_of(communication.dtype);
    }
    return sum;
  };
  const std::int64_t whole = bytes(CommunicatedDType::float32), rounded = bytes(CommunicatedDType::bfloat16);
  CAPTURE(whole, rounded);
  CHECK(rounded > whole / 2);
  CHECK(rounded < whole * 6 / 10);
}

TEST_CASE("buckets are gathered while the ops of the two buckets before them run") {
  const Network network = case_of("mlp").make();
  Reader reader;
  Setup setup{.mesh = {.data = 2}, .shard = Shard::parameters, .overlap = true};
  const Program program = training_program(network.job.spec, {6, 1}, reader, parallelism(strategy_of(setup), 0));
  reader.throw_if_failed();
  int running = 0, most = 0;
  for (const Op& op : program.segment(program.find(Phase::forward)).ops) {
    running += op.get_if<AllGather>() != nullptr ? 1 : op.get_if<Wait>() != nullptr ? -1 : 0;
    if (op.def->trait() == OpTrait::kernel) most = std::max(most, running);
  }
  CHECK(most == 2);
  CHECK(running == 0);
}

}  // namespace trainctl::parameter_dtype_test
