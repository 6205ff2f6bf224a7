// Counts the words of a corpus, by which vocabularies are trained.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainctl {

// Words and how often they occur, in the order of their bytes.
using WordCounts = std::vector<std::pair<std::string, std::int64_t>>;

// Calls found(word) for each word of a line, which includes its line feed.
using LineWords = std::function<void(std::string_view line, const std::function<void(std::string_view)>& found)>;

// Calls visit(text, place) for each of some texts. `place` names the text in errors.
using Texts = std::function<void(const std::function<void(std::string_view text, const std::string& place)>& visit)>;
// Returns the next texts, or no value after the last ones. It is called by one thread at a time, but the returned
// function by any thread.
using NextTexts = std::function<std::optional<Texts>()>;

// Counts the words of text files and of further texts (`next` may be empty) on `threads` threads, each of which makes
// its own `make_line_words()`. The result does not depend on the number of threads. If `utf8`, throws Error{data} with
// file and offset for a byte that is not UTF-8; `kind` names the vocabulary in the error.
WordCounts count_words(const std::vector<std::string>& files, const NextTexts& next, int threads,
                       const std::function<LineWords()>& make_line_words, bool utf8, const std::string& kind);

}  // namespace trainctl
