// Tests runs with players on any number of ranks, their checkpoints, and how they are resumed.
#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::runs_players_test {
namespace {

// A generator and a discriminator, which also learns the classes of the data.
const std::string model = R"(
model:
  layers:
    - flatten: {name: pixels}
    - lambda: {name: noise, expression: 'random_normal((shape(x)[0], 8))'}
    - dense: {name: make1, units: 16, activation: tanh}
    - dense: {name: make2, units: 192}
    - dense: {name: judge1, from: make2, units: 24, activation: relu}
    - dropout: {name: judge_drop, rate: 0.2}
    - dense: {name: judge2, units: 1}
    - dense: {name: judge1, from: pixels, units: 24, activation: relu}
    - dropout: {name: judge_drop, rate: 0.2}
    - dense: {name: judge2, units: 1}
    - dense: {name: classes, from: judge_drop, units: 5, activation: softmax}
  add_loss:
    truth: {from: ["judge2@2", "judge2@1"], inputs: [r, f], expression: softplus(-r) + softplus(f)}
    generator: {from: "judge2@1", expression: softplus(-x)}
)";
const std::string players = train_section(
    "batch_size: 20, epochs: 3, optimizer: {name: adam, learning_rate: 2e-3}, schedule: {name: step, every: 1 epoch}, "
    "players: {discriminator: {trains: [judge*, classes], loss: [truth, output], steps: 2}, "
    "generator: {trains: make*, optimizer: {name: sgd, learning_rate: 0.02, momentum: 0.9}}}");

Json end_of(const Folder& folder, const std::string& config, const std::string& name, int ranks,
            const std::vector<std::string>& more = {}) {
  const std::string directory = folder / name;
  std::vector<std::string> command{"run",       config,    "--ranks",    std::to_string(ranks),
                                   "--run-dir", directory, "--progress", "none"};
  command.insert(command.end(), more.begin(), more.end());
  const Finished run = trainctl(folder, command);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return events(directory, "end").back();
}

}  // namespace

TEST_CASE("players on several ranks have the losses of one rank, and the checkpoint has the states of each") {
  const Folder folder;
  const std::string config = folder.write("players.yaml", uneven_data + model + players);
  const Json reference = end_of(folder, config, "one", 1);
  for (const char* name : {"discriminator_loss", "truth_loss", "output_loss", "generator_loss", "loss"}) {
    CHECK(reference.at("train").contains(name));
  }
  const Json& train = reference.at("train");
  CHECK(train.at("discriminator_loss").get<double>() ==
        Approx(train.at("truth_loss").get<double>() + train.at("output_loss").get<double>()));
  for (const int ranks : {2, 4}) {  // in the last step of an epoch, one of 4 ranks has no sample
    CAPTURE(ranks);
    const Json end = end_of(folder, config, format("ranks-{}", ranks), ranks);
    for (const char* part : {"train", "validation"}) {
      for (const auto& [name, value] : reference.at(part).items()) {
        CAPTURE(part, name);
        CHECK(end.at(part).at(name).get<double>() == Approx(value.get<double>()).epsilon(1e-5));
      }
    }
  }
  const LoadedCheckpoint checkpoint = load_checkpoint(folder / "one/checkpoints/last");
  std::vector<std::string> names;
  for (const NamedTensor& tensor : checkpoint.snapshot.state) names.push_back(tensor.name);
  CHECK(names == std::vector<std::string>{"m/classes/bias", "m/classes/kernel", "m/judge1/bias", "m/judge1/kernel",
                                          "m/judge2/bias", "m/judge2/kernel", "momentum/make1/bias",
                                          "momentum/make1/kernel", "momentum/make2/bias", "momentum/make2/kernel",
                                          "v/classes/bias", "v/classes/kernel", "v/judge1/bias", "v/judge1/kernel",
                                          "v/judge2/bias", "v/judge2/kernel"});
}

TEST_CASE("a run with players that is resumed has the weights of one that was not stopped") {
  const Folder folder;
  const std::string config = folder.write("players.yaml", uneven_data + model + players);
  const Json whole = end_of(folder, config, "whole", 2);
  end_of(folder, config, "part", 2, {"--set", "train.max_steps=8"});
  const Json end = end_of(folder, config, "part", 2);
  CHECK(end.at("weights_sha256") == whole.at("weights_sha256"));
  CHECK(end.at("validation") == whole.at("validation"));
}

TEST_CASE("a teacher begins with the student's pretrained weights, and a resumed run moves it alike") {
  const Folder folder;
  const auto network = [](const std::string& teacher, const std::string& further) {
    return uneven_data + "\nmodel:\n" + further + "  layers:\n    - flatten: {name: pixels}\n" +
           "    - dense: {name: student, units: 6, activation: tanh}\n" + teacher +
           "    - dense: {name: classes, from: student, units: 5, activation: softmax}\n";
  };
  const std::string training = "batch_size: 20, epochs: 2, optimizer: {name: sgd, learning_rate: 0.1}";
  end_of(folder, folder.write("student.yaml", network("", "") + train_section(training)), "student", 1);
  const std::string config = folder.write(
      "teacher.yaml",
      network("    - dense: {name: teacher, from: pixels, units: 6, activation: tanh}\n",
              "  weights: {file: student, allow_missing: true}\n  add_loss: {alike: {from: [student, teacher], inputs: "
              "[s, t], expression: 'mean(square(s - t), axis=-1)'}}\n") +
          train_section(training + ", teachers: {teacher: {of: student, momentum: 0.75}}"));
  end_of(folder, config, "still", 1, {"--set", "train.max_steps=1", "--set", "train.optimizer.learning_rate=1e-20"});
  const auto still = load_checkpoint(folder / "still/checkpoints/last"),
             student = load_checkpoint(folder / "student/checkpoints/last");
  const View& teacher = by_name(still.snapshot.weights).at("teacher/kernel")->view;
  const View& kernel = by_name(student.snapshot.weights).at("student/kernel")->view;
  for (std::int64_t i = 0; i < kernel.count; ++i) CHECK(teacher.as<float>()[i] == Approx(kernel.as<float>()[i]));
  const Json whole = end_of(folder, config, "whole", 2);
  end_of(folder, config, "part", 2, {"--set", "train.max_steps=5"});
  CHECK(end_of(folder, config, "part", 2).at("weights_sha256") == whole.at("weights_sha256"));
}

TEST_CASE("what does not fit players is an error with its line") {
  const Folder folder;
  const std::string config = folder.write("players.yaml", uneven_data + model + players);
  const auto says = [&](const std::string& setting, const std::string& text) {
    const Finished run = trainctl(folder, {"check", config, "--ranks", "2", "--set", setting});
    CAPTURE(setting, run.errors);
    CHECK(run.code == 2);
    CHECK(contains(run.errors, text));
  };
  says("strategy.shard=optimizer", "players.yaml:");
  says("strategy.shard=optimizer", "use `strategy.shard: none`");
  says("strategy.reproducible={shards: 4}", "leave out strategy.reproducible");
  says("train.gradient_accumulation=2", "players compute the whole batch at once");
  says("train.precision=float16", "use bfloat16 or float32");
  says("train.players.generator.optimizer=adafactor", "the state of adafactor does not fit a player");
  says("train.players.generator.loss=generater", "the model has no loss 'generater'; did you mean 'generator'?");
  says("train.players.generator.trains=[make*, judge2]",
       "two players, 'discriminator' and 'generator', train the layer");
}

}  // namespace trainctl::test::runs_players_test
