// trainctl tokenizer train: makes a vocabulary from texts.
#include <algorithm>
#include <thread>

#include "cmd/tokenizer/tokenizer.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/text/vocabulary_texts.h"
#include "io/text/train/train.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {
namespace {

Pattern pattern_named(const std::string& name) {
  if (name == "llama3") return Pattern::llama3;
  if (name == "qwen2") return Pattern::qwen2;
  return name == "o200k" ? Pattern::o200k : Pattern::gpt2;
}

}  // namespace

int tokenizer_train(const TokenizerOptions& options) {
  const bool bpe = options.kind == "bpe";
  VocabularyRequest request;
  request.kind = bpe ? VocabularyKind::bpe : VocabularyKind::word_piece;
  const VocabularyTexts texts =
      find_vocabulary_texts(options.files, {options.text_column, {}, "name it with --text-column"});
  for (const std::string& left_out : texts.left_out) log::warning(left_out);
  request.files = texts.files;
  request.texts = texts.next;
  request.pattern = pattern_named(options.pattern);
  request.lower_case = !options.cased;
  request.vocabulary_size = options.vocabulary_size;
  request.min_frequency = options.min_frequency;
  request.special_tokens = options.special;
  if (request.special_tokens.empty()) {
    request.special_tokens = bpe ? std::vector<std::string>{"<|endoftext|>"}
                                 : std::vector<std::string>{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  }
  const auto& special = request.special_tokens;
  if (!bpe && std::find(special.begin(), special.end(), "[UNK]") == special.end()) {
    throw Error(ErrorKind::config, "a WordPiece vocabulary requires the special token [UNK]", "add --special [UNK]");
  }
  request.threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 64U));
  const TrainedTokenizer trained = train_tokenizer(request);
  write_file(options.out, trained.json);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true},
                          {"tokenizer", options.out},
                          {"tokens", trained.tokens},
                          {"merges", trained.merges},
                          {"words", trained.words}}));
  } else if (!options.common.quiet) {
    answer(format("{}: {} by {}, from {} different words\n", options.out, counted(trained.tokens, "token"),
                  counted(trained.merges, "merge"), grouped(trained.words)));
  }
  return 0;
}

}  // namespace trainctl
