// Tests networks with several inputs that read the columns of one table, as users write them.
#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::table_inputs_test {
namespace {

constexpr int users = 30, movies = 20;

// Writes ratings of movies: each user and each movie has two hidden numbers, whose products make the rating. Users are
// words, movies are whole numbers. ratings.csv has five sixths of the pairs, held-out.csv has the others, and new.csv
// has the others without ratings. Returns the ratings of the others.
std::vector<double> write_ratings(const Folder& folder) {
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  double tastes[users][2], kinds[movies][2];
  for (auto& taste : tastes) std::generate_n(taste, 2, [&] { return normal(random); });
  for (auto& kind : kinds) std::generate_n(kind, 2, [&] { return normal(random); });
  std::string ratings = "rating,user_id,movie_id\n", held_out = ratings, fresh = "movie_id,user_id\n";
  std::vector<double> expected;
  for (int user = 0; user < users; ++user) {
    for (int movie = 0; movie < movies; ++movie) {
      const double rating = tastes[user][0] * kinds[movie][0] + tastes[user][1] * kinds[movie][1];
      const bool held = random() % 6 == 0;
      (held ? held_out : ratings) += format("{:.4f},u{},{}\n", rating, user, movie);
      if (!held) continue;
      fresh += format("{},u{}\n", movie, user);
      expected.push_back(rating);
    }
  }
  folder.write("ratings.csv", ratings);
  folder.write("held-out.csv", held_out);
  folder.write("new.csv", fresh);
  return expected;
}

// Two embeddings, whose dot product is the rating.
const std::string recommender = R"(
data:
  dataset: csv
  path: ratings.csv
  validation: {path: held-out.csv}
  target: rating
  inputs: {user: user_id, movie: movie_id}
model:
  inputs: [user, movie]
  layers:
    - embedding: {name: tastes, from: user, input_dim: 31, output_dim: 4}
    - flatten: {name: taste}
    - embedding: {name: kinds, from: movie, input_dim: 20, output_dim: 4}
    - flatten: {name: kind}
    - dot: {from: [taste, kind], axes: 1}
train:
  batch_size: 25
  epochs: 40
  loss: mean_squared_error
  metrics: [r2_score]
  optimizer: {name: adam, learning_rate: 0.02}
)";

// A linear model of one-hot words and numbers, and a deep network that has an embedding of the region.
const std::string wide_and_deep = R"(
data:
  dataset: csv
  path: customers.csv
  validation: {split: 0.25}
  target: left
  standardize: true
  missing: mean
  inputs:
    wide: [plan, region, months]
    region: region
    numbers: [months, fee]
model:
  inputs: [wide, region, numbers]
  layers:
    - embedding: {from: region, input_dim: 8, output_dim: 3}
    - flatten: {name: place}
    - concatenate: {from: [place, numbers]}
    - dense: {units: 16, activation: relu}
    - dense: {name: deep, units: 8, activation: relu}
    - concatenate: {from: [wide, deep]}
    - dense: {units: 1, activation: sigmoid}
train:
  batch_size: 40
  epochs: 12
  loss: binary_crossentropy
  metrics: [accuracy]
  optimizer: {name: adam, learning_rate: 0.01}
)";

Finished run(const Folder& folder, const std::string& config, const std::string& ranks, const std::string& directory,
             std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"run", config, "--ranks", ranks, "--run-dir", folder / directory};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Finished finished = trainctl(folder, arguments);
  INFO(tail(finished.errors));
  REQUIRE(finished.code == 0);
  return finished;
}

Json validation_of(const std::string& run_directory) { return events(run_directory, "epoch").back()["validation"]; }

// The last value of each line after the first.
std::vector<double> values_of(const std::string& csv) {
  std::vector<double> values;
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) values.push_back(std::stod(line.substr(line.rfind(',') + 1)));
  return values;
}

}  // namespace

TEST_CASE("a recommender with two embeddings learns ratings from a table, and predicts those of another table") {
  const Folder folder;
  const std::vector<double> expected = write_ratings(folder);
  const std::string config = folder.write("recommender.yaml", recommender);
  for (const std::string ranks : {"1", "2"}) run(folder, config, ranks, "on-" + ranks);
  const double loss = validation_of(folder / "on-2")["loss"];
  CHECK(validation_of(folder / "on-2")["r2_score"].get<double>() > 0.8);
  CHECK(loss == Approx(validation_of(folder / "on-1")["loss"].get<double>()).epsilon(0.02));

  // The predictions have the error that the validation reported. They do not need the training data.
  std::filesystem::remove(folder / "ratings.csv");
  const Finished predicted = trainctl(folder, {"predict", "on-2/checkpoints/last", "new.csv", "--ranks", "2"});
  INFO(tail(predicted.errors));
  REQUIRE(predicted.code == 0);
  const std::vector<double> values = values_of(predicted.out);
  REQUIRE(values.size() == expected.size());
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) squares += (values[i] - expected[i]) * (values[i] - expected[i]);
  CHECK(squares / static_cast<double>(values.size()) == Approx(loss).epsilon(1e-2));
  folder.write("lacking.csv", "movie_id\n3\n");
  const Finished lacking = trainctl(folder, {"predict", "on-2", "lacking.csv"});
  CHECK(lacking.code == 3);
  CHECK(contains(lacking.errors, "has no column 'user_id', which the training split has"));
}

TEST_CASE("a wide and deep network reads one table, and resumes as if it had not stopped") {
  const Folder folder;
  std::mt19937 random(8);
  std::string text = "plan,region,months,fee,left\n";
  for (int i = 0; i < 800; ++i) {
    const unsigned plan = random() % 3, region = random() % 6, months = random() % 60;
    const double fee = 10 + static_cast<double>(random() % 400) / 10;
    const bool left = (region % 2 == 0) == (months > 30) ? fee > 15 : plan == 1;
    text += format("{},r{},{},{},{}\n",
                   plan == 0   ? ""
                   : plan == 1 ? "basic"
                               : "plus",
                   region, random() % 9 == 0 ? "" : std::to_string(months), fee, left ? "yes" : "no");
  }
  folder.write("customers.csv", text);
  const std::string config = folder.write("wide.yaml", wide_and_deep);
  run(folder, config, "2", "whole");
  CHECK(validation_of(folder / "whole")["accuracy"].get<double>() > 0.8);
  run(folder, config, "2", "begun", {"--set", "train.max_steps=20"});  // within the second epoch
  run(folder, config, "2", "resumed", {"--resume", folder / "begun/checkpoints/last"});
  CHECK(events(folder / "resumed", "end").back()["weights_sha256"] ==
        events(folder / "whole", "end").back()["weights_sha256"]);
}

TEST_CASE("check names the inputs of the model that have no columns, and the vectors that an embedding needs") {
  const Folder folder;
  write_ratings(folder);
  const std::string config = folder.write("recommender.yaml", recommender);
  const Finished names = trainctl(folder, {"check", config, "--set", "data.inputs={user: user_id, film: movie_id}"});
  CHECK(names.code == 2);
  CHECK(contains(names.errors, "the model has no input 'film'"));
  CHECK(contains(names.errors, "no value is set for the input 'movie'"));
  const Finished columns =
      trainctl(folder, {"check", config, "--set", "data.inputs={user: user_idd, movie: [movie_id, rating]}"});
  CHECK(columns.code == 2);
  CHECK(contains(columns.errors, "ratings.csv has no column 'user_idd'; did you mean 'user_id'?"));
  CHECK(contains(columns.errors, "input 'movie': column 'rating' is the target"));
  const Finished few = trainctl(folder, {"check", config, "--set", "data.categorical=[movie_id]"});
  CHECK(few.code == 3);
  CHECK(contains(few.errors, "set the embedding's input_dim to 21 or more"));
}

}  // namespace trainctl::test::table_inputs_test
