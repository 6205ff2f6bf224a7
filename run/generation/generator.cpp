// Runs a language model with a cache of keys and values, and lets choose_token() choose what follows.
#include "run/generation/generator.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/format.h"
#include "core/compile/lower.h"
#include "core/program/build.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/comm/communicators.h"
#include "run/job/device.h"
#include "run/job/kept_kernels.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// The positions of a prompt that are computed at once.
constexpr std::int64_t prompt_steps = 64;

ProgramSpec language_model(const RunSpec& spec, std::int64_t steps) {
  ProgramSpec program;
  program.model = &spec.model;
  program.inputs.clear();
  for (const std::string& name : input_names(spec.model)) {
    program.inputs.push_back({name, Shape{steps}, {DType::int32, {}, {}}});
  }
  program.outputs.clear();
  for (const std::string& name : output_names(spec.model)) program.outputs.emplace_back().name = name;
  program.compute = spec.train.compute();
  program.seed = spec.seed;
  return program;
}

// The number of the input whose values are tokens. Throws Error{config} if the network is not a language model.
std::size_t find_tokens(const RunSpec& spec) {
  const DataUse use = data_use(spec);
  const auto reads_tokens = [](const DataUse::Input& input) { return input.tokens > 0; };
  const auto found = std::find_if(use.inputs.begin(), use.inputs.end(), reads_tokens);
  if (found != use.inputs.end() && use.targets.size() == 1) {
    return static_cast<std::size_t>(found - use.inputs.begin());
  }
  throw CollectiveError(ErrorKind::config, "the network does not map tokens to one output, and cannot continue a text",
                        "use a network that was trained on `dataset: text`");
}

}  // namespace

struct Generator::Steps {
  std::int64_t count = 0;  // new positions of each text
  int program = 0;
  TensorId logits = no_tensor;
  std::vector<std::vector<std::int32_t>> inputs;  // of each input of the model, [texts, count]
  std::vector<std::int32_t> starts;
  std::vector<std::int64_t> samples;
  Batch batch;
};

struct Generator::ReadTokens {
  std::int64_t begin = 0;  // the token at the network's first position
  std::int64_t done = 0;   // positions that the network has computed, and keeps
  std::int64_t added = 0;  // positions of the last step; 0 or less: none

  // The number of tokens that the network has not read yet; 0 for a text that has ended.
  std::int64_t open(const ContinuedText& text) const {
    return text.ended() ? 0 : std::ssize(text.tokens()) - begin - done;
  }
};

Generator::~Generator() = default;

Generator::Generator(const RunSpec& spec, const GeneratorSizes& sizes, RankDevice& device, const RestoreSource& stored,
                     World& world)
    : sizes_(sizes), tokens_input_(find_tokens(spec)) {
  known_tokens_ = data_use(spec).inputs[tokens_input_].tokens;
  std::vector<Program> programs;
  add_program(spec, 1, programs);
  if (!problem_.empty()) {
    add_program(spec, sizes.positions, programs);
  } else if (sizes.positions > 1) {
    add_program(spec, std::min(sizes.positions, prompt_steps), programs);
  }
  alone_ = solo_communicator(*device.backend);
  KernelChoices choices = kept_kernels(spec, *device.backend);
  engine_ = std::make_unique<Engine>(*device.backend, *alone_, compile(programs, *device.backend, choices));
  restore_weights(stored, *engine_, world.communicator(), device.host);
}

// Adds the program for `steps` new positions: with logits for one position, otherwise for filling the caches. If the
// network cannot keep keys and values, sets problem_ and adds nothing; the next program then has logits and begins at
// the first position.
void Generator::add_program(const RunSpec& spec, std::int64_t steps, std::vector<Program>& programs) {
  const ProgramSpec of_model = language_model(spec, steps);
  Reader reader;
  const bool keeps = problem_.empty();
  GenerationRequest request{.samples = sizes_.texts, .tokens = tokens_input_, .predicts = !keeps || steps == 1};
  if (keeps) request.positions = sizes_.positions;
  GenerationProgram built = generation_program(of_model, request, reader);
  reader.throw_if_failed();
  if (!built.not_causal.empty()) {
    throw CollectiveError(ErrorKind::config, format("{}, so that the network cannot continue a text", built.not_causal),
                          "use causal attention (use_causal_mask) or recurrent layers");
  }
  if (!built.problem.empty()) {
    problem_ = std::move(built.problem);
    return;
  }
  auto added = std::make_unique<Steps>();
  added->count = steps;
  added->program = static_cast<int>(programs.size());
  added->logits = built.program.step.predictions[0];
  if (request.predicts) {
    const Shape& logits = built.program.tensor(added->logits).type.shape;
    if (logits.rank() != 3 || logits[1] != steps) {
      throw CollectiveError(ErrorKind::config,
                            format("the network's output {} is not one value for each token at every position",
                                   to_string(logits.without_front())),
                            "only a network whose last layer gives these values can continue a text");
    }
  }
  const auto values = static_cast<std::size_t>(sizes_.texts * steps);
  for (std::size_t i = 0; i < of_model.inputs.size(); ++i) {
    std::vector<std::int32_t>& input = added->inputs.emplace_back(values);
    added->batch.inputs.push_back({input.data(), DType::int32, static_cast<std::int64_t>(values)});
  }
  added->starts.resize(static_cast<std::size_t>(sizes_.texts));
  if (keeps) added->batch.inputs.push_back({added->starts.data(), DType::int32, sizes_.texts});
  for (std::int64_t text = 0; text < sizes_.texts; ++text) added->samples.push_back(text);
  added->batch.samples = {added->samples.data(), DType::int64, sizes_.texts};
  added->batch.count = added->batch.global_count = sizes_.texts;
  steps_.push_back(std::move(added));
  programs.push_back(std::move(built.program));
}

// Computes the next positions of all texts that have not ended.
void Generator::step(Steps& steps, const std::vector<ContinuedText>& texts, std::vector<ReadTokens>& reads) {
  std::vector<std::int32_t>& tokens = steps.inputs[tokens_input_];
  std::fill(tokens.begin(), tokens.end(), 0);
  const bool fills = steps.logits == no_tensor;  // the last token is left to the program with logits
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ReadTokens& read = reads[i];
    steps.starts[i] = static_cast<std::int32_t>(read.done);
    read.added = std::min(read.open(texts[i]) - (fills ? 1 : 0), steps.count);
    if (read.added <= 0) continue;
    std::copy_n(texts[i].tokens().begin() + read.begin + read.done, read.added,
                tokens.begin() + static_cast<std::int64_t>(i) * steps.count);
  }
  StepResult result;
  engine_->run(steps.program, steps.batch, {}, result);
  if (steps.logits != no_tensor) engine_->read_tensor(steps.program, steps.logits, logits_);
}

// The logits of a text after one of the positions of the last step, without those of tokens that may not be chosen.
std::span<const float> Generator::logits(const Steps& steps, std::size_t text, std::int64_t step) {
  const std::int64_t columns = engine_->program(steps.program).program.tensor(steps.logits).type.shape.back();
  const std::int64_t row = static_cast<std::int64_t>(text) * steps.count + step;
  const std::span<float> all(reinterpret_cast<float*>(logits_.data()) + row * columns,
                             static_cast<std::size_t>(std::min({columns, sizes_.vocabulary, known_tokens_})));
  for (const TokenId token : sizes_.without_text) {
    if (index(token) < all.size()) all[index(token)] = std::numeric_limits<float>::quiet_NaN();
  }
  return all;
}

// Moves on to the last tokens of a text that is longer than the positions of the network.
void Generator::fit(const ContinuedText& text, ReadTokens& read) const {
  const std::int64_t length = std::ssize(text.tokens());
  if (length - read.begin <= sizes_.positions) return;
  read.begin = length - (problem_.empty() ? std::max<std::int64_t>(1, sizes_.positions / 2) : sizes_.positions);
  read.done = 0;
}

void Generator::run(std::vector<ContinuedText>& texts, std::int64_t first, const SamplingOptions& options,
                    const std::function<bool()>& added) {
  std::vector<ReadTokens> reads(texts.size());
  for (;;) {
    std::int64_t most = 0;  // new positions of any text
    for (std::size_t i = 0; i < texts.size(); ++i) {
      fit(texts[i], reads[i]);
      most = std::max(most, reads[i].open(texts[i]));
    }
    if (most == 0) return;
    Steps& steps = most == 1 ? *steps_.front() : *steps_.back();
    step(steps, texts, reads);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      ReadTokens& read = reads[i];
      if (read.added <= 0) continue;
      read.done += read.added;
      if (read.open(texts[i]) == 0) {
        const std::int64_t position = std::ssize(texts[i].tokens());
        texts[i].add(
            choose_token(logits(steps, i, read.added - 1), options, first + static_cast<std::int64_t>(i), position));
      }
      if (!problem_.empty()) read.done = 0;
    }
    if (!added()) return;
  }
}

}  // namespace trainctl
