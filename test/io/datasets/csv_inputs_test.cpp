// Tests tables whose columns go to several inputs of a network.
#include <cmath>
#include <random>
#include <set>
#include <span>

#include "io/datasets/tables/csv.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::csv_inputs_test {
using Catch::Contains;

namespace {

// A line of a table of ratings; an age of -1 is missing.
struct Rating {
  std::string user, city;
  int movie = 0, age = 0, stars = 0;
};

std::vector<Rating> random_ratings(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Rating> ratings;
  for (int i = 0; i < count; ++i) {
    const std::vector<std::string> cities{"Oslo", "Bern", "Rome", ""};
    ratings.push_back({std::to_string(random() % 40 * 7), cities[random() % 4], static_cast<int>(random() % 25),
                       random() % 6 == 0 ? -1 : static_cast<int>(random() % 70), static_cast<int>(random() % 5)});
  }
  return ratings;
}

std::string table_of(const std::vector<Rating>& ratings) {
  std::string text = "city,user,stars,movie,age\n";
  for (const Rating& r : ratings) {
    text += format("{},{},{},{},{}\n", r.city, r.user, r.stars, r.movie, r.age < 0 ? "" : std::to_string(r.age));
  }
  return text;
}

// The number of a word among sorted words, after number 0 for unknown words.
int number_of(const std::string& word, const std::set<std::string>& words) {
  return words.contains(word) ? 1 + static_cast<int>(std::distance(words.begin(), words.find(word))) : 0;
}

const std::string keys =
    "target: stars, categorical: [user], missing: mean, standardize: true, workers: 0, "
    "inputs: {user: user, movie: [movie], rest: [city, age]}";
const DataUse use{{{"user", 41}, {"movie", 25}, {"rest"}}, {{"stars", true}}, {}};

// Returns the error of opening a table, or "no error".
std::string error_of(const std::string& text, const std::string& data, const DataUse& with,
                     ErrorKind kind = ErrorKind::data) {
  const TempFolder folder;
  write_file(folder / "t.csv", text);
  try {
    Data(data_options(format("{{dataset: csv, path: {}, {}}}", folder / "t.csv", data)), 1, with);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "no error";
}

// Compares the samples of a split with those computed from its ratings, by the words and ages of `training`.
void check_samples(const Data& data, SplitKind split, const std::vector<Rating>& ratings,
                   const std::vector<Rating>& training) {
  std::set<std::string> users, cities;
  double sum = 0, square = 0, present = 0;
  for (const Rating& r : training) {
    users.insert(r.user);
    if (!r.city.empty()) cities.insert(r.city);
    if (r.age >= 0) {
      sum += r.age;
      ++present;
    }
  }
  const double mean = sum / present;
  for (const Rating& r : training) square += r.age < 0 ? 0 : (r.age - mean) * (r.age - mean);
  const double deviation = std::sqrt(square / static_cast<double>(training.size()));
  const auto source = data.evaluation(split, std::ssize(ratings), {});
  const Batch& batch = source->next();
  REQUIRE(batch.count == std::ssize(ratings));
  REQUIRE(batch.inputs.size() == 3);
  const std::size_t width = cities.size() + 2;
  for (std::size_t i = 0; i < ratings.size(); ++i) {
    const Rating& r = ratings[i];
    INFO("sample " << i);
    CHECK(batch.inputs[0].as<std::int32_t>()[i] == number_of(r.user, users));
    CHECK(batch.inputs[1].as<std::int32_t>()[i] == r.movie);
    std::vector<float> rest(width);
    if (!r.city.empty()) rest[static_cast<std::size_t>(number_of(r.city, cities))] = 1;
    const float* read = batch.inputs[2].as<float>() + i * width;
    CHECK(std::vector<float>(read, read + width - 1) == std::vector<float>(rest.begin(), rest.end() - 1));
    CHECK(read[width - 1] == Approx(r.age < 0 ? 0 : (r.age - mean) / deviation).margin(1e-5));
    CHECK(batch.targets[0].as<float>()[i] == static_cast<float>(r.stars));
  }
}

}  // namespace

TEST_CASE("csv: columns go to the inputs that the config names, as numbers of words, numbers and values") {
  const TempFolder folder;
  const std::vector<Rating> training = random_ratings(300, 1);
  std::vector<Rating> held_out = random_ratings(50, 2);
  held_out[3].user = "5";  // not in the training split
  held_out[4].city = "Lima";
  write_file(folder / "train.csv", table_of(training));
  write_file(folder / "valid.csv", table_of(held_out));
  const Data data(data_options(format("{{dataset: csv, path: {0}/train.csv, validation: {{path: {0}/valid.csv}}, {1}}}",
                                      folder.text(), keys)),
                  1, use);
  const auto& inputs = data.info().inputs;
  REQUIRE(inputs.size() == 3);
  CHECK(inputs[0].sample == Shape{1});
  CHECK(inputs[2].sample == Shape{5});
  CHECK(inputs[0].format.dtype == DType::int32);
  CHECK(inputs[2].format.dtype == DType::float32);
  check_samples(data, SplitKind::training, training, training);
  check_samples(data, SplitKind::validation, held_out, training);
  // What a run keeps is enough to read the inputs of a table without a target.
  REQUIRE(data.kept_inputs().size() == 3);
  CHECK(data.kept_inputs()[0].info.table->columns[0].name == "user");
  CHECK(data.kept_inputs()[2].info.table->columns.size() == 2);
}

TEST_CASE("csv: a column may belong to two inputs, and shares of ranks hold the same lines for all inputs") {
  const TempFolder folder;
  const std::vector<Rating> ratings = random_ratings(60, 3);
  write_file(folder / "t.csv", table_of(ratings));
  const Data data(
      data_options(format("{{dataset: csv, path: {}, target: stars, workers: 0, categorical: [user], "
                          "validation: {{split: 0.25}}, inputs: {{wide: [movie], deep: movie, user: user}}}}",
                          folder / "t.csv")),
      1, {{{"wide"}, {"deep", 25}, {"user", 41}}, {{"stars", true}}, {}});
  std::set<std::string> users;  // of the training lines
  const auto all = data.training(45, {}, {1, 0, 0});
  for (const std::int64_t sample : std::span(all->next().samples.as<std::int64_t>(), 45)) {
    users.insert(ratings[static_cast<std::size_t>(sample)].user);
  }
  std::set<std::int64_t> seen;
  for (int rank = 0; rank < 2; ++rank) {
    const auto source = data.training(10, {MeshRank(Mesh{.data = 2}, rank)}, {1, 0, 0});
    for (bool last = false; !last;) {
      const Batch& batch = source->next();
      last = batch.last_of_epoch;
      for (std::int64_t i = 0; i < batch.count; ++i) {
        const std::int64_t sample = batch.samples.as<std::int64_t>()[i];
        const Rating& r = ratings[static_cast<std::size_t>(sample)];
        seen.insert(sample);
        CHECK(batch.inputs[0].as<float>()[i] == static_cast<float>(r.movie));
        CHECK(batch.inputs[1].as<std::int32_t>()[i] == r.movie);
        CHECK(batch.inputs[2].as<std::int32_t>()[i] == number_of(r.user, users));
        CHECK(batch.targets[0].as<float>()[i] == static_cast<float>(r.stars));
      }
    }
  }
  CHECK(std::ssize(seen) == data.samples(SplitKind::training));
  CHECK(seen.size() == 45);
}

TEST_CASE("csv: mistakes in `inputs` are reported together, with their lines") {
  const DataUse two{{{"a"}, {"b"}}, {{"y", true}}, {}};
  const std::string all =
      error_of("u,v,w,y\n1,2,3,4\n", "weight: w, inputs: {a: [uu, v],\n b: [y, w]}", two, ErrorKind::config);
  CHECK_THAT(all, Contains(":1:") && Contains("input 'a'") && Contains("has no column 'uu'; did you mean 'u'?"));
  CHECK_THAT(all, Contains(":2:") && Contains("input 'b': column 'y' is the target") && Contains("'w' is the weight"));
  CHECK_THROWS_WITH(data_options("{dataset: csv, path: t.csv, inputs: {a: [u, v, u]}}"),
                    Contains("input 'a' lists column 'u' twice"));
  CHECK_THROWS_WITH(data_options("{dataset: csv, path: t.csv, inputs: [u, v]}"),
                    Contains("inputs must name the columns of each input"));
  CHECK_THROWS_WITH(data_options("{dataset: csv, path: t.csv, columns: u, inputs: {a: [u], b: []}}"),
                    Contains("leave `columns` out") && Contains("input 'b' has no columns"));
  CHECK_THAT(error_of("u,v,y\n1,2,4\n", "target: y", two, ErrorKind::config),
             Contains("csv supports only one of each") && Contains("inputs: {NAME: [COLUMN, ...], ...}"));
  const DataUse two_outputs{{{"a"}, {"b"}}, {{"y", true}, {"z", true}}, {}};
  CHECK_THAT(error_of("u,v,y\n1,2,4\n", "inputs: {a: u, b: v}", two_outputs, ErrorKind::config),
             Contains("csv supports only one output"));
}

TEST_CASE("csv: an embedding's column must hold its numbers, and its words need enough of them") {
  const DataUse tokens{{{"a", 3}}, {{"y", true}}, {}};
  const auto problem = [&](const std::string& text, const std::string& data = "inputs: {a: [k]}") {
    return error_of(text, data, tokens);
  };
  CHECK(problem("k,y\n0,1\n2,1\n") == "no error");
  CHECK_THAT(problem("k,y\n0,1\n3,1\n"), Contains("line 3, column 'k': holds 3") && Contains("whole numbers 0 to 2"));
  CHECK_THAT(problem("k,y\n0.5,1\n"), Contains("line 2, column 'k': holds 0.5"));
  CHECK_THAT(problem("k,y\n-1,1\n"), Contains("holds -1"));
  CHECK_THAT(problem("k,y\n1,1\n2,1\n,1\n", "missing: mean, inputs: {a: k}"),
             Contains("line 4") && Contains("a missing number is replaced by 1.5"));
  CHECK(problem("k,y\n1,1\n,1\n", "missing: zero, inputs: {a: k}") == "no error");
  CHECK(problem("k,y\nu,1\nv,1\nu,1\n") == "no error");
  CHECK_THAT(problem("k,y\nu,1\nv,1\nw,1\nu,1\n"),
             Contains("column 'k': the column has 3 different words and a number for unknown words") &&
                 Contains("set the embedding's input_dim to 4 or more"));
  CHECK(problem("k,y\nu,1\nv,1\nw,1\nu,1\n", "out_of_vocabulary: false, inputs: {a: k}") == "no error");
  CHECK_THAT(problem("k,y\nu,1\nu,1\n,1\n", "out_of_vocabulary: false, missing: mean, inputs: {a: k}"),
             Contains("line 4, column 'k': the word is missing"));
  CHECK_THAT(problem("k,l,y\nu,a,1\nu,a,1\n", "inputs: {a: [k, l]}"),
             Contains("the same number would mean a different word or bin in each"));
  CHECK(problem("k,l,y\n0,1,1\n2,2,1\n", "inputs: {a: [k, l]}") == "no error");
}

}  // namespace trainctl::test::csv_inputs_test
