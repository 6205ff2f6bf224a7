// Reads TFRecord files of tf.train.Example records.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The features of a record that make a sample.
struct TfRecordFormat {
  // The image; absent: the first of image/encoded, image and image_raw that the first record has.
  std::optional<std::string> image;
  // The target; absent: the first of image/class/label, label and y that the first record has.
  std::optional<std::string> label;
  // The sample's weight; absent, or missing in another split than the training split: all weights are 1.
  std::optional<std::string> weight;
  std::vector<std::string> features;  // numbers, which are concatenated to the sample, instead of an image
  // The shape of images whose bytes are their values; absent: they are image files.
  std::optional<std::array<std::int64_t, 3>> raw_shape;
};

// Makes a data set of the records in the files that `path` names (shards.h), file by file. Opening it reads the files
// once to find the records and their labels; a sample is read on demand, and its checksum is verified. Samples are
// images, uint8 [height, width, channels], decoded like those of image_folder_dataset() or as they are stored; or
// float32 [values] (int32 if samples are tokens), the concatenated features, whose number of values is the same in
// every record. Targets of whole numbers or floats, and weights, become a data set of array_targets(). Throws
// Error{data} with the file and the number of the record, from 0, if a record is damaged or truncated, or one of its
// features is missing. With declared.skip_unreadable, records without a readable target are left out with a warning;
// damage to a record's length is always an error, since later records cannot be found.
std::shared_ptr<const Dataset> tfrecord_dataset(const std::string& path, const TfRecordFormat& format,
                                                const DeclaredInfo& declared);

}  // namespace trainctl
