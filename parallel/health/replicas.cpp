// Exchanges one digest per rank, and the hashes of all tensors only if the digests differ.
#include "parallel/health/replicas.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"

namespace trainctl {

namespace {

std::int64_t hash_of(const void* data, std::int64_t bytes) {
  return static_cast<std::int64_t>(xxh3(data, static_cast<std::size_t>(bytes)));
}

// Lists ranks, such as "rank 3" or "ranks 0, 2 and 3".
std::string name_of(const std::vector<std::int64_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

// Describes how a tensor differs between replicas, given its hash on each replica and the replicas' ranks; empty if all
// hashes are equal.
std::string describe_difference(const std::string& name, const std::vector<std::int64_t>& hashes,
                                const std::vector<std::int64_t>& ranks) {
  std::map<std::int64_t, std::vector<std::int64_t>> holders;
  for (std::size_t i = 0; i < hashes.size(); ++i) holders[hashes[i]].push_back(ranks[i]);
  if (holders.size() == 1) return {};
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  const auto largest = std::max_element(holders.begin(), holders.end(), fewer);
  if (2 * largest->second.size() <= hashes.size()) {
    std::string groups;
    for (const auto& [hash, group] : holders) groups += (groups.empty() ? "" : ", ") + name_of(group);
    return format("tensor '{}' differs between {}", name, groups);
  }
  std::vector<std::int64_t> outliers;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (hashes[i] != largest->first) outliers.push_back(ranks[i]);
  }
  return format("tensor '{}' on {} differs from {}", name, name_of(outliers), name_of(largest->second));
}

}  // namespace

ReplicaCheck::ReplicaCheck(std::vector<NamedTensor> tensors, Communicator& replicas, int rank, Stream& stream)
    : tensors_(std::move(tensors)),
      replicas_(replicas),
      ranks_(static_cast<std::size_t>(replicas.size())),
      hashes_(tensors_.size()),
      digests_(static_cast<std::size_t>(replicas.size())) {
  ranks_[static_cast<std::size_t>(replicas.rank())] = rank;
  replicas.all_gather({ranks_.data(), DType::int64, replicas.size()}, stream);
  stream.synchronize();
}

void ReplicaCheck::compare(Stream& stream) {
  stream.synchronize();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    hashes_[i] = hash_of(tensors_[i].view.data, tensors_[i].view.bytes());
  }
  const auto bytes = static_cast<std::int64_t>(hashes_.size() * sizeof(std::int64_t));
  digests_[replicas_.rank()] = hash_of(hashes_.data(), bytes);
  replicas_.all_gather({digests_.data(), DType::int64, replicas_.size()}, stream);
  stream.synchronize();
  const auto differs = [&](std::int64_t digest) { return digest != digests_.front(); };
  if (std::any_of(digests_.begin(), digests_.end(), differs)) report(stream);
}

void ReplicaCheck::report(Stream& stream) {
  constexpr std::size_t max_shown = 5;
  const std::size_t ranks = digests_.size();
  const std::size_t count = hashes_.size();
  std::vector<std::int64_t> all(ranks * count);
  std::copy(hashes_.begin(), hashes_.end(), all.begin() + static_cast<std::ptrdiff_t>(replicas_.rank() * count));
  replicas_.all_gather({all.data(), DType::int64, static_cast<std::int64_t>(all.size())}, stream);
  stream.synchronize();

  std::string text = "replicas differ: ";
  std::size_t found = 0;
  std::vector<std::int64_t> of_tensor(ranks);
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    for (std::size_t rank = 0; rank < ranks; ++rank) of_tensor[rank] = all[rank * count + tensor];
    const std::string one = describe_difference(tensors_[tensor].name, of_tensor, ranks_);
    if (one.empty() || ++found > max_shown) continue;
    text += (found > 1 ? "; " : "") + one;
  }
  if (found > max_shown) text += format("; and {} more", found - max_shown);
  throw Error(ErrorKind::peer, text,
              "check the memory and processors of these ranks' hosts; resume from the last checkpoint");
}

}  // namespace trainctl
