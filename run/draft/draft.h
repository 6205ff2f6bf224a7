// Configs that `init` writes, and what their writers share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

// What the user says that whole numbers as targets are.
enum class TargetsAre { found_out, classes, values };

// What the user wants a config for.
struct DraftRequest {
  std::string path;    // the data: a file or folder
  std::string folder;  // where the config is to lie
  std::string name;    // of the config's file, without its ending, and of the run
  std::string target;  // of a table: the target's column; empty: found out
  TargetsAre targets = TargetsAre::found_out;
};

// A config as text.
struct Draft {
  std::string file;     // its name: "flowers-small.yaml"
  std::string summary;  // "resnet18 on images of 128x128x3, 5 classes"
  std::string text;
};

// Configs for what lies at the path, the one to begin with first. Each throws Error{data} where the data cannot be
// trained on as it is.
std::vector<Draft> draft_for_images(const DraftRequest& request);  // a folder of class folders, or of train and others
std::vector<Draft> draft_for_table(const DraftRequest& request);   // a .csv or .tsv file, or a folder with train.csv
std::vector<Draft> draft_for_arrays(const DraftRequest& request);  // a folder of IDX or .npy files, or an .npz file

// Whether a folder holds what these read.
bool holds_images(const std::string& folder);
bool holds_table(const std::string& folder);
bool holds_arrays(const std::string& folder);

// The first of the names that is a folder, or a file, inside of `folder`; "" where none is.
std::string first_of(const std::string& folder, const std::vector<std::string>& names);
// What the splits of a data set are usually called.
const std::vector<std::string>& training_names();    // "train", "training"
const std::vector<std::string>& validation_names();  // "validation", "val", ...

// A path as a config of the request names it, and any text, as YAML.
std::string path_text(const DraftRequest& request, const std::string& path);
std::string scalar_text(const std::string& text);

// A text without line breaks and other control characters, for a comment.
std::string in_comment(const std::string& text);

// The info of the data that a `data` section of the request's config opens; `values`: targets are values. Throws as
// Data() does.
DataInfo info_of(const DraftRequest& request, const std::string& data_section, bool values);

// "12,345 samples for training, 2,345 held out".
std::string samples_text(const DataInfo& data);
// "cat, dog, ...": the first of many.
std::string list_text(const std::vector<std::string>& words);

// Sizes that suit so many training samples.
std::int64_t suitable_batch(std::int64_t samples);
std::int64_t suitable_epochs(std::int64_t samples);

// The first lines of a config: what it is and how it is used, its name and seed.
std::string head_text(const std::string& file, const std::string& what);
// The `train` section; `more`: further lines of it, and sections behind it.
std::string train_text(const std::string& loss, const std::string& metrics, std::int64_t batch, std::int64_t epochs,
                       double learning_rate, const std::string& more = "");

}  // namespace trainctl
