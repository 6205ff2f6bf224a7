// Predictions that are pictures, as PNG files in a folder: the class numbers of pixels, or images of values.
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
  // Of the outputs that are pictures; `outputs` must outlive it. `names` are those of the samples, whatever they end
  // in. Images of values turn into bytes as `scaling` has turned bytes into values or, without, so that 0 to 1 become 0
  // to 255. Throws Error{config} where no output is a picture, or two samples would become one file.
  PictureWriter(std::string folder, const OutputMeanings& outputs, std::vector<std::string> names,
                std::optional<Affine> scaling);

  // Writes FOLDER/NAME.png or, of a network of several outputs, FOLDER/OUTPUT/NAME.png.
  void write(std::int64_t sample, const Answers& answers) const;

 private:
  std::string folder_;
  const OutputMeanings& outputs_;
  std::vector<std::string> names_;  // of the samples: "a/1.png"
  std::optional<Affine> scaling_;
};

}  // namespace trainctl
