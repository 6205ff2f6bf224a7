// Writes a config for folders of WAV files.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/audio/audio_files.h"
#include "io/datasets/audio/wav.h"
#include "io/datasets/class_folders.h"
#include "run/draft/class_splits.h"
#include "run/draft/draft.h"

namespace trainctl {
namespace {

constexpr std::int64_t longest_seconds = 10;  // longer sounds are cut
constexpr std::int64_t most_frames = 256;
constexpr std::int64_t fewest_values = 64;  // of a sample: zeros follow shorter sounds

bool has_sounds(const std::string& folder) { return !files_below(folder, is_wav_name).empty(); }

// What the headers of the sounds state.
struct SoundLook {
  std::int64_t sampling_rate = 0;  // that of most files
  bool one_rate = true;
  std::int64_t length = 0;  // values of a channel of the longest sound at that rate
};

// Looks at the files that can be read; others are reported when the data is opened.
SoundLook look_at_sounds(const std::string& folder) {
  std::map<std::int64_t, std::int64_t> files, lengths;  // by rate: number of files, the longest file
  const auto list = [](const std::string& of_class) { return files_below(of_class, is_wav_name); };
  for (const std::string& name : files_of_classes(folder, list)) {
    try {
      const WavFormat wav = read_wav_format(InputFile(folder + "/" + name));
      ++files[wav.sampling_rate];
      lengths[wav.sampling_rate] = std::max(lengths[wav.sampling_rate], wav.length);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
    }
  }
  SoundLook look;
  for (const auto& [rate, count] : files) {
    if (look.sampling_rate == 0 || count > files[look.sampling_rate]) look.sampling_rate = rate;
  }
  look.one_rate = files.size() <= 1;
  for (const auto& [rate, length] : lengths) {
    look.length = std::max(look.length, length * look.sampling_rate / std::max<std::int64_t>(rate, 1));
  }
  return look;
}

// The keys that make all samples alike, as far as they are needed. Sets the length to that of a sample.
std::string reading_text(SoundLook& look) {
  std::string text;
  if (!look.one_rate)
    text += format("  sampling_rate: {}          # to which all files are converted\n", look.sampling_rate);
  const std::int64_t longest = std::max(longest_seconds * look.sampling_rate, fewest_values);
  if (look.length < fewest_values) {
    look.length = fewest_values;
    return text +
           format("  output_sequence_length: {}      # zeros follow the sounds, which are shorter\n", look.length);
  }
  if (look.length <= longest) return text;
  look.length = longest;
  return text + format("  output_sequence_length: {} # {} seconds: longer sounds are cut, zeros follow shorter ones\n",
                       look.length, longest_seconds);
}

// A frame has about a sixteenth of a second, and a sample at least four frames, which two poolings halve, and at most
// `most_frames`.
std::string spectrogram_text(const SoundLook& look) {
  const auto floor = [](std::int64_t number) {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(number, 8))));
  };
  const std::int64_t frame = std::min(floor(look.sampling_rate / 15), floor(look.length / 2));
  std::int64_t stride = frame / 4;
  while (look.length / stride > most_frames) stride *= 2;
  const std::int64_t bins = std::clamp<std::int64_t>(frame / 16, 8, 64);
  return format(
      "  transform:                      # always, in this order; `predict` applies them to other sounds\n"
      "    - mel_spectrogram: {{fft_length: {}, sequence_stride: {}, num_mel_bins: {}}}\n"
      "    - normalize: measured         # to mean 0 and deviation 1\n",
      frame, stride, bins);
}

}  // namespace

bool holds_sounds(const std::string& folder) { return has_class_splits(folder, has_sounds); }

std::vector<Draft> draft_for_sounds(const DraftRequest& request) {
  refuse_targets(request, "the classes of sounds are their folders");
  const ClassSplits splits = class_splits(request.path, has_sounds);
  SoundLook look = look_at_sounds(splits.training);
  const std::string data =
      "data:\n  dataset: audio_classification\n" + splits_text(request, splits) + reading_text(look);
  const DataInfo info = info_of(request, data, false);
  require_two_classes(info, splits.training);
  const std::int64_t classes = info.targets[0].classes;
  Draft draft;
  draft.file = request.name + ".yaml";
  draft.summary =
      format("convolutions over spectrograms of sounds, {}, {}", counted(classes, "class"), samples_text(info));
  draft.text =
      head_text(draft.file, format("Sounds of {} ({}): {}.", counted(classes, "class"),
                                   list_text(info.targets[0].class_names), samples_text(info))) +
      data + format("  classes: {}\n", classes) + spectrogram_text(look) + "\n" + small_network_text(classes) +
      train_text("sparse_categorical_crossentropy", "accuracy", suitable_batch(info.training_samples),
                 suitable_epochs(info.training_samples), 1e-3,
                 "  schedule: {name: cosine, warmup: 1 epoch}\n\n"
                 "checkpoint:\n  monitor: val_accuracy           # the metric by which checkpoints/best is chosen\n");
  return {draft};
}

}  // namespace trainctl
