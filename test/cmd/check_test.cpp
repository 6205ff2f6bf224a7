// Tests trainctl check: it runs nothing, reports what is not known yet, and refuses what a run would refuse.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::check_test {
namespace {

namespace fs = std::filesystem;

const std::string config_text = uneven_data + skip_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd");

TEST_CASE("check times no kernels, and memory that depends on them is marked until they are chosen") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const Finished first = trainctl(folder, {"check", config, "--ranks", "1"});
  INFO(first.errors);
  REQUIRE(first.code == 0);
  CHECK(contains(first.out, "kernels are not chosen yet for this machine"));
  CHECK(contains(first.out, "about "));
  const Json unmeasured = Json::parse(trainctl(folder, {"check", config, "--ranks", "1", "--json"}).out);
  CHECK(unmeasured.at("kernels_not_chosen") > 0);
  const Json measured = Json::parse(trainctl(folder, {"check", config, "--ranks", "1", "--json", "--measure"}).out);
  CHECK(measured.at("kernels_not_chosen") == 0);
  const Finished then = trainctl(folder, {"check", config, "--ranks", "1"});
  CHECK(!contains(then.out, "not chosen"));
  CHECK(!contains(then.out, "about "));
  CHECK(Json::parse(trainctl(folder, {"check", config, "--ranks", "1", "--json"}).out) == measured);
}

TEST_CASE("check of a large network needs little memory") {
  const Folder folder;
  const std::string config = folder.write(
      "large.yaml",
      "data: {dataset: synthetic, samples: 1000, shape: [224, 224, 3], classes: 1000}\nmodel: {preset: vgg16}\n" +
          train_section("batch_size: 8, epochs: 1, optimizer: sgd"));
  const Finished check = trainctl(folder, {"check", config, "--json", "--ranks", "1"});
  CAPTURE(check.errors, tail(check.out));
  CHECK((check.code == 0 || check.code == 6));
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  // In kB, of the largest command of this test program so far; with timed kernels it would be 4 GB.
  CHECK(usage.ru_maxrss < 1'000'000);
}

TEST_CASE("check compares the number of ranks that a run needs after a loss of hosts with that of this run") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", config_text + "cluster: {ranks: 2, restarts: {max: 2, min_ranks: 3}}\n");
  const Finished fewer = trainctl(folder, {"check", config});
  CHECK(fewer.code == 2);
  CHECK(contains(fewer.errors, "cluster.restarts.min_ranks is 3, but the run has 2 ranks"));
  CHECK(trainctl(folder, {"check", config, "--ranks", "4"}).code == 0);
}

TEST_CASE("check compares the memory of a rank with the limit of the config") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const Finished little = trainctl(folder, {"check", config, "--ranks", "1", "--set", "cluster.memory=1 kB"});
  CHECK(little.code == 6);
  CHECK(contains(little.errors, "but cluster.memory is 1"));
  CHECK(trainctl(folder, {"check", config, "--ranks", "1", "--set", "cluster.memory=4 GB"}).code == 0);
  const Finished more = trainctl(
      folder, {"check", config, "--ranks", "1", "--set", "cluster.memory=4000 TB", "--set", "train.batch_size=16000000",
               "--set", "data.samples=16000000", "--set", "data.shape=[64, 64, 3]"});
  CHECK(more.code == 6);
  CHECK(contains(more.errors, "are free"));
}

TEST_CASE("check reports which blocks are recomputed to fit, and if even all of them are not enough") {
  const Folder folder;
  const std::string config = folder.write("net.yaml",
                                          "data: {dataset: synthetic, samples: 256, shape: [32, 32, 3], classes: 10}\n"
                                          "model: {preset: resnet20}\n" +
                                              train_section("batch_size: 64, epochs: 1, optimizer: sgd"));
  const auto check = [&](const std::string& recompute, const std::string& memory) {
    return trainctl(folder, {"check", config, "--ranks", "1", "--json", "--measure", "--set",
                             "strategy.recompute=" + recompute, "--set", "cluster.memory=" + memory});
  };
  const auto total = [](const Json& checked) {
    std::int64_t bytes = 0;
    for (const auto& [name, part] : checked.at("memory_bytes").items()) bytes += part.get<std::int64_t>();
    return bytes;
  };
  const Json kept = Json::parse(check("none", "auto").out), least = Json::parse(check("blocks", "auto").out);
  CHECK(2 * least.at("arena_bytes").get<std::int64_t>() < kept.at("arena_bytes"));
  CHECK_FALSE(Json::parse(check("auto", std::to_string(total(kept))).out).contains("recomputed"));
  const std::int64_t middle = (total(kept) + total(least)) / 2;
  CHECK(check("none", std::to_string(middle)).code == 6);
  const Json some = Json::parse(check("auto", std::to_string(middle)).out);
  CHECK(some.at("recomputed").size() < 9);
  CHECK(total(some) <= middle);
  const Finished all = check("auto", std::to_string(total(least) / 2));
  CHECK(all.code == 6);
  CHECK(contains(all.out, "but cluster.memory is"));
}

TEST_CASE("check shows the shared memory of copies in memory") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text + "checkpoint: {memory_every: 10 steps}\n");
  const Json checked = Json::parse(trainctl(folder, {"check", config, "--ranks", "2", "--json"}).out);
  CHECK(checked.at("shared_memory_bytes") == 2 * 4 * checked.at("parameters").get<std::int64_t>());  // SGD has no state
  CHECK(contains(trainctl(folder, {"check", config, "--ranks", "2"}).out, "rank 0's host: copies in /dev/shm"));
  CHECK(Json::parse(trainctl(folder, {"check", config, "--json", "--set", "checkpoint.memory_every=none"}).out)
            .at("shared_memory_bytes") == 0);
}

TEST_CASE("check reports that batch normalization depends on the number of ranks") {
  const Folder folder;
  const std::string config = folder.write(
      "bn.yaml", uneven_data + batch_norm_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd"));
  CHECK(contains(trainctl(folder, {"check", config, "--ranks", "2"}).out,
                 "batch normalization computes its statistics over the 10 samples that a rank has"));
  CHECK(!contains(trainctl(folder, {"check", config, "--ranks", "1"}).out, "batch normalization computes"));
  CHECK(contains(trainctl(folder, {"check", config, "--ranks", "2", "--set", "train.gradient_accumulation=5"}).out,
                 "batch normalization computes its statistics over the 2 samples that a rank has of a micro-batch"));
  const std::string sharded =
      trainctl(folder, {"check", config, "--ranks", "2", "--set", "strategy.reproducible.shards=4"}).out;
  CHECK(contains(sharded, "batch normalization computes its statistics over the 5 samples of each logical shard"));
  CHECK(!contains(sharded, "trains differently"));
}

TEST_CASE("a network too large for this machine is exit code 6 with the bytes, an absurd size is 2 with the line") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", uneven_data + mlp_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd"));
  for (const char* command : {"check", "run"}) {
    const Finished large =
        trainctl(folder, {command, config, "--ranks", "1", "--set", "model.layers.1.dense.units=2000000000"});
    CAPTURE(command, large.errors);
    CHECK(large.code == 6);
    CHECK(contains(large.errors, "a rank of this run needs at least"));
    CHECK(contains(large.errors, "TB of memory"));
    const Finished absurd =
        trainctl(folder, {command, config, "--ranks", "1", "--set", "model.layers.1.dense.units=2000000000", "--set",
                          "model.layers.3.dense.units=2000000000"});
    CAPTURE(absurd.errors);
    CHECK(absurd.code == 2);
    CHECK(contains(absurd.errors, "config.yaml:10:"));
    CHECK(contains(absurd.errors, "its tensors are larger than any memory"));
    CHECK(!contains(absurd.errors, "internal error"));
    CHECK(!fs::exists(folder / "runs"));
  }
}

TEST_CASE("check of a preset explains what it is and how to use it") {
  const Folder folder;
  const Finished check =
      trainctl(folder, {"check", std::string(TRAINCTL_SOURCE_DIR) + "/configs/models/resnet20.yaml"});
  CHECK(check.code == 2);
  CHECK(contains(check.errors, "this is a preset, a network without data and training"));
  CHECK(contains(check.errors, "model: {preset: "));
  CHECK(!contains(check.errors, "unknown key"));
}

// Runs a shell command with $TRAINCTL; returns its exit code and output.
Finished shell(const Folder& folder, const std::string& command) {
  const std::string line = format("cd {} && export XDG_CACHE_HOME=$PWD/cache TRAINCTL={} && ({}) > out 2> err",
                                  folder.path().string(), TRAINCTL_BINARY, command);
  const int status = std::system(format("timeout {} bash -c '{}'", time_limit, line).c_str());
  return {WEXITSTATUS(status), read_file(folder / "out"), read_file(folder / "err")};
}

TEST_CASE("a config from a pipe is read once and works on any number of ranks") {
  const Folder folder;
  folder.write("config.yaml", config_text);
  int number = 0;
  for (const char* command :
       {"cat config.yaml | $TRAINCTL run /dev/stdin --ranks 2",
        "$TRAINCTL run /dev/stdin --ranks 1 < <(cat config.yaml)", "$TRAINCTL run /dev/stdin --ranks 2 < config.yaml",
        "$TRAINCTL run <(cat config.yaml) --ranks 3"}) {
    const Finished run = shell(folder, format("{} --run-dir r{} --quiet", command, number));
    CAPTURE(command, run.errors);
    CHECK(run.code == 0);
    CHECK(events(folder / format("r{}", number++)).back().at("status") == "completed");
  }
  const Finished wrong = shell(folder, "sed s/dense/danse/ config.yaml | $TRAINCTL run /dev/stdin --ranks 2");
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.errors, "/dev/stdin:"));
  CHECK(contains(wrong.errors, "did you mean"));
  const Finished folder_as_config = trainctl(folder, {"check", "."});
  CHECK(folder_as_config.code == 2);
  CHECK(contains(folder_as_config.errors, "the config is a folder"));
  const Finished misspelt = trainctl(folder, {"check", "confg.yaml", "--set", "train.epochs=3"});
  CHECK(misspelt.code == 2);
  CHECK(contains(misspelt.errors, "confg.yaml: the config cannot be read"));
  CHECK_FALSE(contains(misspelt.errors, "needs"));  // the keys of a config that is not there
}

TEST_CASE("numbers on the command line are bounded, with short errors") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const Finished profile = trainctl(folder, {"run", config, "--profile", "0:99999999999999999999"});
  CHECK(profile.code == 2);
  CHECK(contains(profile.errors, "must be FIRST:END"));
  for (const char* seconds : {"0", "-1", "1e300", "x"}) {
    const Finished bench = trainctl(folder, {"bench", "step", config, "--seconds", seconds});
    CAPTURE(bench.errors);
    CHECK(bench.code == 2);
    CHECK(contains(bench.errors, "must be a number of seconds"));
    CHECK(bench.errors.size() < 300);
  }
}

TEST_CASE("Graphviz draws the program of a rank: every op once, and every tensor between two ops") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  for (const char* rank : {"0", "1"}) {
    const std::vector<std::string> command = {"check",  config, "--ranks",     "2", "--set", "strategy.pipeline=2",
                                              "--dump", "dot",  "--dump-rank", rank};
    const Finished dumped = trainctl(folder, command);
    INFO(dumped.errors);
    REQUIRE(dumped.code == 0);
    const std::string graph = folder.write("graph.dot", dumped.out), drawn = folder / "graph.txt";
    REQUIRE(std::system(format("dot -Tplain -o '{}' '{}'", drawn, graph).c_str()) == 0);
    const std::string plain = read_file(drawn);
    const int nodes = count(plain, "\nnode "), edges = count(plain, "\nedge ");
    std::vector<std::string> as_text = command;
    as_text[7] = "program";
    const std::string program = trainctl(folder, as_text).out;
    const int ops = count(program.substr(0, program.find("schedule\n")), "\n  ");
    CHECK(ops > 20);
    CHECK(nodes > ops);  // inputs of the batch are nodes, too
    CHECK(nodes < ops + 5);
    CHECK(edges > nodes);
    CHECK(contains(plain, rank == std::string("0") ? "send" : "receive"));
  }
  const Finished beyond = trainctl(folder, {"check", config, "--ranks", "2", "--dump", "dot", "--dump-rank", "2"});
  CHECK(beyond.code == 2);
  CHECK(contains(beyond.errors, "there is no rank 2: 2 ranks are numbered from 0"));
}

}  // namespace
}  // namespace trainctl::test::check_test
