// Cuts files of text into pieces.
#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "core/base/shell_words.h"
#include "core/base/table.h"
#include "core/base/utf8.h"
#include "io/datasets/dataset.h"
#include "io/datasets/tables/csv_header.h"
#include "io/datasets/tables/csv_lines.h"
#include "io/datasets/tables/csv_width.h"
#include "io/datasets/text/corpus.h"

namespace trainctl {
namespace {

constexpr std::size_t piece_bytes = 1 << 20;
constexpr std::size_t excerpt_bytes = 256;  // on each side of a place where a text may be cut
constexpr int tried_cuts = 8;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The texts at both sides of a place, from the first to the last whole character.
std::pair<std::string_view, std::string_view> excerpts(std::string_view text, std::size_t place) {
  std::size_t begin = place > excerpt_bytes ? place - excerpt_bytes : 0;
  std::size_t end = std::min(text.size(), place + excerpt_bytes);
  while (begin < place && continues_character(text[begin])) ++begin;
  while (end > place && end < text.size() && continues_character(text[end])) --end;
  return {text.substr(begin, place - begin), text.substr(place, end - place)};
}

// Returns the beginning of the last line before which the text may be cut; no value if there is none among the last
// lines.
std::optional<std::size_t> last_cut(std::string_view text, const CutTest& may_cut) {
  std::size_t place = text.size() - std::min(text.size(), excerpt_bytes);
  for (int i = 0; i < tried_cuts; ++i) {
    place = place == 0 ? std::string_view::npos : text.rfind('\n', place - 1);
    if (place == std::string_view::npos) return std::nullopt;
    const auto [before, after] = excerpts(text, place + 1);
    if (may_cut(before, after)) return place + 1;
  }
  return std::nullopt;
}

std::string remedy_of_text(const CorpusFormat& format) {
  return format.text_remedy.empty() ? "set `text_column`" : format.text_remedy;
}

constexpr const char* remedy_of_class = "set `class_column`";

std::size_t corpus_column(const std::vector<std::string>& names, const std::string& column, const std::string& remedy,
                          const std::string& path) {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found == names.end()) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    data_error(path, format("has no column '{}'; its columns are: {}", column, all), remedy);
  }
  return static_cast<std::size_t>(found - names.begin());
}

// The value of a key in a line of JSON. A class may also be a whole number or a truth value.
std::string value_of_json(const Json& json, const std::string& key, const std::string& remedy, bool is_class,
                          const SourceLocation& location) {
  const auto found = json.find(key);
  if (found == json.end()) {
    std::string keys;
    for (const auto& [name, value] : json.items()) keys += (keys.empty() ? "" : ", ") + name;
    throw Error(ErrorKind::data, location, format("the object has no key '{}'; its keys are: {}", key, keys), remedy);
  }
  if (found->is_string()) return found->get<std::string>();
  if (is_class && (found->is_number_integer() || found->is_boolean())) return found->dump();
  throw Error(ErrorKind::data, location,
              format("the value of '{}' is not a text{}", key, is_class ? " or a whole number" : ""),
              "correct the line, leave it out, or " + remedy);
}

}  // namespace

std::string remedy_for_json_line(const std::string& path, std::string_view line) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!line.empty() && blank(line.back())) line.remove_suffix(1);
  while (!line.empty() && blank(line.front())) line.remove_prefix(1);
  const std::string copy = shell_word(std::filesystem::path(path).stem().string() + "-lines.jsonl");
  if (line.starts_with('[')) {
    return format("if the file is a list of objects, write each as a line: jq -c '.[]' {} > {}", shell_word(path),
                  copy);
  }
  if (line.starts_with('{') && line.ends_with("},")) {
    return format("leave out the commas after the objects: sed -E 's/,[[:space:]]*$//' {} > {}", shell_word(path),
                  copy);
  }
  return "each line of a .jsonl file must be an object such as {\"text\": \"...\"}";
}

namespace {

// The object that a line of JSON holds.
Json object_of(std::string_view line, const SourceLocation& location) {
  if (const auto offset = find_invalid_utf8(line)) {
    throw Error(ErrorKind::data, location,
                format("byte {} of the line (0x{:02x}) is not UTF-8, in which JSON is written", *offset,
                       static_cast<unsigned char>(line[*offset])),
                "convert the file to UTF-8, for example with iconv");
  }
  JsonFault fault;
  Json json = parse_json(line, fault);
  if (json.is_object()) return json;
  SourceLocation place = location;
  place.column = fault.column;
  const std::string problem = json.is_discarded() ? fault.problem : "it is " + json_kind(json);
  throw Error(ErrorKind::data, place, "the line is not an object of JSON: " + problem,
              remedy_for_json_line(location.file, line));
}

CorpusRow row_of_json(std::string_view line, const CorpusFormat& format, const SourceLocation& location) {
  const Json json = object_of(line, location);
  CorpusRow row;
  row.text = value_of_json(json, format.text_column, remedy_of_text(format), false, location);
  if (format.class_column.empty()) return row;
  row.class_name = value_of_json(json, format.class_column, remedy_of_class, true, location);
  return row;
}

}  // namespace

// The file that is being read: text from a position on, or rows.
struct CorpusPieces::OpenFile {
  explicit OpenFile(const CorpusFile& of) : file(of.path, data_role) {
    char first[byte_order_mark.size()];
    const std::int64_t count = file.read_some(0, first, std::ssize(byte_order_mark));
    if (std::string_view(first, static_cast<std::size_t>(count)) == byte_order_mark) begin = at = count;
  }

  InputFile file;
  std::int64_t begin = 0;  // of the text, in bytes
  std::int64_t at = 0, line = 1;
  std::unique_ptr<CsvLines> rows;
  std::size_t columns = 0, text = 0, class_name = 0;  // of a table: how many there are, and those that are read
};

CorpusPieces::CorpusPieces(const Corpus& corpus, const CorpusFormat& format, CutTest may_cut)
    : corpus_(corpus), format_(format), may_cut_(std::move(may_cut)) {}

CorpusPieces::~CorpusPieces() = default;

bool CorpusPieces::next(CorpusPiece& piece) {
  for (; file_ < corpus_.files.size(); ++file_, open_.reset()) {
    const CorpusFile& file = corpus_.files[file_];
    if (!open_) {
      open_ = std::make_unique<OpenFile>(file);
      if (file.kind == CorpusFileKind::table) {
        const std::vector<std::string> names =
            column_names(file.path, {.delimiter = format_.delimiter, .header = {true}});
        open_->columns = names.size();
        open_->text = corpus_column(names, format_.text_column, remedy_of_text(format_), file.path);
        if (!format_.class_column.empty()) {
          open_->class_name = corpus_column(names, format_.class_column, remedy_of_class, file.path);
        }
        open_->rows = std::make_unique<CsvLines>(file.path, format_.delimiter[0]);
        std::vector<std::string_view> header;
        open_->rows->next(header);
      }
    }
    piece = CorpusPiece{&file};
    file.kind == CorpusFileKind::table ? next_rows(piece) : next_text(piece);
    if (!piece.content.empty() || !piece.rows.empty()) return true;
  }
  return false;
}

void CorpusPieces::next_text(CorpusPiece& piece) {
  OpenFile& open = *open_;
  const bool lines = piece.file->kind == CorpusFileKind::json_lines;
  std::string& text = piece.content;
  piece.offset = open.at;
  piece.line = open.line;
  piece.begins_document = lines || open.at == open.begin;
  while (open.at < open.file.size()) {
    const std::size_t before = text.size();
    text.resize(before + piece_bytes);
    text.resize(before + static_cast<std::size_t>(open.file.read_some(open.at, text.data() + before, piece_bytes)));
    if (text.size() == before) break;  // the file has become shorter
    open.at += static_cast<std::int64_t>(text.size() - before);
    if (open.at >= open.file.size()) break;
    const std::optional<std::size_t> cut = lines ? std::optional(text.rfind('\n') + 1) : last_cut(text, may_cut_);
    if (!cut || *cut == 0) continue;
    open.at -= static_cast<std::int64_t>(text.size() - *cut);
    text.resize(*cut);
    piece.ends_document = lines;
    break;
  }
  if (lines) open.line += std::count(text.begin(), text.end(), '\n');
}

void CorpusPieces::next_rows(CorpusPiece& piece) {
  std::vector<std::string_view> fields;
  for (std::size_t bytes = 0; bytes < piece_bytes && open_->rows->next(fields);) {
    if (fields.size() != open_->columns) refuse_width(open_->rows->place(), fields, open_->columns);
    CorpusRow& row = piece.rows.emplace_back();
    row.text = fields[open_->text];
    if (!format_.class_column.empty()) row.class_name = fields[open_->class_name];
    row.line = open_->rows->place().line;
    bytes += row.text.size();
  }
}

void for_each_text(const CorpusPiece& piece, const CorpusFormat& format,
                   const std::function<void(const CorpusText& text)>& visit) {
  if (piece.file->kind == CorpusFileKind::plain) return visit({piece.content, {}});
  for (const CorpusRow& row : piece.rows) visit({row.text, row.class_name, row.line});
  const std::string_view text = piece.content;
  std::int64_t line = piece.line;
  for (std::size_t at = 0; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view found = text.substr(at, end - at);
    if (found.find_first_not_of(" \t\r") != std::string_view::npos) {
      const CorpusRow row = row_of_json(found, format, {piece.file->path, static_cast<int>(line), 0});
      visit({row.text, row.class_name, line});
    }
    at = end + 1;
  }
}

}  // namespace trainctl
