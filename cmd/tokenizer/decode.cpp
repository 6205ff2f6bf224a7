// trainctl tokenizer decode: writes the text of ids.
#include "cmd/tokenizer/tokenizer.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/output.h"
#include "core/base/table.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/text/id_files.h"
#include "io/text/load.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {

int tokenizer_decode(const TokenizerOptions& options) {
  if (options.files.size() != 1) throw Error(ErrorKind::config, "tokenizer decode requires one file of ids");
  require_not_input("--out", options.out, options.files);
  require_not_input("--out", options.out, {options.tokenizer});
  if (!options.out.empty()) require_absent(options.out, options.force);
  const auto tokenizer = load_tokenizer(options.tokenizer, options.encoding);
  const std::vector<TokenId> ids = read_ids(options.files.front());
  const std::string text = tokenizer->decode(ids);
  if (!options.out.empty()) write_file(options.out, text);
  if (options.common.json) {
    answer(json_line(Json{{"ok", true}, {"tokens", ids.size()}, {"bytes", text.size()}, {"text", text}}));
  } else if (options.out.empty()) {
    write_output_bytes(text);
  } else if (!options.common.quiet) {
    answer(format("{}: {} of {}\n", options.out, byte_text(static_cast<std::int64_t>(text.size())),
                  counted(ids.size(), "token")));
  }
  return 0;
}

}  // namespace trainctl
