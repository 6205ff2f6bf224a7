// Compares traces: matches records by op and tensor, then by the samples that they were computed from.
#include "core/exec/observe/trace_difference.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace trainctl {
namespace {

using Samples = std::vector<std::int64_t>;

// The records of all ranks and micro-batches for one position of the program.
struct Written {
  double position = 0;
  bool by_sample = true;
  std::vector<const TraceRecord*> records;

  // The hashes, with their samples as keys: one for each sample, or one for each set of samples.
  std::map<Samples, std::uint64_t> hashes(bool each) const {
    std::map<Samples, std::uint64_t> all;
    for (const TraceRecord* record : records) {
      if (!each) all.try_emplace(record->samples, record->hash);
      for (std::size_t i = 0; each && i < record->samples.size(); ++i) {
        all.try_emplace(Samples{record->samples[i]}, record->sample_hash[i]);
      }
    }
    return all;
  }

  // The values, with the same keys as in hashes().
  std::map<Samples, std::span<const float>> values(bool each) const {
    std::map<Samples, std::span<const float>> all;
    for (const TraceRecord* record : records) {
      const std::span<const float> whole = record->values;
      if (!each) all.try_emplace(record->samples, whole);
      const std::size_t count = whole.size() / std::max<std::size_t>(record->samples.size(), 1);
      for (std::size_t i = 0; each && i < record->samples.size(); ++i) {
        all.try_emplace(Samples{record->samples[i]}, whole.subspan(i * count, count));
      }
    }
    return all;
  }
};

using Key = std::tuple<std::string, std::string, std::string, int>;  // segment, tensor, op, write

std::map<Key, Written> by_position(const std::vector<TraceRecord>& trace) {
  std::map<Key, Written> all;
  for (const TraceRecord& record : trace) {
    const auto [at, added] = all.try_emplace({record.segment, record.tensor, record.op, record.write});
    Written& written = at->second;
    written.position = added ? record.position : std::min(written.position, record.position);
    written.by_sample = written.by_sample && !record.sample_hash.empty();
    written.records.push_back(&record);
  }
  return all;
}

}  // namespace

TraceComparison compare(const std::vector<TraceRecord>& a, const std::vector<TraceRecord>& b) {
  const std::map<Key, Written> in_a = by_position(a), in_b = by_position(b);
  std::vector<const std::pair<const Key, Written>*> order;
  for (const auto& entry : in_a) {
    if (in_b.contains(entry.first)) order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](auto* x, auto* y) { return x->second.position < y->second.position; });
  TraceComparison comparison;
  for (const auto* entry : order) {
    const auto& [key, written] = *entry;
    const Written& other = in_b.at(key);
    TraceDifference found{std::get<0>(key), std::get<2>(key), std::get<1>(key), std::get<3>(key), false, {}, 0};
    found.by_sample = written.by_sample && other.by_sample;
    const auto others = other.hashes(found.by_sample);
    for (const auto& [samples, hash] : written.hashes(found.by_sample)) {
      const auto same = others.find(samples);
      if (same == others.end()) continue;
      ++found.compared;
      if (same->second != hash) found.samples.insert(found.samples.end(), samples.begin(), samples.end());
    }
    if (!found.samples.empty()) {
      comparison.first = std::move(found);
      return comparison;
    }
    ++(found.compared > 0 ? comparison.equal : comparison.incomparable);
  }
  return comparison;
}

Difference difference_of(const TraceDifference& found, const std::vector<TraceRecord>& a,
                         const std::vector<TraceRecord>& b) {
  const Key key{found.segment, found.tensor, found.op, found.write};
  const std::map<Key, Written> in_a = by_position(a), in_b = by_position(b);
  Difference sum;
  if (!in_a.contains(key) || !in_b.contains(key)) return sum;
  const auto others = in_b.at(key).values(found.by_sample);
  for (const auto& [samples, values] : in_a.at(key).values(found.by_sample)) {
    const auto same = others.find(samples);
    if (same != others.end() && same->second.size() == values.size()) sum.add(difference(values, same->second));
  }
  return sum;
}

}  // namespace trainctl
