// CRC-32C (Castagnoli), the checksum of TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainctl {

std::uint32_t crc32c(const void* data, std::size_t bytes);

}  // namespace trainctl
