// Images in one folder for each class, as Keras' image_dataset_from_directory and torchvision's ImageFolder read them.
#pragma once

#include <memory>
#include <string>

#include "io/datasets/dataset.h"

namespace trainctl {

// Classes are the folders in bytewise order of their names, or those of the training part; files with the endings .jpg,
// .jpeg and .png, in any case, are its samples, in bytewise order too. Images are decoded to three channels, or to one
// where the config states a shape of one. Throws Error{data}: no such folder, no class folders, a class without images,
// a class that the training part lacks.
std::shared_ptr<const Dataset> image_folder_dataset(const std::string& path, const StatedFacts& stated);

}  // namespace trainctl
