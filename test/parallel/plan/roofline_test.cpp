// Compares the costs of described machines with their formulas, and tests the checks of a machine's file.
#include "parallel/plan/roofline.h"

#include <cmath>

#include "core/compile/compile.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::roofline_test {
namespace {

using Kind = Communication::Kind;

const std::string good = R"(device:
  memory: 80 GB
  memory_bandwidth: 2000
  float32: 20
  bfloat16: 300
  compute_efficiency: 0.5
  memory_efficiency: 0.8
  kernel_overhead: 3
node: {devices: 8, link: 100, link_latency: 4}
network: {cards: 4, rate: 80, latency: 10}
host: {samples: 1000, storage: 2}
)";

Machine machine_of(const std::string& text, Reader& reader) {
  Machine machine;
  const Node document = parse_yaml(text, "machine.yaml", ".", reader);
  if (reader.ok()) Value<Machine>::read(document, reader, machine);
  return machine;
}
Machine good_machine() {
  Reader reader;
  Machine machine = machine_of(good, reader);
  reader.throw_if_failed();
  return machine;
}

// The errors reported for the text with the first occurrence of `from` replaced by `to`.
std::string errors_with(const std::string& from, const std::string& to) {
  std::string text = good;
  text.replace(text.find(from), from.size(), to);
  Reader reader;
  machine_of(text, reader);
  std::string errors;
  for (const Diagnostic& diagnostic : reader.diagnostics()) errors += to_string(diagnostic) + "\n";
  return errors;
}

}  // namespace

TEST_CASE("a ring within a node takes n - 1 steps, and an all-reduce takes twice that") {
  const RooflineCosts costs(good_machine(), {});
  const std::int64_t bytes = 50'000'000;  // half a millisecond at 100 GB/s
  const auto seconds = [&](Kind kind, int ranks) {
    return costs.communication_seconds({.kind = kind, .ranks = ranks, .ranks_per_node = ranks, .bytes = bytes});
  };
  CHECK(seconds(Kind::all_reduce, 8).latency == Approx(14 * 4e-6));
  CHECK(seconds(Kind::all_reduce, 8).transfer == Approx(2 * 7.0 / 8 * 0.5e-3));
  CHECK(seconds(Kind::reduce_scatter, 4).alone() == Approx(3 * 4e-6 + 3.0 / 4 * 0.5e-3));
  CHECK(seconds(Kind::all_gather, 4).alone() == Approx(seconds(Kind::reduce_scatter, 4).alone()));
  CHECK(seconds(Kind::send, 2).alone() == Approx(4e-6 + 0.5e-3));
  CHECK(seconds(Kind::all_reduce, 1).alone() == 0);
}

TEST_CASE("across nodes the fastest of rings, stages and trees is taken") {
  const RooflineCosts costs(good_machine(), {});
  const auto reduce = [&](int nodes, double bytes, int per_node = 8, int alike = 1) {
    return costs.communication_seconds({.kind = Kind::all_reduce,
                                        .ranks = nodes * per_node,
                                        .ranks_per_node = per_node,
                                        .alike = alike,
                                        .bytes = static_cast<std::int64_t>(bytes)});
  };
  // Large, on two nodes: stages are fastest; the stage across the nodes has the 40 GB/s of four cards.
  CHECK(reduce(2, 4e9).transfer == Approx(2 * 7.0 / 8 * 0.04 + 0.1));
  // Small, on many nodes: trees are fastest, with log2(nodes) levels.
  CHECK(reduce(1024, 1).alone() == Approx(2 * 10 * 10e-6 + 2 * 7 * 4e-6).epsilon(1e-3));
  // Never slower than stages or trees.
  for (const int nodes : {2, 3, 16, 100, 2048}) {
    for (const double bytes : {1e3, 1e5, 1e7, 1e9}) {
      const double stages =
          2 * (nodes - 1) * 10e-6 + 14 * 4e-6 + 2 * 7.0 / 8 * bytes / 100e9 + 2 * (nodes - 1.0) / nodes * bytes / 40e9;
      const double trees = 2 * std::ceil(std::log2(nodes)) * 10e-6 + 14 * 4e-6 + 2 * bytes / 40e9;
      CHECK(reduce(nodes, bytes).alone() <= std::min(stages, trees) * (1 + 1e-9));
    }
  }
  // One rank of each node uses one card; eight groups of such ranks share the four.
  CHECK(reduce(2, 1e9, 1, 1).transfer == Approx(0.1));
  CHECK(reduce(2, 1e9, 1, 1).share == Approx(0.25));
  CHECK(reduce(2, 1e9, 1, 8).transfer == Approx(0.2));
  CHECK(reduce(2, 1e9, 1, 8).share == Approx(1));
}

TEST_CASE("an op takes as long as its FLOPs or its bytes, whichever is longer") {
  const TestJob job("layers: [flatten, {dense: {units: 64}}, {dense: {units: 3}}]");
  const Compiled compiled = compile_without_kernels({job.training(16)}, {});
  const PlacedProgram& program = compiled.programs[0];
  const RooflineCosts costs(good_machine(), {});
  int ops = 0;
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s) {
    for (int o = 0; o < static_cast<int>(program.segment(s).ops.size()); ++o, ++ops) {
      const OpWork work = work_of(program, program.op(s, o).op);
      const double expected =
          std::max(work.flops / (0.5 * 20e12), static_cast<double>(work.bytes) / (0.8 * 2000e9)) + 3e-6;
      CHECK(costs.op_seconds(program, s, o) == Approx(expected));
    }
  }
  CHECK(ops > 10);
}

TEST_CASE("the peak rate depends on the dtype") {
  const MachineDevice device = good_machine().device;
  CHECK(peak_of(device, DType::float32, false) == 20);
  CHECK(peak_of(device, DType::float32, true) == 20);  // the file gives no value for TF32
  CHECK(peak_of(device, DType::bfloat16, false) == 300);
  CHECK(peak_of(device, DType::float16, false) == 300);
}

TEST_CASE("the ranks of a node share the processors that decode") {
  const HostSeconds host = RooflineCosts(good_machine(), {.decodes = true, .ranks_per_node = 8}).host_seconds({});
  CHECK(host.sample == Approx(8.0 / 1000));
  CHECK(RooflineCosts(good_machine(), {.ranks_per_node = 8}).host_seconds({}).sample == 0);
}

TEST_CASE("a machine's file with a missing, misspelt or absurd figure is refused with its line") {
  const auto contains = [](const std::string& text, const std::string& part) {
    CAPTURE(text, part);
    CHECK(text.find(part) != std::string::npos);
  };
  CHECK(errors_with("8", "8").empty());
  contains(errors_with("  memory_bandwidth: 2000\n", ""), "memory_bandwidth");
  contains(errors_with("  memory_bandwidth: 2000\n", ""), "machine.yaml:2");
  contains(errors_with("link_latency: 4", "link_latencies: 4"), "did you mean 'link_latency'?");
  contains(errors_with("memory_bandwidth: 2000", "memory_bandwidth: 2e12"),
           "machine.yaml:3:21: memory_bandwidth must be");
  contains(errors_with("float32: 20", "float32: -1"), "machine.yaml:4");
  contains(errors_with("memory: 80 GB", "memory: 80"), "with its unit");
  contains(errors_with("devices: 8", "devices: 0"), "devices must be");
  contains(errors_with("compute_efficiency: 0.5", "compute_efficiency: 50"), "compute_efficiency must be");
  contains(errors_with("rate: 80", "rate: fast"), "rate must be");
  contains(errors_with("host: {samples: 1000, storage: 2}\n", ""), "host");
}

}  // namespace trainctl::roofline_test
