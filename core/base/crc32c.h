// CRC-32C (Castagnoli), the checksum of TFRecord files and of TensorBoard.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainctl {

std::uint32_t crc32c(const void* data, std::size_t bytes);

// The checksum in the form in which these files store it: rotated, with a constant added. The plain checksum is avoided
// because the data may itself contain checksums.
std::uint32_t masked_crc32c(const void* data, std::size_t bytes);

}  // namespace trainctl
