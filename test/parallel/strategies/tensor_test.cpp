// Tests that ranks that split layers communicate no more than necessary, and hold shards that make up whole parameters.
#include <algorithm>
#include <set>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "parallel/mesh/axes.h"
#include "parallel/strategies/communication_check/communications.h"
#include "parallel/strategies/strategy.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/parallel/strategies/networks.h"

namespace trainctl::tensor_test {
using namespace trainctl::networks;

namespace {

Strategy strategy_of(const Mesh& mesh) {
  Strategy strategy{mesh, {}, false};
  strategy.options.tensor.value = mesh.tensor;
  return strategy;
}

Program training_of(const std::string& layers, int ranks, int rank = 0, const std::string& optimizer = "adam") {
  const TestJob job(layers, optimizer);
  Strategy strategy = strategy_of({.tensor = ranks});
  strategy.options.tensor.location = {"test.yaml", 7, 11};
  Reader reader;
  Program program = training_program(job.spec, {4, 1}, reader, parallelism(strategy, rank));
  reader.throw_if_failed();
  return program;
}

// The communications of the layers' ops, such as "forward all_reduce NAME".
std::vector<std::string> exchanges(const Program& program) {
  std::vector<std::string> found;
  for (const Communication& communication : communications_of(program)) {
    const Segment& segment = program.segment(communication.item.segment);
    if (segment.phase == Phase::update) continue;
    found.push_back(format("{} {} {}", name_of(segment), communication.op->def->kind(), communication.op->name));
  }
  return found;
}

std::string shape_of(const Program& program, const std::string& name) {
  for (const Tensor& tensor : program.tensors) {
    if (tensor.name == name) return to_string(tensor.type.shape);
  }
  return "none";
}

}  // namespace

TEST_CASE("a pair of layers exchanges one sum forward and one backward") {
  constexpr const char* pair = R"(layers:
  - flatten
  - dense: {name: whole, units: 31, activation: relu}
  - dense: {name: columns, units: 64, activation: relu}
  - dense: {name: rows, units: 5, activation: softmax}
)";
  const Program program = training_of(pair, 2);
  CHECK(exchanges(program) == std::vector<std::string>{"forward all_reduce rows", "backward all_reduce columns"});
  CHECK(shape_of(program, "whole/kernel") == "128x31");
  CHECK(shape_of(program, "columns/kernel") == "31x32");
  CHECK(shape_of(program, "columns/bias") == "32");
  CHECK(shape_of(program, "rows/kernel") == "32x5");
  CHECK(shape_of(program, "rows/bias") == "5");
}

TEST_CASE("a product of activations is split by heads") {
  const Program program = training_of(heads, 4);
  CHECK(exchanges(program) == std::vector<std::string>{"forward all_reduce out"});
  CHECK(shape_of(program, "product/output") == "4x2x8x4");  // 2 of 8 heads
  CHECK(shape_of(program, "out/kernel") == "8x12");
  const Program gathered = training_of(gathered_heads, 4);
  CHECK(exchanges(gathered) == std::vector<std::string>{"forward all_gather_columns product"});
  CHECK(shape_of(gathered, "product/output") == "4x2x2x12");
  CHECK(shape_of(gathered, "product/output/gathered") == "4x8x2x12");
}

TEST_CASE("attention is split by heads of keys, and exchanges one sum forward and one backward") {
  constexpr const char* layers = R"(layers:
  - flatten
  - dense: {name: features, units: 48, activation: tanh}
  - reshape: {name: rows, target_shape: [3, 16]}
  - residual:
      name: block
      layers:
        - group_query_attention: {name: attention, num_query_heads: 8, num_key_value_heads: 4, head_dim: 6}
  - flatten
  - dense: {name: last, units: 3}
)";
  const Program program = training_of(layers, 4);
  CHECK(shape_of(program, "block/attention/query/kernel") == "16x12");  // 2 of 8 heads
  CHECK(shape_of(program, "block/attention/key/kernel") == "16x6");     // 1 of 4 heads
  CHECK(shape_of(program, "block/attention/attention_output/kernel") == "12x16");
  std::vector<std::string> found = exchanges(program);
  std::erase_if(found, [](const std::string& exchange) { return exchange.find("attention") == std::string::npos; });
  CHECK(found == std::vector<std::string>{"forward all_reduce block/attention", "backward all_reduce block/attention"});
  // Two ranks cannot share one head of keys.
  const Program odd = training_of(
      "layers: [{reshape: [8, 16]}, {group_query_attention: {name: a, num_query_heads: 4, num_key_value_heads: 1, "
      "head_dim: 16}}, flatten, {dense: 64}, {dense: 2}]",
      2);
  CHECK(shape_of(odd, "a/key/kernel") == "16x16");
}

TEST_CASE("programs for batches of all sizes split the same parameters") {
  const std::string layers =
      "layers: [{embedding: {name: e, input_dim: 257, output_dim: 32}}, {dense: {name: a, units: 96}}, {dense: 32}, "
      "layer_normalization, {dense: 257}]";
  TestJob job(layers, "adam");
  job.spec.inputs = {input_of("", {26}, DType::int32)};
  std::set<std::string> shapes;
  for (const std::int64_t batch : {1, 2, 3, 7, 16, 64, 1000}) {
    Reader reader;
    const Program program = training_program(job.spec, {batch, 1}, reader, parallelism(strategy_of({.tensor = 2}), 0));
    reader.throw_if_failed();
    std::string text;
    for (const FlatEntry& entry : program.flat.parameters) {
      text += to_string(program.tensor(entry.parameter).type.shape) + " ";
    }
    shapes.insert(text);
  }
  CHECK(shapes.size() == 1);
}

TEST_CASE("channels are gathered once for all layers that need all of them") {
  constexpr const char* layers = R"(layers:
  - conv2d: {name: c, filters: 16, kernel_size: 5, padding: same}
  - global_average_pooling2d: {name: mean}
  - layer_normalization: {name: norm}
  - concatenate: {from: [mean, norm]}
  - dense: {units: 3}
)";
  // The convolution's input needs no gradient; the gradient of the gathered tensor is that of the rank's own shard.
  CHECK(exchanges(training_of(layers, 4)) == std::vector<std::string>{"forward all_gather_columns mean"});
}

TEST_CASE("a cross-entropy of split classes gathers sums of each row instead of the logits") {
  const Program program = training_of(classes, 4);
  CHECK(shape_of(program, "last/kernel") == "127x20");
  CHECK(exchanges(program) ==
        std::vector<std::string>{"backward all_gather_columns class_sums", "backward all_reduce last"});
  CHECK(shape_of(program, "class_sums/gathered") == "4x20");
  CHECK(shape_of(program, "last/output/gathered") == "none");
  // A metric that is not computed from sums, and predictions, gather the logits.
  const TestJob job(classes, "adam", "categorical_crossentropy", "{name: top_k_categorical_accuracy, k: 3}");
  Reader reader;
  const Parallelism half = parallelism(strategy_of({.tensor = 2}), 1);
  const Program top_k = training_program(job.spec, {4, 1}, reader, half);
  const Program evaluated = evaluation_program(job.spec, 4, reader, half);
  const Program predicted = prediction_program(job.spec, 4, reader, half);
  reader.throw_if_failed();
  CHECK(shape_of(top_k, "last/output/gathered") == "4x80");
  CHECK(shape_of(evaluated, "last/output/gathered") == "4x80");
  CHECK(shape_of(predicted, "last/gathered") == "4x80");
  CHECK(predicted.tensor(predicted.step.predictions[0]).type.shape == Shape{4, 80});
}

TEST_CASE("layers that are too small to be split, or not divisible by the ranks, are whole on every rank") {
  constexpr const char* layers = R"(layers:
  - conv2d: {name: thin, filters: 4, kernel_size: 1}
  - layer_normalization
  - flatten
  - dense: {name: odd, units: 33, activation: relu}
  - dense: {name: even, units: 64, activation: relu}
  - dense: {name: last, units: 2}
)";
  const Program program = training_of(layers, 2);
  CHECK(shape_of(program, "thin/kernel") == "1x1x2x4");
  CHECK(shape_of(program, "odd/kernel") == "256x33");
  CHECK(shape_of(program, "even/kernel") == "33x32");
  CHECK(shape_of(program, "last/kernel") == "32x2");
}

TEST_CASE("a layer that cannot work on split channels gets all of them, even if its shape rule accepts shards") {
  const auto network = [](const std::string& layer) {
    return "layers:\n"
           "  - conv2d: {name: first, filters: 35, kernel_size: 3, padding: same}\n"  // no number of ranks divides 35
           "  - conv2d: {name: wide, filters: 24, kernel_size: 3, padding: same}\n"
           "  - " +
           layer +
           "\n"
           "  - conv2d: {name: next, filters: 24, kernel_size: 3, padding: same}\n"
           "  - flatten\n"
           "  - dense: {units: 2}\n";
  };
  // Shards of 12, 8, 6 or 4 channels, which do not fit the groups or channels of these layers.
  for (const int ranks : {2, 3, 4, 6}) {
    for (const char* layer : {"group_normalization: {groups: 24}",
                              "group_normalization: {groups: 8}",
                              "group_normalization: {groups: 3}",
                              "layer_normalization",
                              "batch_normalization",
                              "normalization",
                              "depthwise_conv2d: {kernel_size: 3}",
                              "conv2d: {filters: 24, groups: 24, kernel_size: 1}",
                              "conv2d: {filters: 24, groups: 8, kernel_size: 1}",
                              "conv2d: {filters: 25, kernel_size: 1}",
                              "separable_conv2d: {filters: 24, kernel_size: 3, padding: same}",
                              "conv2d_transpose: {filters: 24, kernel_size: 2, strides: 2}",
                              "prelu",
                              "prelu: {shared_axes: [1, 2]}",
                              "permute: [3, 2, 1]",
                              "permute: [2, 1, 3]",
                              "reshape: [-1, 3, 40]",
                              "reshape: [3, -1, 24]",
                              "reshape: [-1, 1, 8]",
                              "spatial_dropout: 0.5",
                              "dropout: 0.5",
                              "gaussian_noise: 0.1",
                              "lambda: x * random_normal(x) + roll(x, 1, axis=1)",
                              "lambda: cumsum(x, axis=-1) * arange(24)",
                              "lambda: one_hot(argmax(x, axis=-1), 24) * flip(x, axis=2)",
                              "upsampling2d: {size: 2}",
                              "zero_padding2d: 1",
                              "max_pooling2d: 2",
                              "activation: softmax",
                              "residual: {layers: [{group_normalization: {groups: 24}}]}"}) {
      CAPTURE(ranks, layer);
      std::string error;
      try {
        static_cast<void>(training_of(network(layer), ranks));
      } catch (const Error& caught) {
        if (caught.kind() != ErrorKind::config) error = caught.what();
      }
      CHECK(error.empty());
    }
  }
  const Program grouped = training_of(network("group_normalization: {name: norm, groups: 24}"), 2);
  CHECK(shape_of(grouped, "wide/kernel") == "3x3x35x12");  // gathered for the groups
  CHECK(shape_of(grouped, "norm/output") == shape_of(grouped, "wide/output/gathered"));
}

TEST_CASE("the shards of all ranks make up the whole parameter, and their placement is split") {
  for (const int rank : {0, 1, 2}) {
    const Program program = training_of(mlp, 3, rank);
    for (const FlatEntry& entry : program.flat.parameters) {
      const Tensor& tensor = program.tensor(entry.parameter);
      CAPTURE(rank, tensor.name);
      if (!tensor.shard) continue;
      CHECK(tensor.shard->extent.shape(tensor.shard->whole).count() == tensor.type.shape.count());
      CHECK(tensor.type.shape.count() * 3 == tensor.shard->whole.count());
      CHECK(declared_split(tensor, MeshAxis::tensor));
    }
  }
}

TEST_CASE("a network or an optimizer that cannot be split is refused with the config's line") {
  const auto refused = [](const std::string& layers, const std::string& optimizer = "adam") {
    try {
      training_of(layers, 2, 0, optimizer);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      return format("{} {}", error.location().line, error.what());
    }
    return std::string("accepted");
  };
  const std::string none = refused("layers: [flatten, {dense: {units: 3}}]");
  CHECK(none.starts_with("7 "));
  CHECK(none.find("no layer of this network can be split among 2 ranks") != std::string::npos);
  const std::string lamb = refused(mlp, "lamb");
  CHECK(lamb.find("norms of whole parameters") != std::string::npos);
  CHECK(refused(mlp, "{name: adam, clipnorm: 1}").find("clipnorm needs norms of whole parameters") !=
        std::string::npos);
  CHECK(refused(mlp, "{name: adam, gradient_centralization: true}").find("means of whole parameters") !=
        std::string::npos);
  CHECK(refused(mlp, "{name: adam, clipvalue: 1}") == "accepted");
  CHECK(refused(mlp) == "accepted");
}

TEST_CASE("the data axis gets the ranks that the tensor axis leaves over, and layers stay on one host") {
  StrategyOptions options;
  options.tensor.value = 2;
  CHECK(mesh_of(options, 2) == Mesh{.tensor = 2});
  CHECK(mesh_of(options, 6) == Mesh{.data = 3, .tensor = 2});
  for (const int ranks : {1, 3}) {
    CAPTURE(ranks);
    CHECK_THROWS_AS(mesh_of(options, ranks), Error);
  }
  options.data.given = 2;
  CHECK(mesh_of(options, 4) == Mesh{.data = 2, .tensor = 2});
  CHECK_THROWS_AS(mesh_of(options, 6), Error);
  const Mesh mesh{.data = 2, .tensor = 2};
  CHECK_NOTHROW(require_layers_within_hosts(options, mesh, {"a", "a", "b", "b"}));
  CHECK_THROWS_AS(require_layers_within_hosts(options, mesh, {"a", "b", "b", "b"}), CollectiveError);
}

}  // namespace trainctl::tensor_test
