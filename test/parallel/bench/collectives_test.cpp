// Tests the rows of the benchmark of collectives: sizes, bandwidths computed from times, and no wrong values.
#include "parallel/bench/collectives.h"

#include "core/backend/immediate_stream.h"
#include "core/backend/select.h"
#include "test/catch.h"
#include "test/parallel/comm/conformance.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::collectives_test {

TEST_CASE("the benchmark measures every collective and finds no wrong value") {
  const auto collective = GENERATE(CallKind::all_reduce, CallKind::reduce_scatter, CallKind::all_gather,
                                   CallKind::broadcast, CallKind::all_to_all, CallKind::send);
  const bool ordinary_memory = GENERATE(false, true);
  const auto errors = on_threads(4, [&](Communicator& communicator) {
    ImmediateStream stream;
    const auto backend = make_backend("cpu", {.threads = 1});
    const auto rows = bench_collective(communicator, *backend, stream,
                                       {.collective = collective,
                                        .first_bytes = 64,
                                        .last_bytes = 65536,
                                        .factor = 32,
                                        .iterations = 3,
                                        .batches = 3,
                                        .ordinary_memory = ordinary_memory});
    conformance::expect(rows.size() == 3, "sizes 64, 2048 and 65536");
    for (const CommBenchRow& row : rows) {
      conformance::expect(row.wrong == 0, "no wrong value");
      conformance::expect(row.seconds > 0 && row.count * 4 == row.bytes, "a time and a count");
    }
    const double factor = rows[2].bus_bandwidth / (static_cast<double>(rows[2].bytes) / rows[2].seconds);
    const bool whole = collective == CallKind::broadcast || collective == CallKind::send;
    const double expected = collective == CallKind::all_reduce ? 1.5 : whole ? 1.0 : 0.75;
    conformance::expect(std::abs(factor - expected) < 1e-9, "the bus factor");
    conformance::expect(to_table(rows).find("65536") != std::string::npos, "a table");
  });
  CHECK(errors == std::vector<std::string>(4));
}

TEST_CASE("a link has a rate if there are neighbours") {
  for (const int ranks : {1, 2, 3}) {
    const auto errors = on_threads(ranks, [&](Communicator& communicator) {
      ImmediateStream stream;
      const auto backend = make_backend("cpu", {.threads = 1});
      const double rate = measure_link(communicator, *backend, stream, 1 << 20);
      conformance::expect(ranks == 1 ? rate == 0 : rate > 1e6, "a rate between neighbours");
    });
    CHECK(errors == std::vector<std::string>(static_cast<std::size_t>(ranks)));
  }
}

}  // namespace trainctl::collectives_test
