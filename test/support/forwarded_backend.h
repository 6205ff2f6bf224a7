// A backend for tests that forwards all calls to another backend.
#pragma once

#include <memory>
#include <utility>

#include "core/backend/backend.h"

namespace trainctl {

// A backend that forwards all calls to another one; tests derive from it and override some of them.
class ForwardedBackend : public Backend {
 public:
  explicit ForwardedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  bool on_host() const override { return inner_->on_host(); }
  std::string fingerprint() const override { return inner_->fingerprint(); }
  bool computes_in(DType dtype) const override { return inner_->computes_in(dtype); }
  Peaks peaks() override { return inner_->peaks(); }
  Memory allocate(std::int64_t bytes) override { return inner_->allocate(bytes); }
  std::int64_t free_memory() const override { return inner_->free_memory(); }
  Memory allocate_host(std::int64_t bytes) override { return inner_->allocate_host(bytes); }
  void copy(void* to, const void* from, std::int64_t bytes, Stream& stream) override {
    inner_->copy(to, from, bytes, stream);
  }
  void copy_rows(void* to, std::int64_t to_stride, const void* from, std::int64_t from_stride, std::int64_t width,
                 std::int64_t rows, Stream& stream) override {
    inner_->copy_rows(to, to_stride, from, from_stride, width, rows, stream);
  }
  void copy_all(std::span<const CopyRange> parts, Stream& stream) override { inner_->copy_all(parts, stream); }
  std::unique_ptr<Stream> compute_stream() override { return inner_->compute_stream(); }
  std::unique_ptr<Stream> asynchronous_stream() override { return inner_->asynchronous_stream(); }
  std::unique_ptr<Event> event() override { return inner_->event(); }
  int compute_streams() const override { return inner_->compute_streams(); }
  bool asynchronous() const override { return inner_->asynchronous(); }
  std::unique_ptr<Recording> record(Stream& stream, const std::function<void()>& queue) override {
    return inner_->record(stream, queue);
  }
  std::unique_ptr<Marks> marks(int count) override { return inner_->marks(count); }
  void prepare(const Program& program, KernelChoices& choices) override { inner_->prepare(program, choices); }
  Lowering lower(const Op& op, const Program& program, const std::vector<Layout>& inputs,
                 KernelChoices& choices) override {
    return inner_->lower(op, program, inputs, choices);
  }
  bool updates_copies() const override { return inner_->updates_copies(); }
  bool adds_gradients() const override { return inner_->adds_gradients(); }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace trainctl
