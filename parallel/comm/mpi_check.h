// Includes mpi.h and turns its error codes into Errors.
#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>
#include <string_view>

#include "core/base/error.h"

namespace trainctl {

// Throws Error{peer} with MPI's error message unless the code is MPI_SUCCESS. `what`: the operation, for the message.
inline void check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ErrorKind::peer, std::string(what) + " failed: " + std::string(text, static_cast<std::size_t>(length)));
}

}  // namespace trainctl
