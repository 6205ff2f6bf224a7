// The data set of WAV files with a class each, like Keras' audio_dataset_from_directory.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/audio/audio_files.h"
#include "io/datasets/audio/resampling.h"
#include "io/datasets/audio/wav.h"
#include "io/datasets/labelled_dataset.h"

namespace trainctl {
namespace {

// The largest sample, and the largest part of a file that a sample is made of, in bytes.
constexpr std::int64_t largest_sound = std::int64_t{1} << 30;

// The options that decide what is read, and as what.
struct AudioReading {
  static constexpr const char* dataset = "audio_classification";
  std::string audio_column = "audio", class_column = "label";
  std::optional<std::int64_t> sampling_rate, output_sequence_length;
};

class AudioClassification final : public LabelledDataset {
 public:
  AudioClassification(const std::vector<std::string>& paths, const AudioReading& reading, const DeclaredInfo& declared,
                      bool predicts)
      : LabelledDataset(paths,
                        {list_sounds,
                         {reading.audio_column, "audio_column"},
                         {reading.class_column, "class_column"},
                         !predicts && !declared.targets_may_miss(),
                         predicts},
                        declared) {
    if (!predicts && !declared.targets_may_miss()) number_labels(paths[0], declared);
    choose_shape(paths[0], reading, declared.training);
    std::string described = format("{} {}\n", to_string(info_.sample), info_.sampling_rate);
    for (const std::int32_t label : labels_) described += format("{} ", label);
    set_fingerprint("sounds", described);
  }

  void read(std::int64_t index, Sample& sample) const override {
    with_remedy(skip_unreadable_, "repair or remove it, or set `on_error: skip`", [&] {
      const InputFile opened(file(index).path);
      const WavFormat wav = read_wav_format(opened);
      check_alike(opened.path(), wav);
      read_values(opened, wav, sample);
    });
  }

 private:
  // Sets the sampling rate and the shape of a sample. The headers of all files are read only if the longest one
  // decides.
  void choose_shape(const std::string& path, const AudioReading& reading, const DatasetInfo* training) {
    resamples_ = reading.sampling_rate.has_value();
    info_.sampling_rate = reading.sampling_rate.value_or(training ? training->sampling_rate : 0);
    std::optional<std::int64_t> length = reading.output_sequence_length;
    if (!length && training) length = training->sample[0];
    std::int64_t longest = 0;
    std::string problem;
    for (std::int64_t i = 0; i < size() && (!length || model_.empty()); ++i) {
      try {
        const InputFile opened(file(i).path);
        const WavFormat wav = read_wav_format(opened);
        if (model_.empty()) {
          model_ = training ? "the training split" : opened.path();
          channels_ = training ? training->sample[1] : wav.channels;
          if (info_.sampling_rate == 0) info_.sampling_rate = wav.sampling_rate;
        }
        check_alike(opened.path(), wav);
        longest = std::max(longest, Resampling(wav.sampling_rate, info_.sampling_rate).length_after(wav.length));
      } catch (const Error& error) {
        if (!skip_unreadable_ || error.kind() != ErrorKind::data) throw;
        if (problem.empty()) problem = error.what();
      }
    }
    if (model_.empty()) {
      data_error(path, format("none of its {} WAV files can be read; the first: {}", files_.size(), problem));
    }
    info_.sample = {length.value_or(longest), channels_};
    if (checked_multiply(info_.sample.count(), sizeof(float)) > largest_sound) {
      data_error(path, format("has samples of {} values, which are more than is supported", to_string(info_.sample)),
                 "set `output_sequence_length`");
    }
  }

  void check_alike(const std::string& path, const WavFormat& wav) const {
    if (wav.channels != channels_) {
      data_error(path,
                 format("has {}, but {} are expected, as in {}", counted(wav.channels, "channel"), channels_, model_),
                 format("convert it: ffmpeg -i IN -ac {} OUT.wav", channels_));
    }
    if (!resamples_ && wav.sampling_rate != info_.sampling_rate) {
      data_error(path,
                 format("has {} values per second, but {} are expected, as in {}", wav.sampling_rate,
                        info_.sampling_rate, model_),
                 format("set `sampling_rate: {}`, and all files are converted to it", info_.sampling_rate));
    }
  }

  // Reads the beginning of a file, converted to the sampling rate, with zeros after it.
  void read_values(const InputFile& opened, const WavFormat& wav, Sample& sample) const {
    const Resampling resampling(wav.sampling_rate, info_.sampling_rate);
    const std::int64_t length = std::min(info_.sample[0], resampling.length_after(wav.length));
    const std::int64_t needed = std::min(wav.length, resampling.length_before(length));
    if (needed * channels_ * wav.value_bytes > largest_sound) {
      data_error(opened.path(), format("a sample needs {} of its values, which are more than is supported", needed),
                 "set a smaller `output_sequence_length`");
    }
    const std::int64_t count = info_.sample.count();
    sample.buffer.resize(static_cast<std::size_t>(count) * sizeof(float));
    auto* values = reinterpret_cast<float*>(sample.buffer.data());
    if (wav.sampling_rate == info_.sampling_rate) {
      read_wav_values(opened, wav, length, sample.scratch, values);
    } else {
      std::vector<float> stored(static_cast<std::size_t>(needed * channels_));
      read_wav_values(opened, wav, needed, sample.scratch, stored.data());
      resampling.apply(stored.data(), needed, channels_, values, length);
    }
    std::fill(values + length * channels_, values + count, 0.0f);
    sample.shape = info_.sample;
    sample.dtype = DType::float32;
    sample.values = values;
  }

  std::string model_;  // whose rate and channels all files must have, for messages
  std::int64_t channels_ = 0;
  bool resamples_ = false;
};

using AudioClassificationOptions = LabelledOptions<AudioClassification, AudioReading>;

}  // namespace

Section audio_classification_choice() {
  return Keys<AudioClassificationOptions>(
             "audio_classification",
             "WAV files with a class each, like Keras' audio_dataset_from_directory. A sample has the shape [values, "
             "channels]; whole numbers are scaled to [-1, 1). PCM of 8, 16, 24 and 32 bits and floating-point numbers "
             "of "
             "32 and 64 bits are read. All files need the same number of channels.")
      .key("path", &AudioClassificationOptions::path,
           "A folder that holds a folder of WAV files for each class, or a .csv file with a column of WAV files, "
           "relative to its folder, and a column of classes. A list of these is one data set.")
      .key("audio_column", &AudioClassificationOptions::audio_column, "The column of the WAV files in a .csv file.")
      .key("class_column", &AudioClassificationOptions::class_column,
           "The column of the class in a .csv file: a number from 0, or a name. Names are numbered in bytewise order.")
      .key("sampling_rate", &AudioClassificationOptions::sampling_rate,
           "Values per second to which all files are converted. Without it, all files need the same rate.",
           between(1, static_cast<double>(largest_sampling_rate)))
      .key("output_sequence_length", &AudioClassificationOptions::output_sequence_length,
           "Values of a channel in a sample, at `sampling_rate`: longer files are cut, and zeros are appended to "
           "shorter "
           "ones. Default: the length of the longest file of the training split.",
           between(1, 1 << 28));
}

}  // namespace trainctl
