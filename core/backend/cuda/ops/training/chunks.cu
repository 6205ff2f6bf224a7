// The chunks of an optimizer's update: ranges of the flat regions, and tiles of parameters with transposed copies.
#include "core/backend/cuda/ops/training/chunks.h"

#include <algorithm>
#include <map>

namespace trainctl::cuda {
namespace {

// The addresses of one parameter's copies.
struct CopyBuffers {
  std::int64_t count = 0;  // elements of the parameter
  std::int64_t columns = 0;
  DType dtype = DType::float32;
  std::byte *copy = nullptr, *transposed = nullptr;
};

// The copies of all parameters, by the parameter's offset.
std::map<std::int64_t, CopyBuffers> buffers_of(const std::vector<UpdateCopy>& copies, const Address* addresses) {
  std::map<std::int64_t, CopyBuffers> buffers;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const UpdateCopy& copy = copies[i];
    require(addresses[i].fixed != nullptr, "a compute copy is not in the region of the copies");
    const bool known = buffers.contains(copy.offset);
    CopyBuffers& at = buffers[copy.offset];
    std::byte*& address = copy.layout.format.empty() ? at.copy : at.transposed;
    require(address == nullptr && (!known || at.dtype == copy.layout.dtype),
            "a parameter has two copies of one format, or copies of different dtypes");
    address = addresses[i].fixed + addresses[i].offset;
    at.count = copy.shape.count();
    at.columns = copy.shape.rank() == 0 ? 1 : copy.shape.back();
    at.dtype = copy.layout.dtype;
  }
  return buffers;
}

// Appends the chunks of [begin, end): a parameter with a copy in the regions' order, or elements without copies.
void cut(std::int64_t begin, std::int64_t end, float decay, const CopyBuffers& copies, std::vector<Chunk>& chunks) {
  for (std::int64_t next = begin; next < end; next += chunk_size) {
    const auto columns = static_cast<int>(std::min<std::int64_t>(chunk_size, end - next));
    std::byte* copy = copies.copy == nullptr ? nullptr : copies.copy + (next - begin) * size_of(copies.dtype);
    chunks.push_back({next, 0, 1, columns, decay, copies.dtype, copy, nullptr, 0});
  }
}

// Appends the tiles of a parameter that begins at `begin` and has a transposed copy.
void cut_tiles(std::int64_t begin, float decay, const CopyBuffers& copies, std::vector<Chunk>& chunks) {
  const std::int64_t rows = copies.count / copies.columns, size = size_of(copies.dtype);
  for (std::int64_t row = 0; row < rows; row += tile_side) {
    for (std::int64_t column = 0; column < copies.columns; column += tile_side) {
      const std::int64_t first = row * copies.columns + column;
      chunks.push_back({begin + first, copies.columns, static_cast<int>(std::min<std::int64_t>(tile_side, rows - row)),
                        static_cast<int>(std::min<std::int64_t>(tile_side, copies.columns - column)), decay,
                        copies.dtype, copies.copy == nullptr ? nullptr : copies.copy + first * size,
                        copies.transposed + (column * rows + row) * size, rows});
    }
  }
}

}  // namespace

std::vector<Chunk> chunks_of(const OptimizerUpdate& update, std::span<const Address> outputs, std::vector<int>& ends) {
  const auto copies = buffers_of(update.copies, outputs.data() + 1 + state_names(update.rule).size());
  std::vector<Chunk> chunks;
  for (const UpdateRange& range : update.ranges) {
    const std::int64_t end = range.offset + range.count;
    const float decay = range.decay ? update.weight_decay : 0.0f;
    std::int64_t next = range.offset;
    for (auto at = copies.lower_bound(next); at != copies.end() && at->first < end; ++at) {
      cut(next, at->first, decay, {}, chunks);
      next = at->first + at->second.count;
      if (at->second.transposed != nullptr) {
        cut_tiles(at->first, decay, at->second, chunks);
      } else {
        cut(at->first, next, decay, at->second, chunks);
      }
    }
    cut(next, end, decay, {}, chunks);
    ends.push_back(static_cast<int>(chunks.size()));
  }
  return chunks;
}

std::vector<ChunkRange> ranges_of_chunks(const OptimizerUpdate& update, const std::vector<int>& ends) {
  std::vector<ChunkRange> ranges;
  int begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const ChunkRange range{begin, ends[i], !update.ranges[i].decay};
    ranges.insert(ranges.end(), static_cast<std::size_t>(range.end - begin), range);
    begin = range.end;
  }
  return ranges;
}

Lowering with_copies(const LowerContext& context, Lowering lowering) {
  const auto& def = context.op.as<OptimizerUpdate>();
  const std::size_t first = 1 + state_names(def.rule).size();
  for (std::size_t i = 0; i < def.copies.size(); ++i) lowering.outputs[first + i] = def.copies[i].layout;
  return lowering;
}

}  // namespace trainctl::cuda
