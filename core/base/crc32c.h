// CRC-32C (Castagnoli), the checksum of TFRecord files and of TensorBoard.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainctl {

// The checksum of `bytes` bytes.
std::uint32_t crc32c(const void* data, std::size_t bytes);

// The masked checksum that these files store: rotated, with a constant added. The checksum is masked because the data
// may itself contain checksums.
std::uint32_t masked_crc32c(const void* data, std::size_t bytes);

}  // namespace trainctl
