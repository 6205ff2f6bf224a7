// Reads prompts, shares them among the ranks and prints how the network continues them.
#include "run/generation/generate.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/output.h"
#include "core/base/table.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/load.h"
#include "io/datasets/dataset.h"
#include "io/datasets/text/labelled_texts.h"
#include "io/datasets/text/text_tokenizer.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/comm/text.h"
#include "parallel/launch/ranks/run_rank.h"
#include "run/generation/generator.h"
#include "run/job/device.h"
#include "run/job/pretrained.h"
#include "run/job/trained_network.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Texts that a rank continues together. The number does not depend on the ranks, so that the texts do not either.
constexpr std::size_t texts_at_once = 8;

constexpr const char* no_beginning = "the tokenizer has no token with which documents begin or end";

// The prompts of the command line, or those of the file. Leaves out the file's empty prompts if the tokenizer has no
// token with which documents begin or end.
std::vector<std::string> read_prompts(const GenerateOptions& options, const LanguageText& language) {
  if (options.file.empty()) return options.prompts;
  const auto make_work = [] {
    return [](std::string_view text, const std::string&, WorkedText& worked) { worked.text = text; };
  };
  const FileRole role{ErrorKind::data, "give the path of a file of prompts"};
  if (!is_folder(options.file, role) && InputFile(options.file, role).size() == 0) {
    data_error(options.file, "is empty", "give a .txt file with a prompt in each line, or a .jsonl or .csv file");
  }
  const LabelledTexts found =
      read_labelled_texts(options.file, {.text_remedy = "name it `text`"}, TextClasses::absent, make_work);
  std::vector<std::string> prompts;
  for (const WorkedText& text : found.texts) prompts.push_back(text.text);
  if (language.begin_token || language.end_token) return prompts;
  const auto empty =
      static_cast<std::int64_t>(std::erase_if(prompts, [](const std::string& prompt) { return prompt.empty(); }));
  if (prompts.empty()) data_error(options.file, format("holds only empty prompts, and {}", no_beginning));
  if (empty > 0) {
    log::warning(format("{}: {} {} left out, since {}", options.file, counted(empty, "empty prompt"),
                        empty == 1 ? "is" : "are", no_beginning));
  }
  return prompts;
}

// Returns rank 0's prompts, which may hold any bytes, on all ranks.
std::vector<std::string> shared_prompts(const GenerateOptions& options, const LanguageText& language,
                                        RankContext& context, Stream& host) {
  std::vector<std::string> prompts;
  if (context.world.rank() == 0) prompts = read_prompts(options, language);
  const auto share = [&](const std::string& text) {
    return broadcast_text(text, 0, context.world.communicator(), host);
  };
  prompts.resize(std::stoul(share(std::to_string(prompts.size()))));
  for (std::string& prompt : prompts) prompt = share(prompt);
  return prompts;
}

// The tokens that have no text: numbers that a tokenizer's file leaves out.
std::vector<TokenId> tokens_without_text(const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens;
  const auto decoder = tokenizer.make_decoder();
  for (TokenId token = 0; token < tokenizer.vocabulary_size(); ++token) {
    try {
      std::string ignored;
      decoder->decode(token, ignored);
    } catch (const Error&) {
      tokens.push_back(token);
    }
  }
  return tokens;
}

// The tokens of a prompt, which begins like a document. An empty prompt is the beginning of a document, which follows
// the end of another one if documents have no token with which they begin.
std::vector<TokenId> tokens_of(const std::string& prompt, const LanguageText& language, Encoder& encoder,
                               const Generator& generator) {
  std::vector<TokenId> tokens;
  encoder.encode(prompt, tokens, "the prompt");
  const auto& begin = language.begin_token;
  if (begin && (tokens.empty() || tokens[0] != *begin)) tokens.insert(tokens.begin(), *begin);
  if (tokens.empty() && language.end_token) tokens.push_back(*language.end_token);
  if (tokens.empty()) {
    throw Error(ErrorKind::config, format("the prompt is empty, and {}", no_beginning), "give --prompt a text");
  }
  for (const TokenId token : tokens) {
    if (token < generator.known_tokens()) continue;
    throw Error(
        ErrorKind::data,
        format("the prompt has token {}, but the network knows tokens below {}", token, generator.known_tokens()),
        "name the tokenizer of the training: --set data.tokenizer=PATH");
  }
  return tokens;
}

Json result_of(const std::string& prompt, const ContinuedText& text) {
  return {{"prompt", prompt},
          {"text", text.text()},
          {"tokens", text.new_tokens()},
          {"end", std::string(name_of(*text.ended()))}};
}

// Prints a single text while it grows.
class GrowingText {
 public:
  GrowingText(const std::string& prompt, const ContinuedText& text) : text_(text) { open_ = write_output(prompt); }

  // Returns false once the reader has closed the output.
  bool show() {
    const std::string_view settled = text_.settled();
    if (open_ && settled.size() > shown_) open_ = write_output(settled.substr(shown_));
    shown_ = settled.size();
    return open_;
  }
  void finish() {
    show();
    if (open_) write_output("\n");
  }

 private:
  const ContinuedText& text_;
  std::size_t shown_ = 0;
  bool open_ = false;
};

// Continues the prompts that the ranks share.
class Continuation {
 public:
  Continuation(const RunSpec& spec, const GenerateOptions& options, const TrainedNetwork& network, RankContext& context)
      : options_(options), context_(context), device_(open_device(spec.cluster, spec.train, spec.strategy, context)) {
    const auto language = spec.data.dataset.as<DatasetOptions>().language_text();
    if (!language) {
      throw CollectiveError(ErrorKind::config, "--prompt needs a language model: a network trained on `dataset: text`",
                            "give the inputs of this network as files");
    }
    language_ = *language;
    end_ = options.end;
    end_.end_token = language_.end_token;
    prompts_ = shared_prompts(options, language_, context, device_.host);
    RestoreSource stored;
    std::optional<NetworkWeights> weights;
    if (context.world.rank() == 0) {
      weights = network.load(spec, "continues with the weights of");
      stored = {&weights->checkpoint.snapshot, weights->checkpoint.path, network.config()};
    }
    const auto texts = static_cast<std::int64_t>(std::min(prompts_.size(), texts_at_once));
    const std::int64_t vocabulary = language_.tokenizer.tokenizer->vocabulary_size();
    const GeneratorSizes sizes{.texts = texts,
                               .positions = language_.positions,
                               .vocabulary = vocabulary,
                               .without_text = tokens_without_text(*language_.tokenizer.tokenizer)};
    generator_ = std::make_unique<Generator>(spec, sizes, device_, stored, context.world);
    if (context.world.rank() == 0 && !generator_->problem().empty()) {
      log::info(format("all positions are computed again for each token: {}", generator_->problem()));
    }
  }

  bool single() const { return prompts_.size() == 1; }

  // Takes the objects of some texts. Returns false if no further ones are wanted.
  using Take = std::function<bool(const Json& results)>;

  // Continues all prompts. Calls take() on rank 0 with the objects of the texts, in the order of the prompts; without
  // take(), prints a single text as it grows.
  void run(const Take& take) {
    const double begin = seconds_now();
    const auto ranks = static_cast<std::size_t>(context_.world.size());
    const auto rank = static_cast<std::size_t>(context_.world.rank());
    for (std::size_t first = 0; first < prompts_.size(); first += ranks * texts_at_once) {
      const std::string own = json_text(continue_group(first + rank * texts_at_once, take == nullptr));
      const auto all = gather_texts(own, context_.world.communicator(), device_.host);
      bool ends = false;
      for (const std::string& of_rank : all) ends = !collect(parse_json(of_rank), take) || ends;
      if (any_rank(ends, context_.world.communicator(), device_.host)) break;
    }
    if (context_.world.rank() != 0) return;
    const double seconds = seconds_now() - begin;
    log::info(format("{} in {:.2f} s: {:.0f} tokens/s", counted(new_tokens_, "new token"), seconds,
                     static_cast<double>(new_tokens_) / seconds));
  }

 private:
  bool collect(const Json& results, const Take& take) {
    for (const Json& result : results) new_tokens_ += result["tokens"].get<std::int64_t>();
    return take == nullptr || take(results);
  }

  // Continues the prompts [first, first + texts_at_once), as far as there are any.
  Json continue_group(std::size_t first, bool prints) {
    Json results = Json::array();
    if (first >= prompts_.size()) return results;
    const std::size_t end = std::min(prompts_.size(), first + texts_at_once);
    const auto encoder = language_.tokenizer.tokenizer->make_encoder(SpecialText::recognized);
    std::vector<ContinuedText> texts;
    for (std::size_t i = first; i < end; ++i) {
      texts.emplace_back(tokens_of(prompts_[i], language_, *encoder, *generator_), *language_.tokenizer.tokenizer,
                         end_);
    }
    std::optional<GrowingText> growing;
    if (prints) growing.emplace(prompts_[first], texts[0]);
    generator_->run(texts, static_cast<std::int64_t>(first), options_.sampling,
                    [&] { return !growing || growing->show(); });
    if (growing) growing->finish();
    for (std::size_t i = first; i < end; ++i) {
      if (texts[i - first].ended()) results.push_back(result_of(prompts_[i], texts[i - first]));
    }
    return results;
  }

  const GenerateOptions& options_;
  RankContext& context_;
  RankDevice device_;
  LanguageText language_;
  EndOptions end_;
  std::vector<std::string> prompts_;
  std::unique_ptr<Generator> generator_;
  std::int64_t new_tokens_ = 0;
};

}  // namespace

void generate(const RunSpec& spec, const GenerateOptions& options, const TrainedNetwork& network,
              const std::string& out, bool json, RankContext& context) {
  Continuation continuation(spec, options, network, context);
  context.end_start();
  if (json) {
    Json all = Json::array();
    continuation.run([&](const Json& results) {
      all.insert(all.end(), results.begin(), results.end());
      return true;
    });
    if (context.world.rank() == 0) write_output(json_text({{"texts", all}}) + "\n");
    return;
  }
  const auto lines_of = [](const Json& results) {
    std::string lines;
    for (const Json& result : results) lines += json_text(result) + "\n";
    return lines;
  };
  if (!out.empty() && context.world.rank() == 0) {
    write_file(out, 0, [&](OutputFile& file) {
      continuation.run([&](const Json& results) {
        const std::string lines = lines_of(results);
        file.write(lines.data(), std::ssize(lines));
        return true;
      });
    });
    return;
  }
  if (continuation.single() && out.empty()) {
    continuation.run(nullptr);
  } else {
    continuation.run([&](const Json& results) { return write_output(lines_of(results)); });
  }
}

}  // namespace trainctl
