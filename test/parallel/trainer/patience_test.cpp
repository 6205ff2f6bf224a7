// Compares early stopping and plateaus with the rules of Keras' callbacks, written out here, on random values.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "parallel/trainer/hooks/early_stopping.h"
#include "parallel/trainer/hooks/plateau.h"
#include "test/catch.h"

namespace trainctl::patience_test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> random_values(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> value(0, 1);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(random() % 10 == 0 ? nan : value(random));
  return values;
}

// Number, from 1, of the epoch after which Keras' EarlyStopping ends the run; 0 if it never does.
int stops_at(const std::vector<double>& values, const EarlyStoppingOptions& options, bool maximum) {
  double best = maximum ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  std::int64_t wait = 0;
  for (std::size_t epoch = 0; epoch < values.size(); ++epoch) {
    if (static_cast<std::int64_t>(epoch) < options.start_from_epoch) continue;
    ++wait;
    const bool better = maximum ? values[epoch] - options.min_delta > best : values[epoch] + options.min_delta < best;
    if (better) {
      best = values[epoch];
      wait = 0;
    } else if (wait >= options.patience && epoch > 0) {
      return static_cast<int>(epoch) + 1;
    }
  }
  return 0;
}

}  // namespace

TEST_CASE("early stopping ends a run at the same epoch as Keras, also if its state is restored from text") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    EarlyStoppingOptions options;
    const bool maximum = seed % 2 == 1;
    options.monitor.given = maximum ? "val_accuracy" : "val_loss";
    options.patience = 1 + seed % 4;
    options.min_delta = seed % 3 == 0 ? 0.05 : 0;
    options.start_from_epoch = seed % 5;
    const std::vector<double> values = random_values(seed, 30);
    EarlyStopping stopping(options);
    int stopped = 0;
    for (std::size_t epoch = 0; epoch < values.size() && stopped == 0; ++epoch) {
      EarlyStopping resumed(options);  // the state is saved and restored in every epoch
      resumed.read(stopping.text());
      stopping = std::move(resumed);
      const std::map<std::string, double> all{{"loss", 0.5}, {options.monitor.or_else("val_loss"), values[epoch]}};
      if (stopping.stops(static_cast<double>(epoch + 1), all)) stopped = static_cast<int>(epoch) + 1;
    }
    CAPTURE(seed);
    CHECK(stopped == stops_at(values, options, maximum));
  }
}

TEST_CASE("a metric that is not reported never stops a run") {
  EarlyStopping stopping({});
  for (int epoch = 1; epoch < 5; ++epoch) CHECK_FALSE(stopping.stops(epoch, {{"loss", 1.0}}));
}

TEST_CASE("the learning rate falls at the same epochs as in Keras, also if its state is restored from text") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    PlateauOptions options;
    options.patience = 1 + seed % 3;
    options.cooldown = seed % 4;
    options.factor = 0.5;
    options.min_delta = 0.01;
    options.min_learning_rate = 0.03;
    const std::vector<double> values = random_values(100 + seed, 40);

    double best = std::numeric_limits<double>::infinity(), expected = 1;
    std::int64_t wait = 0, cooldown = 0;
    Plateau plateau(options);
    for (const double value : values) {
      if (cooldown > 0) {  // as ReduceLROnPlateau.on_epoch_end
        --cooldown;
        wait = 0;
      }
      if (value < best - options.min_delta) {
        best = value;
        wait = 0;
      } else if (cooldown == 0) {
        ++wait;
        if (wait >= options.patience && expected > options.min_learning_rate) {
          expected = std::max(expected * options.factor, options.min_learning_rate);
          cooldown = options.cooldown;
          wait = 0;
        }
      }
      Plateau resumed(options);
      resumed.read(plateau.text());
      plateau = std::move(resumed);
      plateau.lowers(1, {{"val_loss", value}});
      CAPTURE(seed, value);
      REQUIRE(plateau.rate(1) == Approx(expected).epsilon(1e-12));
    }
    CHECK(expected < 1);
  }
}

}  // namespace trainctl::patience_test
