// CRC-32C (Castagnoli), the checksum of TFRecord files and of TensorBoard.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainctl {

std::uint32_t crc32c(const void* data, std::size_t bytes);

// The checksum as these files store it: rotated and with a constant added, because their data may itself contain
// checksums.
std::uint32_t masked_crc32c(const void* data, std::size_t bytes);

}  // namespace trainctl
