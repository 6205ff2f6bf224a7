// Primitives of oneDNN as kernels: the engine, the names of its layouts, and calls that do not allocate memory.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/backend/cpu/lower.h"
#include "core/backend/cpu/onednn/onednn.h"
#include "core/graph/ops/elementwise/activations.h"

namespace trainctl::cpu {

// A physical layout of oneDNN, and the strides of the logical, row-major tensor in the order of the same dimensions.
struct Format {
  onednn::memory::desc desc;
  onednn::Dims logical_strides;

  // The logical tensor's descriptor in another dtype.
  onednn::memory::desc logical(DType dtype) const;
};

// oneDNN's name of a dtype.
onednn::memory::data_type dnnl_type(DType dtype);

// oneDNN's engine and stream for a backend, and the physical layouts that the backend's lowerings named.
class OneDnn {
 public:
  const dnnl::engine& engine() const { return engine_; }
  const dnnl::stream& stream() const { return stream_; }

  // A Layout for the format. Its name is "" for the logical layout; other names include every property, so that equal
  // names mean equal layouts.
  Layout layout(const Format& format);
  // The format to which layout() gave this name. Throws Error{internal} if no format has the name.
  const Format& find(const std::string& name) const;

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<std::string, Format> formats_;
};

// A dense row-major descriptor of the shape.
onednn::memory::desc row_major(const Shape& shape, DType dtype);

// Attributes for the primitives of all kernels. The caller provides the scratchpad. With `sum` the result is added to
// the output, then the function is applied.
dnnl::primitive_attr attributes(bool sum = false, ActivationFunction function = {});

// An argument of a primitive: its number (DNNL_ARG_...), its layout and its address.
struct Operand {
  int argument = 0;
  onednn::memory::desc desc;
  Address address;
};

// Appends the scratch memory that a primitive of this descriptor needs, if any.
template <class Desc>
void append_scratch(const Desc& desc, Address address, std::vector<Operand>& operands) {
  const onednn::memory::desc scratch = desc.scratchpad_desc();
  if (scratch.get_size() > 0) operands.push_back({DNNL_ARG_SCRATCHPAD, scratch, address});
}

// A primitive with its arguments. Their addresses are set again only if the base of the slot differs from the last run.
class PrimitiveCall {
 public:
  PrimitiveCall(const OneDnn& dnnl, dnnl::primitive primitive, const std::vector<Operand>& operands);
  void run(const Slot& slot);

 private:
  dnnl::primitive primitive_;
  dnnl_stream_t stream_;
  std::vector<Address> addresses_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  const std::byte* bound_ = nullptr;
  bool bound_once_ = false;
};

// Returns the seconds of the fastest of up to 5 calls: the CPU time of the calling thread if it computes alone,
// otherwise the time that passes. If the first call takes at least twice as long as `best_so_far`, there is no second
// call.
double best_seconds(const std::function<void()>& call, double best_so_far = 1e30);

// Returns the seconds of a primitive on random data, measured by best_seconds().
double measure(const OneDnn& dnnl, const dnnl::primitive& primitive, const std::vector<Operand>& operands,
               double best_so_far = 1e30);

// Memory filled with random values in [-1, 1) of the dtype, float32 or bfloat16.
std::vector<std::byte> random_bytes(std::int64_t bytes, DType dtype);

}  // namespace trainctl::cpu
