// Writes configs for `init`, and declares the functions that their writers share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

// The meaning of targets that are whole numbers, as the user gives it.
enum class TargetsAre { found_out, classes, values };

// The data for which a config is written, and where.
struct DraftRequest {
  std::string path;    // the data: a file or folder
  std::string folder;  // the folder of the config
  std::string name;    // the config's file name without its ending, and the run's name
  std::string target;  // the target's column of a table; empty: init chooses it
  TargetsAre targets = TargetsAre::found_out;
};

// A config as text.
struct Draft {
  std::string file;     // its file name: "flowers-small.yaml"
  std::string summary;  // "resnet18 on images of 128x128x3, 5 classes"
  std::string text;
  std::vector<std::string> notes = {};  // what init assumed, and the user may not expect
};

// Returns a name for the config and the run: the last component of the data's path, with '-' for each character that
// the name of a run may not have.
std::string config_name_for(const std::string& path);

// Returns configs for the data at the path, by one of the functions below. Throws Error{data} if it recognizes no data
// there.
std::vector<Draft> drafts_for(const DraftRequest& request);

// Return configs for the data at the path, the recommended one first. They throw Error{data} if the data cannot be used
// for training as it is.
std::vector<Draft> draft_for_images(const DraftRequest& request);   // a folder of class folders, or of splits of them
std::vector<Draft> draft_for_sounds(const DraftRequest& request);   // the same for WAV files
std::vector<Draft> draft_for_volumes(const DraftRequest& request);  // the same for NIfTI files
std::vector<Draft> draft_for_masks(const DraftRequest& request);    // a folder of images and one of their masks
std::vector<Draft> draft_for_pairs(const DraftRequest& request);    // two folders of images, or a table of pairs
std::vector<Draft> draft_for_table(const DraftRequest& request);    // a .csv or .tsv file, or a folder with train.csv
std::vector<Draft> draft_for_arrays(const DraftRequest& request);   // a folder of IDX or .npy files, or an .npz file
std::vector<Draft> draft_for_text(const DraftRequest& request);     // a file or folder of text or lines of JSON

// Whether a folder holds the data that the functions above read.
bool holds_images(const std::string& folder);
bool holds_masks(const std::string& folder);
bool holds_pairs(const DraftRequest& request);
bool holds_sounds(const std::string& folder);
bool holds_volumes(const std::string& folder);
bool holds_table(const std::string& folder);
bool holds_arrays(const std::string& folder);
bool holds_text(const std::string& folder);
// Whether a file's name is that of text or lines of JSON.
bool is_text_file(const std::string& path);

// Throws Error{config} if the request says what whole numbers mean, which only arrays and tables need. `reason` tells
// what the targets of this kind of data are.
void refuse_targets(const DraftRequest& request, const std::string& reason);

// The usual names of the splits of a data set.
const std::vector<std::string>& training_names();    // "train", "training"
const std::vector<std::string>& validation_names();  // "validation", "val", ...

// A path relative to the config's folder (or absolute, if it is given so), and any text, as YAML scalars.
std::string path_text(const DraftRequest& request, const std::string& path);
std::string scalar_text(const std::string& text);

// A text without line breaks and other control characters, for a comment.
std::string in_comment(const std::string& text);

// The info of the data that is opened with this `data` section of the request's config. `values`: targets are values.
// Throws the errors of Data().
DataInfo info_of(const DraftRequest& request, const std::string& data_section, bool values);

// Opens the data of a whole config, and returns its info. Throws the errors of Data().
DataInfo info_of_config(const DraftRequest& request, const std::string& text);

// Throws Error{data} if the data at the path has fewer than two classes.
void require_two_classes(const DataInfo& data, const std::string& path);

// Throws Error{data} if values of targets, whose largest absolute value is given, are so large that the squares of
// errors overflow. `what` names the targets.
void refuse_large_targets(const std::string& path, const std::string& what, double largest);

// "12,345 samples for training, 2,345 held out".
std::string samples_text(const DataInfo& data);
// Lists the first words: "cat, dog, ...".
std::string list_text(const std::vector<std::string>& words);

// The batch size and the number of epochs that suit `samples` training samples.
std::int64_t suitable_batch(std::int64_t samples);
std::int64_t suitable_epochs(std::int64_t samples);

// The first lines of a config: a comment on its content and use, its name and its seed.
std::string head_text(const std::string& file, const std::string& what);
// The `model` section of a small convolutional network that classifies images or spectrograms.
std::string small_network_text(std::int64_t classes);
// The `train` section; `more`: further lines of it, and the sections after it.
std::string train_text(const std::string& loss, const std::string& metrics, std::int64_t batch, std::int64_t epochs,
                       double learning_rate, const std::string& more = "");

}  // namespace trainctl
