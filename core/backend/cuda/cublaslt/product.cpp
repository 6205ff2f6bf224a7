// Computes matrix products by cuBLASLt.
//
// cuBLASLt is column-major: a row-major matrix [r, c] is its matrix [c, r]. The row-major product c = a b therefore
// becomes c' = b' a', with b as cuBLASLt's A. A vector with a value for each column of c has a value for each row of
// c', as cuBLASLt's bias epilogues expect.
#include "core/backend/cuda/cublaslt/product.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/backend/cuda/choice/timing.h"
#include "core/backend/cuda/choice/timings.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl::cuda {
namespace {

constexpr std::int64_t workspace_limit = 32 << 20;
constexpr int max_candidates = 8;
constexpr std::uint32_t alignment = 16;  // alignment of all operands, in bytes

// The alignment of every matrix of a batch: each operand begins aligned, and its matrices follow each other.
std::uint32_t alignment_of(const ProductShape& s) {
  if (s.batch == 1) return alignment;
  const auto bytes =
      static_cast<std::uint64_t>(s.rows * s.inner * size_of(s.operand) | s.inner * s.columns * size_of(s.operand) |
                                 s.rows * s.columns * size_of(s.result) | alignment);
  return static_cast<std::uint32_t>(bytes & (~bytes + 1));  // the lowest bit
}

cudaDataType_t cuda_type(DType dtype) {
  if (dtype == DType::bfloat16) return CUDA_R_16BF;
  if (dtype == DType::float16) return CUDA_R_16F;
  return CUDA_R_32F;
}

template <class T>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute, T value) {
  check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, T value) {
  check(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value), "cublasLtMatrixLayoutSetAttribute");
}

template <class T>
T get(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written);
  return value;
}

// cuBLASLt's descriptors of a shape.
struct Description {
  OwnedProduct operation;
  OwnedMatrix a, b, c;
  std::uint32_t matrix_alignment;

  Description(const ProductShape& s, const DeviceOptions& options)
      : operation(make<OwnedProduct>(
            cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate",
            options.tf32 && s.operand == DType::float32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
            CUDA_R_32F)),
        a(matrix(s.transpose_b ? s.columns : s.inner, s.transpose_b ? s.inner : s.columns, s.operand, s.batch)),
        b(matrix(s.transpose_a ? s.inner : s.rows, s.transpose_a ? s.rows : s.inner, s.operand, s.batch)),
        c(matrix(s.rows, s.columns, s.result, s.batch)),
        matrix_alignment(alignment_of(s)) {
    set(operation.get(), CUBLASLT_MATMUL_DESC_TRANSA, s.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(operation.get(), CUBLASLT_MATMUL_DESC_TRANSB, s.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(operation.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(s.epilogue));
    if (s.epilogue == Epilogue::none || s.epilogue == Epilogue::relu) return;
    set(operation.get(), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type(s.result));
    // The heuristics read the alignment of the vector's address.
    set(operation.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void*>(std::uintptr_t{alignment}));
  }

 private:
  static OwnedMatrix matrix(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t batch) {
    OwnedMatrix layout =
        make<OwnedMatrix>(cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate", cuda_type(dtype),
                          static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), columns);
    if (batch == 1) return layout;
    set(layout.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(layout.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, rows * columns);
    return layout;
  }
  static cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
    switch (epilogue) {
      case Epilogue::bias:
        return CUBLASLT_EPILOGUE_BIAS;
      case Epilogue::relu:
        return CUBLASLT_EPILOGUE_RELU;
      case Epilogue::relu_bias:
        return CUBLASLT_EPILOGUE_RELU_BIAS;
      case Epilogue::bias_gradient:
        return CUBLASLT_EPILOGUE_BGRADA;
      case Epilogue::none:
        break;
    }
    return CUBLASLT_EPILOGUE_DEFAULT;
  }
};

// Algorithms that return the same bits every time, the most promising first.
std::vector<cublasLtMatmulHeuristicResult_t> offered(const Device& device, const Description& d) {
  const auto preference = make<OwnedPreference>(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace_limit));
  // If sums are split, their terms are added in float32, through memory and in a fixed order: neither in the result's
  // dtype, which may have fewer bits, nor by atomic additions to the result.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    prefer(matrix, d.matrix_alignment);
  }
  std::vector<cublasLtMatmulHeuristicResult_t> results(max_candidates);
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(device.blas(), d.operation.get(), d.a.get(), d.b.get(), d.c.get(), d.c.get(),
                                     preference.get(), max_candidates, results.data(), &count);
  // cuBLASLt does not document which of the two it returns for an unsupported combination of types and epilogue.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
    count = 0;
  } else {
    check(status, "cublasLtMatmulAlgoGetHeuristic");
  }
  results.resize(static_cast<std::size_t>(count));
  std::erase_if(results, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
  return results;
}

// An algorithm's 64 bytes as hexadecimal digits. read_record() reads them, and throws Error{data} if the text is
// malformed.
std::string record_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (std::uint64_t word : algorithm.data) text += format("{:016x}", word);
  return text;
}

cublasLtMatmulAlgo_t read_record(const std::string& key, const std::string& text) {
  constexpr std::size_t digits = 16;
  cublasLtMatmulAlgo_t algorithm{};
  bool good = text.size() == std::size(algorithm.data) * digits;
  for (std::size_t i = 0; good && i < std::size(algorithm.data); ++i) {
    const char* begin = text.data() + i * digits;
    const auto [end, error] = std::from_chars(begin, begin + digits, algorithm.data[i], 16);
    good = error == std::errc{} && end == begin + digits;
  }
  if (good) return algorithm;
  throw Error(ErrorKind::data,
              format("kernel choices: '{}' is recorded as '{}', which is not an algorithm of cuBLASLt", key, text),
              "delete the record of kernel choices; they will be measured again");
}

}  // namespace

std::string ProductShape::text() const {
  return format("product {}{}x{}x{}{}{} {} to {}{} epilogue {}", batch == 1 ? "" : format("{} of ", batch), rows,
                columns, inner, transpose_a ? " ta" : "", transpose_b ? " tb" : "", name_of(operand), name_of(result),
                accumulate ? " added" : "", static_cast<int>(epilogue));
}

bool is_offered(const Device& device, const ProductShape& shape) {
  return !offered(device, Description(shape, device.options())).empty();
}

Product::Product(const Device& device, const ProductShape& shape, KernelChoices& choices, const std::string& label)
    : device_(&device),
      accumulate_(shape.accumulate),
      has_vector_(shape.epilogue != Epilogue::none && shape.epilogue != Epilogue::relu) {
  Description d(shape, device.options());
  operation_ = std::move(d.operation);
  a_ = std::move(d.a);
  b_ = std::move(d.b);
  c_ = std::move(d.c);
  cublasLtMatmulHeuristicResult_t checked{};
  const auto accepts = [&](const cublasLtMatmulAlgo_t& algorithm) {
    return cublasLtMatmulAlgoCheck(device.blas(), operation_.get(), a_.get(), b_.get(), c_.get(), c_.get(), &algorithm,
                                   &checked) == CUBLAS_STATUS_SUCCESS;
  };
  const std::string key = shape.text() + device.options().text();
  const std::string what = label + (label.empty() ? "" : ": ") + shape.text();
  const auto recorded = choices.find(key);
  if (recorded) algorithm_ = read_record(key, *recorded);
  const bool usable = recorded && accepts(algorithm_);
  if (recorded && !usable)
    log::warning(format("{}: the recorded kernel cannot be used here; another one is chosen", what));
  if (!usable) {
    const bool wanted = device.options().timing;
    const bool timing = wanted && choices.may_time(key);
    choose(shape, what, timing);
    if (wanted && !timing) {
      choices.assume(key);
    } else {
      choices.record(key, record_of(algorithm_));
    }
    require(accepts(algorithm_), "cuBLASLt rejects an algorithm that it has offered");
  }
  workspace_bytes_ = static_cast<std::int64_t>(checked.workspaceSize);
}

void Product::choose(const ProductShape& s, const std::string& what, bool timing) {
  const auto candidates = offered(*device_, Description(s, device_->options()));
  if (candidates.empty()) throw Error(ErrorKind::config, "cuBLASLt has no algorithm for " + s.text());
  algorithm_ = candidates.front().algo;
  if (!timing || candidates.size() == 1) return;
  try {
    algorithm_ = fastest_of(s, candidates, what);
  } catch (const Error& error) {  // for example not enough memory
    cudaGetLastError();
    log::warning(format("{} is not timed: {}", what, error.what()));
  }
}

cublasLtMatmulAlgo_t Product::fastest_of(const ProductShape& s,
                                         const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                                         const std::string& what) {
  const RandomBuffer a(s.batch * s.rows * s.inner * size_of(s.operand), s.operand);
  const RandomBuffer b(s.batch * s.inner * s.columns * size_of(s.operand), s.operand);
  const RandomBuffer c(s.batch * s.rows * s.columns * size_of(s.result), s.result);
  const RandomBuffer vector(s.columns * size_of(DType::float32), DType::float32);
  std::size_t largest = 0;
  for (const auto& candidate : candidates) largest = std::max(largest, candidate.workspaceSize);
  const RandomBuffer workspace(static_cast<std::int64_t>(largest), DType::float32);
  Timings timings(what);
  for (const cublasLtMatmulHeuristicResult_t& candidate : candidates) {
    algorithm_ = candidate.algo;
    workspace_bytes_ = static_cast<std::int64_t>(candidate.workspaceSize);
    timings.measure(implementation(), [&](cudaStream_t stream) {
      run(stream, a.get(), b.get(), c.get(), has_vector_ ? vector.get() : nullptr, workspace.get());
    });
  }
  return candidates[timings.fastest()].algo;
}

std::string Product::implementation() const {
  return format("cublasLt algo {} tile {} stages {} split {}", get<int>(algorithm_, CUBLASLT_ALGO_CONFIG_ID),
                get<std::uint32_t>(algorithm_, CUBLASLT_ALGO_CONFIG_TILE_ID),
                get<std::uint32_t>(algorithm_, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                get<std::int32_t>(algorithm_, CUBLASLT_ALGO_CONFIG_SPLITK_NUM));
}

void Product::run(cudaStream_t stream, const void* a, const void* b, void* c, void* vector, void* workspace) const {
  require(workspace_bytes_ == 0 || reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0,
          "the workspace of a product is not aligned to 256 bytes");
  if (has_vector_) set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  const float one = 1, beta = accumulate_ ? 1 : 0;
  check(cublasLtMatmul(device_->blas(), operation_.get(), &one, b, a_.get(), a, b_.get(), &beta, c, c_.get(), c,
                       c_.get(), &algorithm_, workspace, static_cast<std::size_t>(workspace_bytes_), stream),
        "cublasLtMatmul");
}

}  // namespace trainctl::cuda
