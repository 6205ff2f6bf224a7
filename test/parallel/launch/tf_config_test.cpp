// Tests TF_CONFIG as users of TensorFlow set it.
#include "parallel/launch/tf_config/tf_config.h"

#include <string>

#include "core/base/error.h"
#include "test/catch.h"

namespace trainctl::tf_config_test {
namespace {

Variables with(const std::string& text) { return Variables{{"TF_CONFIG", text}}; }

std::string refusal(const std::string& text) {
  try {
    find_tf_config(with(text));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST_CASE("TF_CONFIG names its tasks, the chief first") {
  const auto config = find_tf_config(with(
      R"({"cluster": {"worker": ["b:2223", "c:2224"], "chief": ["a:2222"]}, "task": {"type": "worker", "index": 1}})"));
  REQUIRE(config);
  REQUIRE(config->tasks.size() == 3);
  CHECK(config->tasks[0].name() == "chief 0");
  CHECK(config->tasks[0].host == "a");
  CHECK(config->tasks[2].port == 2224);
  CHECK(config->own == 2);
  CHECK_FALSE(config->is_chief());
  CHECK(config->hosts(4) == std::vector<Host>{{"a", 4}, {"b", 4}, {"c", 4}});
}

TEST_CASE("without a chief worker 0 is the chief, and tasks of one host share it") {
  const auto config = find_tf_config(
      with(R"({"cluster": {"worker": ["a:1", "a:2", "b:1"]}, "task": {"type": "worker", "index": "0"}})"));
  REQUIRE(config);
  CHECK(config->is_chief());
  CHECK(config->hosts(1) == std::vector<Host>{{"a", 2}, {"b", 1}});
}

TEST_CASE("a TF_CONFIG without a cluster is one process") {
  for (const char* text : {"", "{}", R"({"task": {"type": "worker", "index": 0}})", R"({"cluster": {}})"}) {
    CAPTURE(text);
    CHECK_FALSE(find_tf_config(with(text)));
  }
  CHECK_FALSE(find_tf_config(Variables()));
}

TEST_CASE("tasks without a counterpart are refused with a remedy") {
  CHECK(
      refusal(R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "evaluator", "index": 0}})").find("trainctl eval") !=
      std::string::npos);
  for (const char* type : {"ps", "worker"}) {
    const std::string text = std::string(R"({"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": ")") +
                             type + R"(", "index": 0}})";
    CHECK(refusal(text).find("parameter servers") != std::string::npos);
  }
}

TEST_CASE("tasks with the same address are refused") {
  CHECK(refusal(R"({"cluster": {"worker": ["a:1", "b:1", "a:1"]}, "task": {"type": "worker", "index": 1}})") ==
        "TF_CONFIG: worker 0 and worker 2 have the same address, a:1; list each task once; tasks on the same host need "
        "different ports");
  CHECK(refusal(R"({"cluster": {"chief": ["a:1", "b:1"], "worker": ["c:1"]}, "task": {"type": "worker", "index": 0}})")
            .starts_with("TF_CONFIG: the cluster has 2 chiefs, but can have one"));
  CHECK(refusal(R"({"cluster": {"chief": ["a:1"], "worker": ["a:1"]}, "task": {"type": "chief", "index": 0}})")
            .starts_with("TF_CONFIG: chief 0 and worker 0 have the same address, a:1"));
}

TEST_CASE("a damaged TF_CONFIG is refused") {
  for (const char* text : {"{",
                           "[]",
                           "7",
                           R"({"cluster": {"worker": ["a:1"]}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "x"}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 4294967296}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0.5}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "0x"}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": " 0"}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "4294967296"}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": [0]}})",
                           R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": null}})",
                           R"({"cluster": {"worker": ["me@a:1"]}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": {"worker": ["a:0"]}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": {"worker": ["a:99999"]}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": {"worker": ["-oProxyCommand=x:1"]}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": {"worker": "a:1"}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": {"worker": [1]}, "task": {"type": "worker", "index": 0}})",
                           R"({"cluster": ["a:1"], "task": {"type": "worker", "index": 0}})"}) {
    CAPTURE(text);
    CHECK(refusal(text).starts_with("TF_CONFIG: "));
  }
}

TEST_CASE("a TF_CONFIG that is nested too deep is refused, and needs no stack") {
  const std::string brackets(60'000, '[');
  const std::string text = R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": )" + brackets +
                           std::string(brackets.size(), ']') + "}}";
  CHECK(refusal(text).find("more than 100 levels") != std::string::npos);
}

}  // namespace
}  // namespace trainctl::tf_config_test
