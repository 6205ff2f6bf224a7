// trainctl tokenizer: looks at tokenizers, and encodes and decodes texts.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "cmd/tokenizer/tokenizer.h"
#include "core/base/error.h"

namespace trainctl {
namespace {

int run_tokenizer(const TokenizerOptions& options) {
  if (options.action == "encode") return tokenizer_encode(options);
  if (options.action == "decode") return tokenizer_decode(options);
  if (!options.files.empty())
    throw Error(ErrorKind::config, "tokenizer info looks at a tokenizer only; leave the files out");
  return tokenizer_info(options);
}

}  // namespace

Subcommand tokenizer_subcommand() {
  return {
      "tokenizer", "Shows a tokenizer, or encodes and decodes texts with it",
      "trainctl tokenizer encode tokenizer.json book.txt --out ids.npy", [](CLI::App& app) {
        auto options = std::make_shared<TokenizerOptions>();
        app.add_option("ACTION", options->action, "What to do: info, encode or decode")
            ->required()
            ->check(one_of({"info", "encode", "decode"}));
        app.add_option("TOKENIZER", options->tokenizer, "A tokenizer.json, a rank file of tiktoken, or the word bytes")
            ->required()
            ->type_name("");
        app.add_option("FILE", options->files, "encode: texts; decode: ids, as an .npy file or as numbers in a text")
            ->type_name("");
        app.add_option("--encoding", options->encoding,
                       "The encoding of a rank file, such as cl100k_base; default: found out by its size")
            ->type_name("NAME");
        app.add_option("-o,--out", options->out, "encode: the .npy file for the ids; decode: the file for the text")
            ->type_name("PATH");
        app.add_flag("--plain", options->plain, "encode: the texts of special tokens are encoded like other text");
        app.add_flag("--frame", options->frame,
                     "encode: adds the ids that the tokenizer puts around a text, such as those of [CLS] and [SEP]");
        app.add_flag("--force", options->force, "Replaces the output file if it exists");
        add_output_options(app, options->common);
        return [options] { return run_tokenizer(*options); };
      }};
}

}  // namespace trainctl
