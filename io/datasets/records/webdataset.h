// Reads WebDataset's shards: tar archives in which the files of a sample have the same name with different endings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The endings of the files of a sample, without their dot and in lower case.
struct WebDatasetFormat {
  std::vector<std::string> image = {"jpg", "jpeg", "png", "webp", "gif", "bmp"};
  std::string label = "cls";
};

// Makes a data set of the samples in the archives that `path` names (shards.h), archive by archive. As in the
// webdataset library, a sample consists of consecutive files whose names are the same up to the first dot after the
// last slash: KEY.jpg, KEY.cls. Files with other endings, files whose names begin with a dot, and samples that have
// neither an image nor a label are skipped. The label is a class number in decimal digits. The headers and labels are
// read when the data set is opened; an image is read on demand and decoded like those of image_folder_dataset(). Throws
// Error{data} with the archive and the sample if an archive is damaged, an image or a label is missing or occurs twice,
// or a label is not a number.
std::shared_ptr<const Dataset> webdataset(const std::string& path, const WebDatasetFormat& format,
                                          const DeclaredInfo& declared);

}  // namespace trainctl
