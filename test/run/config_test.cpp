// Tests that valid configs are read correctly, and that the resolved config describes the same run.
#include "run/run_spec.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/json.h"
#include "core/optim/optimizer.h"
#include "core/spec/schema.h"
#include "io/yaml/yaml.h"
#include "test/catch.h"
#include "test/run/config_support.h"

namespace trainctl::testing::config_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<fs::path> shipped() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TRAINCTL_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("a config is read into a spec") {
  const RunSpec spec = read_config(good_config);
  CHECK(spec.name == "test");
  CHECK(spec.train.batch_size == 32);
  CHECK(spec.train.epochs == 2);
  CHECK(spec.train.global_batch(3) == 32);
  CHECK(spec.train.optimizer.as<OptimizerOptions>().learning_rate == 0.1);
  CHECK(spec.train.metrics.of("").at(0).name == "accuracy");
  CHECK(spec.train.schedule.name == "cosine");
  CHECK(spec.model.layers.size() == 2);
  CHECK(spec.cluster.ranks.or_else(0) == 2);
  CHECK(spec.checkpoint.every.given == Duration::epochs(1));
}

TEST_CASE("settings and variables reach the spec") {
  const RunSpec spec = read_config(replaced(good_config, "epochs: 2", "epochs: ${EPOCHS}"),
                                   {"train.optimizer.learning_rate=1/4", "model.layers.1.dense.units=5", "seed=9",
                                    "train.schedule=constant", "cluster.ranks=auto", "train.metrics=[]"});
  CHECK(spec.train.epochs == 7);
  CHECK(spec.train.optimizer.as<OptimizerOptions>().learning_rate == 0.25);
  CHECK(spec.seed == 9);
  CHECK(spec.train.schedule.name == "constant");
  CHECK(spec.cluster.ranks.is_auto());
  CHECK(spec.train.metrics.of("").empty());
}

TEST_CASE("without a name the run gets the name of the file") {
  CHECK(read_config(replaced(good_config, "name: test\n", "")).name == "c");
}

TEST_CASE("the resolved config describes the same run, from any folder") {
  for (const fs::path& file : shipped()) {
    CAPTURE(file);
    const RunSpec spec = load_run_spec(file.string());
    const std::string resolved = resolved_yaml(spec);
    const fs::path copy = fs::temp_directory_path() / ("trainctl-resolved-" + file.filename().string());
    std::ofstream(copy) << resolved;
    const RunSpec again = load_run_spec(copy.string());
    fs::remove(copy);
    CHECK(differences(section_of<RunSpec>().write(&spec), section_of<RunSpec>().write(&again)).empty());
    CHECK(resolved == resolved_yaml(again));
    CHECK(resolved.starts_with("version: 1\n"));
  }
}

TEST_CASE("the resolved config holds defaults, absolute paths, and auto") {
  const RunSpec spec =
      read_config(replaced(good_config, "dataset: synthetic", "dataset: image_folder\n  path: photos"));
  const Node node = section_of<RunSpec>().write(&spec);
  CHECK(node.find("data")->find("path")->text == "/configs/photos");
  CHECK(node.find("data")->find("prefetch")->text == "auto");
  CHECK(node.find("data")->find("workers")->text == "auto");
  CHECK(node.find("train")->find("clip_norm")->text == "none");
  CHECK(node.find("train")->find("optimizer")->find("name")->text == "sgd");
  CHECK(node.find("train")->find("optimizer")->find("nesterov")->text == "false");
}

TEST_CASE("the schema knows every key that the configs use") {
  const Json schema = Json::parse(json_schema(section_of<RunSpec>(), parse_value));
  for (const Section& dataset : dataset_choices().choices) {
    bool found = false;
    for (const Json& branch : schema["properties"]["data"]["anyOf"]) {
      if (branch["properties"]["dataset"]["const"] != dataset.name) continue;
      found = true;
      for (const Key& key : dataset.keys) CHECK(branch["properties"].contains(key.name));
      CHECK(branch["properties"].contains("transform"));
    }
    CHECK(found);
  }
  // Nested layers refer to the definition of a layer.
  const Json& residual = schema["$defs"]["layer_item"]["anyOf"][1]["properties"]["residual"];
  CHECK(residual.dump().find("\"$ref\":\"#/$defs/layer_item\"") != std::string::npos);
}

// The anchor of a heading, by GitHub's rule.
std::string anchor_of(const std::string& heading) {
  std::string text;
  for (const char c : heading) {
    if (c == ' ') text += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_') {
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return text;
}

TEST_CASE("every link of the reference leads to one of its sections") {
  std::istringstream reference(text_of(TRAINCTL_SOURCE_DIR "/configs/REFERENCE.md"));
  std::set<std::string> anchors, links;
  for (std::string line; std::getline(reference, line);) {
    if (line.starts_with("#")) anchors.insert(anchor_of(line.substr(line.find(' ') + 1)));
    for (std::size_t at = line.find("](#"); at != std::string::npos; at = line.find("](#", at + 1)) {
      links.insert(line.substr(at + 3, line.find(')', at) - at - 3));
    }
  }
  CHECK(links.size() > 20);
  for (const std::string& link : links) {
    CAPTURE(link);
    CHECK(anchors.contains(link));
  }
}

TEST_CASE("the reference is current") {
  const std::string written = text_of(TRAINCTL_SOURCE_DIR "/configs/REFERENCE.md");
  const std::string wanted = markdown_reference(section_of<RunSpec>());
  const bool current = written == wanted;
  const auto first = std::mismatch(written.begin(), written.end(), wanted.begin(), wanted.end());
  INFO("first difference: " << std::string(first.second, wanted.end()).substr(0, 200));
  INFO("run: trainctl schema --markdown > configs/REFERENCE.md");
  CHECK(current);
}

}  // namespace trainctl::testing::config_test
