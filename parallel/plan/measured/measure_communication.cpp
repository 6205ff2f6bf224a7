// Times every kind of communication with the functions of `bench comm`.
#include "parallel/plan/measured/measure_communication.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/median.h"
#include "core/tensor/random_values.h"
#include "parallel/bench/collectives.h"
#include "parallel/plan/measured/repeated.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

constexpr std::int64_t first_bytes = 64, last_bytes = 64 << 20;
constexpr int factor = 4;  // ratio of one size to the previous one

constexpr Kind kinds[] = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather,
                          Kind::all_to_all, Kind::broadcast,      Kind::send};

CallKind collective_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce:
      return CallKind::all_reduce;
    case Kind::reduce_scatter:
      return CallKind::reduce_scatter;
    case Kind::all_gather:
      return CallKind::all_gather;
    case Kind::all_to_all:
      return CallKind::all_to_all;
    case Kind::broadcast:
      return CallKind::broadcast;
    default:
      return CallKind::send;
  }
}

// Alternating sizes in bytes and their seconds.
using SizesAndSeconds = std::vector<double>;

// Times copies of growing sizes; all ranks copy at the same time. The time of a size is the mean over the ranks of each
// rank's median.
SizesAndSeconds measure_copies(Communicator& ranks, Backend& backend, Stream& stream) {
  constexpr int max_copies = 60;
  const Memory from = backend.allocate(last_bytes), to = backend.allocate(last_bytes);
  const Memory values = backend.allocate_host(last_bytes), sum = ranks.allocate(sizeof(double));
  fill_random({values.get(), DType::float32, last_bytes / size_of(DType::float32)}, 1, 2);
  backend.copy(from.get(), values.get(), last_bytes, stream);
  backend.copy(to.get(), values.get(), last_bytes, stream);
  SizesAndSeconds sizes;
  for (std::int64_t bytes = first_bytes; bytes <= last_bytes; bytes *= factor) {
    ranks.barrier(stream);
    stream.synchronize();
    std::vector<double> times;
    for (double start = seconds_now(); static_cast<int>(times.size()) < max_copies && seconds_now() < start + 0.05;) {
      const double copy_start = seconds_now();
      backend.copy(to.get(), from.get(), bytes, stream);
      stream.synchronize();
      times.push_back(seconds_now() - copy_start);
    }
    double seconds = median(times);
    backend.copy(sum.get(), &seconds, sizeof seconds, stream);
    ranks.all_reduce({sum.get(), DType::float64, 1}, Reduction::sum, stream);
    backend.copy(&seconds, sum.get(), sizeof seconds, stream);
    stream.synchronize();
    sizes.push_back(static_cast<double>(bytes));
    sizes.push_back(seconds / ranks.size());
  }
  return sizes;
}

// Times calls of a kind for growing sizes; each time is the slowest rank's; fewer calls if it is `hurried`. All ranks
// must call this function; the result is equal on all ranks.
SizesAndSeconds measure_calls(Communicator& ranks, Backend& backend, Stream& stream, Kind kind, bool shared,
                              bool hurried) {
  SizesAndSeconds sizes;
  for (const CommBenchRow& row : bench_collective(ranks, backend, stream,
                                                  {.collective = collective_of(kind),
                                                  .first_bytes = first_bytes,
                                                  .last_bytes = last_bytes,
                                                  .last_seconds = 0.05,
                                                  .factor = factor,
                                                  .iterations = hurried ? 4 : 20,
                                                  .batches = hurried ? 2 : 7,
                                                  .batch_seconds = 0.02,
                                                  .ordinary_memory = !shared})) {
    require(row.wrong == 0, "a measured collective returned wrong values");
    sizes.push_back(static_cast<double>(row.bytes));
    sizes.push_back(row.seconds);
  }
  return sizes;
}

// Measures until two results agree or the time is over; returns the chosen result, followed by the spread.
SizesAndSeconds repeat(const std::function<SizesAndSeconds(bool hurried)>& measure, const OutOfTime& out_of_time) {
  Repeated repeated(3, 0.06);
  std::vector<SizesAndSeconds> results;
  while (true) {
    const bool hurried = out_of_time && out_of_time();
    if (repeated.settled(hurried)) break;
    results.push_back(measure(hurried));
    std::vector<double> seconds;
    for (std::size_t i = 1; i < results.back().size(); i += 2) seconds.push_back(results.back()[i]);
    repeated.add(seconds);
  }
  SizesAndSeconds kept = results[repeated.chosen()];
  kept.push_back(repeated.spread());
  return kept;
}

std::vector<std::string> all_keys(int ranks) {
  std::vector<std::string> keys{copy_key(ranks)};
  for (const Kind kind : kinds) {
    for (const bool shared : {false, true}) keys.push_back(communication_key(ranks, kind, shared));
  }
  return keys;
}

// Returns an empty value if the key was not measured, or was measured by a version that stored no spread.
std::optional<double> spread_of(const Measurements& measurements, const std::string& key) {
  const std::vector<double>* values = measurements.find(key);
  if (values == nullptr || values->size() % 2 == 0) return {};
  return values->back();
}

}  // namespace

std::string communication_key(int ranks, Kind kind, bool shared) {
  return format("{} ranks: {}{}", ranks, name_of(collective_of(kind)), shared ? " in shared memory" : "");
}

std::string copy_key(int ranks) { return format("{} ranks: copy", ranks); }

std::optional<double> communication_spread(const Measurements& measurements, int ranks) {
  double largest = 0;
  for (const std::string& key : all_keys(ranks)) {
    const std::optional<double> spread = spread_of(measurements, key);
    if (!spread) return {};
    largest = std::max(largest, *spread);
  }
  return largest;
}

bool has_communication(const Measurements& measurements, int ranks) {
  const std::optional<double> spread = communication_spread(measurements, ranks);
  return spread && *spread <= wide_spread;
}

Measurements measure_communication(Communicator& ranks, Backend& backend, const Measurements& known,
                                   const std::function<void()>& beat, const OutOfTime& out_of_time) {
  const auto stream = backend.compute_stream();
  Measurements found;
  const auto complete = [&](const std::string& key, const std::function<SizesAndSeconds(bool)>& measure) {
    const std::optional<double> spread = spread_of(known, key);
    if (spread && *spread <= wide_spread) return;
    beat();
    found.record(key, repeat(measure, out_of_time));
  };
  for (const Kind kind : kinds) {
    for (const bool shared : {false, true}) {
      complete(communication_key(ranks.size(), kind, shared),
               [&](bool hurried) { return measure_calls(ranks, backend, *stream, kind, shared, hurried); });
    }
  }
  complete(copy_key(ranks.size()), [&](bool) { return measure_copies(ranks, backend, *stream); });
  return found;
}

std::optional<AlphaBeta> communication_model(const Measurements& measurements, const std::string& key) {
  const std::vector<double>* values = measurements.find(key);
  if (values == nullptr || values->size() < 2) return {};
  std::vector<TimedSize> sizes;
  for (std::size_t i = 0; i + 1 < values->size(); i += 2) sizes.push_back({(*values)[i], (*values)[i + 1]});
  return AlphaBeta(sizes);
}

}  // namespace trainctl
