// WebDataset's shards: tar archives in which the files of one sample have one name with different endings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The endings, without their dot and in lower case, of the files that make a sample.
struct WebDatasetFormat {
  std::vector<std::string> image = {"jpg", "jpeg", "png", "webp", "gif", "bmp"};
  std::string label = "cls";
};

// A data set of the samples in the archives that `path` names (shards.h), archive by archive. A sample is what follows
// one another with the same name up to the first dot behind the last slash, as the webdataset library has it: KEY.jpg,
// KEY.cls. Other endings, and files whose names begin with a dot, are passed over, and so are samples that have neither
// an image nor a label. The label is a class number in decimal digits. The headers and labels are read when the data
// set is opened, an image on demand, decoded as image_folder_dataset() does. Throws Error{data} with archive and
// sample: an archive is damaged, an image or a label is missing, twice there or no number.
std::shared_ptr<const Dataset> webdataset(const std::string& path, const WebDatasetFormat& format,
                                          const DeclaredInfo& declared);

}  // namespace trainctl
