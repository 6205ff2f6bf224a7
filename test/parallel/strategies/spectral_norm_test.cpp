// Tests that ranks with spectral normalisation learn what one rank learns, and which strategies are refused.
#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::spectral_norm_strategies_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;
namespace {

constexpr const char* network = R"(layers:
  - spectral_normalization: {name: c, layers: [{conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}}]}
  - max_pooling2d: {pool_size: 2}
  - flatten
  - spectral_normalization: {name: d, power_iterations: 2, layers: [{dense: {units: 24, activation: tanh}}]}
  - dense: {name: out, units: 3, activation: softmax}
)";

const Case which{"spectral normalization", [] { return Network(network, {input_of("", {8, 8, 2})}, "adam"); }, 0.01};

std::string error_of(const Setup& setup) {
  try {
    const Network wrong = which.make();
    build_run_programs(wrong.job.spec, strategy_of(setup), {.training = batch, .evaluation = batch}, 0);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("ranks with spectral normalization learn what one rank learns") {
  const Outcome reference = train(which, {});
  CHECK(reference.losses.back() < 0.9 * reference.losses.front());
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    compare(train(which, {.mesh = {.data = ranks}, .overlap = ranks == 3}), reference);
  }
  for (const Shard shard : {Shard::optimizer, Shard::gradients}) {
    compare(train(which, {.mesh = {.data = 2}, .shard = shard}), reference);
  }
  const Outcome micro_batches = train(which, {.micro_batches = 2});
  compare(train(which, {.mesh = {.data = 2, .pipeline = 2}, .micro_batches = 2}), micro_batches);
}

TEST_CASE("strategies that split kernels with spectral normalization are refused") {
  for (const Setup& setup :
       {Setup{.mesh = {.tensor = 2}}, Setup{.mesh = {.data = 2}, .shard = Shard::parameters},
        Setup{.mesh = {.data = 2}, .shard = Shard::optimizer, .parameter_dtype = CommunicatedDType::bfloat16}}) {
    const std::string error = error_of(setup);
    CAPTURE(error);
    CHECK(error.find("spectral_normalization needs the whole kernel") != std::string::npos);
  }
}

}  // namespace trainctl::spectral_norm_strategies_test
