// trainctl tokenizer: looks at tokenizers, encodes and decodes texts, and trains vocabularies.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cmd/number_checks.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "cmd/tokenizer/tokenizer.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/spec/units.h"

namespace trainctl {
namespace {

struct TokenizerCommand {
  TokenizerOptions options;
  // Options, each with the actions that accept it.
  std::vector<std::pair<const CLI::Option*, std::string>> only_for;
};

int run_tokenizer(const TokenizerCommand& command) {
  TokenizerOptions options = command.options;
  for (const auto& [option, actions] : command.only_for) {
    if (option->count() == 0 || actions.find(options.action) != std::string::npos) continue;
    throw Error(ErrorKind::config, format("{} is only for tokenizer {}", option->get_name(), actions), "leave it out");
  }
  if (options.action == "encode") return tokenizer_encode(options);
  if (options.action == "decode") return tokenizer_decode(options);
  if (options.action == "info") {
    if (options.files.empty()) return tokenizer_info(options);
    throw Error(ErrorKind::config, "tokenizer info looks at a tokenizer only", "leave the files out");
  }
  options.files.insert(options.files.begin(), options.tokenizer);  // all arguments are files of the corpus
  if (options.out.empty()) {
    throw Error(ErrorKind::config, "tokenizer train requires --out", "name the file, such as --out tokenizer.json");
  }
  for (const std::string& file : options.files) require_not_input("--out", options.out, all_files_in(file));
  require_not_input("--out", options.out, options.files);
  require_absent(options.out, options.force);
  return tokenizer_train(options);
}

constexpr std::int64_t most_tokens = 10'000'000;  // and occurrences

void add_training_options(CLI::App& app, TokenizerCommand& command) {
  TokenizerOptions& options = command.options;
  const auto only = [&command](CLI::Option* option) {
    command.only_for.emplace_back(option, "train");
    return option;
  };
  only(app.add_option("--kind", options.kind, "train: bpe (byte-level) or wordpiece; default: bpe"))
      ->check(one_of({"bpe", "wordpiece"}));
  only(app.add_option("--vocabulary-size", options.vocabulary_size, "train: the number of tokens; default: 32000"))
      ->type_name("N")
      ->check(whole_number_from(1, most_tokens));
  only(app.add_option("--min-frequency", options.min_frequency,
                      "train: pairs that occur less often are not merged; default: 0"))
      ->type_name("N")
      ->check(whole_number_from(0, most_tokens));
  only(app.add_option("--special", options.special,
                      "train: a special token (repeatable); default: <|endoftext|>, for wordpiece those of BERT"))
      ->type_name("TOKEN")
      ->allow_extra_args(false);
  only(app.add_option("--pattern", options.pattern, "train bpe: how a text is split into words; default: gpt2"))
      ->check(one_of({"gpt2", "llama3", "qwen2", "o200k"}));
  only(app.add_option("--text-column", options.text_column,
                      "train: the key of the text in .jsonl files, and its column in .csv files; default: text"))
      ->type_name("NAME");
  only(app.add_flag("--cased", options.cased, "train wordpiece: keeps upper case and accents"));
}

}  // namespace

Subcommand tokenizer_subcommand() {
  return {
      "tokenizer", "Shows a tokenizer, encodes and decodes texts with it, or trains one",
      "trainctl tokenizer encode tokenizer.json book.txt --out ids.npy", [](CLI::App& app) {
        auto command = std::make_shared<TokenizerCommand>();
        TokenizerOptions* options = &command->options;
        app.add_option("ACTION", options->action, "What to do: info, encode, decode or train")
            ->required()
            ->check(one_of({"info", "encode", "decode", "train"}));
        app.add_option(
               "TOKENIZER", options->tokenizer,
               "A tokenizer.json, a rank file of tiktoken, a model of SentencePiece, or the word bytes; train: a "
               "text, or a folder of texts")
            ->required()
            ->type_name("");
        app.add_option("FILE", options->files,
                       "encode: texts; train: texts, .jsonl or .csv files, or folders of such files; decode: ids, as "
                       "an .npy file or as numbers in a text")
            ->type_name("");
        app.add_option("--encoding", options->encoding,
                       "The encoding of a rank file, such as cl100k_base; default: found out by its size")
            ->type_name("NAME");
        app.add_option("-o,--out", options->out,
                       "encode: the .npy file for the ids; decode: the file for the text; train: the tokenizer.json")
            ->type_name("PATH");
        app.add_flag("--plain", options->plain, "encode: the texts of special tokens are encoded like other text");
        app.add_flag("--frame", options->frame,
                     "encode: adds the ids that the tokenizer puts around a text, such as those of [CLS] and [SEP]");
        app.add_flag("--force", options->force, "Replaces the output file if it exists");
        add_training_options(app, *command);
        add_output_options(app, options->common);
        return [command] { return run_tokenizer(*command); };
      }};
}

}  // namespace trainctl
