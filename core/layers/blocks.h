// Layers that contain layers: residual and repeat. The inner layers have paths such as `residual/conv2d`,
// `residual/shortcut/conv2d` and `repeat/0/conv2d`.
#pragma once

#include <variant>

#include "core/layers/activations.h"
#include "core/layers/layer.h"
#include "core/layers/table.h"

namespace trainctl {

enum class ShortcutMode { identity };

template <>
struct EnumNames<ShortcutMode> {
  static constexpr EnumName<ShortcutMode> names[] = {{ShortcutMode::identity, "identity"}};
};

struct ResidualOptions final : ChainedLayer {
  LayerList layers;
  std::variant<ShortcutMode, LayerList> shortcut = ShortcutMode::identity;
  ActivationChoice activation{"linear"};

  static Keys<ResidualOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
  MaskUse mask_use() const override { return MaskUse::own; }
  const Choice* final_activation() const override { return &activation; }
};

struct RepeatOptions final : ChainedLayer {
  std::int64_t times = 1;
  LayerList layers;

  static Keys<RepeatOptions> keys();
  Feature expand(Layer& layer, const std::vector<Feature>& inputs) const override;
  MaskUse mask_use() const override { return MaskUse::own; }
  const Choice* final_activation() const override;
};

}  // namespace trainctl
