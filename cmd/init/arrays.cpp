// Configs for arrays: IDX files with MNIST's names, and NumPy's .npy and .npz files.
#include <algorithm>

#include "cmd/init/draft.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/arrays/npy.h"

namespace trainctl {
namespace {

bool holds_file(const std::string& folder, std::string_view begin) {
  const std::vector<FolderEntry> entries = list_folder(folder);
  return std::any_of(entries.begin(), entries.end(),
                     [&](const FolderEntry& entry) { return entry.name.starts_with(begin); });
}

bool holds_idx(const std::string& folder) { return holds_file(folder, "train-images-idx3-ubyte"); }

// The `data` section without shape, classes and transforms.
std::string location_text(const DraftRequest& request, bool idx, bool has_held_out) {
  const std::string path = path_text(request, request.path);
  return format("data:\n  dataset: {}\n  path: {}\n  validation: {}\n", idx ? "idx" : "npy", path,
                has_held_out ? format("{{path: {}}}          # its test files", path) : "{split: 0.2}");
}

// Whether so many classes are classes, and no values that happen to be whole.
bool are_classes(const DataInfo& info) {
  return info.targets[0].classes <= std::max<std::int64_t>(20, std::min<std::int64_t>(1000, info.training_samples / 5));
}

struct OpenedArrays {
  std::string data;  // section
  DataInfo info;
};

// Opens the data: with its held-out part where it has one, with classes where its targets are few whole numbers.
OpenedArrays open_arrays(const DraftRequest& request) {
  const bool idx = is_folder(request.path) && holds_idx(request.path);
  std::vector<Error> errors;
  for (const bool values : {false, true}) {
    for (const bool has_held_out : {true, false}) {
      const std::string data = location_text(request, idx, has_held_out);
      try {
        OpenedArrays opened{data, facts_of(request, data, values)};
        if (values || are_classes(opened.info)) return opened;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data) throw;
        errors.push_back(error);
      }
    }
  }
  throw errors.at(std::min<std::size_t>(errors.size() - 1, 1));  // of classes, without a held-out part
}

std::string shape_text(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape.sizes()) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

// The layers before the last one, for samples of this shape; what they are called.
struct Body {
  std::string layers, name;
};

// Bytes are pixels where samples have a height and a width; in rows they are a table's numbers.
enum class Scale { none, bytes, measured };

Scale scale_for(DType dtype, const Shape& sample) {
  if (dtype != DType::uint8) return Scale::none;
  return sample.rank() >= 2 ? Scale::bytes : Scale::measured;
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
  if (sample.rank() == 2) return {"    - lstm: 64\n    - dropout: 0.2\n", "an LSTM"};
  const std::string flat = sample.rank() == 1 ? "" : "    - flatten\n";
  return {flat +
              "    - batch_normalization           # brings the values to one scale\n"
              "    - dense: {units: 128, activation: relu}\n"
              "    - dropout: 0.2\n"
              "    - dense: {units: 64, activation: relu}\n",
          "three dense layers"};
}

}  // namespace

bool holds_arrays(const std::string& folder) {
  return holds_idx(folder) || !npy_in_folder(folder, "x").empty() || !npy_in_folder(folder, "x_train").empty();
}

std::vector<Draft> draft_for_arrays(const DraftRequest& request) {
  const OpenedArrays opened = open_arrays(request);
  const DType dtype = opened.info.inputs[0].format.dtype;
  Shape sample = opened.info.inputs[0].sample;
  if (dtype == DType::uint8 && sample.rank() == 2) sample = {sample[0], sample[1], 1};  // images of one channel
  const TargetFacts& target = opened.info.targets[0];
  const bool is_class = target.classes > 0;
  const Body body = body_for(sample);
  Draft draft;
  draft.file = request.name + ".yaml";
  draft.summary = format("{} on samples of {}", body.name, to_string(sample));
  std::string data = opened.data + format("  shape: {}\n", shape_text(sample));
  if (is_class) data += format("  classes: {}\n", target.classes);
  const Scale scale = scale_for(dtype, sample);
  if (scale == Scale::bytes) data += "  transform:\n    - rescale: 1/255\n";
  if (scale == Scale::measured) {
    data += "  transform:\n    - normalize: measured       # each value to mean 0 and deviation 1\n";
  }
  const std::int64_t values = std::max<std::int64_t>(target.shape.count(), 1);
  const std::string last = is_class ? format("    - dense: {{units: {}, activation: softmax}}\n", target.classes)
                                    : format("    - dense: {{units: {}}}\n", values);
  const std::string what = is_class ? format("{} classes", target.classes) : format("{} values", values);
  draft.text = head_text(draft.file, format("Arrays with {}: {}.", what, samples_text(opened.info))) + data +
               "\nmodel:\n  layers:\n" + body.layers + last + "\n" +
               train_text(is_class ? "sparse_categorical_crossentropy" : "mean_squared_error",
                          is_class ? "accuracy" : "mean_absolute_error", suitable_batch(opened.info.training_samples),
                          suitable_epochs(opened.info.training_samples), 1e-3,
                          "  schedule: {name: cosine, warmup: 1 epoch}\n" +
                              std::string(is_class ? "\ncheckpoint:\n  monitor: val_accuracy\n" : ""));
  return {draft};
}

}  // namespace trainctl
