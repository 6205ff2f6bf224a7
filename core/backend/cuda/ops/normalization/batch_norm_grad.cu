// The gradient of batch normalisation with residual and ReLU fused.
#include "core/backend/cuda/choice/candidates.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/normalization/batch_norm_gradient.h"

namespace trainctl::cuda {
namespace {

// A candidate in which each thread processes `width` channels, with the mask from the source `mask`.
template <class T, int width, ReluMask mask>
Candidate gradient_candidate(const LowerContext& context) {
  const auto& def = context.op.as<BatchNormGrad>();
  constexpr ReluMask mask_of_dx = mask == ReluMask::x ? ReluMask::x : ReluMask::none;  // dresidual already holds dy f'
  constexpr int sums_width = mask == ReluMask::bits ? bits_of_byte : width;
  const Grids grids = Grids::of<T>(context.input(0).shape, context.device, sums_width, width);
  Candidate candidate;
  candidate.implementation = "own, " + name_of_width(width);
  candidate.inputs = context.logical().inputs;
  candidate.workspace_bytes = grids.means_bytes() + grids.partials_bytes();
  candidate.run = [=, a = def.a, accumulate = def.accumulate,
                   counters = make_counters(grids.sums.tiles)](const Buffers& p) {
    auto [b, n] = GradientBuffers<T, mask>(a, accumulate, p);
    b.dx = p.out<T>(0);
    auto* means = p.workspace<float2>();
    launch(gradient_sums<T, sums_width, mask, InPlaceGradient>, grids.sums.blocks(), channel_threads, p.stream,
           grids.sums, n, b, InPlaceGradient{}, p.workspace<float2>(grids.means_bytes()), counters.get(), means);
    if (a.residual) b.dy = b.dresidual;
    const auto by_input = [&](auto kernel) {
      launch(kernel, grids.elements.blocks(), channel_threads, p.stream, grids.elements, n, b, InPlaceGradient{},
             means);
    };
    if constexpr (width <= widest_masked) {
      if (a.masked) return by_input(gradient_by_input<T, width, mask_of_dx, InPlaceGradient, true>);
    }
    require(!a.masked, "batch_norm_grad: this number of channels a thread has no kernel for padding masks");
    by_input(gradient_by_input<T, width, mask_of_dx, InPlaceGradient>);
  };
  return candidate;
}

constexpr std::int64_t min_timed_elements = 1 << 20;  // number of elements below which candidates are not worth timing

template <class T, int width>
Candidate gradient_candidate(const LowerContext& context) {
  const BatchNormAttributes a = context.op.as<BatchNormGrad>().a;
  const std::int64_t channels = context.input(1).shape.back();
  if (a.masks_by_x()) return gradient_candidate<T, width, ReluMask::x>(context);
  if constexpr (width > 1) {
    if (a.masks_by_bits(channels)) return gradient_candidate<T, width, ReluMask::bits>(context);
  }
  if constexpr (width < 8) {
    if (a.masks_by_y(channels)) return gradient_candidate<T, width, ReluMask::y>(context);
  }
  return gradient_candidate<T, width, ReluMask::none>(context);
}

}  // namespace

Lowering lower_batch_norm_grad(const LowerContext& context) {
  const std::vector<int> widths = gradient_widths(context.input(1));
  const auto names = [&] {
    std::vector<std::string> names;
    for (int width : widths) names.push_back(name_of_width(width));
    const bool masked = context.op.as<BatchNormGrad>().a.masked;
    if (masked || context.input(1).shape.count() < min_timed_elements) names.resize(1);
    return names;
  };
  const auto make = [&](const std::string& name) -> std::optional<Candidate> {
    for (int width : widths) {
      if (name != name_of_width(width)) continue;
      return with_gradient_width(context.input(1).dtype, width, [&](auto type, auto pack) {
        return gradient_candidate<decltype(type), decltype(pack)::value>(context);
      });
    }
    return {};
  };
  return lower_fastest(context, {names, make});
}

}  // namespace trainctl::cuda
