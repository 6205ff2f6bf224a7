// Implements copies and fills of the emulated runtime.
#include <cstring>

#include "test/emulated_gpu/streams.h"

using namespace emulated;

namespace {

// Rows of `width` bytes, `from_pitch` and `to_pitch` bytes apart.
struct Rows {
  void* to;
  std::size_t to_pitch;
  const void* from;
  std::size_t from_pitch, width, height;

  static std::size_t span(std::size_t pitch, std::size_t width, std::size_t height) {
    return height == 0 ? 0 : pitch * (height - 1) + width;
  }
  std::size_t to_bytes() const { return span(to_pitch, width, height); }
  std::size_t from_bytes() const { return span(from_pitch, width, height); }
  void copy() const {
    for (std::size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<std::byte*>(to) + row * to_pitch, static_cast<const std::byte*>(from) + row * from_pitch,
                  width);
    }
  }
};

bool agrees(cudaMemcpyKind kind, MemoryKind to, MemoryKind from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to != MemoryKind::device && from != MemoryKind::device;
    case cudaMemcpyHostToDevice:
      return to != MemoryKind::pageable && from != MemoryKind::device;
    case cudaMemcpyDeviceToHost:
      return to != MemoryKind::device && from != MemoryKind::pageable;
    case cudaMemcpyDeviceToDevice:
      return to != MemoryKind::pageable && from != MemoryKind::pageable;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

bool usable(const void* memory, std::size_t bytes) {
  return memory_kind(memory) == MemoryKind::pageable || device_may_use(memory, bytes);
}

// Pinned memory is read and written when the stream runs the copy. Pageable memory is read at once; a copy that writes
// pageable memory, or stays on the host, is done when the call returns.
cudaError_t copy(Rows rows, cudaMemcpyKind kind, cudaStream_t stream) {
  if (rows.width > rows.to_pitch || rows.width > rows.from_pitch) return cudaErrorInvalidPitchValue;
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  const MemoryKind to = memory_kind(rows.to), from = memory_kind(rows.from);
  if (!agrees(kind, to, from) || !usable(rows.to, rows.to_bytes()) || !usable(rows.from, rows.from_bytes())) {
    return cudaErrorInvalidValue;
  }
  const auto queue = queue_of(stream);
  if (queue == nullptr) return cudaErrorInvalidResourceHandle;
  const bool pageable = to == MemoryKind::pageable || from == MemoryKind::pageable;
  if (pageable && queue->capture != nullptr) return invalidate(*queue->capture, cudaErrorStreamCaptureUnsupported);
  if (from == MemoryKind::pageable && to == MemoryKind::device) {
    auto staged = std::make_shared<std::vector<std::byte>>(rows.width * rows.height);
    Rows now = rows;
    now.to = staged->data();
    now.to_pitch = rows.width;
    now.copy();
    rows.from = staged->data();
    rows.from_pitch = rows.width;
    return queue_on(queue, {Operation::Kind::device, [rows, staged] { rows.copy(); }});
  }
  const cudaError_t status = queue_on(queue, {Operation::Kind::device, [rows] { rows.copy(); }});
  if (status == cudaSuccess &&
      (to == MemoryKind::pageable || (to != MemoryKind::device && from != MemoryKind::device))) {
    run_until({queue, queue->queued});
  }
  return status;
}

cudaError_t fill(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!device_may_use(memory, bytes)) return cudaErrorInvalidValue;
  return queue(stream, {Operation::Kind::device, [=] { std::memset(memory, value, bytes); }});
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] { return copy({to, bytes, from, bytes, bytes, 1}, kind, stream); });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call([&] { return copy({to, to_pitch, from, from_pitch, width, height}, kind, stream); });
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call([&] {
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    const cudaError_t status = copy({to, bytes, from, bytes, bytes, 1}, kind, nullptr);
    // Copies within the device, and copies of staged pageable memory, may run later.
    const bool waits = memory_kind(to) != MemoryKind::device || memory_kind(from) == MemoryKind::pinned;
    if (status == cudaSuccess && waits) run_until({queue_of(nullptr), queue_of(nullptr)->queued});
    return status;
  });
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  return call([&] { return fill(memory, value, bytes, stream); });
}
// This call is asynchronous for device memory.
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  return call([&] {
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    return fill(memory, value, bytes, nullptr);
  });
}
}
