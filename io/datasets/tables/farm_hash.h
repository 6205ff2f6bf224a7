// FarmHash64, by which TensorFlow and Keras assign words to bins.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainctl {

// The fingerprint of a text by FarmHash (farmhashna::Hash64), equal on all machines.
std::uint64_t farm_hash(std::string_view text);

// TensorFlow's fingerprint of two fingerprints, in this order.
std::uint64_t combined_hash(std::uint64_t first, std::uint64_t second);

// The bin of a word, from 0 to `bins` - 1: tf.strings.to_hash_bucket_fast, and Keras' Hashing without salt.
std::int64_t hash_bin(std::string_view word, std::int64_t bins);

}  // namespace trainctl
