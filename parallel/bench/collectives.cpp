// Times collectives on memory of the communicator and checks their results.
#include "parallel/bench/collectives.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/backend/backend.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

class Bench {
 public:
  Bench(Communicator& communicator, Backend& backend, Stream& stream, const CommBenchOptions& options)
      : communicator_(communicator),
        backend_(backend),
        stream_(stream),
        options_(options),
        memory_(allocate(options.last_bytes)),
        received_(options.collective == CallKind::all_to_all ? allocate(options.last_bytes) : Memory{}),
        scalar_(communicator.allocate(sizeof(double))),
        rank_(communicator.rank()),
        ranks_(communicator.size()),
        input_(static_cast<std::size_t>(options.last_bytes / size_of(DType::float32))),
        output_(input_.size()) {
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = value_of(rank_, static_cast<std::int64_t>(i));
  }

  CommBenchRow measure(std::int64_t bytes) {
    const std::int64_t count = bytes / size_of(DType::float32) / ranks_ * ranks_;
    const View data{memory_.get(), DType::float32, count};
    CommBenchRow row{.collective = options_.collective, .bytes = data.bytes(), .count = count};
    run(data);
    const int iterations =
        std::clamp(static_cast<int>(options_.batch_seconds / time_batch(data, 1)), 1, options_.iterations);
    std::vector<double> times;
    for (int batch = 0; batch < options_.batches; ++batch) times.push_back(time_batch(data, iterations));
    std::nth_element(times.begin(), times.begin() + options_.batches / 2, times.end());
    row.seconds = times[static_cast<std::size_t>(options_.batches / 2)];
    row.algorithm_bandwidth = static_cast<double>(row.bytes) / row.seconds;
    row.bus_bandwidth = row.algorithm_bandwidth * bus_factor();
    row.wrong = count_wrong(data);
    return row;
  }

 private:
  // The scale of all values, a power of two: small enough not to overflow in a batch of sums, but far from denormals,
  // so that sums are exact.
  static constexpr float scale = 0x1p-90f;

  Memory allocate(std::int64_t bytes) {
    return options_.ordinary_memory ? backend_.allocate(bytes) : communicator_.allocate(bytes);
  }

  // Returns the other rank of a message; -1 if this rank has no neighbour.
  int neighbour() const {
    const int peer = rank_ ^ 1;
    return peer < ranks_ ? peer : -1;
  }

  void run(View data) {
    switch (options_.collective) {
      case CallKind::all_reduce:
        return communicator_.all_reduce(data, Reduction::sum, stream_);
      case CallKind::reduce_scatter:
        return communicator_.reduce_scatter(data, Reduction::sum, stream_);
      case CallKind::all_gather:
        return communicator_.all_gather(data, stream_);
      case CallKind::broadcast:
        return communicator_.broadcast(data, 0, stream_);
      case CallKind::all_to_all:
        return communicator_.all_to_all(data, result(data), stream_);
      case CallKind::send:
        if (neighbour() < 0) return;
        return rank_ % 2 == 0 ? communicator_.send(data, neighbour(), stream_)
                              : communicator_.receive(data, neighbour(), stream_);
      case CallKind::receive:
      case CallKind::barrier:
        break;
    }
    require(false, "this collective has no benchmark");
  }

  View result(View data) const { return received_.data ? View{received_.get(), data.dtype, data.count} : data; }

  static float value_of(int rank, std::int64_t index) { return static_cast<float>(index % 7 + 1 + rank) * scale; }

  void fill(View data) {
    backend_.copy(data.data, input_.data(), data.bytes(), stream_);
    stream_.synchronize();
  }

  // Reduces a value over the ranks.
  template <class T>
  T reduce(T value, DType dtype, Reduction reduction) {
    backend_.copy(scalar_.get(), &value, sizeof value, stream_);
    communicator_.all_reduce({scalar_.get(), dtype, 1}, reduction, stream_);
    backend_.copy(&value, scalar_.get(), sizeof value, stream_);
    stream_.synchronize();
    return value;
  }

  double time_batch(View data, int iterations) {
    fill(data);
    // These collectives do not change a rank's contribution: on CPUs, later calls would find it in caches, unlike the
    // first call after the op that writes it.
    const bool keeps = options_.collective == CallKind::all_gather || options_.collective == CallKind::all_to_all;
    const bool writes = keeps && !backend_.asynchronous();
    const int calls = writes ? 1 : iterations;
    double seconds = 0;
    for (int i = 0; i < iterations; i += calls) {
      if (writes) write_contribution(data);
      seconds += time_calls(data, calls);
    }
    return reduce(seconds / iterations, DType::float64, Reduction::maximum);
  }

  double time_calls(View data, int calls) {
    communicator_.barrier(stream_);
    stream_.synchronize();
    const double start = seconds_now();
    for (int i = 0; i < calls; ++i) run(data);
    stream_.synchronize();
    return seconds_now() - start;
  }

  // Writes the data that a rank sends: its own shard, or the shards of all ranks.
  void write_contribution(View data) {
    const std::int64_t part = data.count / ranks_, own = rank_ * part;
    const View sent = options_.collective == CallKind::all_gather ? data.slice(own, part) : data;
    const std::int64_t first = options_.collective == CallKind::all_gather ? own : 0;
    backend_.copy(sent.data, input_.data() + first, sent.bytes(), stream_);
  }

  double bus_factor() const {
    const double ranks = ranks_;
    if (options_.collective == CallKind::all_reduce) return 2 * (ranks - 1) / ranks;
    const bool whole = options_.collective == CallKind::broadcast || options_.collective == CallKind::send;
    return whole ? 1 : (ranks - 1) / ranks;
  }

  float expected(std::int64_t index, std::int64_t part) const {
    switch (options_.collective) {
      case CallKind::all_gather:
        return value_of(static_cast<int>(index / part), index);
      case CallKind::broadcast:
        return value_of(0, index);
      case CallKind::all_to_all:
        return value_of(static_cast<int>(index / part), rank_ * part + index % part);
      case CallKind::send:
        return value_of(neighbour() < 0 ? rank_ : rank_ & ~1, index);
      default:
        return static_cast<float>(ranks_) * value_of(0, index) +
               static_cast<float>(ranks_) * static_cast<float>(ranks_ - 1) / 2 * scale;
    }
  }

  std::int64_t count_wrong(View data) {
    fill(data);
    run(data);
    backend_.copy(output_.data(), result(data).data, data.bytes(), stream_);
    stream_.synchronize();
    const std::int64_t part = data.count / ranks_;
    const bool only_own = options_.collective == CallKind::reduce_scatter;
    const std::int64_t first = only_own ? rank_ * part : 0;
    std::int64_t wrong = 0;
    for (std::int64_t i = first; i < (only_own ? first + part : data.count); ++i) {
      wrong += output_[static_cast<std::size_t>(i)] != expected(i, part);
    }
    return reduce(wrong, DType::int64, Reduction::sum);
  }

  Communicator& communicator_;
  Backend& backend_;
  Stream& stream_;
  const CommBenchOptions& options_;
  Memory memory_;
  Memory received_;
  Memory scalar_;
  int rank_, ranks_;
  std::vector<float> input_, output_;  // on the host: the rank's contribution for every size, and the results
};

}  // namespace

std::vector<CommBenchRow> bench_collective(Communicator& communicator, Backend& backend, Stream& stream,
                                           const CommBenchOptions& options) {
  require(options.factor > 1 && options.first_bytes > 0 && options.batches > 0 && options.iterations > 0,
          "the benchmark options are invalid");
  Bench bench(communicator, backend, stream, options);
  std::vector<CommBenchRow> rows;
  for (std::int64_t bytes = options.first_bytes; bytes <= options.last_bytes; bytes *= options.factor) {
    rows.push_back(bench.measure(bytes));
    if (rows.back().seconds > options.last_seconds) break;
  }
  return rows;
}

double measure_link(Communicator& communicator, Backend& backend, Stream& stream, std::int64_t bytes) {
  using Clock = std::chrono::steady_clock;
  constexpr int messages = 10;
  const int rank = communicator.rank();
  const int peer = rank ^ 1;
  if (communicator.size() == 1) return 0;
  const Memory memory = communicator.allocate(bytes);
  const View data{memory.get(), DType::float32, memory.bytes / size_of(DType::float32)};
  std::vector<float> values(static_cast<std::size_t>(data.count), 1.5f);
  backend.copy(data.data, values.data(), data.bytes(), stream);
  double seconds = 0;
  for (int round = 0; round < 2; ++round) {  // the first round is a warm-up
    communicator.barrier(stream);
    stream.synchronize();
    const auto start = Clock::now();
    for (int i = 0; i < messages && peer < communicator.size(); ++i) {
      if (rank % 2 == 0) communicator.send(data, peer, stream);
      if (rank % 2 == 1) communicator.receive(data, peer, stream);
    }
    stream.synchronize();
    seconds = std::chrono::duration<double>(Clock::now() - start).count() / messages;
  }
  const Memory slowest = communicator.allocate(sizeof seconds);
  backend.copy(slowest.get(), &seconds, sizeof seconds, stream);
  communicator.all_reduce({slowest.get(), DType::float64, 1}, Reduction::maximum, stream);
  backend.copy(&seconds, slowest.get(), sizeof seconds, stream);
  stream.synchronize();
  return static_cast<double>(data.bytes()) / seconds;
}

std::string to_table(const std::vector<CommBenchRow>& rows) {
  std::string text = format("{:<16}{:>12}{:>14}{:>9}{:>7}{:>12}{:>15}{:>15}{:>8}\n", "collective", "size (B)", "count",
                            "type", "redop", "time (us)", "algbw (GB/s)", "busbw (GB/s)", "#wrong");
  for (const CommBenchRow& row : rows) {
    const bool sums = row.collective == CallKind::all_reduce || row.collective == CallKind::reduce_scatter;
    text += format("{:<16}{:>12}{:>14}{:>9}{:>7}{:>12.2f}{:>15.2f}{:>15.2f}{:>8}\n", name_of(row.collective), row.bytes,
                   row.count, name_of(DType::float32), sums ? "sum" : "none", row.seconds * 1e6,
                   row.algorithm_bandwidth / 1e9, row.bus_bandwidth / 1e9, row.wrong);
  }
  return text;
}

CommunicationBench bench_communication(Communicator& communicator, Backend& backend, bool measures_link,
                                       double seconds) {
  const auto stream = backend.compute_stream();
  CommunicationBench bench{communicator.size(), std::string(communicator.name()), backend.fingerprint(), {}, 0};
  bench.rows = bench_collective(communicator, backend, *stream, {.last_seconds = seconds});
  if (measures_link) bench.link = measure_link(communicator, backend, *stream, bench.rows.back().bytes);
  return bench;
}

std::string to_text(const CommunicationBench& bench) {
  std::string text = format("all_reduce, {}, {}, {}\n{}", counted(bench.ranks, "rank"), bench.communicator,
                            bench.device, to_table(bench.rows));
  if (bench.link > 0) {
    text += format("messages between two ranks: {:.2f} GB/s; the largest all_reduce reaches {:.0f} % of that\n",
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
