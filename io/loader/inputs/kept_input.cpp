// Converts the info that a run keeps about its inputs to JSON, and back.
#include "io/loader/inputs/kept_input.h"

#include "core/base/json.h"
#include "core/base/json_parse.h"
#include "io/datasets/tables/csv_table.h"

namespace trainctl {
namespace {

Json to_json(const TableInfo& table) {
  Json columns = Json::array();
  for (const TableInfo::Column& column : table.columns) {
    columns.push_back({{"name", column.name},
                       {"words", column.words},
                       {"vocabulary", column.vocabulary},
                       {"out_of_vocabulary", column.out_of_vocabulary},
                       {"fill", column.fill},
                       {"mean", column.mean},
                       {"deviation", column.deviation},
                       {"hash_bins", column.hash_bins},
                       {"is_binned", column.is_binned},
                       {"boundaries", column.boundaries},
                       {"oov_values", column.oov_values}});
  }
  return columns;
}

std::shared_ptr<const TableInfo> table_of(const Json& columns) {
  TableInfo table;
  for (const Json& json : columns) {
    table.columns.push_back({json.at("name"), json.at("words"), json.at("vocabulary"), json.at("fill"), json.at("mean"),
                             json.at("deviation"),
                             // Old checkpoints do not have the following ones.
                             json.value("out_of_vocabulary", false), json.value("hash_bins", std::int64_t{0}),
                             json.value("boundaries", std::vector<float>{}), json.value("is_binned", false),
                             json.value("oov_values", std::int64_t{1})});
  }
  return std::make_shared<const TableInfo>(std::move(table));
}

Json to_json(const KeptInput& input) {
  const DatasetInfo& info = input.info;
  Json json{{"sample", info.sample.sizes()},
            {"dtype", name_of(info.dtype)},
            {"scale", info.scale},
            {"offset", info.offset},
            {"normalize", Json::array()}};
  for (const Statistics& statistics : input.measured) {
    json["normalize"].push_back({{"mean", statistics.mean}, {"std", statistics.stddev}});
  }
  if (info.table) json["columns"] = to_json(*info.table);
  if (info.sampling_rate > 0) json["sampling_rate"] = info.sampling_rate;
  if (info.vocabulary) json["vocabulary"] = *info.vocabulary;
  return json;
}

KeptInput input_of(const Json& json) {
  KeptInput input;
  input.info.sample = Shape(json.at("sample").get<std::vector<std::int64_t>>());
  for (const DType dtype : {DType::uint8, DType::float32, DType::int32}) {
    if (json.at("dtype") == name_of(dtype)) input.info.dtype = dtype;
  }
  input.info.scale = json.at("scale");
  input.info.offset = json.at("offset");
  for (const Json& statistics : json.at("normalize")) {
    input.measured.push_back({statistics.at("mean"), statistics.at("std")});
  }
  if (json.contains("columns")) input.info.table = table_of(json["columns"]);
  input.info.sampling_rate = json.value("sampling_rate", std::int64_t{0});
  if (json.contains("vocabulary")) {
    input.info.vocabulary = std::make_shared<const std::vector<std::string>>(json["vocabulary"]);
  }
  return input;
}

}  // namespace

// A single input is written as an object, as in earlier versions, which supported only one input; several inputs are
// written as a list.
std::string write_kept_inputs(const std::vector<KeptInput>& inputs) {
  Json all = Json::array();
  for (const KeptInput& input : inputs) all.push_back(to_json(input));
  return json_text(inputs.size() == 1 ? all[0] : all);
}

std::vector<KeptInput> read_kept_inputs(const std::string& text) {
  try {
    const Json json = parse_json(text, SourceLocation{});
    if (!json.is_array()) return {input_of(json)};
    std::vector<KeptInput> inputs;
    for (const Json& input : json) inputs.push_back(input_of(input));
    return inputs;
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::data, "the checkpoint's info about the inputs cannot be read: " + json_problem(error),
                "use the version of trainctl that wrote the checkpoint");
  }
}

}  // namespace trainctl
