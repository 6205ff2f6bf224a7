// Translates the transforms of images into preprocessor_config.json.
#include "run/export/image_processor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "run/export/formats.h"
#include "run/export/network.h"

namespace trainctl {
namespace {

// The value of each channel; a list of one element is that of all channels.
std::vector<double> of_channels(const std::vector<float>& values, std::int64_t channels) {
  const auto count = static_cast<std::size_t>(channels);
  return values.size() == 1 ? std::vector<double>(count, values[0]) : std::vector<double>(values.begin(), values.end());
}

// The scales are float32: 6 digits of them are those that the user wrote.
double short_number(double value) { return std::stod(format("{:.6g}", value)); }

// The input of the run's network before `transform`; no value if ViTImageProcessor has none of its steps.
std::optional<StoredInput> images_of(const ExportedRun& run) {
  try {
    return only_stored_input(run.spec, run.checkpoint.manifest.metadata);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    return std::nullopt;
  }
}

// Why a ViTImageProcessor cannot do what the input does; "" if it can.
std::string why_not(const std::optional<StoredInput>& stored) {
  if (!stored) return "the checkpoint does not record how images are read, or `transform` computes spectrograms";
  if (stored->dtype != DType::uint8) return "the run's samples are arrays of values and not images";
  const bool resizes = stored->any_size && stored->steps.size() == 1;
  if (!resizes && !stored->steps.empty()) {
    return "`transform` crops images or resizes their shorter side, and a ViTImageProcessor only resizes to [height, "
           "width]";
  }
  const std::vector<float>& scale = stored->input.format.scale;
  if (std::any_of(scale.begin(), scale.end(), [](float value) { return !(value > 0); })) {
    return "`transform` multiplies values by a number that is not positive";
  }
  return "";
}

// Adds the numbers of y = scale * x + offset as (x * rescale_factor - image_mean) / image_std.
void add_scaling(const SampleFormat& format, std::int64_t channels, Json& file) {
  const std::vector<double> scale = of_channels(format.scale, channels), offset = of_channels(format.offset, channels);
  const auto is = [](const std::vector<double>& values, double wanted) {
    return std::all_of(values.begin(), values.end(), [wanted](double value) { return value == wanted; });
  };
  const bool shifts = !is(offset, 0) || !is(scale, scale[0]);
  const double factor = shifts ? 1.0 / 255 : scale[0] == static_cast<float>(1.0 / 255) ? 1.0 / 255 : scale[0];
  file["do_rescale"] = factor != 1;
  file["rescale_factor"] = factor;
  file["do_normalize"] = shifts;
  file["image_mean"] = std::vector<double>(static_cast<std::size_t>(channels), 0);
  file["image_std"] = std::vector<double>(static_cast<std::size_t>(channels), 1);
  for (std::size_t i = 0; shifts && i < scale.size(); ++i) {
    file["image_mean"][i] = short_number(0 - offset[i] / scale[i] * factor);
    file["image_std"][i] = short_number(factor / scale[i]);
  }
}

}  // namespace

void write_image_processor(const ExportedRun& run, std::int64_t channels, const std::string& folder) {
  const std::optional<StoredInput> stored = images_of(run);
  if (const std::string why = why_not(stored); !why.empty()) {
    return log::warning(format("no {} is written: {}. Bring images into the network's form before transformers' model",
                               image_processor_file, why));
  }
  constexpr int bilinear = 2;  // Pillow's number
  const Shape& image = stored->input.sample;
  Json file{{"image_processor_type", "ViTImageProcessor"},
            {"do_resize", !stored->steps.empty()},
            {"size", {{"height", image[0]}, {"width", image[1]}}},
            {"resample", bilinear},
            {"do_convert_rgb", channels == 3}};
  add_scaling(stored->input.format, channels, file);
  write_file(folder + "/" + image_processor_file, json_text(file, 2) + "\n");
}

}  // namespace trainctl
