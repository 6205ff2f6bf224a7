// Tests options with one value for the only input or output, or a value for each by name.
#include "core/spec/by_name.h"
#include "core/metrics/choices.h"

#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"

namespace trainctl::by_name_test {
namespace {

using Losses = ByName<ChoiceOf<loss_choices>>;
using Metrics = ByName<ChoicesOf<metric_choices>>;
using Sizes = ByName<std::vector<std::int64_t>>;

template <class T>
T read(const std::string& yaml, std::string* problem = nullptr) {
  Reader reader;
  T value;
  const Node node = parse_yaml(yaml, "n.yaml", ".", reader);
  const bool good = Value<T>::read(node, reader, value);
  CHECK(good == reader.ok());
  if (problem) {
    *problem = reader.ok() ? "" : to_string(reader.diagnostics().front());
  } else {
    REQUIRE(reader.ok());
  }
  return value;
}

template <class T>
std::string written(const T& value) {
  return flow_text(Value<T>::write(value));
}

// Returns all messages of check_names, one per line.
template <class T>
std::string problems(const T& value, const std::vector<std::string>& names, Coverage coverage) {
  Reader reader;
  check_names(value, names, "output", coverage, reader);
  std::string text;
  for (const Diagnostic& diagnostic : reader.diagnostics()) text += diagnostic.message + "\n";
  return text;
}

}  // namespace

TEST_CASE("a single value applies to the only output, and a map has values by name") {
  const Losses one = read<Losses>("huber");
  CHECK_FALSE(one.named());
  CHECK(one.of("").name == "huber");
  CHECK(one.of("size").name == "huber");
  CHECK(read<Losses>("{name: huber, delta: 2}").of("").name == "huber");  // a choice with its options

  const Losses two = read<Losses>("{digit: {name: huber, delta: 2}, size: mean_squared_error}");
  CHECK(two.named());
  CHECK(two.of("digit").name == "huber");
  CHECK(two.of("size").name == "mean_squared_error");
  CHECK_FALSE(two.of("other"));
  CHECK(two.entries[1].location.line == 1);
  CHECK(read<Losses>("{expression: mean(y_pred - m), m: 1}").of("").name == "expression");
  CHECK(read<Losses>("{name: expression, expression: mean(y_pred - m), m: 1}").of("").name == "expression");
  std::string problem;
  read<Losses>("{name: huber, expression: mean(y_pred)}", &problem);
  CHECK(problem.starts_with("n.yaml:1:15: unknown key 'expression' in huber"));
  const Losses expression = read<Losses>("{expression: huber, size: {expression: mean(y_pred)}}");
  CHECK(expression.of("expression").name == "huber");  // the output has the name of a key
  CHECK(expression.of("size").name == "expression");
  CHECK(read<Metrics>("[accuracy]").of("").size() == 1);
  CHECK(read<Metrics>("{a: [accuracy, auc], b: []}").of("a").size() == 2);
  CHECK(read<Sizes>("[28, 28, 1]").of("") == std::vector<std::int64_t>{28, 28, 1});
  CHECK(read<Sizes>("{a: [4], b: [2, 3]}").of("b") == std::vector<std::int64_t>{2, 3});
}

TEST_CASE("values are the same after they are written and read") {
  for (const char* text : {"[28, 28, 1]", "{a: [4], b: [2, 3]}"}) CHECK(written(read<Sizes>(text)) == text);
  for (const char* text : {"[accuracy]", "{a: [accuracy], b: []}", "[]",
                           "[accuracy, {name: own, expression: y_pred * m, mode: max, m: 2}]"}) {
    const std::string once = written(read<Metrics>(text));
    CHECK(written(read<Metrics>(once)) == once);
  }
  CHECK(result_name(read<Metrics>("[{name: own, expression: y_pred}]").of("").front()) == "own");
  const std::string losses = written(read<Losses>("{digit: {name: huber, delta: 2}, size: mean_squared_error}"));
  CHECK(written(read<Losses>(losses)) == losses);
  CHECK(losses.find("delta: 2") != std::string::npos);
}

TEST_CASE("a wrong value is reported with its location") {
  std::string problem;
  read<Losses>("{digit: hubber, size: huber}", &problem);
  CHECK(problem.find("n.yaml:1:9: unknown loss 'hubber'; did you mean 'huber'?") == 0);
  read<Losses>("{a: huber, a: huber}", &problem);
  CHECK(problem.find("'a'") != std::string::npos);
  read<Sizes>("{a: [4], b: many}", &problem);
  CHECK(problem.find("b must be a list") != std::string::npos);
  read<Losses>("{}", &problem);
  CHECK_FALSE(problem.empty());
}

TEST_CASE("names must be those of the model's outputs") {
  const Losses one = read<Losses>("huber"), two = read<Losses>("{a: huber, b: huber}");
  const Losses some = read<Losses>("{a: huber}");
  CHECK(problems(one, {""}, Coverage::all).empty());
  CHECK(problems(one, {"a"}, Coverage::all).empty());
  CHECK(problems(two, {"a", "b"}, Coverage::all).empty());
  CHECK(problems(some, {"a", "b"}, Coverage::some).empty());
  CHECK(problems(Losses(), {"a", "b"}, Coverage::some).empty());
  CHECK(problems(one, {"a", "b"}, Coverage::some) ==
        "the model has several outputs: set one value for each, {a: ..., b: ...}\n");
  CHECK(problems(some, {"a", "b"}, Coverage::all) == "no value is set for the output 'b'\n");
  CHECK(problems(two, {"a", "bb"}, Coverage::some) == "the model has no output 'b'; did you mean 'bb'?\n");
  CHECK(problems(two, {""}, Coverage::some).find("'a' names an output, but the model's outputs have no names") == 0);
}

}  // namespace trainctl::by_name_test
