// Tests the exact texts and locations of the errors of configs.
#include <algorithm>

#include "test/catch.h"
#include "test/run/config_support.h"

namespace trainctl::testing::bad_config_test {
namespace {

// A change of the good config, and the expected errors.
struct Case {
  std::string from;
  std::string to;
  std::string message;
};

void check_all(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    CAPTURE(test.from, test.to);
    CHECK(config_errors(replaced(good_config, test.from, test.to)) == test.message);
  }
}

}  // namespace

TEST_CASE("the config that the cases change has no errors") { CHECK(config_errors(good_config).empty()); }

TEST_CASE("unknown keys and names are reported with the nearest known one") {
  check_all({
      {"seed: 1", "sede: 1", "c.yaml:2:1: unknown key 'sede'; did you mean 'seed'?"},
      {"seed: 1", "colour: red", "c.yaml:2:1: unknown key 'colour'"},
      {"  epochs: 2", "  epochs: 2\n  epoch: 3", "c.yaml:14:3: unknown key 'epoch' in train; did you mean 'epochs'?"},
      {"  batch_size: 32", "  batch-size: 32",
       "c.yaml:12:3: unknown key 'batch-size' in train; did you mean 'batch_size'?"},
      {"learning_rate: 0.1", "lerning_rate: 0.1",
       "c.yaml:16:26: unknown key 'lerning_rate' in sgd; did you mean 'learning_rate'?"},
      {"learning_rate: 0.1", "beta_1: 0.9", "c.yaml:16:26: unknown key 'beta_1' in sgd"},
      {"name: sgd", "name: sdg", "c.yaml:16:21: unknown optimizer 'sdg'; did you mean 'sgd'?"},
      {"name: sgd", "name: lbfgs",
       "c.yaml:16:21: unknown optimizer 'lbfgs'; there is sgd, adam, adamw, nadam, adamax, rmsprop, adagrad, adadelta, "
       "ftrl, lion, lamb, lars, adafactor or muon"},
      {"learning_rate: 0.1", "lr: 0.1", "c.yaml:16:26: unknown key 'lr' in sgd; did you mean 'learning_rate'?"},
      {"loss: sparse_categorical_crossentropy", "loss: sparse_categorical_crossentropi",
       "c.yaml:14:9: unknown loss 'sparse_categorical_crossentropi'; did you mean 'sparse_categorical_crossentropy'?"},
      {"[accuracy]", "[acuracy]", "c.yaml:15:13: unknown metric 'acuracy'; did you mean 'accuracy'?"},
      {"[accuracy]", "[acc]", ""},
      {"name: cosine", "name: cosin", "c.yaml:17:20: unknown schedule 'cosin'; did you mean 'cosine'?"},
      {"[accuracy]", "[sparse_categorical_accuracy]", ""},
      {"[accuracy]", "[top_1_accuracy]", "c.yaml:15:13: unknown metric 'top_1_accuracy'; did you mean 'accuracy'?"},
      {"dense: {units", "Linear: {units", "c.yaml:10:7: unknown layer 'Linear'; did you mean 'dense'?"},
      {"- flatten", "- BatchNorm2d", "c.yaml:9:7: unknown layer 'BatchNorm2d'; did you mean 'batch_normalization'?"},
      {"- flatten", "- LeakyReLU", "c.yaml:9:7: unknown layer 'LeakyReLU'; did you mean 'leaky_relu'?"},
      {"dense: {units", "danse: {units", "c.yaml:10:7: unknown layer 'danse'; did you mean 'dense'?"},
      {"- flatten", "- flaten", "c.yaml:9:7: unknown layer 'flaten'; did you mean 'flatten'?"},
      {"units: 10", "unitz: 10", "c.yaml:10:15: unknown key 'unitz' in dense; did you mean 'units'?"},
      {"activation: softmax", "activation: softmaxx",
       "c.yaml:10:38: unknown activation 'softmaxx'; did you mean 'softmax'?"},
      {"dataset: synthetic", "dataset: sinthetic",
       "c.yaml:4:12: unknown data set 'sinthetic'; did you mean 'synthetic'?"},
      {"  classes: 10", "  classes: 10\n  images: x",
       "c.yaml:7:3: unknown key 'images' in data with data set synthetic"},
      {"  classes: 10", "  classes: 10\n  sampels: 64",
       "c.yaml:7:3: unknown key 'sampels' in data with data set synthetic; did you mean 'samples'?"},
      {"cluster: {ranks: 2}", "cluster: {rank: 2}",
       "c.yaml:19:11: unknown key 'rank' in cluster; did you mean 'ranks'?"},
      {"model:\n  layers:\n    - flatten\n    - dense: {units: 10, activation: softmax}", "model: {preset: mpl}",
       "c.yaml:7:17: there is no preset 'mpl'; did you mean 'mlp'?"},
      {"model:\n  layers:\n    - flatten\n    - dense: {units: 10, activation: softmax}",
       "model: {preset: mlp, with: {clases: 5}}",
       "c.yaml:7:29: preset 'mlp' has no parameter 'clases'; did you mean 'classes'?"},
  });
}

TEST_CASE("uses of Keras that differ here are reported with the key that is meant") {
  check_all({
      {"  batch_size: 32", "  batch: 32", "c.yaml:12:3: unknown key 'batch' in train; did you mean 'batch_size'?"},
      {"train:\n", "compile:\n", "c.yaml:11:1: unknown key 'compile'; did you mean 'train'?"},
      {"  epochs: 2", "  epochs: 2\n  callbacks: []",
       "c.yaml:14:3: unknown key 'callbacks' in train; early_stopping, reduce_on_plateau and others are keys of "
       "`train`, "
       "and `checkpoint` says what is saved"},
      {"  epochs: 2", "  epochs: 2\n  learning_rate: 0.1",
       "c.yaml:14:3: unknown key 'learning_rate' in train; it is a key of 'optimizer': write `optimizer: {name: ..., "
       "learning_rate: ...}`"},
      {"  epochs: 2", "  epochs: 2\n  lr: 0.1",
       "c.yaml:14:3: unknown key 'lr' in train; 'learning_rate' is a key of 'optimizer': write `optimizer: {name: ..., "
       "learning_rate: ...}`"},
      {"seed: 1", "batch_size: 8",
       "c.yaml:2:1: unknown key 'batch_size'; it is a key of 'train': write `train: {batch_size: ...}`"},
      {"  epochs: 2", "  epochs: 2\n  class_weights: {b: -2}",
       "c.yaml:14:22: class_weights.b must be at least 0, not -2"},
      {"[accuracy]", "accuracy", "c.yaml:15:12: metrics must be a list of metrics, such as [accuracy], not 'accuracy'"},
      {"name: sgd", "name: SGD", "c.yaml:16:21: unknown optimizer 'SGD'; did you mean 'sgd'?"},
      {"name: sgd", "name: Adam", "c.yaml:16:21: unknown optimizer 'Adam'; did you mean 'adam'?"},
      {"activation: softmax", "activation: Softmax",
       "c.yaml:10:38: unknown activation 'Softmax'; did you mean 'softmax'?"},
      {"loss: sparse_categorical_crossentropy", "loss: SparseCategoricalCrossentropy",
       "c.yaml:14:9: unknown loss 'SparseCategoricalCrossentropy'; did you mean 'sparse_categorical_crossentropy'?"},
  });
}

TEST_CASE("keys of features that do not exist are unknown") {
  check_all({
      {"  epochs: 2", "  epochs: 2\n  on_nan: skip", "c.yaml:14:3: unknown key 'on_nan' in train"},
      {"seed: 1", "widgets: []", "c.yaml:2:1: unknown key 'widgets'"},
      {"  epochs: 2", "  epochs: 2\n  precision: float8",
       "c.yaml:14:14: precision must be float32, bfloat16 or float16, not 'float8'; did you mean 'float32'?"},
  });
}

TEST_CASE("a repeated key names the location of the first one") {
  check_all({
      {"seed: 1", "name: again", "c.yaml:2:1: repeated key 'name' (first at 1:1)"},
      {"  epochs: 2", "  epochs: 2\n  loss: mean_squared_error", "c.yaml:15:3: repeated key 'loss' (first at 14:3)"},
      {"units: 10", "units: 10, units: 5", "c.yaml:10:26: repeated key 'units' (first at 10:15)"},
      {"cluster: {ranks: 2}", "cluster: {hosts: {a: 1, a: 2}}", "c.yaml:19:25: repeated key 'a' (first at 19:19)"},
  });
}

TEST_CASE("values of a wrong type are refused") {
  check_all({
      {"epochs: 2", "epochs: ten", "c.yaml:13:11: epochs must be a whole number or none, not 'ten'"},
      {"epochs: 2", "epochs: 2.5", "c.yaml:13:11: epochs must be a whole number or none, not '2.5'"},
      {"epochs: 2", "epochs: '2'", "c.yaml:13:11: epochs must be a whole number or none, not the string '2'"},
      {"epochs: 2", "epochs: [2]", "c.yaml:13:11: epochs must be a whole number or none, not a list"},
      {"epochs: 2", "epochs:", "c.yaml:13:3: epochs must be a whole number or none, not nothing; write none"},
      {"epochs: 2", "epochs: 99999999999999999999",
       "c.yaml:13:11: epochs must be a whole number or none, not '99999999999999999999'"},
      {"learning_rate: 0.1", "learning_rate: fast", "c.yaml:16:41: learning_rate must be a number, not 'fast'"},
      {"learning_rate: 0.1", "learning_rate: .inf", "c.yaml:16:41: learning_rate must be a number, not '.inf'"},
      {"learning_rate: 0.1", "nesterov: yes", "c.yaml:16:36: nesterov must be true or false, not 'yes'"},
      {"seed: 1", "seed: -1", "c.yaml:2:7: seed must be a whole number, not '-1'"},
      {"name: test", "name: [test]", "c.yaml:1:7: name must be a string, not a list"},
      {"[8, 8, 1]", "8", "c.yaml:5:10: shape must be a list or none, not '8'"},
      {"[8, 8, 1]", "[8, x, 1]", "c.yaml:5:14: shape must be a whole number or none, not 'x'"},
      {"warmup: 1 epoch", "warmup: 1 epock",
       "c.yaml:17:36: warmup must be a duration such as '10 steps', '1 epoch' or '30 s', not '1 epock'"},
      {"{every: 1 epoch}", "{every: often}",
       "c.yaml:18:21: every must be a duration such as '10 steps', '1 epoch' or '30 s' or auto, not 'often'"},
      {"{every: 1 epoch}", "{every: 30 s}",
       "c.yaml:18:21: every must be auto or a number of steps or epochs, not '30 s'"},
      {"cluster: {ranks: 2}", "strategy: {bucket_size: big}",
       "c.yaml:19:25: bucket_size must be a size such as '25 MB', not 'big'"},
      {"cluster: {ranks: 2}", "cluster: {ranks: many}",
       "c.yaml:19:18: ranks must be a whole number or auto, not 'many'"},
      {"cluster: {ranks: 2}", "cluster: 2", "c.yaml:19:10: cluster must be a map, not '2'"},
      {"cluster: {ranks: 2}", "strategy: atuo",
       "c.yaml:19:11: strategy must be a map or auto, not 'atuo'; did you mean 'auto'?"},
      {"cluster: {ranks: 2}", "cluster: {device: gpu}",
       "c.yaml:19:19: device must be cpu, cuda or auto, not 'gpu'; did you mean 'cuda'?"},
      {"  layers:\n    - flatten\n    - dense: {units: 10, activation: softmax}", "  layers: {dense: 10}",
       "c.yaml:8:11: layers must be a list of layers, not a map"},
      {"optimizer: {name: sgd, learning_rate: 0.1}", "optimizer: [sgd]",
       "c.yaml:16:14: optimizer must be the name of one optimizer or a map with its name, not a list"},
      {"optimizer: {name: sgd, learning_rate: 0.1}", "optimizer: {learning_rate: 0.1}",
       "c.yaml:16:14: optimizer must be the name of one optimizer or a map with its name, not a map"},
      {"optimizer: {name: sgd, learning_rate: 0.1}", "optimizer: {sgd: {learning_rate: 0.1}}",
       "c.yaml:16:14: the options of optimizer 'sgd' belong in the same map as its name: write {name: sgd, "
       "learning_rate: ...}"},
      {"- dense: {units: 10, activation: softmax}", "- dense:\n      units: 10",
       "c.yaml:11:7: 'units' is on the same level as layer 'dense', not below it (indent it further, or begin a list "
       "item with "
       "'-'; "
       "at 10:7)"},
  });
}

TEST_CASE("values out of range are refused") {
  check_all({
      {"epochs: 2", "epochs: 0", "c.yaml:13:11: epochs must be at least 1 and at most 1000000000, not 0"},
      {"batch_size: 32", "batch_size: -4", "c.yaml:12:15: batch_size must be at least 1 and at most 16777216, not -4"},
      {"units: 10", "units: 0", "c.yaml:10:22: units must be at least 1 and at most 2147483647, not 0"},
      {"learning_rate: 0.1", "momentum: 1", "c.yaml:16:36: momentum must be at least 0 and less than 1, not 1"},
      {"epochs: 2", "epochs: 2\n  clip_norm: 0", "c.yaml:14:14: clip_norm must be more than 0, not 0"},
      {"[8, 8, 1]", "[8, 0, 1]", "c.yaml:5:14: shape must be at least 1, not 0"},
      {"cluster: {ranks: 2}", "cluster: {hosts: {n1: 0}}",
       "c.yaml:19:23: hosts.n1 must be at least 1 and at most 1048576, not 0"},
      {"epochs: 2", "epochs: 2\n  max_time: 0 s", "c.yaml:14:13: max_time must be more than 0, not 0 s"},
      {"cluster: {ranks: 2}", "cluster: {hang_timeout: 2 s}",
       "c.yaml:19:25: hang_timeout must be at least 3 s, not 2 s"},
      {"cluster: {ranks: 2}", "strategy: {bucket_size: 0 MB}",
       "c.yaml:19:25: bucket_size must be more than 0, not 0 MB"},
  });
}

TEST_CASE("only one limit on gradients is accepted") {
  check_all({
      {"learning_rate: 0.1", "clipnorm: 1, clipvalue: 1",
       "c.yaml:16:50: clipvalue and clipnorm exclude each other; set only one of them (clipnorm at 16:36)"},
      {"epochs: 2", "epochs: 2\n  clip_norm: 1\n  phases: [{epochs: 2, optimizer: {name: adam, clipnorm: 1}}]",
       "c.yaml:14:14: clip_norm and the optimizer both limit the gradients: set only one of clip_norm and the "
       "optimizer's clipnorm, global_clipnorm and clipvalue (optimizer at 15:35)"},
  });
}

TEST_CASE("amounts that overflow clocks or counters are refused") {
  check_all({
      {"warmup: 1 epoch", "warmup: 1e300 epochs", "c.yaml:17:36: warmup must be at most 1e12, not '1e300 epochs'"},
      {"epochs: 2", "max_time: 1e300 s", "c.yaml:13:13: max_time must be at most 1e9 s, not '1e300 s'"},
      {"epochs: 2", "max_time: 1e308 d",
       "c.yaml:13:13: max_time must be a time such as '30 s', '5 min' or '2 h' or none, not '1e308 d'"},
      {"cluster: {ranks: 2}", "cluster: {timeout: 1e12}", "c.yaml:19:20: timeout must be at most 1e9 s, not '1e12'"},
      {"{every: 1 epoch}", "{every: 1e13 steps}", "c.yaml:18:21: every must be at most 1e12, not '1e13 steps'"},
      {"cluster: {ranks: 2}", "cluster: {ranks: 2147483647}",
       "c.yaml:19:18: ranks must be at least 1 and at most 1048576, not 2147483647"},
      {"epochs: 2", "epochs: 2\n  gradient_accumulation: 4294967296",
       "c.yaml:14:26: gradient_accumulation must be at least 1 and at most 65536, not 4294967296"},
  });
}

TEST_CASE("errors that a run could find only after its start are found in the config") {
  check_all({
      {"  epochs: 2", "  max_time: 5 s",
       "c.yaml:17:13: the cosine schedule needs to know how many steps the run has: set epochs or max_steps, with or "
       "without max_time"},
      {"{every: 1 epoch}", "{monitor: val_foo}",
       "c.yaml:18:23: monitor 'val_foo' is not a result of this run; use loss or accuracy"},
      {"{every: 1 epoch}", "{monitor: val_accuracy}",
       "c.yaml:18:23: monitor 'val_accuracy' needs validation data, but the config has none: set data.validation, or "
       "monitor 'accuracy'"},
      {"{every: 1 epoch}", "{monitor: accuracy}", ""},
      {"  layers:\n    - flatten\n", "  preset: mlp\n  layers:\n    - flatten\n",
       "c.yaml:10:5: layers and preset exclude each other; set only one of them (preset at 8:11)"},
      {"  layers:\n    - flatten\n    - dense: {units: 10, activation: softmax}", "  layers: []",
       "c.yaml:8:3: model needs 'layers' or 'preset': the network"},
  });
  const std::string held_out = replaced(good_config, "  classes: 10\n", "  classes: 10\n  validation: {split: 0.1}\n");
  CHECK(config_errors(replaced(held_out, "{every: 1 epoch}", "{monitor: val_accuracy}")).empty());
  CHECK(config_errors(replaced(held_out, "{every: 1 epoch}", "{monitor: val_acc}")) ==
        "c.yaml:19:23: monitor 'val_acc' is not a result of this run; use loss, accuracy, val_loss or val_accuracy");
}

TEST_CASE("a metric of the user's own is monitored only if it is known whether smaller values are better") {
  const auto own = [](const std::string& mode) {
    return replaced(good_config, "[accuracy]", "[{name: own, expression: mean(y_pred)" + mode + "}]");
  };
  const std::string monitored = "{monitor: own}";
  CHECK(config_errors(replaced(own(""), "{every: 1 epoch}", monitored)) ==
        "c.yaml:18:23: whether smaller or greater values of own are better is unknown: set `mode: min` or `mode: max` "
        "in the metric");
  CHECK(config_errors(replaced(own(", mode: max"), "{every: 1 epoch}", monitored)).empty());
  CHECK(config_errors(replaced(own(""), "{every: 1 epoch}", "{monitor: own, mode: min}")).empty());
}

TEST_CASE("errors beyond the first 100 are only counted") {
  std::string text = good_config;
  for (int i = 0; i < 5000; ++i) text += "key" + std::to_string(i) + ": 1\n";
  const std::string errors = config_errors(text);
  CHECK(std::count(errors.begin(), errors.end(), '\n') == 100);
  CHECK(errors.ends_with("\nc.yaml: and 4900 more"));
}

TEST_CASE("missing keys and violated rules across keys are reported") {
  check_all({
      {"  loss: sparse_categorical_crossentropy\n", "",
       "c.yaml:12:3: train needs 'loss': The function that training minimizes; with several outputs, one for each by "
       "name."},
      {"  epochs: 2\n", "",
       "c.yaml:12:3: train needs 'epochs', 'max_steps', 'max_time' or 'phases': when the run ends"},
      {"  batch_size: 32\n", "",
       "c.yaml:12:3: train needs 'batch_size' or 'batch_size_per_rank': samples of a step, of all ranks together or of "
       "each"},
      {"  epochs: 2", "  epochs: 2\n  batch_size_per_rank: 8",
       "c.yaml:14:24: batch_size_per_rank and batch_size exclude each other; set only one of them (batch_size at "
       "12:15)"},
      {"  epochs: 2", "  epochs: 2\n  gradient_accumulation: 5",
       "c.yaml:14:26: gradient_accumulation 5 does not divide batch_size 32 (batch_size at 12:15)"},
      {"    - flatten\n", "    - residual: {activation: relu}\n",
       "c.yaml:9:17: residual needs 'layers': The layers of the branch."},
      {"  dataset: synthetic\n", "", "c.yaml:4:3: data needs 'dataset': The kind of data set."},
      {"name: test", "name: ../test",
       "c.yaml:1:7: name '../test' cannot name a folder; use up to 200 letters, digits, '.', '_' and '-', and do not "
       "begin with '.'"},
      {"name: test", "name: " + std::string(201, 'x'),
       "c.yaml:1:7: name '" + std::string(100, 'x') +
           "...' cannot name a folder; use up to 200 letters, digits, '.', '_' and '-', and do not begin with '.'"},
      {"name: test", "version: 2",
       "c.yaml:1:10: this config is of version 2, and this trainctl reads version 1 at most; use a newer trainctl"},
      {"cluster: {ranks: 2}", "cluster: {ranks: 2, restarts: {max: 3, min_ranks: 3}}", ""},  // --ranks may be more
      {"cluster: {ranks: 2}", "cluster: {hosts: {a: 1}, hostfile: b}",
       "c.yaml:19:36: hostfile and hosts exclude each other; set only one of them (hosts at 19:18)"},
      {"warmup: 1 epoch", "warmup: 30 s", "c.yaml:17:36: warmup must be a number of steps or epochs, not '30 s'"},
  });
}

TEST_CASE("an empty config is missing all required keys") {
  CHECK(config_errors("") ==
        "c.yaml:1:1: the config needs 'data': The data that the network is trained on.\n"
        "c.yaml:1:1: the config needs 'model': The network.\n"
        "c.yaml:1:1: the config needs 'train': How it is trained.");
  CHECK(config_errors("- a\n") == "c.yaml:1:1: the config must be a map, not a list");
}

TEST_CASE("all errors are reported together, in the order of the file") {
  std::string text = replaced(good_config, "seed: 1", "seed: x");
  text = replaced(text, "dataset: synthetic", "dataset: ${NOWHERE}");
  text = replaced(text, "units: 10", "units: none");
  text = replaced(text, "  epochs: 2\n", "");
  text = replaced(text, "[accuracy]", "[accurcy]");
  text = replaced(text, "cluster:", "clusters:");
  CHECK(config_errors(text, {"train.precison=bfloat16"}) ==
        "c.yaml:2:7: seed must be a whole number, not 'x'\n"
        "c.yaml:4:12: variable 'NOWHERE' is not defined; define it, or give a default: ${NOWHERE:-default}\n"
        "c.yaml:10:22: units must be a whole number, not 'none'\n"
        "c.yaml:12:3: train needs 'epochs', 'max_steps', 'max_time' or 'phases': when the run ends\n"
        "c.yaml:14:13: unknown metric 'accurcy'; did you mean 'accuracy'?\n"
        "c.yaml:18:1: unknown key 'clusters'; did you mean 'cluster'?\n"
        "--set train.precison: unknown key 'precison' in train; did you mean 'precision'?");
}

TEST_CASE("settings are checked like the file") {
  const auto errors = [](const std::string& setting) { return config_errors(good_config, {setting}); };
  CHECK(errors("train.epochs=ten") == "--set train.epochs: epochs must be a whole number or none, not 'ten'");
  CHECK(errors("train.epoch=3") == "--set train.epoch: unknown key 'epoch' in train; did you mean 'epochs'?");
  CHECK(errors("trian.epochs=3") == "--set trian.epochs: unknown key 'trian'; did you mean 'train'?");
  CHECK(errors("train.optimizer.momentom=0.9") ==
        "--set train.optimizer.momentom: unknown key 'momentom' in sgd; did you mean 'momentum'?");
  CHECK(errors("model.layers.1.dense.units=0") ==
        "--set model.layers.1.dense.units: units must be at least 1 and at most 2147483647, not 0");
  CHECK(errors("model.layers.7.dense.units=1") ==
        "--set model.layers.7.dense.units: '7' is not an item of this list: it has items 0 to 1 (list at c.yaml:9:5)");
  CHECK(errors("train.epochs") == "--set train.epochs: expected PATH=VALUE, for example train.epochs=5");
}

}  // namespace trainctl::testing::bad_config_test
