// Tests frozen layers and phases of a run: frozen weights keep their bits, each phase has its own optimizer, runs can
// be resumed, and frozen layers save memory and time.
#include <signal.h>

#include <cmath>
#include <cstring>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::phases_test {
namespace {

// Six steps an epoch.
const std::string model = R"(
model:
  freeze: [base, bn]
  layers:
    - conv2d: {name: base, filters: 16, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {name: bn}
    - activation: relu
    - max_pooling2d: {pool_size: 2}
    - flatten
    - dense: {name: mix, units: 32, activation: tanh}
    - dropout: 0.2
    - dense: {name: head, units: 5, activation: softmax}
)";
const std::string two_phases = train_section(
    "batch_size: 20, optimizer: {name: sgd, learning_rate: 0.1, momentum: 0.9, weight_decay: 0.01}, schedule: cosine, "
    "phases: [{epochs: 2}, {epochs: 2, freeze: [bn], optimizer: {name: adam, learning_rate: 1e-3}}]");
const std::string kept = "checkpoint: {every: 4 steps, keep: 20}\n";

std::string train(const Folder& folder, const std::string& config, const std::string& name, int ranks,
                  const std::vector<std::string>& more = {}) {
  const std::string directory = folder / name;
  std::vector<std::string> command{"run",       config,    "--ranks",    std::to_string(ranks),
                                   "--run-dir", directory, "--progress", "none"};
  command.insert(command.end(), more.begin(), more.end());
  const Finished run = trainctl(folder, command);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

Json end_of(const std::string& directory) { return events(directory, "end").back(); }

std::string step_folder(const std::string& directory, int step) {
  return format("{}/checkpoints/step-{:08}", directory, step);
}

std::vector<float> tensor_at(const std::string& directory, int step, const std::string& name) {
  const LoadedCheckpoint checkpoint = load_checkpoint(step_folder(directory, step));
  const View view = by_name(checkpoint.snapshot.weights).at(name)->view;
  return {view.as<float>(), view.as<float>() + view.count};
}

TEST_CASE("frozen weights and statistics keep their bits, and a phase begins with its own optimizer and schedule") {
  const Folder folder;
  const std::string config = folder.write("phases.yaml", uneven_data + model + two_phases + kept);
  const std::string run = train(folder, config, "run", 2);
  CHECK(end_of(run).at("step") == 24);
  const std::vector<float> base = tensor_at(run, 4, "base/kernel");
  CHECK(tensor_at(run, 12, "base/kernel") == base);
  CHECK(tensor_at(run, 16, "base/kernel") != base);
  CHECK(tensor_at(run, 8, "head/kernel") != tensor_at(run, 4, "head/kernel"));
  for (const int step : {4, 24}) {
    CHECK(tensor_at(run, step, "bn/moving_mean") == std::vector<float>(16, 0.0f));
    CHECK(tensor_at(run, step, "bn/moving_variance") == std::vector<float>(16, 1.0f));
    CHECK(tensor_at(run, step, "bn/gamma") == std::vector<float>(16, 1.0f));
  }
  // Only trainable parameters have states, those of the phase's optimizer.
  std::vector<std::string> names;
  for (const NamedTensor& tensor : load_checkpoint(step_folder(run, 8)).snapshot.state) names.push_back(tensor.name);
  CHECK(names == std::vector<std::string>{"momentum/head/bias", "momentum/head/kernel", "momentum/mix/bias",
                                          "momentum/mix/kernel"});
  CHECK(load_checkpoint(step_folder(run, 16)).snapshot.state.size() == 2 * 5);
  // A half cosine over the 12 steps of each phase.
  for (const Json& step : events(run, "step")) {
    const int number = step.at("step").get<int>() - 1;
    const double share = number % 12 / 12.0, base_rate = number < 12 ? 0.1 : 1e-3;
    CHECK(step.at("learning_rate").get<double>() ==
          Approx(base_rate * 0.5 * (1 + std::cos(3.14159265358979 * share))).epsilon(1e-5));
  }
  CHECK(contains(read_file(run + "/log.txt"), "phase 2 of 2: 2 epochs with adam"));
}

TEST_CASE("a run can be resumed in the middle of any phase with the same bits, on any number of ranks") {
  const Folder folder;
  const std::string config =
      folder.write("phases.yaml", uneven_data + model + two_phases + kept + "strategy: {reproducible: {shards: 4}}\n");
  const Json expected = end_of(train(folder, config, "whole", 2));
  for (const auto& [step, ranks] : {std::pair(8, 1), {12, 4}, {16, 1}, {20, 3}}) {
    CAPTURE(step, ranks);
    const std::string part =
        train(folder, config, format("from-{}", step), ranks, {"--resume", step_folder(folder / "whole", step)});
    CHECK(events(part, "step").front().at("step") == step + 1);
    CHECK(end_of(part).at("weights_sha256") == expected.at("weights_sha256"));
    CHECK(end_of(part).at("validation") == expected.at("validation"));
  }
  // Stopped and resumed in its own directory, within a phase and between two. (Other schedules than a constant one
  // depend on the length of the run.)
  const std::vector<std::string> constant{"--set", "train.schedule=constant"};
  const Json steady = end_of(train(folder, config, "steady", 2, constant));
  for (const int step : {5, 12, 14}) {
    CAPTURE(step);
    const std::string name = format("cut-{}", step);
    train(folder, config, name, 2, {constant[0], constant[1], "--set", format("train.max_steps={}", step)});
    CHECK(end_of(folder / name).at("step") == step);
    CHECK(end_of(train(folder, config, name, 1, constant)).at("weights_sha256") == steady.at("weights_sha256"));
  }
}

TEST_CASE("a run that a signal stops in its second phase is resumed with the same bits") {
  const Folder folder;
  const std::string config = folder.write(
      "stopped.yaml", uneven_data + model + "strategy: {reproducible: {shards: 4}}\n" +
                          train_section("batch_size: 20, optimizer: {name: sgd, learning_rate: 0.1, momentum: 0.9}, "
                                        "phases: [{epochs: 1}, {epochs: 100000, freeze: [bn], optimizer: adam}]"));
  const std::string directory = folder / "runs/stopped";
  Command run(folder, {"run", config, "--ranks", "2"});
  REQUIRE(run.says("epoch 3/"));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  INFO(tail(run.errors()));
  const std::int64_t stopped = end_of(directory).at("step");
  REQUIRE(stopped >= 18);
  const std::vector<std::string> limit{"--set", format("train.max_steps={}", stopped + 5)};
  const Finished rest = trainctl(folder, {"run", config, "--ranks", "3", limit[0], limit[1]});
  INFO(tail(rest.errors));
  REQUIRE(rest.code == 0);
  CHECK(events(directory, "start").back().at("first_step") == stopped);
  const Json whole = end_of(train(folder, config, "whole", 1, limit));
  CHECK(end_of(directory).at("weights_sha256") == whole.at("weights_sha256"));
}

TEST_CASE("verify-scaling follows a run through its phases") {
  const Folder folder;
  const std::string config =
      folder.write("phases.yaml", uneven_data + model + two_phases + "strategy: {reproducible: {shards: 4}}\n");
  const Finished verified = trainctl(folder, {"verify-scaling", config, "--ranks", "1,3", "--steps", "15", "--json"});
  INFO(tail(verified.errors));
  REQUIRE(verified.code == 0);
  const Json json = Json::parse(verified.out);
  CHECK(json.at("steps") == 15);
  CHECK(json.at("hashes").at("1") == json.at("hashes").at("3"));
}

TEST_CASE("early stopping ends its phase, and a resume knows where the next one began") {
  const Folder folder;
  // No loss improves by ten: each phase ends after two epochs.
  const std::string config = folder.write(
      "early.yaml", uneven_data + model + kept +
                        train_section("batch_size: 20, optimizer: {name: adam, learning_rate: 1e-3}, early_stopping: "
                                      "{patience: 1, min_delta: 10}, phases: [{epochs: 4}, {epochs: 5, freeze: []}]"));
  const std::string run = train(folder, config, "run", 1);
  CHECK(end_of(run).at("step") == 24);
  CHECK(end_of(run).at("status") == "completed");
  CHECK(tensor_at(run, 12, "base/kernel") == tensor_at(run, 4, "base/kernel"));
  CHECK(tensor_at(run, 16, "base/kernel") != tensor_at(run, 4, "base/kernel"));
  for (const int step : {8, 12, 20}) {
    CAPTURE(step);
    const std::string part = train(folder, config, format("from-{}", step), 1, {"--resume", step_folder(run, step)});
    CHECK(end_of(part).at("weights_sha256") == end_of(run).at("weights_sha256"));
  }
}

TEST_CASE("phases learn the same under every strategy") {
  const Folder folder;
  const std::string config = folder.write("phases.yaml", uneven_data + model + two_phases + kept);
  // Dropout and a batch norm by running statistics do not depend on the mesh: all learn what one rank learns.
  const auto expected = step_losses(train(folder, config, "one", 1));
  const std::vector<float> base = tensor_at(folder / "one", 12, "base/kernel");
  struct Mesh {
    int ranks;
    std::vector<std::string> sets;
  };
  const Mesh meshes[] = {{2, {}},
                         {2, {"strategy.pipeline=2"}},
                         {2, {"strategy.tensor=2"}},
                         {4, {"strategy.pipeline=2", "strategy.shard=optimizer"}},
                         {2, {"strategy.shard=gradients"}},
                         {4, {"strategy.tensor=2", "strategy.shard=parameters"}},
                         {2, {"train.gradient_accumulation=2", "strategy.recompute=blocks"}}};
  int number = 0;
  for (const Mesh& mesh : meshes) {
    std::vector<std::string> more;
    for (const std::string& set : mesh.sets) more.insert(more.end(), {"--set", set});
    CAPTURE(mesh.ranks, mesh.sets);
    const std::string run = train(folder, config, format("mesh-{}", ++number), mesh.ranks, more);
    const auto found = step_losses(run);
    REQUIRE(found.size() == expected.size());
    for (const auto& [step, loss] : found) CHECK(loss == Approx(expected.at(step)).epsilon(1e-4));
    CHECK(tensor_at(run, 12, "base/kernel") == base);
  }
  // Averages of replicas that take local steps do not change frozen weights, either.
  const std::string local = train(folder, config, "local", 3, {"--set", "strategy.sync_every=2"});
  CHECK(tensor_at(local, 12, "base/kernel") == base);
  CHECK(tensor_at(local, 24, "bn/gamma") == std::vector<float>(16, 1.0f));
}

Json json_of(const Folder& folder, std::vector<std::string> command) {
  command.push_back("--json");
  const Finished finished = trainctl(folder, command);
  INFO(tail(finished.errors));
  REQUIRE(finished.code == 0);
  return Json::parse(finished.out);
}

TEST_CASE("frozen layers cost no gradients, no optimizer state, no communication and no backward pass") {
  const Folder folder;
  const std::string config = folder.write("phases.yaml", uneven_data + model + two_phases);
  const Json checked = json_of(folder, {"check", config, "--ranks", "2"});
  const std::int64_t bases = 3 * 3 * 3 * 16, mix = 4 * 4 * 16 * 32 + 32, head = 32 * 5 + 5;
  REQUIRE(checked.at("phases").size() == 2);
  CHECK(checked.at("phases")[0].at("trainable_parameters") == mix + head);
  CHECK(checked.at("phases")[1].at("trainable_parameters") == bases + mix + head);
  CHECK(checked.at("phases")[0].at("memory_bytes") < checked.at("phases")[1].at("memory_bytes"));
  CHECK(checked.at("trainable_parameters") == bases + mix + head);  // all other values are those of the larger phase
  CHECK(checked.at("memory_bytes").at("optimizer state") == 2 * 4 * (bases + mix + 160 + 8));

  // The same run without phases, with and without frozen layers.
  std::string trains = model;
  trains.replace(trains.find("freeze: [base, bn]"), 18, "freeze: []");
  const std::string once = train_section("batch_size: 20, epochs: 1, optimizer: {name: sgd, momentum: 0.9}");
  const std::string frozen = folder.write("frozen.yaml", uneven_data + model + once);
  const std::string whole = folder.write("whole.yaml", uneven_data + trains + once);
  const auto memory = [&](const std::string& file, const char* line) {
    return json_of(folder, {"check", file, "--ranks", "2"}).at("memory_bytes").at(line).get<std::int64_t>();
  };
  CHECK(memory(whole, "optimizer state") - memory(frozen, "optimizer state") == 4 * (bases + 2 * 16));
  CHECK(memory(whole, "gradients") - memory(frozen, "gradients") == 4 * (bases + 2 * 16 + 2 * 16));  // and statistics
  CHECK(memory(whole, "parameters") == memory(frozen, "parameters"));
  const auto sent = [&](const std::string& file) {
    const Json plan = json_of(folder, {"plan", file, "--ranks", "2", "--machine", "h100-node"});
    return plan.at("communication_bytes").get<double>();
  };
  CHECK(sent(frozen) < sent(whole));

  const Finished table = trainctl(folder, {"check", frozen, "--ranks", "1"});
  CHECK(count(table.out, "frozen") == 2);
  const Finished dumped = trainctl(folder, {"check", frozen, "--ranks", "1", "--dump", "program"});
  REQUIRE(dumped.code == 0);
  for (const char* op : {"conv2d_grad", "batch_norm_grad", "batch_norm_inference_grad", "pool2d_grad", "base/gradient",
                         "update_statistics"}) {
    CHECK_FALSE(contains(dumped.out, op));
  }
  CHECK(contains(dumped.out, "batch_norm_inference"));
  CHECK_FALSE(contains(dumped.out, "dense_grad_input  mix"));
  for (const char* phase : {"1", "2"}) {
    const Json step = json_of(folder, {"bench", "step", config, "--ranks", "1", "--phase", phase, "--seconds", "0.2"});
    CHECK(step.at("median_seconds") > 0);
  }
}

TEST_CASE("errors of frozen layers and phases are reported before training") {
  const Folder folder;
  const auto errors_of = [&](const std::string& text, const std::vector<std::string>& sets = {}) {
    std::vector<std::string> command{"check", folder.write("wrong.yaml", text), "--ranks", "1"};
    for (const std::string& set : sets) command.insert(command.end(), {"--set", set});
    const Finished check = trainctl(folder, command);
    CHECK(check.code == 2);
    return check.errors;
  };
  const std::string right = uneven_data + model + two_phases;
  CHECK(
      contains(errors_of(right, {"model.freeze=[basse, \"h*\"]"}), "no layer is named 'basse'; did you mean 'base'?"));
  CHECK(contains(errors_of(right, {"model.freeze=[\"*\"]"}), "nothing would train"));
  CHECK(contains(errors_of(right, {"train.epochs=5"}), "epochs is 5, but the phases have 4 together"));
  const std::string later =
      errors_of(uneven_data + model +
                train_section("batch_size: 20, optimizer: sgd, phases: [{epochs: 1}, {epochs: 1, freeze: [basis]}]"));
  CHECK(contains(later, "no layer is named 'basis'"));
  CHECK(
      contains(errors_of(uneven_data + model + train_section("batch_size: 20, optimizer: sgd, phases: [{freeze: []}]")),
               "epochs"));
  const Finished phase = trainctl(folder, {"bench", "step", folder.write("right.yaml", right), "--phase", "3"});
  CHECK(phase.code == 2);
  CHECK(contains(phase.errors, "there is no phase 3: the run has 2"));
}

}  // namespace
}  // namespace trainctl::test::phases_test
