// Tests how ranks exchange info of their GPUs, and the choices that follow from it.
#include "parallel/comm/rank_gpus.h"

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "test/catch.h"
#include "test/parallel/comm/conformance.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::rank_gpus_test {
namespace {

RankGpu gpu(const std::string& host, const std::string& uuid, int numa_node = 0) {
  return {.host = host, .uuid = uuid, .model = "NVIDIA H100", .numa_node = numa_node};
}

// The kind and the text of an error.
struct Refusal {
  ErrorKind kind = ErrorKind::stopped;
  std::string words;
};
template <class Call>
Refusal refusal_of(Call call) {
  try {
    call();
  } catch (const CollectiveError& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST_CASE("ranks exchange the info of their GPUs") {
  const auto errors = on_threads(3, [](Communicator& world) {
    ImmediateStream stream;
    RankGpu own = gpu("node" + std::to_string(world.rank()), "GPU-" + std::to_string(world.rank()), 7 - world.rank());
    if (world.rank() == 1) own.why_not = std::string(1000, 'x');
    const std::vector<RankGpu> all = exchange_gpus(own, world, stream);
    conformance::expect(all.size() == 3, "one entry for each rank");
    for (int rank = 0; rank < 3; ++rank) {
      const RankGpu& found = all[static_cast<std::size_t>(rank)];
      conformance::expect(found.host == "node" + std::to_string(rank), "host");
      conformance::expect(found.uuid == "GPU-" + std::to_string(rank), "uuid");
      conformance::expect(found.model == "NVIDIA H100" && found.numa_node == 7 - rank, "model and node");
      conformance::expect(found.why_not.size() == (rank == 1 ? 255u : 0u), "reason");
    }
  });
  CHECK(errors == std::vector<std::string>(3));
}

TEST_CASE("a mix of ranks with GPUs and ranks without is refused") {
  CHECK(all_have_gpus({gpu("a", "1"), gpu("a", "2")}));
  CHECK_FALSE(all_have_gpus({gpu("a", ""), gpu("b", "")}));
  RankGpu none = gpu("b", "");
  none.why_not = "there is no NVIDIA driver";
  const Refusal refusal = refusal_of([&] { all_have_gpus({gpu("a", "1"), gpu("a", "2"), none}); });
  CHECK(refusal.kind == ErrorKind::resource);
  CHECK(contains(refusal.words, "rank 0 on a has a GPU, rank 2 on b has none: there is no NVIDIA driver"));
}

TEST_CASE("NCCL is chosen if every rank has a GPU of its own") {
  const std::vector<RankGpu> apart = {gpu("a", "1"), gpu("a", "2"), gpu("b", "1")};
  for (const Transport asked : {Transport::automatic, Transport::nccl}) {
    CHECK(choose_transport(asked, apart).transport == Transport::nccl);
  }
  CHECK(choose_transport(Transport::staged, apart).transport == Transport::staged);
}

TEST_CASE("ranks that share a GPU are named") {
  const std::vector<RankGpu> shared = {gpu("a", "1"), gpu("b", "2"), gpu("b", "3"), gpu("b", "2")};
  const TransportChoice choice = choose_transport(Transport::automatic, shared);
  CHECK(choice.transport == Transport::staged);
  CHECK(contains(choice.why_staged, "ranks 1 and 3 on b share one GPU (NVIDIA H100, 2)"));
  const Refusal refusal = refusal_of([&] { choose_transport(Transport::nccl, shared); });
  CHECK(refusal.kind == ErrorKind::config);
  CHECK(contains(refusal.words, "ranks 1 and 3 on b share one GPU (NVIDIA H100, 2)"));
}

TEST_CASE("ranks share a GPU through NCCL if the NCCL of every rank allows it") {
  std::vector<RankGpu> shared = {gpu("a", "1"), gpu("a", "1")};
  shared[0].can_share = true;
  CHECK(choose_transport(Transport::automatic, shared).transport == Transport::staged);
  shared[1].can_share = true;
  for (const Transport asked : {Transport::automatic, Transport::nccl}) {
    CHECK(choose_transport(asked, shared).transport == Transport::nccl);
  }
  CHECK(choose_transport(Transport::staged, shared).transport == Transport::staged);
}

TEST_CASE("a rank that cannot use NCCL is named") {
  std::vector<RankGpu> ranks = {gpu("a", "1"), gpu("b", "2")};
  ranks[1].why_not = "libnccl.so.2: cannot open";
  const TransportChoice choice = choose_transport(Transport::automatic, ranks);
  CHECK(choice.transport == Transport::staged);
  CHECK(contains(choice.why_staged, "rank 1 on b cannot use NCCL: libnccl.so.2: cannot open"));
  CHECK(refusal_of([&] { choose_transport(Transport::nccl, ranks); }).kind == ErrorKind::resource);
}

TEST_CASE("neighbours share host and NUMA node") {
  const std::vector<RankGpu> ranks = {gpu("a", "1", 0), gpu("a", "2", 1), gpu("b", "3", 0), gpu("a", "4", 0)};
  CHECK(neighbours_of(0, ranks).index == 0);
  CHECK(neighbours_of(3, ranks).index == 1);
  CHECK(neighbours_of(3, ranks).count == 2);
  CHECK(neighbours_of(1, ranks).count == 1);
  CHECK(neighbours_of(2, ranks).count == 1);
}

TEST_CASE("different models are named") {
  std::vector<RankGpu> ranks = {gpu("a", "1"), gpu("b", "2")};
  CHECK(different_models(ranks).empty());
  ranks[1].model = "NVIDIA A100";
  CHECK(different_models(ranks) == "rank 1 on b computes on NVIDIA A100, rank 0 on NVIDIA H100");
}

}  // namespace
}  // namespace trainctl::rank_gpus_test
