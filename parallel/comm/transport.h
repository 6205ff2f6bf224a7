// How the GPUs of the ranks exchange data: `cluster.communication` of a config.
#pragma once

#include "core/spec/values.h"

namespace trainctl {

enum class Transport { automatic, nccl, staged };

template <>
struct EnumNames<Transport> {
  static constexpr EnumName<Transport> names[] = {
      {Transport::automatic, "auto"}, {Transport::nccl, "nccl"}, {Transport::staged, "staged"}};
};

}  // namespace trainctl
