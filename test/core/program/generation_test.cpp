// Tests programs that generate: with a cache of keys and values they compute the same logits, piece by piece, as the
// prediction of the whole text.
#include <algorithm>
#include <cstring>
#include <random>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::generation_test {
namespace {

constexpr std::int64_t texts = 3, positions = 12;

GenerationProgram generation(TestJob& job, std::int64_t steps, std::optional<std::int64_t> kept, bool predicts = true) {
  job.spec.outputs[0].metrics.clear();
  job.spec.inputs.clear();
  for (const std::string& name : input_names(job.model)) {
    job.spec.inputs.push_back({name, Shape{steps}, {DType::int32, {}, {}}});
  }
  Reader reader;
  GenerationProgram built =
      generation_program(job.spec, {.samples = texts, .positions = kept, .predicts = predicts}, reader);
  reader.throw_if_failed();
  return built;
}

// An engine whose weights are random and depend on their names alone.
class Runner {
 public:
  explicit Runner(std::vector<Program> programs)
      : backend_(make_cpu_backend({})),
        communicator_(solo_communicator()),
        engine_(*backend_, *communicator_, compile(std::move(programs), *backend_, choices_)) {
    for (const NamedTensor& tensor : engine_.weights()) {
      std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(tensor.name)));
      std::normal_distribution<float> normal(0.0f, 0.3f);
      std::generate_n(tensor.view.as<float>(), tensor.view.count, [&] { return normal(random); });
    }
    engine_.upload();
  }

  // Runs a program for the tokens [texts, steps] and, if it has caches, the positions of the texts' first tokens.
  std::vector<float> logits(int program, const std::vector<std::int32_t>& tokens,
                            const std::vector<std::int32_t>& starts = {}) {
    fill(program, tokens, starts);
    const TensorId id = engine_.program(program).program.step.predictions[0];
    std::vector<std::byte> bytes;
    engine_.read_tensor(program, id, bytes);
    std::vector<float> found(bytes.size() / sizeof(float));
    std::memcpy(found.data(), bytes.data(), bytes.size());
    return found;
  }

  void fill(int program, std::vector<std::int32_t> tokens, std::vector<std::int32_t> starts) {
    Batch batch;
    batch.count = texts;
    const auto values = std::ssize(tokens);
    batch.inputs.push_back({tokens.data(), DType::int32, values});
    std::vector<std::int32_t> documents(tokens.size());
    const bool has_documents = engine_.program(program).program.batch.inputs.size() > (starts.empty() ? 1U : 2U);
    if (has_documents) batch.inputs.push_back({documents.data(), DType::int32, values});
    if (!starts.empty()) batch.inputs.push_back({starts.data(), DType::int32, texts});
    StepResult result;
    engine_.run(program, batch, {}, result);
  }
  std::int64_t cache_bytes() const { return engine_.memory().of(Region::caches); }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Communicator> communicator_;
  KernelChoices choices_;
  Engine engine_;
};

}  // namespace

TEST_CASE("a program that keeps keys and values continues texts with the logits of the whole texts") {
  struct Network {
    const char* text;
    std::int64_t vocabulary, cached;  // cached: values of keys and values of a position
  };
  const auto [network, vocabulary, cached] = GENERATE(
      Network{"{preset: gpt2, with: {vocabulary: 13, positions: 12, layers: 2, heads: 2, head_size: 4, width: 8, mlp: "
              "16}}",
              13, 2 * 2 * 8},
      Network{"{preset: llama, with: {vocabulary: 13, layers: 2, heads: 4, key_heads: 2, head_size: 4, width: 8, "
              "mlp: 16}}",
              13, 2 * 2 * 8},
      Network{
          "{inputs: [tokens, documents], layers: [{embedding: {input_dim: 13, output_dim: 8, from: tokens}}, "
          "{multi_head_attention: {num_heads: 2, key_dim: 4, use_causal_mask: true, sliding_window: 3, "
          "from: embedding, documents: documents, rotary_embedding: {}}}, {dense: {units: 13, activation: softmax}}]}",
          13, 2 * 8});
  const DType compute = GENERATE(DType::float32, DType::bfloat16);
  CAPTURE(network, name_of(compute));
  TestJob job(network);
  job.spec.compute = compute;
  Runner whole({generation(job, positions, {}).program});
  Runner cached_runner({generation(job, 1, positions).program, generation(job, 5, positions).program});
  CHECK(cached_runner.cache_bytes() >= texts * positions * cached * size_of(compute));

  std::mt19937 random(3);
  std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(vocabulary) - 1);
  std::vector<std::int32_t> tokens(texts * positions);
  std::generate(tokens.begin(), tokens.end(), [&] { return uniform(random); });
  const std::vector<float> expected = whole.logits(0, tokens);

  // The texts have different lengths at every step: text n begins with a piece of 5 - n tokens.
  std::vector<std::int32_t> starts(texts, 0);
  const double tolerance = compute == DType::float32 ? 1e-5 : 3e-2;
  for (const int program : {1, 0, 1, 0, 0, 0}) {
    const std::int64_t steps = program == 0 ? 1 : 5;
    std::vector<std::int32_t> piece(static_cast<std::size_t>(texts * steps), 0);
    std::vector<std::int64_t> counts;
    for (std::int64_t n = 0; n < texts; ++n) {
      counts.push_back(std::min(program == 0 ? 1 : 5 - n, positions - starts[static_cast<std::size_t>(n)]));
      std::copy_n(tokens.begin() + n * positions + starts[static_cast<std::size_t>(n)], counts.back(),
                  piece.begin() + n * steps);
    }
    const std::vector<float> found = cached_runner.logits(program, piece, starts);
    double error = 0;
    for (std::int64_t n = 0; n < texts; ++n) {
      for (std::int64_t t = 0; t < counts[static_cast<std::size_t>(n)]; ++t) {
        for (std::int64_t c = 0; c < vocabulary; ++c) {
          const std::int64_t position = starts[static_cast<std::size_t>(n)] + t;
          const auto at = static_cast<std::size_t>((n * positions + position) * vocabulary + c);
          const auto here = static_cast<std::size_t>((n * steps + t) * vocabulary + c);
          error = std::max(error, static_cast<double>(std::abs(found[here] - expected[at])));
        }
      }
      starts[static_cast<std::size_t>(n)] += static_cast<std::int32_t>(counts[static_cast<std::size_t>(n)]);
    }
    CAPTURE(starts);
    CHECK(error < tolerance);
  }
  const auto [least, most] = std::minmax_element(expected.begin(), expected.end());
  CHECK(*most - *least > 0.5f);
  if (std::string_view(network).find("softmax") != std::string_view::npos) CHECK(*least < 0);  // logits
}

TEST_CASE("a network that reads several positions at once keeps no keys and values, and names the layer") {
  struct Network {
    const char *layer, *problem, *not_causal;
  };
  const auto [layer, problem, not_causal] =
      GENERATE(Network{"lstm: {units: 4, return_sequences: true, name: one}",
                       "the layer 'one' (recurrent) reads all earlier positions", ""},
               Network{"gru: {units: 4, return_sequences: true, return_state: true, name: one}}, {gru: {units: 4, "
                       "return_sequences: true, name: two, initial_state: one}",
                       "the layer 'one' (recurrent) reads all earlier positions",
                       "the layer 'two' (recurrent) may read later positions"},
               Network{"multi_head_attention: {num_heads: 2, key_dim: 4, name: one}", "",
                       "the layer 'one' (attention) may read later positions"},
               Network{"bidirectional: {layers: [{gru: {units: 2, return_sequences: true}}], name: one}",
                       "the layer 'one/forward_layer' (recurrent) reads all earlier positions",
                       "the layer 'one/backward_layer' (recurrent) may read later positions"},
               Network{"conv1d: {filters: 4, kernel_size: 3, padding: same, name: one}", "",
                       "the layer 'one' (conv2d) may read later positions"});
  TestJob job(std::string("{layers: [{embedding: {input_dim: 5, output_dim: 4}}, {") + layer + "}, {dense: 5}]}");
  const GenerationProgram found = generation(job, 1, positions);
  CHECK(found.problem == problem);
  CHECK(found.not_causal == not_causal);
  CHECK(generation(job, positions, {}).problem.empty());
}

TEST_CASE("a program that only fills its caches has no ops after the last keys and values") {
  TestJob job(
      "{preset: gpt2, with: {vocabulary: 13, positions: 12, layers: 2, heads: 2, head_size: 4, width: 8, mlp: 16}}");
  const Program fills = generation(job, 5, positions, false).program, predicts = generation(job, 5, positions).program;
  CHECK(fills.step.predictions[0] == no_tensor);
  const std::vector<Op>& ops = fills.segments[0].ops;
  CHECK(ops.back().def->kind() == "write_cache");
  CHECK(ops.size() + 8 < predicts.segments[0].ops.size());
  Runner runner({generation(job, 1, positions).program, fills});
  Runner whole({generation(job, positions, {}).program});
  std::vector<std::int32_t> tokens(texts * positions);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(7 * i % 13);
  std::vector<std::int32_t> first, next;
  for (std::int64_t n = 0; n < texts; ++n) {
    first.insert(first.end(), tokens.begin() + n * positions, tokens.begin() + n * positions + 5);
    next.push_back(tokens[static_cast<std::size_t>(n * positions + 5)]);
  }
  runner.fill(1, first, {0, 0, 0});
  const std::vector<float> found = runner.logits(0, next, {5, 5, 5}), expected = whole.logits(0, tokens);
  for (std::int64_t n = 0; n < texts; ++n) {
    for (std::int64_t c = 0; c < 13; ++c) {
      CHECK(found[static_cast<std::size_t>(n * 13 + c)] ==
            Approx(expected[static_cast<std::size_t>((n * positions + 5) * 13 + c)]).margin(1e-5));
    }
  }
}

}  // namespace trainctl::generation_test
