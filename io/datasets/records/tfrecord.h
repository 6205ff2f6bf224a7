// TFRecord files of tf.train.Example records.
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
  std::optional<std::string> image;  // of the image; absent: image/encoded, image or image_raw, as the first record has
  std::optional<std::string> label;  // of the target; absent: image/class/label, label or y, likewise
  std::optional<std::string> weight;  // of the sample's weight; absent, or lacking in another split than training: 1
  std::vector<std::string> features;  // of numbers, which together are the sample instead of an image
  std::optional<std::array<std::int64_t, 3>> raw_shape;  // the image's bytes are its values, of this shape
};

// A data set of the records in the files that `path` names (shards.h), file by file. The files are passed once when it
// is opened, for the places of records and for their labels; a sample is read on demand, and its check sum compared.
// Samples are images, uint8 [height, width, channels] as image_folder_dataset() decodes them or as they are stored;
// or float32 [values], the features one behind the other, which every record must have in the same number (int32 where
// samples are tokens). A target of whole numbers or floats, and weights, are what array_targets() makes of them. Throws
// Error{data} with file and number of the record, from 0: a record is damaged, cut off, or lacks a feature. With
// declared.skip_unreadable records without a readable target are left out, with a warning; damage to a record's length
// is an error always, since later records cannot be found.
std::shared_ptr<const Dataset> tfrecord_dataset(const std::string& path, const TfRecordFormat& format,
                                                const DeclaredInfo& declared);

}  // namespace trainctl
