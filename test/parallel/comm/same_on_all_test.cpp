// Tests values that must be the same on all ranks: equal ones pass, and all ranks report the same differences.
#include "parallel/comm/same_on_all.h"

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::same_on_all_test {
namespace {

Node config(const std::string& rate, const std::string& path) {
  Node optimizer = map_node();
  append(optimizer, "name", scalar_node("sgd"));
  append(optimizer, "learning_rate", scalar_node(rate));
  Node train = map_node();
  append(train, "optimizer", std::move(optimizer));
  append(train, "metrics", sequence_node({scalar_node("accuracy"), map_node()}));
  Node all = map_node();
  append(all, "train", std::move(train));
  append(all, "path", scalar_node(path));
  return all;
}

std::vector<std::string> hosts(int ranks) {
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.push_back(format("node{}", rank));
  return names;
}

// The error of each rank, whose values are of(rank).
std::vector<std::string> compare(int ranks, const std::function<RankValues(int)>& of) {
  return on_threads(ranks, [&](Communicator& world) {
    ImmediateStream stream;
    require_same_on_all(of(world.rank()), hosts(ranks), world, stream);
  });
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a document is turned into values with their key paths") {
  RankValues values;
  add_document(values, config("0.1", "/data/mnist"));
  CHECK(values == RankValues{{"train.optimizer.name", "sgd"},
                             {"train.optimizer.learning_rate", "0.1"},
                             {"train.metrics.0", "accuracy"},
                             {"train.metrics.1", "{}"},
                             {"path", "a path"}});
}

TEST_CASE("equal values pass, whatever the paths of files are") {
  for (int ranks = 1; ranks <= 5; ++ranks) {
    const auto errors = compare(ranks, [](int rank) {
      RankValues values;
      add_document(values, config("0.1", format("/scratch/{}/mnist", rank)));
      return values;
    });
    for (const std::string& error : errors) CHECK(error.empty());
  }
}

TEST_CASE("all ranks name the first rank that differs, with the key and both values") {
  for (int odd = 0; odd < 4; ++odd) {
    const auto errors = compare(4, [odd](int rank) {
      RankValues values;
      add_document(values, config(rank == odd ? "0.2" : "0.1", "/data"));
      return values;
    });
    CAPTURE(odd, errors[0]);
    for (const std::string& error : errors) CHECK(error == errors[0]);
    const std::string expected =
        odd == 0 ? "train.optimizer.learning_rate is 0.2 on rank 0 and 0.1 on rank 1 (node1)"
                 : format("train.optimizer.learning_rate is 0.1 on rank 0 and 0.2 on rank {} (node{})", odd, odd);
    CHECK(contains(errors[0], expected));
    CHECK(contains(errors[0], "and 2 more ranks differ from rank 0") == (odd == 0));
    CHECK_FALSE(contains(errors[0], "sgd"));
  }
}

TEST_CASE("missing values are reported, and long lists of differences are cut") {
  const RankValues first = {{"a", "1"}, {"b", "2"}}, other = {{"b", "2"}, {"c", "3"}};
  CHECK(describe_differences(first, other, 1, "n1") ==
        std::vector<std::string>{"a is 1 on rank 0 and absent on rank 1 (n1)",
                                 "c is absent on rank 0 and 3 on rank 1 (n1)"});
  const auto errors = compare(2, [](int rank) {
    RankValues values;
    for (int i = 0; i < 30; ++i) values.emplace_back(format("key{}", i), std::string(300, rank == 0 ? 'x' : 'y'));
    return values;
  });
  CHECK(contains(errors[0], "key7 is"));
  CHECK(contains(errors[0], "and 22 more differences"));
  CHECK(errors[0].size() < 3000);
}

}  // namespace
}  // namespace trainctl::same_on_all_test
