// Exchanges one digest per rank, and the hashes of all tensors only if the digests differ.
#include "parallel/health/replicas.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"

namespace trainctl {

namespace {

std::int64_t hash_of(const void* data, std::int64_t bytes) {
  return static_cast<std::int64_t>(xxh3(data, static_cast<std::size_t>(bytes)));
}

}  // namespace

ReplicaCheck::ReplicaCheck(std::vector<NamedTensor> tensors, Communicator& replicas, int rank, Stream& stream,
                           std::vector<std::string> hosts)
    : tensors_(std::move(tensors)),
      replicas_(replicas),
      hosts_(std::move(hosts)),
      ranks_(static_cast<std::size_t>(replicas.size())),
      hashes_(tensors_.size()),
      digests_(static_cast<std::size_t>(replicas.size())) {
  ranks_[static_cast<std::size_t>(replicas.rank())] = rank;
  replicas.all_gather({ranks_.data(), DType::int64, replicas.size()}, stream);
  stream.synchronize();
}

std::optional<ReplicaDifference> ReplicaCheck::find(Stream& stream) {
  stream.synchronize();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    hashes_[i] = hash_of(tensors_[i].view.data, tensors_[i].view.bytes());
  }
  const auto bytes = static_cast<std::int64_t>(hashes_.size() * sizeof(std::int64_t));
  digests_[replicas_.rank()] = hash_of(hashes_.data(), bytes);
  replicas_.all_gather({digests_.data(), DType::int64, replicas_.size()}, stream);
  stream.synchronize();
  const auto differs = [&](std::int64_t digest) { return digest != digests_.front(); };
  if (std::none_of(digests_.begin(), digests_.end(), differs)) return std::nullopt;
  return describe(stream);
}

void ReplicaCheck::send_from(int good, Stream& stream) {
  for (const NamedTensor& tensor : tensors_) replicas_.broadcast(tensor.view, good, stream);
  stream.synchronize();
}

ReplicaDifference ReplicaCheck::describe(Stream& stream) {
  constexpr std::size_t max_shown = 5;
  const std::size_t replicas = digests_.size();
  const std::size_t count = hashes_.size();
  std::vector<std::int64_t> all(replicas * count);
  std::copy(hashes_.begin(), hashes_.end(), all.begin() + static_cast<std::ptrdiff_t>(replicas_.rank() * count));
  replicas_.all_gather({all.data(), DType::int64, static_cast<std::int64_t>(all.size())}, stream);
  stream.synchronize();

  ReplicaDifference found;
  found.is_odd.resize(replicas);
  std::size_t differing = 0;
  std::vector<std::int64_t> of_tensor(replicas);
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    for (std::size_t replica = 0; replica < replicas; ++replica) of_tensor[replica] = all[replica * count + tensor];
    const std::string one = describe_tensor(tensors_[tensor].name, of_tensor, found);
    if (one.empty() || ++differing > max_shown) continue;
    found.text += (differing > 1 ? "; " : "") + one;
  }
  if (differing > max_shown) found.text += format("; and {} more", differing - max_shown);
  for (std::size_t replica = 0; replica < replicas; ++replica) {
    if (found.is_odd[replica]) found.odd.push_back(static_cast<int>(ranks_[replica]));
  }
  return found;
}

// Describes how a tensor differs between replicas, given its hash on each replica; "" if all hashes are equal. Adds the
// replicas that differ from the majority to `all`.
std::string ReplicaCheck::describe_tensor(const std::string& name, const std::vector<std::int64_t>& hashes,
                                          ReplicaDifference& all) const {
  std::map<std::int64_t, std::vector<std::size_t>> holders;
  for (std::size_t replica = 0; replica < hashes.size(); ++replica) holders[hashes[replica]].push_back(replica);
  if (holders.size() == 1) return {};
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto largest = std::max_element(holders.begin(), holders.end(), fewer);
  if (2 * largest->second.size() <= hashes.size()) {
    all.majority = false;
    std::string groups;
    for (const auto& [hash, group] : holders) groups += (groups.empty() ? "" : ", ") + name_of(group, true);
    return format("tensor '{}' differs between {}", name, groups);
  }
  std::vector<std::size_t> outliers;
  for (std::size_t replica = 0; replica < hashes.size(); ++replica) {
    if (hashes[replica] == largest->first) continue;
    outliers.push_back(replica);
    all.is_odd[replica] = true;
  }
  return format("tensor '{}' on {} differs from {}", name, name_of(outliers, true), name_of(largest->second, false));
}

// Lists the ranks of replicas, such as "rank 3 of node2" or "ranks 0, 2 and 3".
std::string ReplicaCheck::name_of(const std::vector<std::size_t>& replicas, bool with_hosts) const {
  std::string text = replicas.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    if (i > 0) text += i + 1 == replicas.size() ? " and " : ", ";
    const auto rank = static_cast<std::size_t>(ranks_[replicas[i]]);
    text += std::to_string(rank);
    if (with_hosts && rank < hosts_.size()) text += " of " + hosts_[rank];
  }
  return text;
}

}  // namespace trainctl
