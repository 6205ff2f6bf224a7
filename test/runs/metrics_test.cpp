// Tests the metrics of whole runs: values that are not finite, runs that end within an epoch, confusion matrices and
// times.
#include <filesystem>
#include <limits>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::metrics_test {
namespace {

namespace fs = std::filesystem;

// 48 training samples, and 12 for validation, one of which is infinite after the transform. A relu is between this
// value and the loss.
std::string spoilt_config(const Folder& folder, const std::string& precision) {
  std::vector<float> x(60 * 8);
  std::vector<std::int64_t> y(60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1e-5f * (static_cast<float>(i * 7919 % 113) / 113.0f - 0.5f);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int64_t>(i % 4);
  folder.write("x.npy", npy("<f4", "(48, 8)", raw(x).substr(0, 48 * 32)));
  folder.write("y.npy", npy("<i8", "(48,)", raw(y).substr(0, 48 * 8)));
  x[50 * 8 + 3] = 3e38f;
  folder.write("held_x.npy", npy("<f4", "(12, 8)", raw(x).substr(48 * 32)));
  folder.write("held_y.npy", npy("<i8", "(12,)", raw(y).substr(48 * 8)));
  return folder.write("spoilt.yaml", format(R"(
data: {{dataset: npy, x: x.npy, y: y.npy, validation: {{x: held_x.npy, y: held_y.npy}},
       transform: [{{rescale: 1e5}}]}}
model: {{layers: [{{dense: {{units: 16, activation: relu}}}}, {{dense: {{units: 4}}}}]}}
train: {{batch_size: 16, epochs: 6, loss: sparse_categorical_crossentropy, precision: {},
        optimizer: {{name: sgd, learning_rate: 0.01}}}}
)",
                                            precision));
}

TEST_CASE("a metric that is not finite is reported as such, is never the best, and does not prevent a resume") {
  for (const std::string precision : {"float32", "bfloat16"}) {
    CAPTURE(precision);
    const Folder folder;
    const std::string config = spoilt_config(folder, precision);
    const std::string directory = folder / "runs/spoilt";
    const Finished begun = trainctl(folder, {"run", config, "--ranks", "2", "--set", "train.max_steps=6"});
    INFO(tail(begun.errors));
    REQUIRE(begun.code == 0);
    CHECK(count(begun.errors, "val_loss is nan") == 1);
    for (const Json& epoch : events(directory, "epoch")) CHECK(epoch["validation"]["loss"] == "NaN");
    CHECK(events(directory, "end").back()["best"].is_null());
    CHECK_FALSE(fs::exists(directory + "/checkpoints/best"));

    const std::string last = directory + "/checkpoints/last";
    const Finished resumed =
        trainctl(folder, {"run", config, "--ranks", "2", "--resume", last, "--run-dir", folder / "resumed"});
    INFO(tail(resumed.errors));
    CHECK(resumed.code == 0);
    CHECK(events(folder / "resumed", "end").back()["status"] == "completed");
    const Finished inspected = trainctl(folder, {"inspect", last, "--json"});
    CHECK(inspected.code == 0);
    CHECK(contains(inspected.out, "\"NaN\""));
    const Finished evaluated = trainctl(folder, {"eval", config, "--checkpoint", last, "--json"});
    CHECK(evaluated.code == 0);
    CHECK(Json::parse(evaluated.out)["loss"] == "NaN");
  }
}

TEST_CASE("a run that max_steps or max_time ends within an epoch is validated and saves its best checkpoint") {
  const Folder folder;
  const std::string config =
      folder.write("short.yaml", uneven_data + mlp_model +
                                     train_section("batch_size: 20, optimizer: {name: sgd, learning_rate: 0.1}, "
                                                   "epochs: 1000000"));
  for (const char* limit : {"train.max_steps=3", "train.max_steps=8", "train.max_time=300 ms"}) {
    CAPTURE(limit);
    const Finished run = trainctl(
        folder, {"run", config, "--ranks", "2", "--resume", "never", "--run-dir", folder / "short", "--set", limit});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json end = events(folder / "short", "end").back(), epoch = events(folder / "short", "epoch").back();
    CHECK(end["status"] == "completed");
    CHECK(end["best"]["monitor"] == "val_loss");
    CHECK(epoch["step"] == end["step"]);
    CHECK(epoch["validation"]["loss"].get<double>() > 0);
    CHECK(epoch["epoch"].get<double>() == Approx(end["step"].get<double>() / 6));
    CHECK(fs::exists(folder / "short/checkpoints/best"));
    fs::remove_all(folder / "short");
  }
}

TEST_CASE("a run that is resumed within an epoch counts every sample of the epoch once") {
  const Folder folder;
  const std::string config = folder.write(
      "on.yaml",
      uneven_data + mlp_model + train_section("batch_size: 20, optimizer: {name: sgd, learning_rate: 0.1}, epochs: 2"));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", folder / "whole"}).code == 0);
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", folder / "part", "--set", "train.max_steps=4"})
              .code == 0);
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", folder / "rest", "--resume",
                            folder / "part/checkpoints/last"})
              .code == 0);
  const std::vector<Json> whole = events(folder / "whole", "epoch"), rest = events(folder / "rest", "epoch");
  REQUIRE(rest.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(rest[i]["train"] == whole[i]["train"]);
    CHECK(rest[i]["validation"] == whole[i]["validation"]);
  }
}

TEST_CASE("auc covers all samples of an epoch, on one rank, on two, and after a resume within the epoch") {
  const Folder folder;
  std::vector<float> x(90 * 4);
  std::vector<std::int64_t> y(90);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 113) / 113.0f - 0.5f;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i * 4] + 0.5f * x[i * 4 + 1] > 0.1f ? 1 : 0;
  folder.write("x.npy", npy("<f4", "(90, 4)", raw(x)));
  folder.write("y.npy", npy("<i8", "(90,)", raw(y)));
  const std::string config = folder.write("answers.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy, validation: {split: 0.3}}
model: {layers: [{dense: {units: 1, activation: sigmoid}}]}
train: {batch_size: 20, epochs: 12, loss: binary_crossentropy, metrics: [accurcy],
        optimizer: {name: sgd, learning_rate: 0.5}}
checkpoint: {monitor: val_auc}
)");
  const std::string good = "train.metrics=[accuracy, {auc: {num_thresholds: 50}}]";
  CHECK(contains(trainctl(folder, {"check", config, "--quiet"}).errors, "did you mean 'accuracy'"));
  const auto run = [&](const std::string& directory, const std::string& ranks, std::vector<std::string> more) {
    std::vector<std::string> arguments{"run", config, "--ranks", ranks, "--run-dir", folder / directory, "--set", good};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = trainctl(folder, arguments);
    INFO(tail(finished.errors));
    REQUIRE(finished.code == 0);
    return events(folder / directory, "epoch");
  };
  const std::vector<Json> one = run("one", "1", {}), two = run("two", "2", {});
  run("part", "2", {"--set", "train.max_steps=6"});
  const std::vector<Json> rest = run("rest", "1", {"--resume", folder / "part/checkpoints/last"});
  REQUIRE(one.size() == 12);
  for (const std::string part : {"train", "validation"}) {
    const double auc = one[11][part]["auc"].get<double>();
    CHECK((auc > 0.8 && auc <= 1));
    CHECK(two[11][part]["auc"].get<double>() == Approx(auc).margin(0.01));
    CHECK(rest.back()[part]["auc"].get<double>() == Approx(auc).margin(0.01));
  }
  CHECK(events(folder / "one", "end").back()["best"]["monitor"] == "val_auc");
}

TEST_CASE("class names are kept with the run, and skipped samples and changed data are reported once") {
  const Folder folder;
  const std::vector<std::string> names{"a big \"cat\"", "dog"};
  for (const std::string& name : names) {
    for (unsigned i = 0; i < 6; ++i) {
      folder.write(format("images/{}/{}.png", name, i), png(8, 8, 0, random_bytes(64, i)));
      folder.write(format("held/{}/{}.png", name, i), png(8, 8, 0, random_bytes(64, i + 6)));
    }
  }
  folder.write("held/dog/broken.png", "no image");
  const std::string config = folder.write("named.yaml", R"(
data: {dataset: image_folder, path: images, validation: {path: held}, on_error: skip, transform: [{rescale: 1/255}]}
model: {layers: [flatten, {dense: {units: 2}}]}
train: {batch_size: 4, epochs: 4, loss: sparse_categorical_crossentropy, optimizer: {name: sgd, learning_rate: 0.01}}
)");
  const std::string directory = folder / "runs/named";
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--set", "train.max_steps=9"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(count(run.errors, "broken.png") == 1);
  const std::string last = directory + "/checkpoints/last";
  CHECK(read_class_names(read_manifest(last).metadata) == names);
  CHECK(contains(read_file(directory + "/config.yaml"), "class_names"));
  REQUIRE(trainctl(folder, {"check", directory + "/config.yaml", "--quiet"}).code == 0);

  folder.write("images/dog/more.png", png(8, 8, 0, random_bytes(64, 99)));
  const Finished resumed =
      trainctl(folder, {"run", config, "--ranks", "2", "--resume", last, "--run-dir", folder / "resumed"});
  INFO(tail(resumed.errors));
  CHECK(resumed.code == 0);
  CHECK(count(resumed.errors, "the data has changed") == 1);
  CHECK(contains(resumed.errors, "and the best result so far is forgotten, since it is one of the other data"));
  const Json end = events(folder / "resumed", "end").back();
  CHECK(end["best"]["step"].get<int>() > read_manifest(last).step);
}

TEST_CASE("a confusion matrix has the same counts on any number of ranks, and its diagonal matches the accuracy") {
  const Folder folder;
  const std::string config = folder.write(
      "table.yaml", uneven_data + mlp_model +
                        "train: {loss: sparse_categorical_crossentropy, metrics: [accuracy, confusion_matrix], "
                        "batch_size: 20, epochs: 2, optimizer: {name: sgd, learning_rate: 0.1}}\n"
                        "strategy: {reproducible: {shards: 4}}\n");
  Json of_one;
  for (const char* ranks : {"1", "3"}) {
    const std::string directory = folder / ("on-" + std::string(ranks));
    const Finished run =
        trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", directory, "--progress", "none"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json epoch = events(directory, "epoch").back();
    for (const char* part : {"train", "validation"}) {
      double right = 0, all = 0;
      const Json& table = epoch[part]["confusion_matrix"];
      for (std::size_t target = 0; target < table.size(); ++target) {
        REQUIRE(table[target].size() == table.size());
        right += table[target][target].get<double>();
        for (const Json& count : table[target]) all += count.get<double>();
      }
      CHECK(right / all == Approx(epoch[part]["accuracy"].get<double>()));
    }
    if (of_one.is_null()) of_one = epoch;
    for (const char* part : {"train", "validation"}) CHECK(epoch[part] == of_one[part]);
    const Finished evaluated =
        trainctl(folder, {"eval", config, "--run", directory, "--data", "validation", "--ranks", ranks});
    INFO(evaluated.errors);
    CHECK(contains(evaluated.out, "rows are targets, columns are predictions"));
  }
  const Finished watched = trainctl(folder, {"run", config, "--set", "checkpoint.monitor=val_confusion_matrix"});
  CHECK(watched.code == 2);
  CHECK(contains(watched.errors, "monitor 'val_confusion_matrix' is not a result of this run"));
}

TEST_CASE("a metric that is an expression has the values of the library's metric under every strategy") {
  const Folder folder;
  const std::string config = folder.write("own.yaml", uneven_data + mlp_model + R"yaml(
train:
  loss: sparse_categorical_crossentropy
  metrics:
    - accuracy
    - {name: right, expression: "sum(y_true * (y_pred == max(y_pred, -1, True)), axis=-1)", mode: max}
  batch_size: 20
  epochs: 2
  optimizer: {name: sgd, learning_rate: 0.1}
checkpoint: {monitor: val_right}
)yaml");
  int runs = 0;
  for (const auto& [ranks, setting] : {std::pair{"1", "train.gradient_accumulation=2"},
                                       {"2", "strategy.shard=none"},
                                       {"4", "strategy.shard=parameters"},
                                       {"2", "strategy.pipeline=2"},
                                       {"2", "strategy.tensor=2"},
                                       {"2", "strategy.reproducible={shards: 4}"},
                                       {"2", "train.loss={expression: '-sum(y_true * log(y_pred), axis=1)'}"}}) {
    CAPTURE(ranks, setting);
    const std::string directory = folder / std::to_string(++runs);
    const Finished run = trainctl(
        folder, {"run", config, "--ranks", ranks, "--set", setting, "--run-dir", directory, "--progress", "none"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    for (const Json& epoch : events(directory, "epoch")) {
      for (const char* part : {"train", "validation"}) {
        CHECK(epoch[part]["accuracy"] > 0);
        CHECK(epoch[part]["right"].get<double>() == Approx(epoch[part]["accuracy"].get<double>()));
      }
    }
    const Json best = events(directory, "end").back()["best"], last = events(directory, "epoch").back();
    CHECK(best["monitor"] == "val_right");
    CHECK(best["value"] >= last["validation"]["right"]);
  }
  const auto judged = [&](const char* threshold) {
    return trainctl(folder, {"eval", config, "--run", folder / "2", "--threshold", threshold}).code;
  };
  CHECK(judged("right=0.01") == 0);
  CHECK(judged("right=1.5") == 1);
}

TEST_CASE("early stopping and plateaus take the mode of a metric that is an expression") {
  const Folder folder;
  const std::string config = folder.write("near.yaml", uneven_data + mlp_model + R"yaml(
train:
  loss: sparse_categorical_crossentropy
  batch_size: 20
  epochs: 5
  optimizer: {name: sgd, learning_rate: 0.1}
  early_stopping: {monitor: val_near, patience: 1}
  reduce_on_plateau: {monitor: val_near, patience: 1, factor: 0.5}
)yaml");
  for (const std::string mode : {"max", "min"}) {  // the value grows in every epoch
    CAPTURE(mode);
    const std::string metric = "train.metrics=[{name: near, expression: 'mean(y_true * y_pred)', mode: " + mode + "}]";
    const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--set", metric, "--run-dir", folder / mode});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    CHECK(events(folder / mode, "end").back()["epoch"] == (mode == "max" ? 5 : 2));
    CHECK(contains(run.errors, "val_near no longer improves") == (mode == "min"));
  }
}

TEST_CASE("steps report how their time was spent, on one rank and on two") {
  const Folder folder;
  const std::string config =
      folder.write("told.yaml", uneven_data + mlp_model +
                                    train_section("batch_size: 20, optimizer: {name: sgd, learning_rate: 0.1}, "
                                                  "max_steps: 8"));
  const auto shares = [&](const std::string& ranks, const std::string& sync_every) {
    const std::string directory = folder / ("on" + ranks + "by" + sync_every);
    const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--resume", "never", "--run-dir", directory,
                                           "--set", "log.every=2 steps", "--set", "strategy.sync_every=" + sync_every});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const std::vector<Json> steps = events(directory, "step");
    REQUIRE(steps.size() == 4);
    for (const Json& step : steps) {
      double sum = step["data_wait_share"];
      for (const auto& [name, share] : step["time_shares"].items()) {
        CHECK(share >= 0);
        sum += share.get<double>();
      }
      CHECK(sum > 0);
      CHECK(sum < 1.001);
    }
    return steps.back()["time_shares"];
  };
  const Json alone = shares("1", "1");
  for (const char* part : {"forward", "backward", "update"}) CHECK(alone[part] > 0);
  CHECK(alone["communication"] == 0);
  CHECK(shares("2", "1")["communication"] > 0);
  CHECK(shares("2", "2")["communication"] > 0);
}

}  // namespace
}  // namespace trainctl::test::metrics_test
