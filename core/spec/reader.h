// Collects the findings of one config, so that all errors come at once.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/base/error.h"

namespace trainctl {

struct TypeInfo;

class Reader {
 public:
  void error(const Place& place, std::string message) { diagnostics_.push_back({place, std::move(message), {}, {}}); }
  void error(const Place& place, std::string message, const Place& related_place, std::string related) {
    diagnostics_.push_back({place, std::move(message), related_place, std::move(related)});
  }
  // "epochs must be a whole number or none, not 'ten'": the key being read, what is expected, what stands there.
  void expected(const Node& node, std::string_view what);
  void expected(const Node& node, const TypeInfo& type);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  bool ok() const { return diagnostics_.empty(); }
  // Whether something was reported about the value at this place already.
  bool reported(const Place& place) const;
  // Throws ConfigError with everything found, file by file, in the order of each file.
  void throw_if_failed() const;

  // The key being read, for messages; "the value" outside of any section.
  const std::string& key() const { return context_.key; }

 private:
  friend class ReadingContext;
  struct Context {
    std::string key = "the value";
    std::vector<std::string> words;
  };
  std::vector<Diagnostic> diagnostics_;
  Context context_;
};

// While it lives, the reader reads this key; or: these words are accepted beside what is expected ("none").
class ReadingContext {
 public:
  ReadingContext(Reader& reader, std::string key) : reader_(reader), outer_(reader.context_) {
    reader.context_ = {std::move(key), {}};
  }
  ReadingContext(Reader& reader, const std::vector<std::string>& words) : reader_(reader), outer_(reader.context_) {
    reader.context_.words.insert(reader.context_.words.begin(), words.begin(), words.end());
  }
  ~ReadingContext() { reader_.context_ = std::move(outer_); }
  ReadingContext(const ReadingContext&) = delete;
  ReadingContext& operator=(const ReadingContext&) = delete;

 private:
  Reader& reader_;
  Reader::Context outer_;
};

// The nearest of the names by edit distance, or "" where none is near.
std::string nearest(std::string_view name, const std::vector<std::string>& names);
// "; did you mean 'units'?", or "" where no name is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& names);
// "a, b or c".
std::string join_or(const std::vector<std::string>& words);

}  // namespace trainctl
