// Images in one folder for each class, as Keras' image_dataset_from_directory and torchvision's ImageFolder read them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// A data set of the images in these folders. Its classes are the folders in each of them, those of one name together,
// in bytewise order of their names, or the training split's classes; its samples are the images that
// list_images() finds, class by class and in bytewise order too. Images are decoded to three
// channels, or to one where the config states a shape with one channel. Where the target is the input, a folder without
// folders holds images without classes. Throws Error{data}: a folder is missing, has no class folders, a class without
// images, or a class that the training split lacks.
std::shared_ptr<const Dataset> image_folder_dataset(const std::vector<std::string>& paths,
                                                    const DeclaredInfo& declared);

}  // namespace trainctl
