// Writes configs for arrays: IDX files with MNIST's names, and NumPy's .npy and .npz files.
#include <algorithm>
#include <cstdlib>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/arrays/idx.h"
#include "io/datasets/arrays/npy.h"
#include "io/datasets/dataset.h"
#include "run/draft/array_look.h"
#include "run/draft/draft.h"

namespace trainctl {
namespace {

// Whether the data has samples and targets for tests beside those for training.
bool holds_test(const std::string& path, bool idx) {
  const auto has = [&](const char* name) {
    return is_folder(path) ? !npy_in_folder(path, name).empty() : has_npz_array(path, name);
  };
  if (idx) return !mnist_file(path, "t10k-images-idx3-ubyte").empty();
  return has("x_test") && has("y_test");
}

bool holds_idx(const std::string& folder) { return !mnist_file(folder, "train-images-idx3-ubyte").empty(); }

// The `data` section without shape, classes and transforms.
std::string location_text(const DraftRequest& request, bool idx, bool has_held_out) {
  const std::string path = path_text(request, request.path);
  return format("data:\n  dataset: {}\n  path: {}\n  validation: {}\n", idx ? "idx" : "npy", path,
                has_held_out ? format("{{path: {}}}          # the test files", path) : "{split: 0.2}");
}

// Whether whole numbers are classes: there are few of them. Else they are values that happen to be whole.
bool are_classes(const DataInfo& info) {
  return info.targets[0].classes <= std::max<std::int64_t>(20, std::min<std::int64_t>(1000, info.training_samples / 5));
}

struct OpenedArrays {
  std::string data;  // the `data` section
  DataInfo info;
};

// Opens the data, with its test arrays as the held-out split if it has some. `values`: {true} if targets are values,
// {false} if they are classes, and {false, true} if they are classes where there are few whole numbers, else values.
OpenedArrays open_arrays(const DraftRequest& request, bool idx, const std::vector<bool>& values) {
  std::vector<Error> errors;
  for (const bool as_values : values) {
    const std::string data = location_text(request, idx, holds_test(request.path, idx));
    try {
      OpenedArrays opened{data, info_of(request, data, as_values)};
      if (as_values || values.size() == 1 || are_classes(opened.info)) return opened;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      errors.push_back(error);
    }
  }
  throw errors.at(0);  // the error of the first kind of targets
}

// Throws Error{data} if all samples have the same class, or if class numbers are far apart: the network has an output
// for each number up to the largest one.
void check_classes(const DraftRequest& request, TargetMeaning meaning, const DataInfo& info) {
  const std::int64_t classes = info.targets[0].classes;
  if (meaning != TargetMeaning::class_number || classes == 0) return;
  if (classes == 1) {
    data_error(request.path, "all targets are the class 0",
               "a classifier learns to distinguish at least two classes: add samples of another class");
  }
  constexpr std::int64_t most = 1000;
  if (classes <= std::max(most, info.training_samples + info.validation_samples)) return;
  data_error(request.path,
             format("the largest class is {}, but there are only {}", classes - 1,
                    counted(info.training_samples + info.validation_samples, "sample")),
             "number the classes from 0 (in NumPy: y = numpy.unique(y, return_inverse=True)[1])");
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape.sizes()) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

// The layers before the last one, and their name in summaries.
struct Body {
  std::string layers, name;
};

// How values are scaled. Bytes are pixels if samples have a height and a width; in rows they are the numbers of a
// table.
enum class Scale { none, bytes, measured };

Scale scale_for(DType dtype, const Shape& sample) {
  if (dtype != DType::uint8) return Scale::none;
  return sample.rank() >= 2 ? Scale::bytes : Scale::measured;
}

// The layers for sequences of tokens, with a class for each token (`by_position`) or one target for the sequence.
Body body_for_tokens(std::int64_t vocabulary, bool by_position) {
  return {format("    - embedding: {{input_dim: {}, output_dim: 64}}   # token ids are below input_dim\n"
                 "    - lstm: {{units: 64, return_sequences: {}}}\n"
                 "    - dropout: 0.2\n",
                 vocabulary, by_position),
          "an embedding and an LSTM"};
}

// The layers for samples of this shape with a class for each position: for each step of a sequence, or pixel of an
// image or a volume.
Body body_by_position(const Shape& sample) {
  if (sample.rank() == 2) return {"    - lstm: {units: 64, return_sequences: true}\n    - dropout: 0.2\n", "an LSTM"};
  std::string layers;
  for (const int filters : {32, 64, 64}) {
    layers += format("    - conv{}d: {{filters: {}, kernel_size: 3, padding: same, activation: relu}}\n",
                     sample.rank() - 1, filters);
  }
  return {layers, "three convolutions"};
}

Body body_for(const Shape& sample) {
  if (sample.rank() == 3) {
    const bool pools = std::min(sample[0], sample[1]) >= 8;
    return {format("    - conv2d: {{filters: 32, kernel_size: 3, padding: same, activation: relu}}\n"
                   "    - conv2d: {{filters: 64, kernel_size: 3, padding: same, activation: relu}}\n{}"
                   "    - flatten\n"
                   "    - dense: {{units: 128, activation: relu}}\n"
                   "    - dropout: 0.3\n",
                   pools ? "    - max_pooling2d: {pool_size: 2}\n" : ""),
            "two convolutions"};
  }
  if (sample.rank() == 4) {
    const bool pools = std::min({sample[0], sample[1], sample[2]}) >= 4;
    return {format("    - batch_normalization           # scales all values alike\n"
                   "    - conv3d: {{filters: 32, kernel_size: 3, padding: same, activation: relu}}\n{}"
                   "    - conv3d: {{filters: 64, kernel_size: 3, padding: same, activation: relu}}\n"
                   "    - global_average_pooling3d\n"
                   "    - dense: {{units: 64, activation: relu}}\n"
                   "    - dropout: 0.3\n",
                   pools ? "    - max_pooling3d: {pool_size: 2}\n" : ""),
            "two convolutions over volumes"};
  }
  if (sample.rank() == 2) return {"    - lstm: 64\n    - dropout: 0.2\n", "an LSTM"};
  const std::string flat = sample.rank() == 1 ? "" : "    - flatten\n";
  return {flat +
              "    - batch_normalization           # scales all values alike\n"
              "    - dense: {units: 128, activation: relu}\n"
              "    - dropout: 0.2\n"
              "    - dense: {units: 64, activation: relu}\n",
          "three dense layers"};
}

// The layers whose output is an image of the size of the samples. The targets of a data set are rows of values, so that
// the network ends in one. Its outputs, which begin near 0, are scaled by `scale` to the range of the targets.
Body body_for_images(std::int64_t channels, double scale) {
  std::string layers;
  for (const int filters : {32, 32, 32}) {
    layers += format("    - conv2d: {{filters: {}, kernel_size: 3, padding: same, activation: relu}}\n", filters);
  }
  layers += format("    - conv2d: {{filters: {}, kernel_size: 3, padding: same}}\n", channels);
  if (scale != 1) layers += format("    - rescaling: {{scale: {:g}}}       # to the range of the targets\n", scale);
  return {layers + "    - flatten                       # as targets are\n", "four convolutions"};
}

// By what the outputs are multiplied for targets that are images. Floats of a few units need no scale.
double scale_of_images(const ArrayLook& look) {
  constexpr double largest_float = 10, largest_whole = 2;
  if (look.largest <= (look.whole ? largest_whole : largest_float)) return 1;
  return look.bytes ? 255 : look.largest;
}

// A note on targets of which it is not certain whether they are values or classes; "" for others.
std::string note_on_values(const ArrayLook& look, TargetsAre targets) {
  if (targets != TargetsAre::found_out) return "";
  const bool values = look.target == TargetMeaning::images || look.target == TargetMeaning::values;
  if (values && look.one_hot_masks) {
    return "the targets are one-hot vectors, and are taken for values; if they are classes of positions, store their "
           "numbers (in NumPy: y = y.argmax(-1).astype('uint8'))";
  }
  if (values && look.zero_one) {
    return "the targets are 0 and 1 as floats, and are taken for values; if they are classes of positions, store them "
           "as whole numbers (in NumPy: y = y.astype('uint8'))";
  }
  if (look.target == TargetMeaning::images && look.whole) {
    return "the targets are taken for images, whose pixels are values; if they are classes of pixels, use --targets "
           "classes";
  }
  if (look.target == TargetMeaning::position_classes && look.classes > 64) {
    return format("the targets are taken for {} classes of positions; if they are values, use --targets values",
                  look.classes);
  }
  if (!look.few_whole || look.target != TargetMeaning::values || targets == TargetsAre::values) return "";
  const auto [smallest, largest] = *look.few_whole;
  return format(
      "the targets are whole numbers from {} to {}, and are taken for values; if they are classes, number them "
      "from 0 and store them as whole numbers (in NumPy: y = numpy.unique(y, return_inverse=True)[1])",
      smallest, largest);
}

// The end of a network for a kind of target, with its loss and metric.
struct Head {
  std::string layer, loss, metrics, what;
};

Head head_for(TargetMeaning kind, std::int64_t count) {
  const auto dense = [count](const std::string& activation) {
    return activation.empty() ? format("    - dense: {{units: {}}}\n", count)
                              : format("    - dense: {{units: {}, activation: {}}}\n", count, activation);
  };
  switch (kind) {
    case TargetMeaning::class_number:
      return {dense("softmax"), "sparse_categorical_crossentropy", "accuracy", counted(count, "class")};
    case TargetMeaning::position_classes:
      return {dense("softmax"), "sparse_categorical_crossentropy", "accuracy",
              counted(count, "class") + " for each position"};
    case TargetMeaning::one_hot:
      return {dense("softmax"), "categorical_crossentropy", "accuracy", counted(count, "class") + ", one-hot"};
    case TargetMeaning::multi_hot:
      return {dense("sigmoid"), "binary_crossentropy", "accuracy, auc", counted(count, "label") + ", each yes or no"};
    case TargetMeaning::images:
    case TargetMeaning::values:
      return {dense(""), "mean_squared_error", "mean_absolute_error", counted(count, "value")};
  }
  std::abort();
}

}  // namespace

bool holds_arrays(const std::string& folder) {
  return holds_idx(folder) || !npy_in_folder(folder, "x").empty() || !npy_in_folder(folder, "x_train").empty();
}

std::vector<Draft> draft_for_arrays(const DraftRequest& request) {
  const bool idx = is_folder(request.path) && holds_idx(request.path);
  const bool values = request.targets == TargetsAre::values, classes = request.targets == TargetsAre::classes;
  ArrayLook look = idx ? ArrayLook{0, values ? TargetMeaning::values : TargetMeaning::class_number}
                       : look_at_arrays(request.path, request.targets);
  std::vector<bool> meanings{look.target != TargetMeaning::position_classes};
  if (look.target == TargetMeaning::class_number) meanings = classes ? std::vector{false} : std::vector{false, true};
  const OpenedArrays opened = open_arrays(request, idx, meanings);
  const TargetInfo& target = opened.info.targets[0];
  check_classes(request, look.target, opened.info);
  if (target.classes == 0 && look.target == TargetMeaning::class_number) look.target = TargetMeaning::values;
  if (look.target == TargetMeaning::values) refuse_large_targets(request.path, "y", look.largest);
  const bool by_position = look.target == TargetMeaning::position_classes;
  const DType dtype = opened.info.inputs[0].format.dtype;
  Shape sample = opened.info.inputs[0].sample;
  if (dtype == DType::uint8 && sample.rank() == 2) sample = {sample[0], sample[1], 1};  // images of one channel
  const bool images = look.target == TargetMeaning::images;
  const Body body = images                ? body_for_images(look.channels, scale_of_images(look))
                    : look.vocabulary > 0 ? body_for_tokens(look.vocabulary, by_position)
                    : by_position         ? body_by_position(sample)
                                          : body_for(sample);
  const std::int64_t number = by_position ? std::max(look.classes, target.classes) : target.classes;
  Head head = head_for(look.target, number > 0 ? number : std::max<std::int64_t>(target.shape.count(), 1));
  if (images) {
    head.layer.clear();
    head.what = format("images of {} as targets", counted(look.channels, "channel"));
  }
  Draft draft;
  draft.file = request.name + ".yaml";
  draft.summary = format("{} on samples of {}, {}", body.name, to_string(sample), head.what);
  std::string data = opened.data + format("  shape: {}\n", shape_text(sample));
  if (number > 0) data += format("  classes: {}\n", number);
  if (!look.unreadable.empty()) data += format("  on_error: skip                  # {}\n", look.unreadable);
  const Scale scale = look.vocabulary > 0 ? Scale::none : scale_for(dtype, sample);
  if (scale == Scale::bytes) data += "  transform:\n    - rescale: 1/255\n";
  if (scale == Scale::measured) {
    data += "  transform:\n    - normalize: measured       # each value to mean 0 and deviation 1\n";
  }
  draft.text = head_text(draft.file, format("Arrays with {}: {}.", head.what, samples_text(opened.info))) + data +
               "\nmodel:\n  layers:\n" + body.layers + head.layer + "\n" +
               train_text(head.loss, head.metrics, suitable_batch(opened.info.training_samples),
                          suitable_epochs(opened.info.training_samples), 1e-3,
                          "  schedule: {name: cosine, warmup: 1 epoch}\n" +
                              std::string(number > 0 ? "\ncheckpoint:\n  monitor: val_accuracy\n" : ""));
  draft.notes = opened.info.warnings;
  if (!look.unreadable.empty()) draft.notes.push_back(look.unreadable + ", and they are skipped (`on_error: skip`)");
  if (const std::string note = note_on_values(look, request.targets); !note.empty()) draft.notes.push_back(note);
  return {draft};
}

}  // namespace trainctl
