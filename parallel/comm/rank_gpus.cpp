// Exchanges information about GPUs, and chooses the transport.
#include "parallel/comm/rank_gpus.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

template <std::size_t width>
void put(std::array<char, width>& field, const std::string& text) {
  std::memcpy(field.data(), text.data(), std::min(text.size(), width - 1));
}

// The information of one rank as bytes to exchange.
struct Message {
  std::array<char, 128> host{};
  std::array<char, 64> uuid{};
  std::array<char, 96> model{};
  std::array<char, 256> why_not{};
  std::int32_t numa_node = -1;
  std::int32_t can_share = 0;
};

std::string name_of_rank(std::size_t rank, const std::vector<RankGpu>& ranks) {
  return format("rank {} on {}", rank, ranks[rank].host);
}

// Names two ranks that share a GPU, such as "ranks 0 and 1 on node7 share one GPU (...)"; "" if each rank has its own
// GPU.
std::string describe_sharing(const std::vector<RankGpu>& ranks) {
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const RankGpu& gpu = ranks[rank];
    const auto [first, is_new] = seen.try_emplace({gpu.host, gpu.uuid}, rank);
    if (!is_new) {
      return format("ranks {} and {} on {} share one GPU ({}, {})", first->second, rank, gpu.host, gpu.model, gpu.uuid);
    }
  }
  return "";
}

}  // namespace

std::vector<RankGpu> exchange_gpus(const RankGpu& own, Communicator& world, Stream& stream) {
  std::vector<Message> messages(static_cast<std::size_t>(world.size()));
  Message& mine = messages[static_cast<std::size_t>(world.rank())];
  put(mine.host, own.host);
  put(mine.uuid, own.uuid);
  put(mine.model, own.model);
  put(mine.why_not, own.why_not);
  mine.numa_node = own.numa_node;
  mine.can_share = own.can_share ? 1 : 0;
  world.all_gather({messages.data(), DType::uint8, static_cast<std::int64_t>(messages.size() * sizeof(Message))},
                   stream);
  stream.synchronize();
  std::vector<RankGpu> all;
  for (const Message& message : messages) {
    all.push_back({message.host.data(), message.uuid.data(), message.model.data(), message.numa_node,
                   message.why_not.data(), message.can_share != 0});
  }
  return all;
}

bool all_have_gpus(const std::vector<RankGpu>& ranks) {
  const auto has = [](const RankGpu& gpu) { return !gpu.uuid.empty(); };
  const auto with = std::find_if(ranks.begin(), ranks.end(), has);
  const auto without = std::find_if_not(ranks.begin(), ranks.end(), has);
  if (with == ranks.end()) return false;
  if (without == ranks.end()) return true;
  const auto number = [&](auto position) { return static_cast<std::size_t>(position - ranks.begin()); };
  throw CollectiveError(
      ErrorKind::resource,
      format("{} has a GPU, {} has none: {}", name_of_rank(number(with), ranks), name_of_rank(number(without), ranks),
             without->why_not),
      format("check nvidia-smi and CUDA_VISIBLE_DEVICES on {}, or set cluster.device: cpu", without->host));
}

TransportChoice choose_transport(Transport asked, const std::vector<RankGpu>& ranks) {
  if (asked == Transport::staged) return {Transport::staged, "the config asks for it"};
  const std::string shared = describe_sharing(ranks);
  const bool may_share = std::all_of(ranks.begin(), ranks.end(), [](const RankGpu& gpu) { return gpu.can_share; });
  if (!shared.empty() && !may_share) {
    if (asked == Transport::automatic) return {Transport::staged, shared};
    throw CollectiveError(ErrorKind::config, format("{}, but NCCL requires one for each rank", shared),
                          when_gpus_are_shared);
  }
  const auto without_nccl =
      std::find_if(ranks.begin(), ranks.end(), [](const RankGpu& gpu) { return !gpu.why_not.empty(); });
  if (without_nccl == ranks.end()) return {Transport::nccl, ""};
  const std::string why =
      format("{} cannot use NCCL: {}", name_of_rank(static_cast<std::size_t>(without_nccl - ranks.begin()), ranks),
             without_nccl->why_not);
  if (asked == Transport::automatic) return {Transport::staged, why};
  throw CollectiveError(ErrorKind::resource, why,
                        "put libnccl.so.2 where LD_LIBRARY_PATH finds it, or set cluster.communication to auto");
}

Neighbours neighbours_of(int rank, const std::vector<RankGpu>& ranks) {
  const RankGpu& own = ranks[static_cast<std::size_t>(rank)];
  Neighbours found{0, 0};
  for (std::size_t other = 0; other < ranks.size(); ++other) {
    if (ranks[other].host != own.host || ranks[other].numa_node != own.numa_node) continue;
    if (static_cast<int>(other) < rank) ++found.index;
    ++found.count;
  }
  return found;
}

std::string different_models(const std::vector<RankGpu>& ranks) {
  const auto other =
      std::find_if(ranks.begin(), ranks.end(), [&](const RankGpu& gpu) { return gpu.model != ranks.front().model; });
  if (other == ranks.end()) return "";
  return format("{} computes on {}, rank 0 on {}", name_of_rank(static_cast<std::size_t>(other - ranks.begin()), ranks),
                other->model, ranks.front().model);
}

}  // namespace trainctl
