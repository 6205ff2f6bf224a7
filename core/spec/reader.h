// Collects the errors of one config, so that all are reported at once.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/base/error.h"

namespace trainctl {

struct TypeInfo;

// The limits of one config with everything that it includes, repeats and refers to: enough for any network, and read in
// less than a second.
struct ConfigLimits {
  static constexpr std::size_t values = 200'000;
  static constexpr std::size_t bytes = 4'000'000;  // of the files, and of what aliases and variables add
  static constexpr std::size_t files = 100;
  static constexpr std::size_t levels = 100;
  static constexpr std::size_t errors = 100;  // the most that are reported
};

class Reader {
 public:
  // Reports an error at a place. Errors beyond ConfigLimits::errors are only counted.
  void error(const SourceLocation& location, std::string message) { error(location, std::move(message), {}, {}); }
  void error(const SourceLocation& location, std::string message, const SourceLocation& related_location,
             std::string related);

  // Counts files, and values with the bytes of their text (0 bytes for text counted before). False once the config
  // exceeds ConfigLimits, which is reported once.
  bool take_file(const SourceLocation& location);
  bool take(const SourceLocation& location, std::size_t values, std::size_t bytes);

  // Reports "epochs must be a whole number or none, not 'ten'": the key being read, the expected value, the value of
  // the node.
  void expected(const Node& node, std::string_view what);
  void expected(const Node& node, const TypeInfo& type);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  bool ok() const { return diagnostics_.empty(); }
  // The number of errors so far, those included that were only counted.
  std::size_t count() const { return diagnostics_.size() + unreported_; }
  // Whether the config exceeds ConfigLimits; errors that follow from this need no report.
  bool refused() const { return refused_; }
  // Whether an error was reported at this place already.
  bool reported(const SourceLocation& location) const;
  // Throws ConfigError with all errors, file by file, each file's in the order of its lines.
  void throw_if_failed() const;

  // The key being read, for messages; "the value" outside of any section.
  const std::string& key() const { return context_.key; }

 private:
  friend class ReadingContext;
  struct Context {
    std::string key = "the value";
    std::vector<std::string> words;
  };
  bool refuse(const SourceLocation& location, std::size_t most, const char* what);

  std::vector<Diagnostic> diagnostics_;
  std::size_t unreported_ = 0;
  std::size_t files_ = 0;
  std::size_t values_ = 0;
  std::size_t bytes_ = 0;
  bool refused_ = false;
  Context context_;
};

// During its lifetime the reader's messages name this key or, with words, list these words as accepted too ("none").
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

// The words as text: "a, b or c".
std::string join_or(const std::vector<std::string>& words);

}  // namespace trainctl
