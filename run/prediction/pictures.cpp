// Writes predictions as PNG files.
#include "run/prediction/pictures.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/checkpoint/atomic_file.h"
#include "io/datasets/images/image_codec.h"
#include "run/prediction/cells.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

std::string mask_file(const OutputMeaning& meaning, const std::vector<float>& values) {
  std::vector<std::uint8_t> pixels;
  for (const std::size_t k : likeliest_classes(meaning, values)) pixels.push_back(static_cast<std::uint8_t>(k));
  return encode_png(pixels.data(), meaning.positions.with_appended(1));
}

std::string image_file(const OutputMeaning& meaning, const std::vector<float>& values,
                       const std::optional<Affine>& scaling) {
  const Affine bytes = scaling.value_or(Affine{{1.0 / 255}, {0.0}});
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scale = bytes.scale[i % bytes.scale.size()], offset = bytes.offset[i % bytes.offset.size()];
    const double stored = scale == 0 ? 0 : (static_cast<double>(values[i]) - offset) / scale;
    pixels.push_back(static_cast<std::uint8_t>(std::isnan(stored) ? 0 : std::lround(std::clamp(stored, 0.0, 255.0))));
  }
  return encode_png(pixels.data(), meaning.values);
}

bool is_of_pixels(const OutputMeaning& meaning) { return meaning.is_mask() || meaning.is_image(); }

bool fits(const Affine& scaling, const OutputMeaning& image) {
  const auto channels = static_cast<std::size_t>(image.values.back());
  return (scaling.scale.size() == 1 || scaling.scale.size() == channels) &&
         (scaling.offset.size() == 1 || scaling.offset.size() == channels);
}

}  // namespace

PictureWriter::PictureWriter(std::string folder, const OutputMeanings& outputs, std::vector<std::string> names,
                             std::optional<Affine> scaling)
    : folder_(std::move(folder)), outputs_(outputs), names_(std::move(names)), scaling_(std::move(scaling)) {
  if (std::none_of(outputs.begin(), outputs.end(), is_of_pixels)) {
    throw Error(
        ErrorKind::config,
        format("--out {}: a folder is for predictions of pixels, and this network predicts {} values for a sample",
               folder_, to_string(outputs[0].values)),
        "name a file that ends in .csv, .jsonl or .npy");
  }
  std::set<std::string> files;
  for (std::string& name : names_) {
    const std::string given = name;
    name = fs::path(name).replace_extension(".png").string();
    if (files.insert(name).second) continue;
    throw Error(ErrorKind::config,
                format("--out {}: '{}' and another input would both become {}", folder_, given, name),
                "predict them one after the other, each with its own folder");
  }
}

std::string PictureWriter::path_of(const OutputMeaning& meaning, std::int64_t sample) const {
  return (fs::path(folder_) / meaning.output / names_[static_cast<std::size_t>(sample)]).string();
}

void PictureWriter::require_no_input(const std::vector<std::string>& inputs) const {
  using FileNumber = std::pair<dev_t, ino_t>;
  const auto number_of = [](const std::string& path) -> std::optional<FileNumber> {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return std::nullopt;
    return FileNumber(status.st_dev, status.st_ino);
  };
  std::set<FileNumber> read;
  for (const std::string& input : inputs) {
    if (const auto number = number_of(input)) read.insert(*number);
  }
  for (const OutputMeaning& meaning : outputs_) {
    if (!is_of_pixels(meaning)) continue;
    for (std::int64_t i = 0; i < std::ssize(names_); ++i) {
      const auto number = number_of(path_of(meaning, i));
      if (!number || !read.contains(*number)) continue;
      throw Error(ErrorKind::config,
                  format("--out {}: {} is an input and would be overwritten", folder_, path_of(meaning, i)),
                  "give --out another folder");
    }
  }
}

void PictureWriter::write(std::int64_t sample, const Answers& answers) const {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const OutputMeaning& meaning = outputs_[i];
    if (!is_of_pixels(meaning)) continue;
    const std::string path = path_of(meaning, sample);
    create_folders(fs::path(path).parent_path().string());
    const std::optional<Affine>& scaling = scaling_ && fits(*scaling_, meaning) ? scaling_ : std::nullopt;
    write_file(path, meaning.is_mask() ? mask_file(meaning, answers[i]) : image_file(meaning, answers[i], scaling));
  }
}

}  // namespace trainctl
