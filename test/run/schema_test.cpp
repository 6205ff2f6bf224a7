// Tests that the schema describes what the reader accepts.
#include "core/spec/schema.h"

#include "core/base/json.h"
#include "io/yaml/yaml.h"
#include "parallel/trainer/options.h"
#include "run/run_spec.h"
#include "test/catch.h"

namespace trainctl::schema_test {

TEST_CASE("the schema of a section holds types, ranges, defaults and meanings") {
  const Json schema = Json::parse(json_schema(section_of<TrainOptions>(), parse_value));
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["additionalProperties"] == false);
  const Json& batch = schema["properties"]["batch_size"];
  CHECK(batch["default"] == "none");
  CHECK(batch["anyOf"][0] == Json::parse(R"({"enum": ["none"]})"));
  CHECK(batch["anyOf"][1] == Json::parse(R"({"type": "integer", "minimum": 1.0, "maximum": 16777216.0})"));
  CHECK(schema["properties"]["gradient_accumulation"]["default"] == 1);
  CHECK(schema["properties"]["clip_norm"]["anyOf"][1]["exclusiveMinimum"] == 0.0);
  CHECK(schema["properties"]["precision"]["anyOf"][0] ==
        Json::parse(R"({"enum": ["float32", "bfloat16", "float16"]})"));
  CHECK(schema["then"]["required"] == Json::parse(R"(["loss", "optimizer"])"));
}

TEST_CASE("the schema has the rules across keys") {
  const Json schema = Json::parse(json_schema(section_of<RunSpec>(), parse_value));
  const auto excludes = [&](const char* section, const char* a, const char* b) {
    for (const Json& rule : schema["properties"][section]["allOf"]) {
      if (rule["not"]["required"] == Json::array({a, b})) return true;
    }
    return false;
  };
  CHECK(excludes("train", "batch_size", "batch_size_per_rank"));
  CHECK(excludes("model", "preset", "layers"));
  CHECK(excludes("cluster", "hosts", "hostfile"));
  CHECK(schema["properties"]["version"]["anyOf"][0]["maximum"] == 1.0);
  const Json train = Json::parse(json_schema(section_of<TrainOptions>(), parse_value));
  CHECK(train["then"]["allOf"] == Json::parse(R"([
    {"anyOf": [{"required": ["batch_size"]}, {"required": ["batch_size_per_rank"]}]},
    {"anyOf": [{"required": ["epochs"]}, {"required": ["max_steps"]}, {"required": ["max_time"]}, {"required": ["phases"]}]}])"));
}

TEST_CASE("the schema refers to the choices of every table") {
  const Json schema = Json::parse(json_schema(section_of<TrainOptions>(), parse_value));
  CHECK(schema["properties"]["optimizer"]["$ref"] == "#/$defs/optimizer");
  std::vector<std::string> names;
  for (const Json& alternative : schema["$defs"]["optimizer"]["anyOf"]) {
    if (!alternative.contains("properties")) continue;
    names.push_back(alternative["properties"]["name"]["const"]);
    CHECK(alternative["properties"].contains("learning_rate"));
    CHECK(alternative["required"] == Json::array({"name"}));
  }
  CHECK(names == std::vector<std::string>{"sgd", "adam", "adamw", "nadam", "adamax", "rmsprop", "adagrad", "adadelta",
                                          "ftrl", "lion", "lamb", "lars", "adafactor", "muon"});
  const Json& metric = schema["$defs"]["metric_item"]["anyOf"][1];
  CHECK(metric["maxProperties"] == 1);
  CHECK(metric["properties"].contains("top_k_categorical_accuracy"));
}

}  // namespace trainctl::schema_test
