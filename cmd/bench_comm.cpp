// trainctl bench comm: the all-reduce table of the config's ranks.
#include "cmd/bench.h"
#include "cmd/device.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "parallel/comm/bench.h"
#include "parallel/launch/report.h"

namespace trainctl {

int bench_comm(const RunSpec& spec, const BenchRequest& request, RankContext& context) {
  RankDevice device = open_device(spec, context);
  const auto stream = device.backend->compute_stream();
  Communicator& communicator = device.communicator(context.world);
  const std::vector<CommBenchRow> rows =
      bench_collective(communicator, *device.backend, *stream, {.last_seconds = request.seconds});
  // Between GPUs; on a host's shared memory an all-reduce is faster than messages.
  const double link = device.peers ? measure_link(communicator, *device.backend, *stream, rows.back().bytes) : 0;
  if (context.world.rank() != 0) return 0;
  if (!request.json) {
    std::string text = format("all_reduce, {} ranks, {}, {}\n{}", communicator.size(), communicator.name(),
                              device.backend->fingerprint(), to_table(rows));
    if (link > 0) {
      text += format("messages between two ranks: {:.2f} GB/s, of which the largest all_reduce has {:.0f} %\n",
                     link / 1e9, 100 * rows.back().bus_bandwidth / link);
    }
    answer(text);
    return 0;
  }
  Json json = Json::array();
  for (const CommBenchRow& row : rows) {
    json.push_back({{"bytes", row.bytes},
                    {"seconds", row.seconds},
                    {"algorithm_bandwidth", row.algorithm_bandwidth},
                    {"bus_bandwidth", row.bus_bandwidth},
                    {"wrong", row.wrong}});
  }
  answer(json_line({{"ranks", communicator.size()},
                    {"communicator", communicator.name()},
                    {"message_bandwidth", link > 0 ? Json(link) : Json()},
                    {"all_reduce", json}}));
  return 0;
}

}  // namespace trainctl
