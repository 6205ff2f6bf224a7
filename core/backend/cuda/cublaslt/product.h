// Matrix products of cuBLASLt on row-major matrices, with the epilogues that dense layers need.
#pragma once

#include <cstdint>
#include <string>

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// The operation that is fused with a product and follows it.
enum class Epilogue { none, bias, relu, relu_bias, bias_gradient };

// c [rows, columns] = op(a) op(b), all row-major. a is [rows, inner], or [inner, rows] if transposed; b is [inner,
// columns], or [columns, inner] if transposed. a and b share `operand`; sums are float32. All matrices are aligned to
// 16 bytes, in a batch only the first ones.
struct ProductShape {
  std::int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false, transpose_b = false;
  DType operand = DType::float32, result = DType::float32;
  bool accumulate = false;  // c += op(a) op(b)
  Epilogue epilogue = Epilogue::none;
  // The number of products. If there are several, each operand is an array of matrices, one after the other.
  std::int64_t batch = 1;

  std::string text() const;
};

// A product with its algorithm. run() queues the product, allocates no memory, and computes the same bits every time.
class Product {
 public:
  // Uses the recorded algorithm. Without a record, runs the algorithms that cuBLASLt's heuristics offer on random data,
  // measures their times, and uses and records the fastest. `label` names the op in messages. Throws Error{config} if
  // cuBLASLt has no algorithm for the shape, Error{data} if the record is not an algorithm.
  Product(const Device& device, const ProductShape& shape, KernelChoices& choices, const std::string& label);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  // Returns text such as "cublasLt algo 66 tile 20 stages 24".
  std::string implementation() const;

  // `vector` is the bias [columns] in the dtype of the result, or receives the bias gradient [columns] (sums of b over
  // its inner dimension); null without such an epilogue.
  void run(cudaStream_t stream, const void* a, const void* b, void* c, void* vector, void* workspace) const;

 private:
  void choose(const ProductShape& shape, const std::string& what, bool timing);
  cublasLtMatmulAlgo_t fastest_of(const ProductShape& shape,
                                  const std::vector<cublasLtMatmulHeuristicResult_t>& candidates,
                                  const std::string& what);

  const Device* device_;
  // Shared by copies of the product, which run one after the other.
  std::shared_ptr<cublasLtMatmulDescOpaque_t> operation_;
  std::shared_ptr<cublasLtMatrixLayoutOpaque_t> a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_{};
  std::int64_t workspace_bytes_ = 0;
  bool accumulate_ = false, has_vector_ = false;
};

// Whether cuBLASLt offers any algorithm for the shape.
bool is_offered(const Device& device, const ProductShape& shape);

}  // namespace trainctl::cuda
