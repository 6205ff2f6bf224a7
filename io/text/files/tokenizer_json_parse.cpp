// Parses tokenizer.json as a stream of events: vocabularies and merges go into lists, the rest into a small tree.
#include <string>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json_parse.h"
#include "io/text/files/tokenizer_json.h"
#include "io/text/models/vocabulary.h"

namespace trainctl {
namespace {

constexpr std::size_t most_levels = 30;
constexpr std::size_t most_keys = 2000;         // of an object of the tree, whose keys are searched one after the other
constexpr std::size_t most_values = 2'000'000;  // of the tree; a file has about ten for each added token

class TokenizerEvents final : public Json::json_sax_t {
 public:
  TokenizerEvents(std::string_view text, TokenizerJson& file) : text_(text), file_(file) {}

  std::string problem;
  SourceLocation place;  // of the problem, if the text is not JSON

  bool start_object(std::size_t) override {
    if (list_ != List::none) return fail("an unexpected object");
    if (is_key("vocab")) return enter(List::vocabulary);
    return push(Json::object());
  }
  bool end_object() override { return list_ == List::vocabulary ? leave() : pop(); }
  bool key(string_t& text) override {
    key_ = std::move(text);
    return true;
  }
  bool start_array(std::size_t) override {
    if (list_ == List::none && is_key("vocab")) return enter(List::scores);
    if (list_ == List::none && is_key("merges")) return enter(List::merges);
    if (list_ == List::none) return push(Json::array());
    if (list_ == List::vocabulary || inner_) return fail("an unexpected list");
    inner_ = true;
    texts_ = numbers_ = 0;
    return true;
  }
  bool end_array() override {
    if (list_ == List::none) return pop();
    if (!inner_) return leave();
    inner_ = false;
    if (list_ == List::scores ? texts_ == 1 && numbers_ == 1 : texts_ == 2) return true;
    return fail(list_ == List::scores ? "an entry must be [token, score]" : "an entry must be [left, right]");
  }
  bool string(string_t& text) override {
    if (list_ == List::none) return add(std::move(text));
    if (list_ == List::merges && !inner_) {
      const std::size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        return fail("a merge must be two tokens with a space between them");
      }
      file_.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
      return true;
    }
    if (list_ == List::vocabulary || ++texts_ > 2) return fail("an unexpected string");
    if (list_ == List::scores) {
      file_.scores.emplace_back(std::move(text), 0.0);
    } else if (texts_ == 1) {
      file_.merges.emplace_back(std::move(text), std::string());
    } else {
      file_.merges.back().second = std::move(text);
    }
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (list_ == List::none) return add(value);
    if (list_ == List::scores) return score(static_cast<double>(value));
    if (list_ == List::merges) return fail("an unexpected number");
    if (value > static_cast<number_unsigned_t>(largest_token)) {
      return fail(format("an id must be at most {}, not {}", largest_token, value));
    }
    file_.vocabulary.emplace_back(std::move(key_), static_cast<TokenId>(value));
    key_.clear();
    return true;
  }
  bool number_integer(number_integer_t value) override {
    if (list_ == List::none) return add(value);
    return list_ == List::scores ? score(static_cast<double>(value)) : fail("a negative number");
  }
  bool number_float(number_float_t value, const string_t&) override {
    if (list_ == List::none) return add(value);
    return list_ == List::scores ? score(value) : fail("a fraction");
  }
  bool null() override { return list_ == List::none ? add(nullptr) : fail("a null"); }
  bool boolean(bool value) override { return list_ == List::none ? add(value) : fail("a boolean"); }
  bool binary(binary_t&) override { return fail("binary values"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    const JsonFault fault = json_fault(text_, position);
    place = {file_.path, fault.line, fault.column};
    return fail(fault.problem);
  }

 private:
  enum class List { none, vocabulary, scores, merges };

  bool fail(const std::string& why) {
    problem = why;
    if (list_ == List::vocabulary) problem = format("model.vocab, entry {}: {}", file_.vocabulary.size() + 1, why);
    if (list_ == List::scores) problem = format("model.vocab, entry {}: {}", file_.scores.size(), why);
    if (list_ == List::merges) problem = format("model.merges, entry {}: {}", file_.merges.size(), why);
    return false;
  }
  // Whether the next value is model.KEY.
  bool is_key(std::string_view key) const { return open_.size() == 2 && in_model_ && key_ == key; }
  bool enter(List list) {
    if (!file_.vocabulary.empty() || !file_.scores.empty() || (list == List::merges && !file_.merges.empty())) {
      if (list != List::merges || !file_.merges.empty()) return fail("the model has two lists of this name");
    }
    list_ = list;
    return true;
  }
  bool leave() {
    list_ = List::none;
    return true;
  }
  bool score(double value) {
    if (++numbers_ > 1 || texts_ != 1) return fail("an unexpected number");
    file_.scores.back().second = value;
    return true;
  }
  // Adds a value to the innermost open list or object. Returns its place in `added_`.
  bool add(Json value) {
    if (++values_ > most_values) return fail("the file has too many values outside the vocabulary");
    if (open_.empty()) {
      *file_.rest = std::move(value);
      added_ = file_.rest.get();
    } else if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      added_ = &open_.back()->back();
    } else {
      if (open_.back()->size() >= most_keys) return fail(format("an object has more than {} keys", most_keys));
      added_ = &((*open_.back())[key_] = std::move(value));
    }
    return true;
  }
  bool push(Json value) {
    if (open_.size() >= most_levels) return fail("its values are nested too deep");
    if (open_.size() == 1) in_model_ = key_ == "model";
    if (!add(std::move(value))) return false;
    open_.push_back(added_);
    return true;
  }
  bool pop() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  TokenizerJson& file_;
  std::vector<Json*> open_;  // the lists and objects around the next value
  Json* added_ = nullptr;
  std::string key_;
  bool in_model_ = false;
  List list_ = List::none;
  bool inner_ = false;  // inside an entry of a list
  int texts_ = 0, numbers_ = 0;
  std::size_t values_ = 0;
};

}  // namespace

TokenizerJson::TokenizerJson() : rest(std::make_unique<Json>()) {}
TokenizerJson::TokenizerJson(TokenizerJson&&) noexcept = default;
TokenizerJson::~TokenizerJson() = default;

TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& path) {
  TokenizerJson file;
  file.path = path;
  TokenizerEvents events(text, file);
  events.place.file = path;
  Json::sax_parse(text, &events);
  if (events.problem.empty() && !file.rest->is_object()) events.problem = "the file must hold an object";
  if (!events.problem.empty()) {
    throw Error(ErrorKind::data, events.place, "not a valid tokenizer.json: " + events.problem,
                "download the file or copy it again");
  }
  return file;
}

}  // namespace trainctl
