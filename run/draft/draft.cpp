// Chooses the writer of configs for the data at a path, and has the functions that the writers share.
#include "run/draft/draft.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/base/terminal_text.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/text/corpus.h"
#include "io/datasets/utf8_names.h"
#include "io/loader/data.h"
#include "run/draft/other_formats.h"
#include "run/run_spec.h"

namespace trainctl {

namespace fs = std::filesystem;

std::string config_name_for(const std::string& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path last = whole.has_filename() ? whole : whole.parent_path();
  std::string name = is_folder(path) ? last.filename().string() : last.stem().string();
  const auto kept = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; };
  for (char& c : name) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // a character of UTF-8
    if (!kept(c)) c = begins ? '-' : '\0';
  }
  std::erase(name, '\0');
  name.erase(0, name.find_first_not_of('-'));  // the name must not look like an option of a command
  return name.empty() ? "config" : name.substr(0, 100);
}

std::vector<Draft> drafts_for(const DraftRequest& request) {
  if (!is_folder(request.path)) {
    if (has_ending(request.path, {".csv"}) && holds_pairs(request)) return draft_for_pairs(request);
    if (has_ending(request.path, {".csv", ".tsv"})) return draft_for_table(request);
    if (has_ending(request.path, {".npz"})) return draft_for_arrays(request);
    if (is_text_file(request.path)) return draft_for_text(request);
    if (has_ending(request.path, {".json"})) {
      data_error(request.path,
                 "is a .json file, and texts are read from .jsonl files, which have an object in each line",
                 remedy_for_json_line(request.path, "["));
    }
  } else {
    if (holds_table(request.path)) return draft_for_table(request);
    if (holds_arrays(request.path)) return draft_for_arrays(request);
    if (request.targets != TargetsAre::values && holds_masks(request.path)) return draft_for_masks(request);
    if (holds_pairs(request)) return draft_for_pairs(request);
    if (holds_images(request.path)) return draft_for_images(request);
    if (holds_sounds(request.path)) return draft_for_sounds(request);
    if (holds_volumes(request.path)) return draft_for_volumes(request);
    if (holds_text(request.path)) return draft_for_text(request);
  }
  if (is_folder(request.path) && !list_images(request.path).images.empty()) {
    data_error(request.path, "holds images, but no folders of classes",
               "move the images of each class into a folder with the name of the class; images with masks belong into "
               "the folders images and masks, pairs of images into the folders images and targets");
  }
  refuse_other_formats(request.path);
  throw Error(
      ErrorKind::data, request.path + ": init does not recognize this data",
      "it recognizes a folder with a folder of images, WAV files or NIfTI volumes for each class (or train/ and "
      "validation/ with such folders), a folder of images and one of their masks or of the images that are their "
      "targets, a .csv file, an .npz file with x and "
      "y, a folder with x.npy and y.npy, MNIST's "
      "IDX files, and text: "
      "a file or folder of .txt, .md or .jsonl files, or a folder of .txt files for each class; "
      "`trainctl schema --markdown` lists all data sets");
}

void refuse_targets(const DraftRequest& request, const std::string& reason) {
  if (request.targets == TargetsAre::found_out) return;
  throw Error(ErrorKind::config, format("--targets is for arrays, tables and pairs of images: {}", reason));
}

const std::vector<std::string>& training_names() {
  static const std::vector<std::string> names{"train", "training"};
  return names;
}

const std::vector<std::string>& validation_names() {
  static const std::vector<std::string> names{"validation", "val", "valid", "dev"};
  return names;
}

std::string path_text(const DraftRequest& request, const std::string& path) {
  require_utf8_path(path);
  if (fs::path(path).is_absolute()) return scalar_text(path);
  const fs::path from = fs::absolute(request.folder).lexically_normal();  // the folder need not exist yet
  return scalar_text(fs::absolute(path).lexically_normal().lexically_relative(from).string());
}

std::string scalar_text(const std::string& text) { return flow_text(scalar_node(text)); }

std::string in_comment(const std::string& text) { return terminal_word(text); }

DataInfo info_of(const DraftRequest& request, const std::string& data_section, bool values) {
  const std::string loss = values ? "mean_squared_error" : "sparse_categorical_crossentropy";
  const std::string text = data_section +
                           "model: {layers: [flatten, {dense: {units: 2}}]}\n"
                           "train: {batch_size: 1, epochs: 1, loss: " +
                           loss + ", optimizer: sgd}\n";
  return info_of_config(request, text);
}

DataInfo info_of_config(const DraftRequest& request, const std::string& text) {
  const RunSpec spec = load_run_spec(request.folder + "/" + request.name + ".yaml", {}, text);
  return Data(spec.data, spec.seed, data_use(spec), Data::Measure::no).info();
}

void require_two_classes(const DataInfo& data, const std::string& path) {
  const TargetInfo& target = data.targets[0];
  if (target.classes >= 2) return;
  data_error(
      path,
      target.class_names.empty() ? "has one class only" : format("has one class only: '{}'", target.class_names[0]),
      "a classifier learns to distinguish at least two classes: add samples of another class");
}

void refuse_large_targets(const std::string& path, const std::string& what, double largest) {
  constexpr double most = 1e17;  // the sum of the squares of some thousand errors is a float32
  if (largest <= most) return;
  data_error(path, format("{} has values up to {:.1e}, whose squared errors are too large", what, largest),
             "divide the values by a constant");
}

std::string samples_text(const DataInfo& data) {
  return format("{} for training, {} held out", counted(data.training_samples, "sample"),
                grouped(data.validation_samples));
}

std::string list_text(const std::vector<std::string>& words) {
  constexpr std::size_t longest = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), longest); ++i) text += (i == 0 ? "" : ", ") + words[i];
  return words.size() > longest ? text + ", ..." : text;
}

std::int64_t suitable_batch(std::int64_t samples) {
  const std::int64_t wanted = samples < 500 ? 16 : samples < 20'000 ? 32 : samples < 100'000 ? 64 : 128;
  return std::clamp<std::int64_t>(samples, 1, wanted);
}

std::int64_t suitable_epochs(std::int64_t samples) {
  return samples < 1'000 ? 60 : samples < 5'000 ? 40 : samples < 20'000 ? 25 : samples < 100'000 ? 15 : 10;
}

std::string head_text(const std::string& file, const std::string& what) {
  return format(
      "# yaml-language-server: $schema=trainctl.schema.json\n"
      "# {}\n"
      "# Written by `trainctl init`; change any value. `trainctl check {}` reports errors,\n"
      "# `trainctl schema --markdown` lists all keys, `trainctl run {}` trains.\n"
      "name: {}\n"
      "seed: 1\n\n",
      in_comment(what), file, file, scalar_text(fs::path(file).stem().string()));
}

std::string small_network_text(std::int64_t classes) {
  return format(
      "model:\n"
      "  layers:\n"
      "    - conv2d: {{filters: 32, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - max_pooling2d: {{pool_size: 2}}\n"
      "    - conv2d: {{filters: 64, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - max_pooling2d: {{pool_size: 2}}\n"
      "    - conv2d: {{filters: 128, kernel_size: 3, padding: same, activation: relu}}\n"
      "    - global_average_pooling2d\n"
      "    - dropout: 0.2\n"
      "    - dense: {{units: {}, activation: softmax}}\n\n",
      classes);
}

std::string train_text(const std::string& loss, const std::string& metrics, std::int64_t batch, std::int64_t epochs,
                       double learning_rate, const std::string& more) {
  return format(
      "train:\n"
      "  batch_size: {}                  # of all ranks together\n"
      "  epochs: {}\n"
      "  loss: {}\n"
      "  metrics: [{}]\n"
      "  optimizer: {{name: adam, learning_rate: {}}}\n"
      "{}",
      batch, epochs, loss, metrics, learning_rate, more);
}

}  // namespace trainctl
