// Tests the comparison of replicas: equal replicas pass; a single changed bit is found, and tensor and rank are named.
#include "parallel/health/replicas.h"

#include "core/backend/cpu/runtime/streams.h"
#include "core/base/random.h"
#include "parallel/mesh/axes.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::replicas_test {
namespace {

// Throws if the replicas differ.
void compare(ReplicaCheck& check, Stream& stream) {
  const std::optional<ReplicaDifference> found = check.find(stream);
  if (found) throw Error(ErrorKind::peer, "replicas differ: " + found->text, remedy_for_replicas);
}

struct Replica {
  std::vector<float> kernel = std::vector<float>(1000);
  std::vector<float> bias = std::vector<float>(10);
  std::vector<float> mean = std::vector<float>(7);

  Replica() {
    std::uint32_t index = 0;
    for (auto* values : {&kernel, &bias, &mean}) {
      for (float& value : *values) value = uniform01(philox({index++, 0, 0, 0}, {9, 9})[0]);
    }
  }
  std::vector<NamedTensor> tensors() {
    return {{"dense/kernel", {100, 10}, {kernel.data(), DType::float32, 1000}},
            {"dense/bias", {10}, {bias.data(), DType::float32, 10}},
            {"norm/moving_mean", {7}, {mean.data(), DType::float32, 7}}};
  }
};

// The errors of the check on each rank after `change`.
std::vector<std::string> check(int ranks, const std::function<void(Replica&, int)>& change) {
  return on_threads(ranks, [&](Communicator& communicator) {
    Replica replica;
    ImmediateStream stream;
    ReplicaCheck check(replica.tensors(), communicator, communicator.rank(), stream);
    compare(check, stream);  // equal at first
    change(replica, communicator.rank());
    compare(check, stream);
  });
}

}  // namespace

TEST_CASE("equal replicas pass") {
  CHECK(check(3, [](Replica& replica, int) { replica.bias[3] += 1; }) == std::vector<std::string>(3));
}

TEST_CASE("the replica that differs is named, with its tensor") {
  const auto errors = check(3, [](Replica& replica, int rank) {
    if (rank == 1) reinterpret_cast<std::uint32_t&>(replica.bias[9]) ^= 1;
  });
  for (const std::string& error : errors) {
    CHECK(error.find("tensor 'dense/bias' on rank 1 differs from ranks 0 and 2") != std::string::npos);
    CHECK(error.find("kernel") == std::string::npos);
  }
}

TEST_CASE("without a majority all groups of ranks are named") {
  const auto errors = check(2, [](Replica& replica, int rank) {
    if (rank == 1) replica.mean[0] = -1;
  });
  for (const std::string& error : errors) {
    CHECK(error.find("tensor 'norm/moving_mean' differs between") != std::string::npos);
    CHECK(error.find("rank 0") != std::string::npos);
    CHECK(error.find("rank 1") != std::string::npos);
  }
}

TEST_CASE("the host of the replica that differs is named, and the values of another replica make all equal") {
  std::vector<std::vector<float>> kernels(3);
  const auto errors = on_threads(3, [&](Communicator& communicator) {
    Replica replica;
    ImmediateStream stream;
    ReplicaCheck check(replica.tensors(), communicator, communicator.rank(), stream, {"n1", "n2", "n3"});
    require(!check.find(stream), "equal at first");
    if (communicator.rank() == 1) replica.kernel[11] += 1;
    if (communicator.rank() == 1) replica.bias[2] += 1;
    const auto found = check.find(stream);
    require(found && found->majority && found->odd == std::vector<int>{1}, "rank 1 differs");
    require(found->is_odd == std::vector<bool>{false, true, false}, "replica 1 differs");
    require(found->text.find("'dense/kernel' on rank 1 of n2 differs from ranks 0 and 2") != std::string::npos, "host");
    check.send_from(2, stream);
    require(!check.find(stream), "equal again");
    kernels[static_cast<std::size_t>(communicator.rank())] = replica.kernel;
  });
  CHECK(errors == std::vector<std::string>(3));
  CHECK(kernels[1] == Replica().kernel);
}

TEST_CASE("several tensors and ranks are named together") {
  const auto errors = check(4, [](Replica& replica, int rank) {
    if (rank == 3) replica.kernel[500] = 2;
    if (rank == 0) replica.bias[0] = 2;
  });
  for (const std::string& error : errors) {
    CHECK(error.find("'dense/kernel' on rank 3 differs from ranks 0, 1 and 2") != std::string::npos);
    CHECK(error.find("'dense/bias' on rank 0 differs from ranks 1, 2 and 3") != std::string::npos);
  }
}

TEST_CASE("replicas are the ranks of the data axis, named by their world ranks") {
  const Mesh mesh{.data = 3, .tensor = 2};
  const auto errors = on_threads(mesh.ranks(), [&](Communicator& world) {
    const MeshAxes axes(world, mesh, false);
    Replica replica;
    if (mesh.position(world.rank()).tensor == 1) replica.kernel[7] += 1;  // the other half of the layer
    ImmediateStream stream;
    ReplicaCheck check(replica.tensors(), *axes.communicators().find(MeshAxis::data), world.rank(), stream);
    compare(check, stream);
    if (world.rank() == 3) replica.bias[2] += 1;
    compare(check, stream);
  });
  for (const int rank : {0, 2, 4}) CHECK(errors[static_cast<std::size_t>(rank)].empty());
  for (const int rank : {1, 3, 5}) {
    const std::string& error = errors[static_cast<std::size_t>(rank)];
    CHECK(error.find("tensor 'dense/bias' on rank 3 differs from ranks 1 and 5") != std::string::npos);
  }
}

}  // namespace trainctl::replicas_test
