// Tests class weights: balanced over the training split or set by name or number, and applied in training only.
#include "io/loader/splits/class_weights.h"

#include <random>

#include "core/base/format.h"
#include "core/metrics/class_weights.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::class_weights_test {
namespace {

// Writes a table of 60 rows, in which the classes a, b and c occur unevenly. Returns the labels.
std::vector<int> write_table(const std::string& path) {
  std::mt19937 random(7);
  std::string text = "x,y,kind\n";
  std::vector<int> labels;
  for (int i = 0; i < 60; ++i) {
    const int label = random() % 6 == 0 ? 2 : random() % 3 == 0 ? 1 : 0;
    labels.push_back(label);
    text += format("{},{},{}\n", i, random() % 100, std::string(1, static_cast<char>('a' + label)));
  }
  write_file(path, text);
  return labels;
}

DataOptions options_of(const std::string& yaml) {
  Reader reader;
  DataOptions options;
  section_of<DataOptions>().read(parse_yaml(yaml, "d.yaml", "/", reader), reader, &options);
  reader.throw_if_failed();
  return options;
}

ClassWeights by_name(std::map<std::string, double> weights) { return {std::move(weights), {}}; }

std::string problem(const DataOptions& options, const ClassWeights& weights) {
  DataUse use;
  use.class_weights = weights;
  try {
    const Data data(options, 3, use);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("balanced classes have equal total weights over the training split") {
  const TempFolder folder;
  const std::vector<int> labels = write_table(folder / "t.csv");
  const DataOptions options = options_of(format(
      "{{dataset: csv, path: {}, target: kind, shuffle: false, validation: {{split: 0.25}}}}", folder / "t.csv"));
  DataUse use;
  use.class_weights = ClassWeights{BalancedClasses::balanced, {}};
  const Data data(options, 3, use);
  std::vector<double> sums(3);
  const auto training = data.training(15, {}, {3, 0, 0});
  for (int batch = 0; batch < 3; ++batch) {
    const Batch& next = training->next();
    for (std::int64_t i = 0; i < next.count; ++i) {
      const auto sample = static_cast<std::size_t>(next.samples.as<std::int64_t>()[i]);
      sums[static_cast<std::size_t>(labels[sample])] += static_cast<double>(next.weights.as<float>()[i]);
    }
  }
  for (const double sum : sums) CHECK(sum == Approx(15.0));  // 45 samples, 3 classes

  const auto validation = data.evaluation(SplitKind::validation, 15, {});
  const Batch& held_out = validation->next();
  for (std::int64_t i = 0; i < held_out.count; ++i) CHECK(held_out.weights.as<float>()[i] == 1.0f);
}

TEST_CASE("class weights are set by the name or the number of a class") {
  const TempFolder folder;
  const std::vector<int> labels = write_table(folder / "t.csv");
  const DataOptions options =
      options_of(format("{{dataset: csv, path: {}, target: kind, cache: memory}}", folder / "t.csv"));
  DataUse use;
  use.class_weights = by_name({{"b", 2.5}, {"2", 0.25}});
  const Data data(options, 3, use);
  const auto training = data.training(60, {}, {3, 0, 0});
  for (int epoch = 0; epoch < 2; ++epoch) {  // the second from the cache
    const Batch& batch = training->next();
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const int label = labels[static_cast<std::size_t>(batch.samples.as<std::int64_t>()[i])];
      CHECK(batch.weights.as<float>()[i] == (label == 1 ? 2.5f : label == 2 ? 0.25f : 1.0f));
    }
  }
}

TEST_CASE("a map of class weights without some classes is warned of, with their names") {
  const TempFolder folder;
  write_table(folder / "t.csv");
  const DataOptions options = options_of(format("{{dataset: csv, path: {}, target: kind}}", folder / "t.csv"));
  const auto warnings = [&](const ClassWeights& weights) {
    DataUse use;
    use.class_weights = weights;
    return Data(options, 3, use).info().warnings;
  };
  using Warnings = std::vector<std::string>;
  CHECK(warnings(by_name({{"b", 2.5}})) ==
        Warnings{"class_weights names no weight for the classes 'a', 'c', whose samples have weight 1: add them to the "
                 "map, with 1 if that is meant"});
  CHECK(warnings(by_name({{"0", 1}, {"b", 2.5}})) ==
        Warnings{"class_weights names no weight for the class 'c', whose samples have weight 1: add it to the map, "
                 "with 1 if that is meant"});
  CHECK(warnings(by_name({{"a", 3}, {"1", 2.5}, {"c", 0.5}})).empty());
  CHECK(warnings(ClassWeights{BalancedClasses::balanced, {}}).empty());
}

TEST_CASE("a class that a map of weights names twice is an error") {
  const TempFolder folder;
  write_table(folder / "t.csv");
  const DataOptions options = options_of(format("{{dataset: csv, path: {}, target: kind}}", folder / "t.csv"));
  CHECK(problem(options, by_name({{"b", 2}, {"1", 3}})).find("class_weights: '1' and 'b' are the same class") !=
        std::string::npos);
}

TEST_CASE("with several outputs, classes have the weights of the only output that has classes") {
  const TempFolder folder;
  const std::vector<int> labels = write_table(folder / "t.csv");
  std::string text = "size,x,kind,other\n";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text += format("{}.5,{},{},{}\n", i, 3 * i, "abc"[labels[i]], i % 2 == 0 ? "even" : "odd");
  }
  write_file(folder / "two.csv", text);
  const auto options = [&](const std::string& targets) {
    return options_of(format("{{dataset: csv, path: {}, targets: {}, shuffle: false, validation: {{split: 0.25}}}}",
                             folder / "two.csv", targets));
  };
  DataUse use;
  use.targets = {{.name = "amount", .values = true}, {.name = "kind"}};
  use.class_weights = by_name({{"b", 2.5}, {"c", 0.25}});
  const Data data(options("{amount: size, kind: kind}"), 3, use);
  const auto training = data.training(45, {}, {3, 0, 0});
  const Batch& batch = training->next();
  REQUIRE(batch.count == 45);
  for (std::int64_t i = 0; i < batch.count; ++i) {
    const int label = labels[static_cast<std::size_t>(batch.samples.as<std::int64_t>()[i])];
    CHECK(batch.weights.as<float>()[i] == (label == 1 ? 2.5f : label == 2 ? 0.25f : 1.0f));
  }
  // The warning of classes without a weight names those of this output.
  CHECK(data.info().warnings ==
        std::vector<std::string>{"class_weights names no weight for the class 'a', whose samples "
                                 "have weight 1: add it to the map, with 1 if that is meant"});
  use.targets = {{.name = "parity"}, {.name = "kind"}};
  const auto two = [&] { return Data(options("{parity: other, kind: kind}"), 3, use); };
  CHECK_THROWS_WITH(two(), Catch::Contains("class_weights: the outputs 'parity' and 'kind' have classes, but a "
                                           "sample has one weight for all losses"));
}

TEST_CASE("each weight of a class that does not exist leads to one error") {
  const TempFolder folder;
  write_table(folder / "t.csv");
  const auto csv = [&](const std::string& target) {
    return options_of(format("{{dataset: csv, path: {}, target: {}}}", folder / "t.csv", target));
  };
  CHECK(problem(csv("kind"), by_name({{"d", 1}}))
            .find("class_weights: there is no class 'd'; the classes are 'a', 'b', 'c'") != std::string::npos);
  CHECK(problem(csv("kind"), by_name({{"3", 1}})).find("there is no class '3'; the classes are 'a', 'b', 'c'") !=
        std::string::npos);
  CHECK(problem(options_of("{dataset: synthetic, samples: 9, shape: [4], classes: 0}"), by_name({{"0", 1}}))
            .find("class_weights need classes, but the targets are values") != std::string::npos);
  // With one sample of each class, the validation split leaves classes without training samples.
  write_file(folder / "few.csv", "x,kind\n1,a\n2,b\n3,c\n");
  const DataOptions few =
      options_of(format("{{dataset: csv, path: {}, target: kind, validation: {{split: 0.5}}}}", folder / "few.csv"));
  const std::string unbalanced = problem(few, {BalancedClasses::balanced, {}});
  CAPTURE(unbalanced);
  CHECK((unbalanced.find("class_weights: class '") != std::string::npos ||
         unbalanced.find("class_weights: the classes '") != std::string::npos));
  CHECK(unbalanced.find("in the training split, so that `balanced` has no weight for ") != std::string::npos);
  CHECK(unbalanced.find("set the weights by class") != std::string::npos);
}

}  // namespace trainctl::test::class_weights_test
