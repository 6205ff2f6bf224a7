// Reads the binary files of CIFAR-10 and CIFAR-100: records of label bytes and 3072 pixel bytes, one plane of 32x32 for
// each of red, green and blue.
#pragma once

#include <memory>
#include <string>

#include "core/spec/type_info.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// The data set of the files; for CIFAR-100 also the label that is the class, since a sample has two labels.
enum class CifarVariant { cifar10, cifar100, cifar100_coarse };

template <>
struct EnumNames<CifarVariant> {
  static constexpr EnumName<CifarVariant> names[] = {{CifarVariant::cifar10, "cifar10"},
                                                     {CifarVariant::cifar100, "cifar100"},
                                                     {CifarVariant::cifar100_coarse, "cifar100_coarse"}};
};

// Makes a data set of the files in a folder, or in the folder of the distributed archive below it. CIFAR-10's training
// files are data_batch_1.bin to data_batch_5.bin, its test file is test_batch.bin; CIFAR-100's are train.bin and
// test.bin. Samples are uint8 [32, 32, 3]; class names come from batches.meta.txt, fine_label_names.txt or
// coarse_label_names.txt if that file exists. Throws Error{data} if a file is missing or does not consist of whole
// records, a label is too large, or the number of names is not the number of classes.
std::shared_ptr<const Dataset> cifar_dataset(const std::string& folder, CifarVariant variant, bool training,
                                             const DeclaredInfo& declared);

}  // namespace trainctl
