// Describes how a run reads its images, for transformers.
#pragma once

#include <cstdint>
#include <string>

namespace trainctl {

struct ExportedRun;

inline constexpr const char* image_processor_file = "preprocessor_config.json";

// Writes the file from which transformers makes a ViTImageProcessor that resizes, rescales and normalizes images as the
// run's `transform` does. If it has a step that such a processor lacks, or its samples are no images, writes nothing
// and logs a warning that says so. Images have `channels` channels.
void write_image_processor(const ExportedRun& run, std::int64_t channels, const std::string& folder);

}  // namespace trainctl
