// trainctl tokenizer info: shows the kind, the size and the special tokens of a tokenizer.
#include "cmd/tokenizer/tokenizer.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "io/text/load.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {

int tokenizer_info(const TokenizerOptions& options) {
  const auto tokenizer = load_tokenizer(options.tokenizer, options.encoding);
  if (options.common.json) {
    Json special = Json::array();
    for (const SpecialToken& token : tokenizer->special_tokens()) {
      special.push_back({{"id", token.id}, {"text", token.text}});
    }
    answer(json_line(Json{{"ok", true},
                          {"kind", tokenizer->kind()},
                          {"vocabulary_size", tokenizer->vocabulary_size()},
                          {"takes_any_bytes", tokenizer->takes_any_bytes()},
                          {"special_tokens", special},
                          {"ids_before", tokenizer->ids_before()},
                          {"ids_after", tokenizer->ids_after()}}));
    return 0;
  }
  std::string text =
      format("{}: {}, {} ids, {}\n", options.tokenizer, tokenizer->kind(), grouped(tokenizer->vocabulary_size()),
             tokenizer->takes_any_bytes() ? "encodes any bytes" : "encodes UTF-8");
  TextTable table({{"id", TextTable::Align::right}, {"special token"}});
  for (const SpecialToken& token : tokenizer->special_tokens()) table.add({std::to_string(token.id), token.text});
  if (!tokenizer->special_tokens().empty()) text += table.text();
  answer(text);
  return 0;
}

}  // namespace trainctl
