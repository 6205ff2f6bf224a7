// Timing every kind of communication by `bench comm`'s means.
#include "parallel/plan/measured/measure_communication.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/bench/collectives.h"

namespace trainctl {
namespace {

using Kind = Communication::Kind;

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

}  // namespace

std::string communication_key(int ranks, Kind kind, bool in_place) {
  return format("{} ranks: {}{}", ranks, name_of(collective_of(kind)), in_place ? " in place" : "");
}

bool has_communication(const Measurements& measurements, int ranks) {
  for (const Kind kind : kinds) {
    for (const bool in_place : {false, true}) {
      if (measurements.find(communication_key(ranks, kind, in_place)) == nullptr) return false;
    }
  }
  return true;
}

Measurements measure_communication(Communicator& ranks, Backend& backend, const std::function<void()>& beat) {
  const auto stream = backend.compute_stream();
  Measurements found;
  for (const Kind kind : kinds) {
    for (const bool in_place : {false, true}) {
      beat();
      std::vector<double> sizes;
      for (const CommBenchRow& row : bench_collective(ranks, backend, *stream,
                                                      {.collective = collective_of(kind),
                                                      .first_bytes = 64,
                                                      .last_bytes = 64 << 20,
                                                      .last_seconds = 0.05,
                                                      .factor = 4,
                                                      .iterations = 20,
                                                      .batches = 15,
                                                      .batch_seconds = 0.02,
                                                      .ordinary_memory = !in_place})) {
        require(row.wrong == 0, "a measured collective gives wrong values");
        sizes.push_back(static_cast<double>(row.bytes));
        sizes.push_back(row.seconds);
      }
      found.record(communication_key(ranks.size(), kind, in_place), std::move(sizes));
    }
  }
  return found;
}

std::optional<AlphaBeta> communication_model(const Measurements& measurements, int ranks, Kind kind, bool in_place) {
  const std::vector<double>* values = measurements.find(communication_key(ranks, kind, in_place));
  if (values == nullptr || values->size() < 2) return {};
  std::vector<TimedSize> sizes;
  for (std::size_t i = 0; i + 1 < values->size(); i += 2) sizes.push_back({(*values)[i], (*values)[i + 1]});
  return AlphaBeta(sizes);
}

}  // namespace trainctl
