// Hides the differences between oneDNN's versions 2 (with operation descriptors) and 3 (without them).
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace trainctl::cpu::onednn {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;

// The version of the library that is loaded, such as "2.6.3".
inline std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

// The parameters of a convolution, without its tensors.
struct ConvolutionShape {
  Dims strides, dilates, padding_before, padding_after;  // dilates: 0 means no dilation
};

// The memory layout of a descriptor's elements; blocked is false for opaque formats.
struct Blocking {
  bool blocked = false;
  Dims strides, padded, inner_blocks, inner_indices;
};

// In the following functions an empty descriptor of the bias means that there is no bias. The functions for
// convolutions return all implementations; `forward`, the hint that backward convolutions need, is used only during the
// call.
#if DNNL_VERSION_MAJOR >= 3

// Returns all implementations that oneDNN offers, its preferred one first. next_impl() changes the object that all
// copies of `first` refer to, so each implementation is cloned.
template <class Desc>
std::vector<Desc> all(Desc first) {
  std::vector<Desc> list;
  do {
    dnnl_primitive_desc_t clone = nullptr;
    dnnl::error::wrap_c_api(dnnl_primitive_desc_clone(&clone, first.get()), "oneDNN cannot copy a primitive");
    list.emplace_back(clone);
  } while (first.next_impl());
  return list;
}

inline void append_eltwise(dnnl::post_ops& ops, algorithm kind, float alpha, float beta) {
  ops.append_eltwise(kind, alpha, beta);
}

inline Blocking blocking(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return {};
  return {true, desc.get_strides(), desc.get_padded_dims(), desc.get_inner_blks(), desc.get_inner_idxs()};
}

inline Dims dims(const memory::desc& desc) { return desc.get_dims(); }
inline memory::data_type data_type(const memory::desc& desc) { return desc.get_data_type(); }

inline dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const memory::desc& a, const memory::desc& b,
                                           const memory::desc& bias, const memory::desc& c,
                                           const dnnl::primitive_attr& attributes) {
  if (bias.get_size() == 0) return {engine, a, b, c, attributes};
  return {engine, a, b, bias, c, attributes};
}

inline std::vector<dnnl::convolution_forward::primitive_desc> convolution(
    const dnnl::engine& engine, const ConvolutionShape& s, const memory::desc& x, const memory::desc& weights,
    const memory::desc& bias, const memory::desc& y, const dnnl::primitive_attr& attributes) {
  using Desc = dnnl::convolution_forward::primitive_desc;
  const auto kind = algorithm::convolution_direct;
  const auto use = prop_kind::forward_training;
  if (bias.get_size() == 0) {
    return all(
        Desc(engine, use, kind, x, weights, y, s.strides, s.dilates, s.padding_before, s.padding_after, attributes));
  }
  return all(Desc(engine, use, kind, x, weights, bias, y, s.strides, s.dilates, s.padding_before, s.padding_after,
                  attributes));
}

inline std::vector<dnnl::convolution_backward_data::primitive_desc> convolution_data(
    const dnnl::engine& engine, const ConvolutionShape& s, const memory::desc& dx, const memory::desc& weights,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& forward,
    const dnnl::primitive_attr& attributes) {
  return all(dnnl::convolution_backward_data::primitive_desc(engine, algorithm::convolution_direct, dx, weights, dy,
                                                             s.strides, s.dilates, s.padding_before, s.padding_after,
                                                             forward, attributes));
}

inline std::vector<dnnl::convolution_backward_weights::primitive_desc> convolution_weights(
    const dnnl::engine& engine, const ConvolutionShape& s, const memory::desc& x, const memory::desc& dweights,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& forward,
    const dnnl::primitive_attr& attributes) {
  return all(dnnl::convolution_backward_weights::primitive_desc(engine, algorithm::convolution_direct, x, dweights, dy,
                                                                s.strides, s.dilates, s.padding_before, s.padding_after,
                                                                forward, attributes));
}

#else

// Returns all implementations that oneDNN offers, its preferred one first. The objects from which `first` was made must
// still exist, since the library keeps pointers to them.
template <class Desc>
std::vector<Desc> all(Desc first) {
  std::vector<Desc> list{first};
  while (first.next_impl()) list.push_back(first);
  return list;
}

inline void append_eltwise(dnnl::post_ops& ops, algorithm kind, float alpha, float beta) {
  ops.append_eltwise(1.0f, kind, alpha, beta);
}

inline Blocking blocking(const memory::desc& desc) {
  const dnnl_memory_desc_t& d = desc.data;
  if (d.format_kind != dnnl_blocked) return {};
  const dnnl_blocking_desc_t& b = d.format_desc.blocking;
  return {true, Dims(b.strides, b.strides + d.ndims), Dims(d.padded_dims, d.padded_dims + d.ndims),
          Dims(b.inner_blks, b.inner_blks + b.inner_nblks), Dims(b.inner_idxs, b.inner_idxs + b.inner_nblks)};
}

inline Dims dims(const memory::desc& desc) { return desc.dims(); }
inline memory::data_type data_type(const memory::desc& desc) { return desc.data_type(); }

inline dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const memory::desc& a, const memory::desc& b,
                                           const memory::desc& bias, const memory::desc& c,
                                           const dnnl::primitive_attr& attributes) {
  if (bias.get_size() == 0) return {dnnl::matmul::desc(a, b, c), attributes, engine};
  return {dnnl::matmul::desc(a, b, bias, c), attributes, engine};
}

inline std::vector<dnnl::convolution_forward::primitive_desc> convolution(
    const dnnl::engine& engine, const ConvolutionShape& s, const memory::desc& x, const memory::desc& weights,
    const memory::desc& bias, const memory::desc& y, const dnnl::primitive_attr& attributes) {
  using Desc = dnnl::convolution_forward;
  const auto kind = algorithm::convolution_direct;
  const auto use = prop_kind::forward_training;
  const Desc::desc operation =
      bias.get_size() == 0
          ? Desc::desc(use, kind, x, weights, y, s.strides, s.dilates, s.padding_before, s.padding_after)
          : Desc::desc(use, kind, x, weights, bias, y, s.strides, s.dilates, s.padding_before, s.padding_after);
  return all(Desc::primitive_desc(operation, attributes, engine));
}

inline std::vector<dnnl::convolution_backward_data::primitive_desc> convolution_data(
    const dnnl::engine& engine, const ConvolutionShape& s, const memory::desc& dx, const memory::desc& weights,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& forward,
    const dnnl::primitive_attr& attributes) {
  const dnnl::convolution_backward_data::desc operation(algorithm::convolution_direct, dx, weights, dy, s.strides,
                                                        s.dilates, s.padding_before, s.padding_after);
  return all(dnnl::convolution_backward_data::primitive_desc(operation, attributes, engine, forward));
}

inline std::vector<dnnl::convolution_backward_weights::primitive_desc> convolution_weights(
    const dnnl::engine& engine, const ConvolutionShape& s, const memory::desc& x, const memory::desc& dweights,
    const memory::desc& dy, const dnnl::convolution_forward::primitive_desc& forward,
    const dnnl::primitive_attr& attributes) {
  const dnnl::convolution_backward_weights::desc operation(algorithm::convolution_direct, x, dweights, dy, s.strides,
                                                           s.dilates, s.padding_before, s.padding_after);
  return all(dnnl::convolution_backward_weights::primitive_desc(operation, attributes, engine, forward));
}

#endif

}  // namespace trainctl::cpu::onednn
