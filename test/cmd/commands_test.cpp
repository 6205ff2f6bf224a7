// Tests the other commands, and mistakes of new users.
#include <filesystem>
#include <map>
#include <regex>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::commands_test {
namespace {

const std::string config_text =
    uneven_data + skip_model + train_section("batch_size: 20, epochs: 1, optimizer: {name: adam}");

TEST_CASE("the quickstart learns handwritten digits, from any folder") {
  const Folder folder;
  const std::string config = std::string(TRAINCTL_SOURCE_DIR) + "/configs/quickstart.yaml";
  const Finished run = trainctl(folder, {"run", config});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const Json last = events(folder / "runs/quickstart", "epoch").back();
  CHECK(last.at("validation").at("accuracy") >= 0.97);
  CHECK(contains(run.errors, "completed after 12 epochs"));
}

TEST_CASE("for an invalid value of an option the error suggests the one that may be meant") {
  const Folder folder;
  folder.write("c.yaml", config_text);
  const Finished device = trainctl(folder, {"run", "c.yaml", "--device", "gpu"});
  CHECK(device.code == 2);
  CHECK(contains(device.errors, "--device: must be auto, cpu or cuda, not 'gpu'; did you mean 'cuda'?"));
  const Finished key = trainctl(folder, {"check", "c.yaml", "--set", "cluster.device=gpu"});
  CHECK(key.code == 2);
  CHECK(contains(key.errors, "did you mean 'cuda'?"));
}

// The bytes by region that a rank logs in a run with -v.
std::map<std::string, std::int64_t> logged_memory(const std::string& log) {
  std::map<std::string, std::int64_t> bytes;
  const std::regex line("memory: ([a-z ]+) ([0-9]+) bytes");
  for (std::sregex_iterator match(log.begin(), log.end(), line), end; match != end; ++match) {
    bytes[(*match)[1]] = std::stoll((*match)[2]);
  }
  return bytes;
}

std::int64_t sum(const std::map<std::string, std::int64_t>& bytes) {
  std::int64_t total = 0;
  for (const auto& [region, amount] : bytes) total += amount;
  return total;
}

TEST_CASE("check --json prints the documented fields and the bytes that a run allocates") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  for (const int ranks : {1, 2, 4}) {
    const std::string count = std::to_string(ranks), directory = "r" + count;
    const Finished check = trainctl(folder, {"check", config, "--json", "--measure", "--ranks", count});
    INFO(check.errors);
    REQUIRE(check.code == 0);
    const Json json = Json::parse(check.out);
    CHECK(json.at("ok") == true);
    CHECK(json.at("kernels_not_chosen") == 0);
    CHECK(json.at("errors").empty());
    CHECK(json.at("parameters") == json.at("trainable_parameters"));
    CHECK(json.at("flops_per_sample") > 0);
    CHECK(json.at("arena_bytes") > 0);
    REQUIRE(json.at("layers").size() > 6);
    for (const char* key : {"name", "kind", "output", "parameters"}) CHECK(json.at("layers").at(0).contains(key));
    CHECK(json.at("layers").at(0).at("name") == "first");
    CHECK(json.at("layers").at(0).at("parameters") == 3 * 3 * 3 * 8 + 8);

    const Finished run = trainctl(folder, {"run", config, "-v", "--ranks", count, "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    std::map<std::string, std::int64_t> largest = logged_memory(run.errors);
    for (int rank = 1; rank < ranks; ++rank) {
      const auto memory = logged_memory(read_file(folder / (directory + format("/logs/rank-{}.log", rank))));
      if (sum(memory) >= sum(largest)) largest = memory;
    }
    const std::map<std::string, std::int64_t> predicted = json.at("memory_bytes");
    CHECK(Json(predicted).dump() == Json(largest).dump());
    CHECK(predicted.at("prefetched batches") > 0);
  }
}

TEST_CASE("check --json reports all errors together, with their locations") {
  const Folder folder;
  std::string text = config_text;
  text.replace(text.find("filters: 8"), 10, "filtres: 8");
  text.replace(text.find("batch_size: 20"), 14, "batch_size: -1");
  const std::string config = folder.write("wrong.yaml", text);
  const Finished check = trainctl(folder, {"check", config, "--json"});
  CHECK(check.code == 2);
  const Json json = Json::parse(check.out);
  CHECK(json.at("ok") == false);
  REQUIRE(json.at("errors").size() >= 2);
  for (const char* key : {"file", "line", "column", "message", "related"}) CHECK(json.at("errors").at(0).contains(key));
  CHECK(contains(check.out, "did you mean 'filters'"));
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2"});
  CHECK(run.code == 2);
  CHECK(count(run.errors, "did you mean 'filters'") == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "runs"));
}

TEST_CASE("bench step --json prints the documented fields, and nothing else on standard output") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const Finished bench = trainctl(folder, {"bench", "step", config, "--ranks", "2", "--json", "--seconds", "0.2"});
  INFO(bench.errors);
  REQUIRE(bench.code == 0);
  const Json json = Json::parse(bench.out);
  CHECK(json.at("ranks") == 2);
  CHECK(json.at("median_seconds") > 0);
  CHECK(json.at("samples_per_second") > 0);
  for (const char* part : {"forward", "backward", "communication", "update", "data", "other"}) {
    CHECK(json.at("parts").contains(part));
  }
  double sum = 0;
  for (const Json& part : json.at("parts")) sum += part.get<double>();
  CHECK(sum == Approx(json.at("mean_seconds").get<double>()).epsilon(0.02));
  CHECK(json.at("waited_seconds") >= 0);
  CHECK(json.at("gpu_idle_seconds").is_null());
}

TEST_CASE("bench data reports the time of each stage, the rates of the loader and the step, and the bottleneck") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const std::vector<std::string> command = {"bench", "data", config, "--ranks", "2", "--seconds", "0.4"};
  std::vector<std::string> with_json = command;
  with_json.push_back("--json");
  const Finished bench = trainctl(folder, with_json);
  INFO(bench.errors);
  REQUIRE(bench.code == 0);
  const Json json = Json::parse(bench.out);
  CHECK(json.at("ranks") == 2);
  double sum = 0;
  for (const char* stage : {"read", "decode", "transform", "cache", "augment", "target", "batch"}) {
    CHECK(json.at("seconds_of_a_sample").at(stage) >= 0);
    sum += json.at("seconds_of_a_sample").at(stage).get<double>();
  }
  const double loader = json.at("loader_samples_per_second"), step = json.at("step_samples_per_second");
  CHECK(2 / sum < 1.001 * json.at("worker_samples_per_second").get<double>());
  CHECK(loader > 0);
  CHECK(step > 0);
  CHECK((json.at("bound") == "step") == (loader >= step));
  const Finished text = trainctl(folder, command);
  REQUIRE(text.code == 0);
  for (const char* line :
       {"augment, scale", "one worker, 2 ranks", "training step, 2 ranks", " is the bottleneck: the loader"}) {
    CHECK(contains(text.out, line));
  }
}

TEST_CASE("bench ops --json reports every op's share of the measured ceilings") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const Finished bench = trainctl(folder, {"bench", "ops", config, "--ranks", "1", "--json", "--seconds", "0.2"});
  INFO(bench.errors);
  REQUIRE(bench.code == 0);
  const Json json = Json::parse(bench.out);
  const Json& peaks = json.at("peaks");
  CHECK(peaks.at("copy_gb_per_s") > 0.1);
  const double memory = std::max(peaks.at("copy_gb_per_s").get<double>(), peaks.at("triad_gb_per_s").get<double>());
  const double cached = peaks.at("cached_copy_gb_per_s");
  REQUIRE(!json.at("ops").empty());
  for (const Json& op : json.at("ops")) {
    const double seconds = op.at("seconds"), flops = op.at("flops"), bytes = op.at("bytes");
    CHECK(op.at("of_compute_ceiling").get<double>() ==
          Approx(flops / seconds / 1e9 / peaks.at("float32_gflops").get<double>()));
    if (bytes == 0) continue;
    const double ceiling = bytes / seconds / 1e9 / op.at("of_memory_ceiling").get<double>();
    CHECK(ceiling > 0.999 * std::min(memory, cached));
    CHECK(ceiling < 1.001 * std::max(memory, cached));
  }
}

TEST_CASE("run --json prints the end of the run as one document, and --quiet prints nothing") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--json"});
  REQUIRE(run.code == 0);
  const Json json = Json::parse(run.out);
  CHECK(json.at("status") == "completed");
  CHECK(json.at("weights_sha256") == events(folder / "runs/config", "end").at(0).at("weights_sha256"));
  const Finished again = trainctl(folder, {"run", config, "--ranks", "2", "--json", "--run-dir", "runs/config"});
  CHECK(again.code == 0);
  CHECK(Json::parse(again.out) == events(folder / "runs/config", "end").at(0));
  for (const char* ranks : {"1", "2"}) {
    const Finished quiet =
        trainctl(folder, {"run", config, "--ranks", ranks, "--quiet", "--run-dir", std::string("of-") + ranks});
    CHECK(quiet.code == 0);
    CHECK(quiet.errors + quiet.out == "");
  }
}

TEST_CASE("superfluous arguments are named, with a remedy") {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& message) {
    const Finished run = trainctl(folder, words);
    INFO(run.errors);
    CHECK(run.code == 2);
    CHECK(contains(run.errors, message));
  };
  refused({"run", "a.yaml", "b.yaml"}, "run accepts one config, which is a.yaml; remove the extra arguments: b.yaml\n");
  refused({"check", "a.yaml", "b.yaml", "c.yaml"},
          "check accepts one config, which is a.yaml; remove the extra arguments: ");
  refused({"run", "a.yaml", "--ranks", "2", "--ranks", "1"}, "--ranks is given 2 times; give it once\n");
  refused({"run", "a.yaml", "--ranks=2", "--hosts", "x", "--ranks=1", "--ranks=3"},
          "--ranks is given 3 times; give it once");
  refused({"run"}, "CONFIG is required");
}

TEST_CASE("mistakes of new users lead to helpful errors") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text);
  const auto says = [&](const std::vector<std::string>& arguments, const std::string& words) {
    const Finished answer = trainctl(folder, arguments);
    CAPTURE(arguments, answer.errors);
    CHECK(answer.code == 2);
    CHECK(contains(answer.errors, words));
  };
  says({}, "trainctl run");
  says({"run"}, "CONFIG");
  says({"rnu", config}, "did you mean 'run'");
  says({"run", config, "--rank", "2"}, "did you mean '--ranks'");
  says({"run", "confg.yaml"}, "confg.yaml");
  says({"run", config, "--ranks", "two"}, "--ranks");
  for (const char* option : {"--ranks", "--hosts", "--run-dir", "--resume", "--set", "--progress"}) {
    says({"run", config, option, ""}, std::string(option));  // a variable of a script that is not set
  }
  says({"run", config, "--ranks="}, "--ranks");
  says({"run", ""}, "CONFIG");
  says({"check", config, "--device", ""}, "--device");
  says({"launch", "slurm", config, "--time", ""}, "--time");
  says({"run", config, "--set", "train.epoch=3"}, "did you mean 'epochs'");
  says({"run", config, "--ranks", "2", "--set", "train.gradient_accumulation=4"}, "4 does not divide the 10 samples");
  says({"check", config, "--ranks", "2", "--set", "train.gradient_accumulation=4"}, "multiple of ranks times");
  says({"inspect", "nowhere"}, "nowhere");
  const Finished early = trainctl(folder, {"eval", config});
  CHECK(early.code == 3);
  CHECK(contains(early.errors, "train first"));
  for (const char* command : {"run", "check", "plan", "eval", "predict", "watch", "verify-scaling", "inspect", "init",
                              "import", "export", "report", "bench", "schema", "completion", "tokenizer"}) {
    const Finished help = trainctl(folder, {command, "--help"});
    CHECK(help.code == 0);
    CHECK(contains(help.out, std::string("Usage: trainctl ") + command));
    CHECK(contains(help.out, "Example:\n  trainctl "));
  }
}

}  // namespace
}  // namespace trainctl::test::commands_test
