// Throws errors for names and texts that are not UTF-8.
#include "io/datasets/utf8_names.h"

#include "core/base/file_names.h"
#include "core/base/format.h"
#include "core/base/shell_words.h"
#include "core/base/utf8.h"
#include "io/datasets/tables/csv_table.h"

namespace trainctl {
namespace {

constexpr const char* which_encoding = "Latin-1 is the usual encoding of older systems in Western Europe";

void require_utf8_words(const std::string& path, std::string_view what, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (find_invalid_utf8(word)) require_utf8_text(path, what, word);
  }
}

}  // namespace

void require_utf8_path(const std::string& path) {
  const auto invalid = find_invalid_utf8(path);
  if (!invalid) return;
  const std::size_t slash = path.rfind('/', *invalid);  // before the first name that must be converted
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  data_error(valid_utf8(path), "the name is not UTF-8, so a run cannot write it into its config",
             format("convert the names there: convmv -r -f LATIN1 -t UTF-8 --notest {} ({})", shell_word(folder),
                    which_encoding));
}

void require_utf8_text(const std::string& file, std::string_view where, std::string_view text) {
  if (!find_invalid_utf8(text)) return;
  constexpr std::size_t shown = 40;
  const std::string name = valid_utf8(file);
  data_error(name,
             format("{}: '{}' is not UTF-8, so a run cannot write it into its config", where,
                    valid_utf8(text.substr(0, shown))),
             format("convert the file: iconv -f LATIN1 -t UTF-8 {} > {} ({})", shell_word(name),
                    shell_word(name_of_copy(name, "utf8")), which_encoding));
}

void require_utf8_info(const std::string& path, const DatasetInfo& info) {
  require_utf8_words(path, "a class", info.class_names);
  if (!info.table) return;
  for (const auto& names : info.table->targets) require_utf8_words(path, "a target column", names);
  require_utf8_words(path, "the weight column", {info.table->weight});
  for (const TableInfo::Column& column : info.table->columns) {
    require_utf8_words(path, "a column", {column.name});
    require_utf8_words(path, format("column '{}'", valid_utf8(column.name)), column.vocabulary);
  }
}

}  // namespace trainctl
