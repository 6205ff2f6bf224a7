// Reads sounds and volumes.
#include <algorithm>
#include <vector>

#include "io/datasets/audio/wav.h"
#include "io/datasets/volumes/nifti.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {

void fuzz_wav(std::string_view bytes) {
  const InputFile file(file_of(bytes, "x.wav"));
  const WavFormat wav = read_wav_format(file);
  const std::int64_t length = std::min<std::int64_t>(wav.length, 1000);
  std::vector<float> values(static_cast<std::size_t>(length * wav.channels));
  std::vector<std::byte> scratch;
  read_wav_values(file, wav, length, scratch, values.data());
}

void fuzz_nifti(std::string_view bytes) {
  const NiftiVolume volume = read_nifti(file_of(bytes, "x.nii"));
  const std::int64_t count = volume.shape().count();
  expect(count == volume.stored.shape.count(), "a volume has another number of values than its file");
  if (count > 1'000'000) return;
  std::vector<float> values(static_cast<std::size_t>(count));
  volume.read(values.data());
}

}  // namespace trainctl::fuzz
