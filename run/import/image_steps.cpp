// Reads preprocessor_config.json.
#include "run/import/image_steps.h"

#include <cstdint>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_parse.h"
#include "core/base/table.h"
#include "io/hugging_face/json_file.h"
#include "io/hugging_face/values.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

constexpr std::int64_t most_bytes = 1 << 20;

bool flag(const Json& file, const char* key, bool fallback) {
  const auto found = file.find(key);
  return found == file.end() || found->is_null() ? fallback : json_value<bool>(file, key);
}

Node step(const std::string& name, Node value) {
  Node map = map_node();
  append(map, name, std::move(value));
  return map;
}

// A list of numbers of the file, one for each channel.
Node numbers(const Json& file, const char* key, std::int64_t channels) {
  Node list = sequence_node();
  for (const Json& one : file.at(key)) {
    if (!one.is_number()) throw Error(ErrorKind::data, format("'{}' must be a list of numbers", key));
    list.items.push_back(number_node(one.get<double>()));
  }
  if (std::ssize(list.items) != channels) {
    throw Error(ErrorKind::data, format("'{}' has {}, but the network's images have {}", key,
                                        counted(list.items.size(), "number"), counted(channels, "channel")));
  }
  return list;
}

void add_steps(const Json& file, const Shape& image, Node& steps, std::vector<std::string>& notes) {
  if (flag(file, "do_center_crop", false)) {
    notes.emplace_back("preprocessor_config.json cuts out the centre of an image: add `center_crop` to `transform`.");
  }
  if (flag(file, "do_rescale", true)) {
    const double factor = file.contains("rescale_factor") ? json_value<double>(file, "rescale_factor") : 1.0 / 255;
    steps.items.push_back(step("rescale", factor == 1.0 / 255 ? scalar_node("1/255") : number_node(factor)));
  }
  if (!flag(file, "do_normalize", true)) return;
  Node normalize = map_node();
  append(normalize, "mean", numbers(file, "image_mean", image.back()));
  append(normalize, "std", numbers(file, "image_std", image.back()));
  steps.items.push_back(step("normalize", std::move(normalize)));
}

}  // namespace

Node image_steps(const std::string& folder, const Shape& image, std::vector<std::string>& notes) {
  Node sizes = sequence_node(), steps = sequence_node();
  for (const std::int64_t size : {image[0], image[1]}) sizes.items.push_back(number_node(size));
  steps.items.push_back(step("resize", std::move(sizes)));
  const std::string path = folder + "/preprocessor_config.json";
  if (!exists(path)) {
    notes.emplace_back(
        "The folder has no preprocessor_config.json: add `rescale` and `normalize` to `transform` as in its training.");
    return steps;
  }
  const Json file = read_json_object(path, most_bytes);
  try {
    add_steps(file, image, steps, notes);
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::data, SourceLocation{path}, json_problem(error), "correct the file, or remove it");
  } catch (const Error& error) {
    throw Error(ErrorKind::data, SourceLocation{path}, error.what(), "correct the file, or remove it");
  }
  return steps;
}

}  // namespace trainctl
