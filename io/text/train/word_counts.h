// Counts the words of a corpus, by which vocabularies are trained.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainctl {

// Words and how often they occur, in the order of their bytes.
using WordCounts = std::vector<std::pair<std::string, std::int64_t>>;

// Calls found(word) for each word of a line, which includes its line feed.
using LineWords = std::function<void(std::string_view line, const std::function<void(std::string_view)>& found)>;

// Counts the words of text files on `threads` threads, each of which makes its own `make_line_words()`. The result does
// not depend on the number of threads. If `utf8`, throws Error{data} with file and offset for a byte that is not UTF-8;
// `kind` names the vocabulary in the error.
WordCounts count_words(const std::vector<std::string>& files, int threads,
                       const std::function<LineWords()>& make_line_words, bool utf8, const std::string& kind);

}  // namespace trainctl
