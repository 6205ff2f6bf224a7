// Reads preprocessor_config.json.
#include "run/import/image_steps.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
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

Node step(const std::string& name, Node value) {
  Node map = map_node();
  append(map, name, std::move(value));
  return map;
}

bool has(const Json& file, const char* key) {
  const auto found = file.find(key);
  return found != file.end() && !found->is_null();
}

bool flag(const Json& file, const char* key, bool fallback) {
  return has(file, key) ? json_value<bool>(file, key) : fallback;
}

// The kind of image processor that the file names; that of ViT if it names none. "ViTImageProcessorFast" and
// "ViTFeatureExtractor" are kinds of "ViT".
std::string processor(const Json& file) {
  const char* key = has(file, "image_processor_type") ? "image_processor_type" : "feature_extractor_type";
  const std::string name = has(file, key) ? json_value<std::string>(file, key) : "ViT";
  return name.substr(0, std::min(name.find("ImageProcessor"), name.find("FeatureExtractor")));
}

// Whether the defaults of the image processor are known: it is one that transformers has for networks of this kind.
bool has_known_defaults(const std::string& kind) { return kind == "ViT" || kind == "DeiT" || kind == "Beit"; }

// The numbers that the file gives, one for each channel. A single number is that of all channels. If the file gives
// none, these are those of transformers' image processor, which are 0.5.
Node numbers(const Json& file, const char* key, std::int64_t channels) {
  Node list = sequence_node();
  Json given = has(file, key) ? file.at(key) : Json(0.5);
  if (!has(file, key) && !has_known_defaults(processor(file))) {
    throw Error(ErrorKind::data,
                format("'{}' is missing, and the default of '{}' is not known: add it", key, processor(file)));
  }
  if (given.is_number()) given = Json(std::vector<Json>(static_cast<std::size_t>(channels), given));
  for (const Json& one : given) {
    if (!one.is_number()) throw Error(ErrorKind::data, format("'{}' must be a number or a list of numbers", key));
    list.items.push_back(number_node(one.get<double>()));
  }
  if (std::ssize(list.items) != channels) {
    throw Error(ErrorKind::data, format("'{}' has {}, but the network's images have {}", key,
                                        counted(list.items.size(), "number"), counted(channels, "channel")));
  }
  return list;
}

// Adds notes on the steps of the file that the config does not have.
void note_other_steps(const Json& file, std::vector<std::string>& notes) {
  if (flag(file, "do_center_crop", processor(file) == "DeiT")) {
    notes.emplace_back("preprocessor_config.json cuts out the centre of an image: add `center_crop` to `transform`.");
  }
  if (!flag(file, "do_resize", true)) {
    notes.emplace_back("preprocessor_config.json does not resize images; here `resize` gives them the network's size.");
  }
  constexpr std::int64_t bilinear = 2, bicubic = 3;  // Pillow's numbers
  const std::int64_t usual = processor(file) == "DeiT" || processor(file) == "Beit" ? bicubic : bilinear;
  const std::int64_t resample = has(file, "resample") ? json_value<std::int64_t>(file, "resample") : usual;
  if (flag(file, "do_resize", true) && resample != bilinear) {
    notes.push_back(format("preprocessor_config.json resizes by {} interpolation; `resize` is bilinear.",
                           resample == 0         ? "nearest-neighbour"
                           : resample == 1       ? "Lanczos"
                           : resample == bicubic ? "bicubic"
                                                 : "another kind of"));
  }
  static const std::set<std::string, std::less<>> known{"do_center_crop",   "do_convert_rgb", "do_normalize",
                                                        "do_reduce_labels", "do_rescale",     "do_resize"};
  for (const auto& [key, value] : file.items()) {
    if (!key.starts_with("do_") || known.contains(key) || value.is_null() || value == Json(false)) continue;
    notes.push_back(
        format("preprocessor_config.json sets `{}`, which is not translated: change the images likewise.", key));
  }
}

void add_steps(const Json& file, const Shape& image, Node& steps, std::vector<std::string>& notes) {
  note_other_steps(file, notes);
  if (flag(file, "do_rescale", true)) {
    const double factor = has(file, "rescale_factor") ? json_value<double>(file, "rescale_factor") : 1.0 / 255;
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
