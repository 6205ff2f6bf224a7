// Images in one folder for each class, as Keras' image_dataset_from_directory and torchvision's ImageFolder read them.
#pragma once

#include <memory>
#include <string>

#include "io/datasets/dataset.h"

namespace trainctl {

// A data set of images. Its classes are the folders in bytewise order of their names, or the training part's classes;
// its samples are the files with the endings .jpg, .jpeg and .png, in upper or lower case, in bytewise order too.
// Images are decoded to three channels, or to one where the config states a shape with one channel. Throws Error{data}:
// the folder is missing, has no class folders, a class without images, or a class that the training part lacks.
std::shared_ptr<const Dataset> image_folder_dataset(const std::string& path, const StatedFacts& stated);

}  // namespace trainctl
