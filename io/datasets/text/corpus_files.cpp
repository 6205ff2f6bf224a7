// Finds the files of a corpus.
#include <algorithm>
#include <cstring>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/text/corpus.h"
#include "io/datasets/text/token_file.h"
#include "io/datasets/text_encoding.h"

namespace trainctl {
namespace {

constexpr std::int64_t bytes_that_tell = 8000;  // git looks at as many for a zero byte

bool holds_zero_byte(const InputFile& file) {
  std::string begin(bytes_that_tell, '\0');
  const auto count = static_cast<std::size_t>(file.read_some(0, begin.data(), bytes_that_tell));
  return std::memchr(begin.data(), 0, count) != nullptr;
}

CorpusFileKind kind_of_file(const std::string& path) {
  if (has_ending(path, {".jsonl", ".ndjson"})) return CorpusFileKind::json_lines;
  return has_ending(path, {".csv"}) ? CorpusFileKind::table : CorpusFileKind::plain;
}

struct LeftOutFiles {
  std::int64_t hidden = 0, binary = 0;
};

void add_files(const std::string& folder, Corpus& corpus, LeftOutFiles& left_out) {
  for (const FolderEntry& entry : list_folder(folder, data_role)) {
    const std::string path = folder + "/" + entry.name;
    if (is_system_name(entry.name)) {
      ++left_out.hidden;
      continue;
    }
    const FileType type = entry.type == FileType::link ? file_type(path) : entry.type;
    if (type == FileType::folder) {
      if (entry.type != FileType::link) add_files(path, corpus, left_out);
    } else if (is_token_file(path)) {
      corpus.token_files.push_back(path);
    } else if (type == FileType::regular && !has_ending(path, {".idx"})) {
      const InputFile file(path, data_role);
      if (holds_zero_byte(file)) {
        ++left_out.binary;
      } else if (file.size() > 0) {
        corpus.files.push_back({path, kind_of_file(path), file.size()});
      }
    }
  }
}

std::string text_of_left_out(const LeftOutFiles& files) {
  const auto left_out = [](std::int64_t count, const std::string& kind) {
    return count == 0 ? "" : format("{} {} left out", counted(count, kind), count == 1 ? "is" : "are");
  };
  const std::string binary = left_out(files.binary, "binary file"), hidden = left_out(files.hidden, "hidden file");
  return binary.empty() || hidden.empty() ? binary + hidden : binary + "; " + hidden;
}

}  // namespace

std::int64_t Corpus::bytes() const {
  std::int64_t sum = 0;
  for (const CorpusFile& file : files) sum += file.bytes;
  return sum;
}

Corpus find_corpus(const std::string& path) {
  Corpus corpus;
  corpus.path = path;
  if (is_token_file(path)) {
    corpus.token_files = {path};
    return corpus;
  }
  if (!is_folder(path, data_role)) {
    const InputFile file(path, data_role);
    if (file.size() == 0) data_error(path, "is empty", "give a file of text, or a folder of such files");
    if (holds_zero_byte(file)) {
      char first[64];
      refuse_other_than_text(path, {first, static_cast<std::size_t>(file.read_some(0, first, sizeof first))});
      data_error(path, "is not text: it holds a zero byte",
                 "give text, .jsonl or .csv files, or token files that end in .bin or .npy");
    }
    corpus.files.push_back({path, kind_of_file(path), file.size()});
    return corpus;
  }
  LeftOutFiles left_out;
  add_files(path, corpus, left_out);
  std::sort(corpus.files.begin(), corpus.files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  std::sort(corpus.token_files.begin(), corpus.token_files.end());
  const std::string text = text_of_left_out(left_out);
  if (!text.empty()) corpus.left_out = path + ": " + text;
  if (corpus.files.empty() && corpus.token_files.empty()) {
    data_error(path, "holds no text" + (text.empty() ? "" : ": " + text), "put text, .jsonl or .csv files into it");
  }
  if (!corpus.files.empty() && !corpus.token_files.empty()) {
    data_error(path, format("holds both text ({}) and tokens ({})", corpus.files[0].path, corpus.token_files[0]),
               "put them into folders of their own");
  }
  return corpus;
}

}  // namespace trainctl
