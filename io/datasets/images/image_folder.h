// Reads images in one folder for each class, like Keras' image_dataset_from_directory and torchvision's ImageFolder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// Makes a data set of the images in these folders. Its classes are those of the training split or, for the training
// split itself, the subfolders in bytewise order of their names; subfolders of the same name are one class. Its samples
// are the images that list_images() finds, class by class and in bytewise order. Images are decoded to three channels,
// or to one if the shape in the config has one channel. If the target is the input, a folder without subfolders holds
// images without classes. Throws Error{data} if a folder is missing, has no class folders, has a class without images,
// or has a class that is missing in the training split.
std::shared_ptr<const Dataset> image_folder_dataset(const std::vector<std::string>& paths,
                                                    const DeclaredInfo& declared);

}  // namespace trainctl
