// trainctl bench comm: the all-reduce table of the config's ranks.
#include <cstdio>

#include "cmd/bench.h"
#include "cmd/device.h"
#include "core/base/json.h"
#include "parallel/comm/bench.h"

namespace trainctl {

int bench_comm(const RunSpec& spec, const BenchRequest& request, RankContext& context) {
  RankDevice device = open_device(spec, context);
  const auto stream = device.backend->compute_stream();
  Communicator& communicator = device.communicator(context.world);
  const std::vector<CommBenchRow> rows = bench_collective(communicator, *device.backend, *stream, {});
  if (context.world.rank() != 0) return 0;
  if (!request.json) {
    std::printf("all_reduce, %d ranks, %s, %s\n", communicator.size(), std::string(communicator.name()).c_str(),
                device.backend->fingerprint().c_str());
    std::fputs(to_table(rows).c_str(), stdout);
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
  std::puts(
      Json{{"ranks", communicator.size()}, {"communicator", communicator.name()}, {"all_reduce", json}}.dump().c_str());
  return 0;
}

}  // namespace trainctl
