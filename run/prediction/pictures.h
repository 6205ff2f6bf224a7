// Writes predictions of pixels as PNG files in a folder: their class numbers, or images of values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/loader/images/affine.h"
#include "run/prediction/writer.h"

namespace trainctl {

class PictureWriter {
 public:
  // Writes the outputs that are pictures; `outputs` must outlive the object. `names`: of the samples, with any ending.
  // Values of images become bytes by the inverse of `scaling` or, without it, so that 0 to 1 become 0 to 255. Throws
  // Error{config} if no output is a picture, or if two samples would be written to one file.
  PictureWriter(std::string folder, const OutputMeanings& outputs, std::vector<std::string> names,
                std::optional<Affine> scaling);

  // Throws Error{config} if a file that write() would replace is one of the inputs, by the same path or by a link.
  void require_no_input(const std::vector<std::string>& inputs) const;

  // Writes FOLDER/NAME.png or, for a network of several outputs, FOLDER/OUTPUT/NAME.png.
  void write(std::int64_t sample, const Answers& answers) const;

 private:
  // The path of the picture of an output for a sample.
  std::string path_of(const OutputMeaning& meaning, std::int64_t sample) const;

  std::string folder_;
  const OutputMeanings& outputs_;
  std::vector<std::string> names_;  // names of the samples: "a/1.png"
  std::optional<Affine> scaling_;
};

}  // namespace trainctl
