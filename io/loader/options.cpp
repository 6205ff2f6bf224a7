// The keys of the `data` section.
#include "io/loader/options.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/metrics/targets.h"

namespace trainctl {
namespace {

// Reports keys of a validation or test split that its kind of data set does not have.
void check_keys(const DataOptions& options, const Node& node, const char* split, Reader& reader) {
  const Node* held_out = node.find(split);
  const Section* dataset = dataset_choices().find(options.dataset.name);
  if (!held_out || !dataset) return;
  for (const Node::Entry& entry : held_out->entries) {
    const bool absent = entry.value.is_scalar() && entry.value.text == "none";
    if (entry.key == "split" || entry.key == "stratify" || absent || dataset->find(entry.key)) continue;
    reader.error(entry.key_location, format("{} has no key '{}'", options.dataset.name, entry.key));
  }
}

// Declares the keys of a split's location; the data set decides which of them apply.
template <class T>
Keys<T> with_location(Keys<T> keys) {
  return std::move(keys)
      .key("path", &T::path, "Like the data set's `path`. All these keys also accept lists.")
      .key("images", &T::images, "idx: the file of samples; segmentation_folder and image_pairs: the folder of images.")
      .key("labels", &T::labels, "idx: the file of labels.")
      .key("x", &T::x, "npy: the file of samples, or one for each input.")
      .key("y", &T::y, "npy: the file of targets, or one for each output.")
      .key("weights", &T::weights, "npy: the file of weights.")
      .key("masks", &T::masks, "segmentation_folder: the folder of masks.")
      .key("target_images", &T::target_images, "image_pairs: the folder of targets.")
      .key("samples", &T::samples, "synthetic: the number of samples.", between(1, max_synthetic_samples));
}

// Reports a horizon that has no effect. 1 is its default, which a run's own config holds, too.
void check_horizon(const DataOptions& options, const Node& node, Reader& reader) {
  const Node* windows = node.find("windows");
  const Node* horizon = windows != nullptr && windows->is_map() ? windows->find("horizon") : nullptr;
  if (horizon == nullptr || !options.target_is_input() || parse_integer(horizon->text).value_or(0) <= 1) return;
  reader.error(horizon->location,
               "with `label_mode: input` the target is the window itself, and not a row after it: leave `horizon` out");
}

// Reports `target_transform` for targets that are not images of values.
void check_target_transform(const DataOptions& options, const Node& node, Reader& reader) {
  if (!options.target_transform || !options.dataset) return;
  const Node* steps = node.find("target_transform");
  const SourceLocation& location = steps != nullptr ? steps->location : node.location;
  if (!options.dataset.as<DatasetOptions>().holds_image_targets()) {
    reader.error(location, format("`target_transform` is for targets that are images (image_pairs), and {} has none",
                                  options.dataset.name));
  } else if (options.target_is_input()) {
    reader.error(location, "with `label_mode: input` the target is the sample itself: leave `target_transform` out");
  }
}

}  // namespace

Keys<ValidationOptions> ValidationOptions::keys() {
  return with_location(
             Keys<ValidationOptions>("validation", "Samples held out from training, evaluated after every epoch."))
      .key("split", &ValidationOptions::split,
           "The share of the training samples that is split off; the same seed chooses the same samples.",
           Range{.more_than = 0.0, .less_than = 1.0})
      .key("stratify", &ValidationOptions::stratify, "Whether the same share of every class is split off.")
      .check([](const ValidationOptions& options, const Node& node, Reader& reader) {
        const bool located = !options.path.empty() || !options.images.empty() || !options.x.empty() || options.samples;
        if (located == options.split.has_value()) {
          reader.error(node.location, "validation needs either a location (`path`) or a `split`");
        }
        options.check_lengths(node.location, reader);
      });
}

Keys<TestOptions> TestOptions::keys() {
  return with_location(Keys<TestOptions>("test", "Samples that only `trainctl eval` reads."))
      .check([](const TestOptions& options, const Node& node, Reader& reader) {
        options.check_lengths(node.location, reader);
      });
}

void DataOptions::check_names_of(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                                 const std::vector<bool>& needed, Reader& reader) const {
  std::vector<std::string> with_targets;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (needed[i]) with_targets.push_back(outputs[i]);
  }
  // If the user did not set `transform`, a run's resolved config holds the default without a name.
  if (transform.named() || !transform.of("").empty()) {
    check_names(transform, inputs, "input", Coverage::some, reader);
  }
  if (augment.named() || !augment.of("").empty()) check_names(augment, inputs, "input", Coverage::some, reader);
  if (shape) check_names(*shape, inputs, "input", Coverage::some, reader);
  if (classes) check_names(*classes, outputs, "output", Coverage::some, reader);
  if (label_mode.named() || label_mode.of("") != LabelMode::integer) {
    check_names(label_mode, outputs, "output", Coverage::some, reader);
  }
  const auto check_files = [&](const DataLocations& where) {
    check_names(where.x, inputs, "input", Coverage::all, reader);
    check_names(where.y, outputs, "output", Coverage::some, reader);
    check_covers(where.y, with_targets, "output", reader);
  };
  if (dataset) {
    check_files(dataset.as<DatasetOptions>());
    dataset.as<DatasetOptions>().check_input_names(inputs, reader);
    dataset.as<DatasetOptions>().check_output_names(outputs, reader);
  }
  if (validation) check_files(*validation);
  if (test) check_files(*test);
}

bool DataOptions::target_is_input() const {
  return std::any_of(label_mode.entries.begin(), label_mode.entries.end(),
                     [](const auto& entry) { return entry.value == LabelMode::input; });
}

Keys<DataOptions> DataOptions::keys() {
  return Keys<DataOptions>("data", "The location of the samples, and how they are processed.")
      .flattened("dataset", &DataOptions::dataset, "The kind of data set.")
      .key("validation", &DataOptions::validation, "Samples held out from training.")
      .key("test", &DataOptions::test,
           "Samples that only `trainctl eval` reads; without them it reads the validation split.")
      .key("shape", &DataOptions::shape,
           "Shape of a sample at the model's input, [height, width, channels] for images; needed only if it cannot be "
           "determined from the data, or to check a config without its data. For several inputs, by their names.",
           at_least(1))
      .key("classes", &DataOptions::classes,
           "Number of classes; needed in the same cases as `shape`. 0: targets are values. Without this key, "
           "whole-number targets in arrays are classes, unless the loss accepts values (mean_squared_error). For "
           "several outputs, by their names.",
           between(0, 2'147'483'647))
      .key("label_mode", &DataOptions::label_mode,
           "How classes are encoded for the loss. int: as the loss requires: the class number for "
           "sparse_categorical_crossentropy; one-hot for categorical_crossentropy, and for binary_crossentropy or "
           "mean_squared_error with an output for each class; 0 or 1 for binary_crossentropy with one output. "
           "categorical (one-hot) and binary (0 or 1) set the encoding: a loss that requires another one is an error. "
           "input: the target is the sample itself after `transform` and `augment`, for autoencoders.")
      .key(
          "transform", &DataOptions::transform,
          "Operations on every sample, in this order, before `augment`; for several inputs, one list for each by name.")
      .key("augment", &DataOptions::augment,
           "Random operations on samples, in training only; for several inputs, one list for each by name, with the "
           "same random numbers.")
      .key("target_transform", &DataOptions::target_transform,
           "image_pairs: the operations on every target, before the steps of `augment` that move pixels; none: the "
           "operations of `transform`, with the same statistics. Targets of another size than the samples need it.")
      .key("shuffle", &DataOptions::shuffle,
           "Whether samples are shuffled in every epoch; otherwise they are in the order of the data set.")
      .key("cache", &DataOptions::cache,
           "Where decoded and resized samples are kept after they have been read once. memory: in the memory of every "
           "rank; disk: in a file in `cache_path`, which the ranks of a host share with later runs on the same data "
           "with the same `transform`.")
      .key("cache_path", &DataOptions::cache_path,
           "The folder of `cache: disk`; default: trainctl's folder in $XDG_CACHE_HOME or ~/.cache. Its files may be "
           "removed at any time.")
      .key("prefetch", &DataOptions::prefetch,
           "Number of batches that are prepared ahead. auto: the number that fits into 16 MB, from 2 to 8.",
           between(1, 1024))
      .key("workers", &DataOptions::workers,
           "Threads per rank that read, decode and transform samples ahead. auto: one at first, and more while "
           "training waits for data, up to one for each core of the rank and at most 16; the batches are the same for "
           "any number. 0: no batches are prepared ahead, and training waits until each batch is read.",
           between(0, 1024))
      .key("on_error", &DataOptions::on_error,
           "What happens if a sample cannot be read, or holds NaN or infinity. skip: it gets weight 0, with a warning; "
           "stop: the run ends.")
      .check([](const DataOptions& options, const Node& node, Reader& reader) {
        check_keys(options, node, "validation", reader);
        check_keys(options, node, "test", reader);
        check_horizon(options, node, reader);
        check_target_transform(options, node, reader);
        if (options.dataset) options.dataset.as<DatasetOptions>().check_lengths(options.dataset.location, reader);
      });
}

}  // namespace trainctl
