// Emulates the part of cuBLASLt that core/backend/cuda/cublaslt/product.cpp uses, as it is documented, by plain loops.
//
// It offers three algorithms. The first requires memory aligned to 16 bytes and relies on the alignment that the
// preference promises; the second accepts any memory; the third splits each sum in two, through its workspace. They add
// in different orders.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "test/emulated_gpu/runtime.h"
#include "test/emulated_gpu/values.h"

using namespace emulated;

struct cublasLtContext {};

namespace {

struct Operand {
  cudaDataType_t type;
  std::int32_t batch;
  std::int64_t rows, columns, leading, stride;  // stride: elements from one matrix of a batch to the next
};

struct Description {
  cublasComputeType_t compute;
  std::int32_t scale_type;
  std::int32_t transpose_a, transpose_b;
  std::uint32_t epilogue;
  std::int32_t bias_type;
  void* vector;
};

struct Preference {
  std::uint64_t workspace_bytes;
  std::uint32_t reduction_schemes;
  std::array<std::uint32_t, 4> alignment;  // minimum bytes for A, B, C, D
};

constexpr std::uint64_t magic = 0x656d756c61746564;
enum Id : std::uint64_t { aligned = 66, plain = 7, split = 21 };

// The contents of a cublasLtMatmulAlgo_t.
struct Algorithm {
  std::uint64_t mark, id;
  std::uint32_t vector_alignment, unused;
  std::int64_t rows, columns, inner;
};

// get() and put() read and write our structs in the library's opaque structs.
template <class Ours, class Theirs>
Ours get(const Theirs& theirs) {
  static_assert(sizeof(Ours) <= sizeof(Theirs) && std::is_trivially_copyable_v<Ours>);
  Ours ours;
  std::memcpy(&ours, &theirs, sizeof ours);
  return ours;
}
template <class Ours, class Theirs>
void put(Theirs& theirs, const Ours& ours) {
  static_assert(sizeof(Ours) <= sizeof(Theirs));
  std::memcpy(&theirs, &ours, sizeof ours);
}

cublasStatus_t refuse(const char* why) {
  std::fprintf(stderr, "emulated cuBLASLt: %s\n", why);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

std::optional<Number> number(cudaDataType_t type) {
  switch (type) {
    case CUDA_R_32F:
      return Number::f32;
    case CUDA_R_16BF:
      return Number::bf16;
    case CUDA_R_16F:
      return Number::f16;
    default:
      return std::nullopt;
  }
}

// The product that the arguments of a call describe: D [rows, columns] = op(A) op(B) + C, in column-major order.
struct Product {
  Description how;
  Operand a, b, c, d;
  std::int64_t rows = 0, columns = 0, inner = 0;

  Product(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a_layout, cublasLtMatrixLayout_t b_layout,
          cublasLtMatrixLayout_t c_layout, cublasLtMatrixLayout_t d_layout)
      : how(get<Description>(*operation)),
        a(get<Operand>(*a_layout)),
        b(get<Operand>(*b_layout)),
        c(get<Operand>(*c_layout)),
        d(get<Operand>(*d_layout)),
        rows(d.rows),
        columns(d.columns),
        inner(how.transpose_a == CUBLAS_OP_T ? a.rows : a.columns) {}

  bool has_bias() const {
    return how.epilogue == CUBLASLT_EPILOGUE_BIAS || how.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  bool has_vector() const { return has_bias() || has_gradient(); }
  bool has_gradient() const {
    return how.epilogue == CUBLASLT_EPILOGUE_BGRADA || how.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  }
  Number vector_type() const { return *number(d.type); }

  cublasStatus_t check() const {
    const bool ta = how.transpose_a == CUBLAS_OP_T, tb = how.transpose_b == CUBLAS_OP_T;
    const bool shapes = (ta ? a.columns : a.rows) == rows && (tb ? b.rows : b.columns) == columns &&
                        (tb ? b.columns : b.rows) == inner && c.rows == rows && c.columns == columns &&
                        a.batch == d.batch && b.batch == d.batch && c.batch == d.batch;
    if (!shapes) return CUBLAS_STATUS_INVALID_VALUE;
    for (const Operand* operand : {&a, &b, &c, &d}) {
      if (operand->rows < 1 || operand->columns < 1 || operand->leading < operand->rows) {
        return CUBLAS_STATUS_INVALID_VALUE;
      }
      if (!number(operand->type)) return refuse("a data type that is not emulated");
    }
    if (a.type != b.type || c.type != d.type) return refuse("A and B, and C and D, must have the same type");
    if (d.type != a.type && d.type != CUDA_R_32F) return refuse("D must have A's type or CUDA_R_32F");
    const bool fast = how.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    if (how.compute != CUBLAS_COMPUTE_32F && !fast) return refuse("a compute type that is not emulated");
    if (fast && a.type != CUDA_R_32F) return refuse("CUBLAS_COMPUTE_32F_FAST_TF32 requires CUDA_R_32F");
    if (how.scale_type != CUDA_R_32F) return refuse("the scale type of float32 sums must be CUDA_R_32F");
    const bool known =
        has_vector() || how.epilogue == CUBLASLT_EPILOGUE_DEFAULT || how.epilogue == CUBLASLT_EPILOGUE_RELU;
    if (!known) return refuse("an epilogue that is not emulated");
    if (how.bias_type != -1 && has_vector() && how.bias_type != d.type) {
      return refuse("a bias, and its gradient, must have the type of D");
    }
    return CUBLAS_STATUS_SUCCESS;
  }

  std::uint64_t workspace_bytes(std::uint64_t id) const {
    return id == split ? 2 * sizeof(float) * static_cast<std::uint64_t>(rows * columns) : 0;
  }
  std::size_t bytes(const Operand& operand) const {
    const std::int64_t before_last = operand.stride * (operand.batch - 1);
    return static_cast<std::size_t>(before_last + operand.leading * (operand.columns - 1) + operand.rows) *
           size_of(*number(operand.type));
  }
};

cublasLtMatmulHeuristicResult_t result_of(const Product& product, const Algorithm& algorithm) {
  cublasLtMatmulHeuristicResult_t result{};
  put(result.algo, algorithm);
  result.workspaceSize = product.workspace_bytes(algorithm.id);
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1;
  return result;
}

// The addresses and factors of one call.
struct Run {
  Product product;
  Algorithm algorithm;
  const void *a, *b, *c;
  void *d, *workspace;
  float alpha, beta;

  float left(std::int64_t row, std::int64_t k) const {
    const bool t = product.how.transpose_a == CUBLAS_OP_T;
    return load(a, *number(product.a.type), t ? k + row * product.a.leading : row + k * product.a.leading);
  }
  float right(std::int64_t k, std::int64_t column) const {
    const bool t = product.how.transpose_b == CUBLAS_OP_T;
    return load(b, *number(product.b.type), t ? column + k * product.b.leading : k + column * product.b.leading);
  }

  float dot(const std::vector<float>& a_row, const float* b_column, std::int64_t begin, std::int64_t end) const {
    float sum = 0;
    if (algorithm.id == aligned) {
      for (std::int64_t k = end; k-- > begin;) sum += a_row[static_cast<std::size_t>(k)] * b_column[k];
    } else {
      for (std::int64_t k = begin; k < end; ++k) sum += a_row[static_cast<std::size_t>(k)] * b_column[k];
    }
    return sum;
  }

  void operator()() const {
    for (std::int64_t i = 0; i < product.d.batch; ++i) {
      Run one = *this;
      one.a = matrix(a, product.a, i);
      one.b = matrix(b, product.b, i);
      one.c = matrix(c, product.c, i);
      one.d = const_cast<void*>(matrix(d, product.d, i));
      one.compute();
    }
  }

  static const void* matrix(const void* first, const Operand& operand, std::int64_t i) {
    return static_cast<const std::byte*>(first) +
           static_cast<std::size_t>(i * operand.stride) * size_of(*number(operand.type));
  }

  void compute() const {
    const std::int64_t m = product.rows, n = product.columns, inner = product.inner;
    std::vector<float> row(static_cast<std::size_t>(inner)), columns(static_cast<std::size_t>(n * inner));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k < inner; ++k) columns[static_cast<std::size_t>(j * inner + k)] = right(k, j);
    }
    auto* partial = static_cast<float*>(workspace);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t k = 0; k < inner; ++k) row[static_cast<std::size_t>(k)] = left(i, k);
      for (std::int64_t j = 0; j < n; ++j) {
        const float* column = &columns[static_cast<std::size_t>(j * inner)];
        if (algorithm.id == split) {
          partial[i * n + j] = dot(row, column, 0, inner / 2);
          partial[(m + i) * n + j] = dot(row, column, inner / 2, inner);
          finish(i, j, partial[i * n + j] + partial[(m + i) * n + j]);
        } else {
          finish(i, j, dot(row, column, 0, inner));
        }
      }
    }
    if (product.has_gradient()) sum_operand();
  }

  void finish(std::int64_t i, std::int64_t j, float sum) const {
    float value = alpha * sum;
    if (beta != 0) value += beta * load(c, *number(product.c.type), i + j * product.c.leading);
    if (product.has_bias()) value += load(product.how.vector, product.vector_type(), i);
    const auto epilogue = product.how.epilogue;
    if (epilogue == CUBLASLT_EPILOGUE_RELU || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) value = value > 0 ? value : 0;
    store(d, *number(product.d.type), i + j * product.d.leading, value);
  }

  // Computes the gradient of a bias: the sums of A or B over the inner dimension.
  void sum_operand() const {
    const bool of_a = product.how.epilogue == CUBLASLT_EPILOGUE_BGRADA;
    for (std::int64_t i = 0; i < (of_a ? product.rows : product.columns); ++i) {
      float sum = 0;
      for (std::int64_t k = 0; k < product.inner; ++k) sum += of_a ? left(i, k) : right(k, i);
      store(product.how.vector, product.vector_type(), i, sum);
    }
  }
};

template <class Descriptor>
cublasStatus_t destroy(Descriptor* descriptor) {
  delete descriptor;
  return CUBLAS_STATUS_SUCCESS;
}

// Copies the caller's value of an attribute to `target`.
template <class T>
cublasStatus_t take(T& target, const void* value, std::size_t bytes) {
  if (value == nullptr || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&target, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "not supported";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "invalid value";
    default:
      return "failure";
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t{};
  put(**layout, Operand{type, 1, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading, 0});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                std::size_t bytes) {
  auto ours = get<Operand>(*layout);
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
    status = take(ours.batch, value, bytes);
  } else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) {
    status = take(ours.stride, value, bytes);
  } else {
    return refuse("an attribute of a matrix that is not emulated");
  }
  put(*layout, ours);
  return status;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute,
                                        cudaDataType_t scale_type) {
  *made = new cublasLtMatmulDescOpaque_t{};
  put(**made, Description{compute, scale_type, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, -1, nullptr});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) { return destroy(description); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  auto ours = get<Description>(*description);
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      status = take(ours.transpose_a, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
      status = take(ours.transpose_b, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      status = take(ours.epilogue, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      status = take(ours.bias_type, value, bytes);
      break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      status = take(ours.vector, value, bytes);
      break;
    default:
      return refuse("an attribute of a product that is not emulated");
  }
  put(*description, ours);
  return status;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  *made = new cublasLtMatmulPreferenceOpaque_t{};
  put(**made, Preference{0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  auto ours = get<Preference>(*preference);
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      status = take(ours.workspace_bytes, value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      status = take(ours.reduction_schemes, value, bytes);
      break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      status = take(ours.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
      break;
    default:
      return refuse("a preference that is not emulated");
  }
  put(*preference, ours);
  return status;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  *count = 0;
  const Product product(operation, a, b, c, d);
  if (const cublasStatus_t status = product.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  const auto prefers = get<Preference>(*preference);
  const auto vector_alignment = static_cast<std::uint32_t>(alignment_of(product.how.vector));
  const bool promised =
      std::all_of(prefers.alignment.begin(), prefers.alignment.end(), [](auto bytes) { return bytes >= 16; }) &&
      (!product.has_vector() || vector_alignment >= 16);
  for (const std::uint64_t id : {aligned, split, plain}) {
    const bool fits = id == aligned ? promised
                      : id == split ? product.workspace_bytes(id) <= prefers.workspace_bytes && product.inner > 1 &&
                                          (prefers.reduction_schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0
                                    : true;
    if (!fits || *count == wanted) continue;
    results[(*count)++] =
        result_of(product, {magic, id, vector_alignment, 0, product.rows, product.columns, product.inner});
  }
  return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  const Product product(operation, a, b, c, d);
  if (const cublasStatus_t status = product.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  const auto algorithm = get<Algorithm>(*algo);
  const bool ours = algorithm.mark == magic && algorithm.rows == product.rows && algorithm.columns == product.columns &&
                    algorithm.inner == product.inner;
  if (!ours) return CUBLAS_STATUS_INVALID_VALUE;
  *result = result_of(product, algorithm);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  const auto algorithm = get<Algorithm>(*algo);
  const std::uint32_t number = attribute == CUBLASLT_ALGO_CONFIG_ID           ? static_cast<std::uint32_t>(algorithm.id)
                               : attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? (algorithm.id == split ? 2u : 1u)
                                                                              : 0u;
  if (bytes < sizeof number) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &number, sizeof number);
  *written = sizeof number;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  const Product product(operation, a_layout, b_layout, c_layout, d_layout);
  if (const cublasStatus_t status = product.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  const auto algorithm = algo != nullptr ? get<Algorithm>(*algo)
                                         : Algorithm{magic, plain, 1, 0, product.rows, product.columns, product.inner};
  const auto invalid = [](const char* why) {
    std::fprintf(stderr, "emulated cuBLASLt: %s\n", why);
    return CUBLAS_STATUS_INVALID_VALUE;
  };
  if (algorithm.mark != magic || algorithm.rows != product.rows || algorithm.columns != product.columns ||
      algorithm.inner != product.inner) {
    return invalid("the algorithm is not for this product");
  }
  const std::uint64_t needed = product.workspace_bytes(algorithm.id);
  if (workspace_bytes < needed) return invalid("the workspace is too small");
  if (needed > 0 && (alignment_of(workspace) < 256 || !device_may_use(workspace, needed)))
    return invalid("the workspace is not aligned to 256 bytes, or not in device memory");
  const Run run{
      product, algorithm, a, b, c, d, workspace, *static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
  const std::size_t least = algorithm.id == aligned ? 16 : 0;
  for (const auto& [memory, operand] :
       {std::pair<const void*, const Operand*>{a, &product.a}, {b, &product.b}, {c, &product.c}, {d, &product.d}}) {
    if (memory == c && run.beta == 0) continue;
    if (!device_may_use(memory, product.bytes(*operand))) return invalid("a matrix is not in device memory");
    const void* second = operand->batch > 1 ? Run::matrix(memory, *operand, 1) : memory;
    if (std::min(alignment_of(memory), alignment_of(second)) < std::max(least, size_of(*number(operand->type)))) {
      return invalid("a matrix is less aligned than the preference promised");
    }
  }
  if (product.has_vector()) {
    const std::size_t elements =
        static_cast<std::size_t>(product.how.epilogue == CUBLASLT_EPILOGUE_BGRADB ? product.columns : product.rows);
    if (!device_may_use(product.how.vector, elements * size_of(product.vector_type())))
      return invalid("a bias is not in device memory");
    if (alignment_of(product.how.vector) < std::max(least, size_of(product.vector_type()))) {
      return invalid("a bias is less aligned than the heuristics were told");
    }
  }
  return queue(stream, {Operation::Kind::device, run}) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                      : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
