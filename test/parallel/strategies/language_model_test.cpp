// Tests that ranks that split the vocabulary, the layers and the positions of transformers learn what one rank learns.
#include <algorithm>
#include <set>

#include "core/backend/cpu/onednn/widening.h"
#include "core/base/format.h"
#include "parallel/strategies/communication_check/communications.h"
#include "parallel/strategies/recompute/blocks.h"
#include "test/catch.h"
#include "test/parallel/strategies/mesh_training.h"

namespace trainctl::language_model_test {
using namespace trainctl::networks;
using namespace trainctl::mesh_training;

namespace {

constexpr std::int64_t positions = 8;

constexpr const char* blocks = R"(
  - dropout: {name: drop, rate: 0.1}
  - repeat:
      name: h
      times: 4
      layers:
        - residual:
            name: attention
            layers:
              - layer_normalization: {name: ln_1}
              - multi_head_attention: {name: attn, num_heads: 4, key_dim: 16, use_causal_mask: true, dropout: 0.1}
              - dropout: {name: drop, rate: 0.1}
        - residual:
            name: mlp
            layers:
              - rms_normalization: {name: ln_2}
              - dense: {name: up, units: 128, activation: gelu}
              - dense: {name: down, units: 64}
              - dropout: {name: drop, rate: 0.1}
  - layer_normalization: {name: ln_f}
)";

// A GPT with four layers. 208 tokens can be divided equally among 2 and 4 ranks, 209 cannot.
std::string gpt(bool tied, int vocabulary) {
  const std::string tied_begin = format(R"(layers:
  - reversible_embedding: {{name: wte, input_dim: {}, output_dim: 64}}
  - position_embedding: {{name: wpe, sequence_length: {}}}
  - add: {{name: embedded, from: [wte, wpe]}})",
                                        vocabulary, positions);
  const std::string untied_begin = format(R"(layers:
  - token_and_position_embedding: {{name: wte, vocabulary_size: {}, sequence_length: {}, embedding_dim: 64}})",
                                          vocabulary, positions);
  const std::string untied_end = format("  - dense: {{name: head, units: {}}}\n", vocabulary);
  return (tied ? tied_begin : untied_begin) + blocks +
         (tied ? "  - reversible_embedding: {name: wte, reverse: true}\n" : untied_end);
}

constexpr const char* vit = R"(layers:
  - conv2d: {name: patches, filters: 64, kernel_size: 2, strides: 2}
  - reshape: {name: sequence, target_shape: [-1, 64]}
  - position_embedding: {name: wpe, sequence_length: 16}
  - add: {name: embedded, from: [sequence, wpe]})";

std::string vit_layers() { return std::string(vit) + blocks + "  - global_average_pooling1d\n  - dense: {units: 3}\n"; }

Case language_case(bool tied, int vocabulary,
                   const std::string& loss = "{name: sparse_categorical_crossentropy, from_logits: true}") {
  const auto make = [=] {
    return Network(gpt(tied, vocabulary), {input_of("", {positions}, DType::int32)}, "{name: adam, epsilon: 1e-2}",
                   loss, static_cast<std::uint32_t>(vocabulary));
  };
  return {tied ? "tied" : "untied", make, 0.01};
}

Case vit_case() {
  const auto make = [] {
    return Network(vit_layers(), {input_of("", {8, 8, 2})}, "{name: adam, epsilon: 1e-2}",
                   "{name: sparse_categorical_crossentropy, from_logits: true}");
  };
  return {"vit", make, 0.01};
}

Program training_on(const Case& which, const Setup& setup, int rank) {
  const Network network = which.make();
  Reader reader;
  Program program = training_program(network.job.spec, {batch, 1}, reader, parallelism(strategy_of(setup), rank));
  reader.throw_if_failed();
  return program;
}

std::string shape_of(const Program& program, const std::string& name) {
  for (const Tensor& tensor : program.tensors) {
    if (tensor.name == name) return to_string(tensor.type.shape);
  }
  return "none";
}

}  // namespace

TEST_CASE("the vocabulary is split by rows of the table and by classes, equally or not", "[vocabulary]") {
  for (const bool tied : {true, false}) {
    for (const int rank : {0, 1, 3}) {
      CAPTURE(tied, rank);
      const Program program = training_on(language_case(tied, 209), {.mesh = {.tensor = 4}}, rank);
      const int rows = rank == 0 ? 53 : 52;
      const std::string table = tied ? "wte/embeddings" : "wte/token_embedding/embeddings";
      CHECK(shape_of(program, table) == format("{}x64", rows));
      if (!tied) CHECK(shape_of(program, "head/kernel") == format("64x{}", rows));
      // No tensor of the step has the logits of all classes.
      for (const Tensor& tensor : program.tensors) {
        CAPTURE(tensor.name);
        CHECK((tensor.type.shape.rank() < 3 || tensor.type.shape.back() != 209));
      }
    }
  }
}

TEST_CASE("ranks that split the vocabulary learn what one rank learns", "[vocabulary]") {
  for (const bool tied : {true, false}) {
    for (const int vocabulary : {208, 209}) {
      const Case which = language_case(tied, vocabulary);
      const Outcome reference = train(which, {.steps = 6});
      for (const int ranks : {2, 4}) {
        for (const bool by_positions : {false, true}) {
          CAPTURE(tied, vocabulary, ranks, by_positions);
          compare(train(which, {.mesh = {.tensor = ranks}, .sequence_parallel = by_positions, .steps = 6}), reference,
                  1e-5);
        }
      }
    }
  }
}

TEST_CASE("each rank may have a single position", "[positions]") {
  const Case which = language_case(true, 208);
  const Setup setup{.mesh = {.tensor = static_cast<int>(positions)}, .sequence_parallel = true, .steps = 4};
  compare(train(which, setup), train(which, {.steps = 4}), 1e-5);
}

TEST_CASE("losses with smoothed labels and ignored tokens are computed from split classes", "[vocabulary]") {
  const char* losses[] = {
      "{name: sparse_categorical_crossentropy, from_logits: true, label_smoothing: 0.1}",
      "{name: sparse_categorical_crossentropy, from_logits: true, ignore_index: 7}",
      "{name: sparse_categorical_crossentropy, from_logits: true, z_loss: 0.01}",
  };
  for (const char* loss : losses) {
    const Case which = language_case(true, 209, loss);
    CAPTURE(loss);
    const Outcome reference = train(which, {.steps = 4});
    compare(train(which, {.mesh = {.tensor = 4}, .steps = 4}), reference, 1e-5);
  }
}

TEST_CASE("positions are gathered before shared layers, and scattered by their sums", "[positions]") {
  const Setup setup{.mesh = {.tensor = 2}, .sequence_parallel = true};
  const Program program = training_on(language_case(true, 208), setup, 1);
  std::map<std::string, int> found;
  for (const Communication& communication : communications_of(program)) {
    const Segment& segment = program.segment(communication.item.segment);
    if (segment.phase == Phase::update) continue;
    const bool of_parameter = program.tensor(communication.op->inputs[0]).type.shape.rank() == 1;
    ++found[format("{} {}{}", name_of(segment), communication.op->def->kind(), of_parameter ? " of a vector" : "")];
  }
  // Forward: four blocks of two pairs of layers, the table at the beginning and the head at the end. Backward: each
  // gathering again, the gradients of both, and the class sums.
  CHECK(found == std::map<std::string, int>{{"forward reduce_scatter_columns", 9},
                                            {"forward all_gather_columns", 9},
                                            {"backward all_gather_columns", 9 + 9 + 1},
                                            {"backward reduce_scatter_columns", 9},
                                            // gamma and beta of five norms, gamma of four norms, eight biases
                                            {"backward all_reduce of a vector", 10 + 4 + 8}});
  CHECK(shape_of(program, "h/0/attention/ln_1/output") == "12x4x64");
  CHECK(shape_of(program, "wpe/embeddings") == "4x64");
}

TEST_CASE("a rank that holds some positions needs less memory for activations", "[positions]") {
  const auto slot_bytes = [](bool by_positions) {
    const auto backend = make_cpu_backend({});
    KernelChoices choices;
    choices.stop_timing();
    const Setup setup{.mesh = {.tensor = 4}, .sequence_parallel = by_positions};
    return compile({training_on(language_case(true, 208), setup, 0)}, *backend, choices).memory.of(Region::slot);
  };
  const std::int64_t whole = slot_bytes(false), split = slot_bytes(true);
  CAPTURE(whole, split);
  CHECK(split < whole * 6 / 10);
}

TEST_CASE("recomputed layers gather positions once more, and keep only those of the rank", "[positions]") {
  const Case which = language_case(true, 208);
  const auto program_with = [&](Recompute recompute) {
    return training_on(which, {.mesh = {.tensor = 4}, .sequence_parallel = true, .recompute = recompute}, 0);
  };
  const auto gatherings = [](const Program& program) {
    std::vector<std::string> found;
    for (const Op& op : program.segment(program.find(Phase::backward)).ops) {
      if (op.def->kind() == "all_gather_columns") found.push_back(op.name);
    }
    std::ranges::sort(found);
    return found;
  };
  const Program kept = program_with(Recompute::none), again = program_with(Recompute::blocks);
  CHECK(gatherings(again) == gatherings(kept));
  // A block saves all its activations, since what it gathers is not kept for it.
  for (const RecomputableBlock& block : recomputable_blocks(kept)) {
    CAPTURE(block.name);
    if (block.name.starts_with("h/")) CHECK(block.saved == block.inside);
  }
  // Of what the forward pass gathers, the backward pass reads nothing.
  std::set<TensorId> gathered;
  for (const Op& op : again.segment(again.find(Phase::forward)).ops) {
    if (op.def->kind() == "all_gather_columns") gathered.insert(op.outputs[0]);
  }
  CHECK(gathered.size() == 9);
  for (const Op& op : again.segment(again.find(Phase::backward)).ops) {
    CAPTURE(op.name);
    for (const TensorId input : op.inputs) {
      const TensorId alias_of = again.tensor(input).alias_of;
      CHECK_FALSE(gathered.contains(alias_of == no_tensor ? input : alias_of));
    }
  }
}

TEST_CASE("positions are split together with the data, stages, shards and recomputation", "[positions]") {
  const Setup setups[] = {
      {.mesh = {.data = 2, .tensor = 2}},
      {.mesh = {.pipeline = 2, .tensor = 2}, .micro_batches = 2},
      {.mesh = {.data = 2, .tensor = 2}, .micro_batches = 2, .shard = Shard::optimizer, .overlap = true},
      {.mesh = {.data = 2, .tensor = 2}, .micro_batches = 2, .shard = Shard::gradients},
      {.mesh = {.data = 2, .tensor = 2}, .micro_batches = 2, .shard = Shard::parameters, .overlap = true},
      {.mesh = {.tensor = 2}, .micro_batches = 3, .recompute = Recompute::blocks},
      {.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 2, .shard = Shard::optimizer},
      {.mesh = {.data = 2, .pipeline = 2, .tensor = 2}, .micro_batches = 2, .shard = Shard::parameters},
  };
  for (const bool tied : {true, false}) {
    const Case which = language_case(tied, 209);
    for (Setup setup : setups) {
      setup.steps = 4;
      const Outcome reference = train(which, {.micro_batches = setup.mesh.data * setup.micro_batches, .steps = 4});
      for (const bool by_positions : {false, true}) {
        setup.sequence_parallel = by_positions;
        CAPTURE(tied, setup.mesh.data, setup.mesh.pipeline, name_of(setup.shard), by_positions);
        compare(train(which, setup), reference, 1e-5);
      }
    }
  }
}

TEST_CASE("replicas whose ranks split positions compute the same bits with shards in bfloat16", "[positions]") {
  const Case which = language_case(true, 209);
  Setup setup{.mesh = {.data = 2, .tensor = 2}, .sequence_parallel = true, .compute = DType::bfloat16, .steps = 4};
  const Outcome whole = train(which, setup);
  compare(whole, train(which, {.micro_batches = 2, .compute = DType::bfloat16, .steps = 4}), 0.02);
  for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
    setup.shard = shard;
    CAPTURE(name_of(shard));
    const Outcome outcome = train(which, setup);
    if (!cpu::has_bfloat16()) {  // matrices are read in float32, in layouts that may depend on the shards
      compare(outcome, whole, 0.02);
      continue;
    }
    CHECK(outcome.losses == whole.losses);
    CHECK(outcome.weights == whole.weights);
  }
}

TEST_CASE("a vision transformer is split by layers and positions", "[positions]") {
  const Case which = vit_case();
  const Outcome reference = train(which, {.steps = 6});
  for (const int ranks : {2, 4}) {
    for (const bool by_positions : {false, true}) {
      CAPTURE(ranks, by_positions);
      compare(train(which, {.mesh = {.tensor = ranks}, .sequence_parallel = by_positions, .steps = 6}), reference,
              1e-5);
    }
  }
}

}  // namespace trainctl::language_model_test
