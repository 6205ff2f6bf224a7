// Tests trainctl plan: its memory is that of check, the document is consistent, and invalid requests are refused with a
// remedy.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::plan_test {
namespace {

const std::string sections = train_section("batch_size: 24, epochs: 2, optimizer: {name: sgd, momentum: 0.9}");
const std::string images = "data: {dataset: synthetic, samples: 1281167, shape: [224, 224, 3], classes: 1000}\n";

Json plan(const Folder& folder, const std::string& config, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"plan", config, "--json"});
  const Finished finished = trainctl(folder, arguments);
  CAPTURE(arguments, finished.errors);
  REQUIRE(finished.code == 0);
  return Json::parse(finished.out);
}

std::string refusal(const Folder& folder, const std::string& config, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"plan", config});
  const Finished finished = trainctl(folder, arguments);
  CHECK(finished.code == 2);
  return finished.errors;
}

// Compares a rank's memory in plan and check, after the kernels have been chosen.
void check_same_memory(const Folder& folder, const std::string& config, const std::vector<std::string>& strategy) {
  CAPTURE(strategy);
  const Json planned = plan(folder, config, strategy);
  std::vector<std::string> arguments{"check", config, "--json", "--device", "cpu"};
  arguments.insert(arguments.end(), strategy.begin(), strategy.end());
  const Json checked = Json::parse(trainctl(folder, arguments).out);
  CHECK(planned.at("memory_exact") == true);
  std::int64_t total = 0, slot = 0;
  for (const auto& [name, bytes] : checked.at("memory_bytes").items()) {
    total += bytes.get<std::int64_t>();
    if (name != "activations and workspace") CHECK(planned.at("memory_bytes").at(name) == bytes);
  }
  for (const char* part : {"activations", "workspace", "communication"}) {
    slot += planned.at("memory_bytes").at(part).get<std::int64_t>();
  }
  CHECK(slot == checked.at("arena_bytes"));
  CHECK(planned.at("memory_bytes").at("total") == total);
  CHECK(planned.at("shared_memory_bytes") == checked.at("shared_memory_bytes"));
}

TEST_CASE("the memory of a plan is that of check, to the byte") {
  const Folder folder;  // later plans reuse the measurements of the first one
  // The last batch has 7 samples, that of evaluation 1: replicas have unequal shares, or none.
  const std::string config = folder.write("config.yaml", R"(
data: {dataset: synthetic, samples: 127, shape: [8, 8, 3], classes: 5, validation: {samples: 49}}
model:
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization: {momentum: 0.9}
    - residual:
        layers:
          - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
          - dropout: 0.2
          - conv2d: {filters: 8, kernel_size: 3, padding: same}
        activation: relu
    - max_pooling2d: {pool_size: 2}
    - flatten
    - dense: {units: 48, activation: tanh}
    - dense: {units: 5, activation: softmax}
)" + sections);
  const std::vector<std::vector<std::string>> cases = {
      {"--ranks", "1"},
      {"--ranks", "2"},
      {"--ranks", "2", "--set", "strategy.pipeline=2", "--set", "checkpoint.memory_every=10 steps"},
      {"--ranks", "2", "--set", "strategy.tensor=2"},
      {"--ranks", "2", "--set", "strategy.shard=parameters"},
      {"--ranks", "2", "--set", "strategy.share=[1, 3]"},
      {"--ranks", "2", "--set", "train.gradient_accumulation=4"},
      {"--ranks", "4", "--set", "strategy.pipeline=2"},
      {"--ranks", "5"}};
  for (const std::vector<std::string>& strategy : cases) check_same_memory(folder, config, strategy);
}

TEST_CASE("a plan's document adds up") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + skip_model + sections);
  const Json json = plan(folder, config, {"--ranks", "8", "--machine", "h100-node", "--set", "strategy.pipeline=2"});
  CHECK(json.at("mesh") == Json::parse(R"({"data": 4, "pipeline": 2, "tensor": 1})"));
  double parts = 0;
  for (const auto& [name, seconds] : json.at("parts").items()) parts += seconds.get<double>();
  CHECK(parts == Approx(json.at("step_seconds").get<double>()));
  CHECK(json.at("parts").at("bubble") > 0);
  CHECK(json.at("communication_bytes") > 0);
  CHECK(json.at("stages").size() == 2);
  CHECK(json.at("steps") == 2 * 5);  // 103 samples in batches of 24
  CHECK(json.at("training_seconds").get<double>() == Approx(10 * json.at("step_seconds").get<double>()));
  // The alternatives that fit come first, sorted by time; in a config, each leads to the listed plan.
  const Json& alternatives = json.at("alternatives");
  REQUIRE(alternatives.size() > 5);
  CHECK(std::is_sorted(alternatives.begin(), alternatives.end(),
                       [](const Json& a, const Json& b) { return a.at("step_seconds") < b.at("step_seconds"); }));
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string pasted = folder.write(
        "pasted.yaml", uneven_data + skip_model + sections + alternatives[i].at("yaml").get<std::string>());
    const Json again = plan(folder, pasted, {"--ranks", "8", "--machine", "h100-node"});
    CHECK(again.at("mesh") == alternatives[i].at("mesh"));
    CHECK(again.at("step_seconds") == alternatives[i].at("step_seconds"));
  }
}

TEST_CASE("a plan that does not fit is reported with one that does") {
  const Folder folder;
  const std::string config = folder.write(
      "config.yaml", images + "model: {preset: vgg16}\n" + train_section("batch_size: 4, epochs: 1, optimizer: adam"));
  const std::string machine = folder.write("small.yaml", R"(device: {memory: 2 GB, memory_bandwidth: 500, float32: 10}
node: {devices: 4, link: 50, link_latency: 5}
host: {samples: 1000, storage: 1}
)");
  const Json json = plan(folder, config, {"--ranks", "4", "--machine", machine});
  CHECK(json.at("fits") == false);
  CHECK(json.at("alternatives").front().at("fits") == true);
  CHECK(contains(json.at("advice").get<std::string>(), "it does not fit; this does"));
  const std::string pasted = folder.write("pasted.yaml", read_file(config) + json.at("yaml").get<std::string>());
  CHECK(plan(folder, pasted, {"--ranks", "4", "--machine", machine}).at("fits") == true);
}

TEST_CASE("a plan recomputes the same blocks as a run, to stay within the memory") {
  const Folder folder;
  std::string layers;
  for (int i = 0; i < 4; ++i) {
    layers += R"(
    - residual:
        layers:
          - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
          - conv2d: {filters: 8, kernel_size: 3, padding: same}
        activation: relu)";
  }
  const std::string config = folder.write("config.yaml", R"(
data: {dataset: synthetic, samples: 96, shape: [16, 16, 8], classes: 5}
model:
  layers:)" + layers + R"(
    - flatten
    - dense: {units: 5, activation: softmax}
)" + sections);
  for (const char* mesh : {"strategy.data=2", "strategy.pipeline=2"}) {
    // Without copies for checkpoints, which would need more memory than the activations.
    const auto with = [&](const std::string& recompute) {
      return std::vector<std::string>{"--ranks", "2",
                                      "--set",   mesh,
                                      "--set",   "checkpoint.background=false",
                                      "--set",   "strategy.recompute=" + recompute};
    };
    const auto total = [&](const std::string& recompute) {
      return plan(folder, config, with(recompute)).at("memory_bytes").at("total").get<std::int64_t>();
    };
    const std::int64_t whole = total("none"), least = total("blocks");
    CAPTURE(mesh, whole, least);
    REQUIRE(least < whole);
    std::vector<std::string> middle = with("auto");
    middle.insert(middle.end(), {"--set", format("cluster.memory={}", (whole + least) / 2)});
    const Json planned = plan(folder, config, middle);
    CHECK(planned.at("fits") == true);
    CHECK(planned.at("recomputed").size() < 4);
    CHECK(planned.at("memory_bytes").at("total") > least);
    middle.insert(middle.begin(), {"check", config, "--json"});
    CHECK(planned.at("recomputed") == Json::parse(trainctl(folder, middle).out).at("recomputed"));
    middle.erase(middle.begin(), middle.begin() + 3);
    check_same_memory(folder, config, middle);
    // If recomputation is not set, the plan suggests it.
    middle = with("none");
    middle.insert(middle.end(), {"--set", format("cluster.memory={}", least)});
    const Json unfit = plan(folder, config, middle);
    CHECK(unfit.at("fits") == false);
    CHECK(std::ranges::any_of(unfit.at("alternatives"), [](const Json& alternative) {
      return alternative.at("fits") == true && contains(alternative.at("yaml").get<std::string>(), "recompute: auto");
    }));
  }
}

TEST_CASE("a plan shows how often checkpoint.every: auto saves") {
  const Folder folder;
  const std::string config = folder.write("resnet.yaml", images + "model: {preset: resnet50}\n" + sections);
  const auto interval = [&](const std::string& failures, const std::string& ranks) {
    return plan(folder, config,
                {"--ranks", ranks, "--machine", "cpu-host", "--set", "checkpoint.every=auto", "--set",
                 "cluster.mean_time_between_failures=" + failures})
        .at("checkpoint_interval_seconds")
        .get<double>();
  };
  // ResNet-50 has 25,557,032 parameters and as many momenta, and 53,120 running statistics; two ranks are on a host.
  const double stall = 4 * (2 * 25'557'032.0 + 53'120) / 10e9;
  CHECK(interval("100 d", "2") == Approx(std::sqrt(2 * stall * 100 * 86400)).epsilon(0.01));
  CHECK(interval("100 d", "8") == Approx(std::sqrt(2 * stall * 25 * 86400)).epsilon(0.01));
  CHECK(interval("1 s", "2") == 10);
  const Finished text =
      trainctl(folder, {"plan", config, "--ranks", "2", "--machine", "cpu-host", "--set", "checkpoint.every=auto"});
  CHECK(contains(text.out, "checkpoint.every: auto saves about every "));
  const Json fixed = plan(folder, config, {"--ranks", "2", "--machine", "cpu-host"});
  CHECK(fixed.at("checkpoint_interval_seconds").is_null());
}

TEST_CASE("a rank may use the machine's memory, or less if the config says so") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + skip_model + sections);
  const auto limit = [&](const std::string& memory) {
    return plan(folder, config, {"--ranks", "2", "--machine", "h100-node", "--set", "cluster.memory=" + memory})
        .at("memory_limit")
        .get<std::int64_t>();
  };
  CHECK(limit("auto") > 70'000'000'000);
  CHECK(limit("1000 TB") == limit("auto"));
  CHECK(limit("3 GB") == 3'000'000'000);
}

TEST_CASE("a plan reports what its strategy leaves open") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + skip_model + sections);
  const auto text = [&](const std::string& strategy) {
    const Finished run =
        trainctl(folder, {"plan", config, "--ranks", "2", "--machine", "h100-node", "--set", strategy});
    CAPTURE(run.errors);
    CHECK(run.code == 0);
    return run.out;
  };
  CHECK(contains(text("strategy.share=auto"), "are measured when training begins; here they are assumed to be equal"));
  CHECK(contains(text("strategy.share=[1, 3]"), "replica 1 has most of a batch, 18 samples"));
  CHECK(contains(text("strategy.sync_every=4"), "averaged every 4 steps, which takes "));
  CHECK(contains(text("strategy=auto"), "`strategy: auto` chose this"));
  const Json json = plan(folder, config, {"--ranks", "2", "--machine", "h100-node", "--set", "strategy=auto"});
  CHECK(json.at("mesh") == json.at("alternatives").front().at("mesh"));
  CHECK(json.at("step_seconds") == json.at("alternatives").front().at("step_seconds"));
}

TEST_CASE("smaller micro-batches are tried if nothing else has to change") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", images + "model: {preset: resnet50}\n" +
                                      train_section("batch_size: 8192, epochs: 1, optimizer: sgd"));
  const std::vector<std::string> arguments{"--ranks", "8", "--machine", "h100-node"};
  const Json json = plan(folder, config, arguments);
  CHECK(json.at("fits") == false);  // 1,024 samples a rank with float32 activations
  CHECK(json.at("alternatives").front().at("fits") == true);
  CHECK(contains(json.at("yaml").get<std::string>(), "gradient_accumulation: 2"));
  std::vector<std::string> pasted = arguments;
  pasted.insert(pasted.end(), {"--set", "train.gradient_accumulation=2"});
  CHECK(plan(folder, config, pasted).at("fits") == true);
}

TEST_CASE("for 16,384 ranks only those that differ are simulated") {
  const Folder folder;
  const std::string network = GENERATE("vgg16", "resnet50");
  const std::string config =
      folder.write("config.yaml", images + "model: {preset: " + network + "}\n" +
                                      train_section("batch_size_per_rank: 16, epochs: 90, optimizer: sgd"));
  const std::vector<std::string> hybrid{"--machine",           "h100-node", "--set",
                                        "strategy.pipeline=4", "--set",     "strategy.tensor=8"};
  const auto of_ranks = [&](const std::string& ranks) {
    std::vector<std::string> arguments{"--ranks", ranks};
    arguments.insert(arguments.end(), hybrid.begin(), hybrid.end());
    return plan(folder, config, arguments);
  };
  const Json many = of_ranks("16384");
  CHECK(many.at("mesh").at("data") == 512);
  const Json few = of_ranks("64");
  CHECK(many.at("simulated_events") <= 2 * few.at("simulated_events").get<std::int64_t>());
  CHECK(many.at("simulated_events") < 100'000);
  CHECK(many.at("step_seconds") >= few.at("step_seconds"));
}

TEST_CASE("a timeline holds all streams of each kind of rank") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + skip_model + sections);
  const Json json = plan(folder, config,
                         {"--ranks", "16", "--machine", "h100-node", "--set", "strategy.pipeline=2", "--timeline",
                          folder / "timeline.json"});
  const Json trace = Json::parse(read_file(folder / "timeline.json"));
  std::map<std::pair<int, int>, double> streams;  // number of events, by process and thread
  double end = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    CHECK(event.at("dur") >= 0);
    end = std::max(end, event.at("ts").get<double>() + event.at("dur").get<double>());
    ++streams[{event.at("pid"), event.at("tid")}];
  }
  CHECK(end == Approx(1e6 * json.at("step_seconds").get<double>()));
  CHECK(streams.size() == 2 * 3);  // two stages with computation, data axis and pipeline axis
}

TEST_CASE("impossible plans are refused with possible ones") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + skip_model + sections);
  CHECK(contains(refusal(folder, config, {"--machine", "h100-nod"}), "did you mean 'h100-node'?"));
  CHECK(contains(refusal(folder, config, {"--machine", "h100-node", "--ranks", "64", "--nodes", "4"}),
                 "use at least 8 nodes"));
  CHECK(contains(refusal(folder, config, {"--machine", "h100-node", "--ranks", "4", "--nodes", "5"}),
                 "5 nodes are more than the 4 ranks"));
  const std::string apart =
      refusal(folder, config, {"--machine", "h100-node", "--ranks", "16", "--set", "strategy.tensor=16"});
  CHECK(contains(apart, "--set strategy.tensor: strategy.tensor is 16: ranks 0 and 8 would share layers"));
  const Finished unwritable = trainctl(
      folder, {"plan", config, "--machine", "h100-node", "--ranks", "2", "--timeline", folder / "none/t.json"});
  CHECK(unwritable.code == 6);
  CHECK(contains(unwritable.errors, "none/t.json: cannot write: No such file or directory; choose a path"));
  CHECK(contains(refusal(folder, config, {"--machine", "pcie-workstation", "--ranks", "4"}),
                 "without a network to other nodes"));
  CHECK(contains(refusal(folder, config, {"--nodes", "2"}), "--machine"));
  CHECK(contains(refusal(folder, config, {"--machine", "h100-node", "--ranks", "9", "--set", "strategy.pipeline=2"}),
                 "start 8 or 10 ranks"));
  const std::string machine = folder.write("machine.yaml", "device: {memory: 80 GB, float32: 20}\n");
  const std::string errors = refusal(folder, config, {"--machine", machine});
  CHECK(contains(errors, "memory_bandwidth"));
  CHECK(contains(errors, "machine.yaml:1"));
}

TEST_CASE("all machines that come with trainctl can be planned for") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", uneven_data + skip_model + sections);
  for (const char* machine : {"h100-node", "h100-hbm2e-node", "h200-node", "a100-node", "pcie-workstation", "cpu-host",
                              "p100-cluster", "p100-winograd"}) {
    CHECK(plan(folder, config, {"--ranks", "2", "--machine", machine}).at("step_seconds") > 0);
  }
}

TEST_CASE("a plan predicts how long a run takes to go on after a failure") {
  const Folder folder;
  const std::string config =
      folder.write("config.yaml", images +
                                      "model: {preset: resnet50}\ntrain: {batch_size: 16384, loss: "
                                      "sparse_categorical_crossentropy, optimizer: sgd}\n");
  for (const int ranks : {1, 8, 1024, 16384}) {
    CAPTURE(ranks);
    const Json planned = plan(folder, config,
                              {"--machine", "h100-node", "--ranks", std::to_string(ranks), "--set", "train.epochs=2",
                               "--set", "checkpoint.every=100 steps"});
    const Json& recovery = planned.at("recovery");
    CHECK(recovery.is_null() == (ranks == 1));
    if (ranks == 1) continue;
    const double step = planned.at("step_seconds"), start = recovery.at("start_seconds");
    const double reading = recovery.at("reading_seconds"), again = recovery.at("again_seconds");
    const double failures = recovery.at("seconds_between_failures");
    const int hosts = ranks / 8, levels = hosts == 1 ? 0 : hosts <= 64 ? 1 : 2;
    CHECK(start == Approx(levels + 0.05 + 0.0007 * ranks));
    CHECK(recovery.at("detection_seconds") == Approx(std::max(10.0, 20 * step)));
    CHECK(reading > planned.at("checkpoint_seconds").get<double>());
    CHECK(again == Approx(50 * step));
    CHECK(failures == Approx(100 * 86400.0 / hosts));
    CHECK(recovery.at("share") == Approx((start + reading + again) / failures));
  }
}

}  // namespace
}  // namespace trainctl::test::plan_test
