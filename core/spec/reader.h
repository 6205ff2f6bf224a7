// Collects all errors of one config, so that they are reported together.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/base/error.h"

namespace trainctl {

struct TypeInfo;

// The limits of one config including its included files, aliases and presets. They are enough for any network, and a
// config within them is read in less than a second.
struct ConfigLimits {
  static constexpr std::size_t values = 200'000;
  static constexpr std::size_t bytes = 4'000'000;  // size of the files, plus the text that aliases and variables add
  static constexpr std::size_t files = 100;
  static constexpr std::size_t levels = 100;
  static constexpr std::size_t errors = 100;  // number of errors that are reported
};

class Reader {
 public:
  // Reports an error at a location. Errors beyond ConfigLimits::errors are only counted.
  void error(const SourceLocation& location, std::string message) { error(location, std::move(message), {}, {}); }
  void error(const SourceLocation& location, std::string message, const SourceLocation& related_location,
             std::string related);

  // take_file() counts a file, and take() counts values and the bytes of their text (0 for text that was counted
  // before). They return false if the config exceeds ConfigLimits, and report the first such error.
  bool take_file(const SourceLocation& location);
  bool take(const SourceLocation& location, std::size_t values, std::size_t bytes);

  // Reports a wrong value: "epochs must be a whole number or none, not 'ten'", with the current key, the expected value
  // and the value of the node.
  void expected(const Node& node, std::string_view what);
  void expected(const Node& node, const TypeInfo& type);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  bool ok() const { return diagnostics_.empty(); }
  // The number of errors so far, including errors that were only counted.
  std::size_t count() const { return diagnostics_.size() + unreported_; }
  // Whether the config exceeds ConfigLimits; errors that follow from this need not be reported.
  bool refused() const { return refused_; }
  // Whether an error was already reported at this location.
  bool reported(const SourceLocation& location) const;
  // Throws a ConfigError with all errors, sorted by file and then by line; does nothing if there are none.
  void throw_if_failed() const;

  // The key being read, for messages; "the value" outside of any section.
  const std::string& key() const { return context_.key; }

 private:
  friend class ReadingContext;
  struct Context {
    std::string key = "the value";
    std::vector<std::string> words;
  };
  bool refuse(const SourceLocation& location, std::size_t limit, const char* what);

  std::vector<Diagnostic> diagnostics_;
  std::size_t unreported_ = 0;
  std::size_t files_ = 0;
  std::size_t values_ = 0;
  std::size_t bytes_ = 0;
  bool refused_ = false;
  Context context_;
};

// Sets the context of the reader's messages during its lifetime: the key that they name, or additional words that the
// current value may be ("none").
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

// Joins words to a text: "a, b or c".
std::string join_or(const std::vector<std::string>& words);

}  // namespace trainctl
