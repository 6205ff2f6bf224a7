// Measuring communication, and showing what came out.
#include "parallel/bench/communication.h"

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"

namespace trainctl {

CommunicationBench bench_communication(Communicator& communicator, Backend& backend, bool measures_link,
                                       double seconds) {
  const auto stream = backend.compute_stream();
  CommunicationBench bench{communicator.size(), std::string(communicator.name()), backend.fingerprint(), {}, 0};
  bench.rows = bench_collective(communicator, backend, *stream, {.last_seconds = seconds});
  if (measures_link) bench.link = measure_link(communicator, backend, *stream, bench.rows.back().bytes);
  return bench;
}

std::string to_text(const CommunicationBench& bench) {
  std::string text =
      format("all_reduce, {} ranks, {}, {}\n{}", bench.ranks, bench.communicator, bench.device, to_table(bench.rows));
  if (bench.link > 0) {
    text += format("messages between two ranks: {:.2f} GB/s, of which the largest all_reduce has {:.0f} %\n",
                   bench.link / 1e9, 100 * bench.rows.back().bus_bandwidth / bench.link);
  }
  return text;
}

std::string to_json(const CommunicationBench& bench) {
  Json rows = Json::array();
  for (const CommBenchRow& row : bench.rows) {
    rows.push_back({{"bytes", row.bytes},
                    {"seconds", row.seconds},
                    {"algorithm_bandwidth", row.algorithm_bandwidth},
                    {"bus_bandwidth", row.bus_bandwidth},
                    {"wrong", row.wrong}});
  }
  return json_line({{"ranks", bench.ranks},
                    {"communicator", bench.communicator},
                    {"message_bandwidth", bench.link > 0 ? Json(bench.link) : Json()},
                    {"all_reduce", rows}});
}

}  // namespace trainctl
