// The functions of cuBLASLt that Troupe calls, by plain loops.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <complex>
#include <cstring>
#include <map>
#include <string>

#include "tests/cuda_on_host/runtime.h"

using troupe::cuda::on_host::EnqueueWork;
using troupe::cuda::on_host::Inside;

namespace {

/// What the only algorithm asks for.
constexpr size_t kWorkspace = 1024;

/// A descriptor of any kind: its attributes.
struct Description {
  std::map<int, std::string> attributes;
  cudaDataType_t type{}, scale{};
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0;

  template <typename T>
  T Get(int attribute, T usual) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return usual;
    std::memcpy(&usual, found->second.data(), sizeof(T));
    return usual;
  }
};

template <typename Handle>
const Description& Of(Handle handle) {
  return *reinterpret_cast<const Description*>(handle);
}
template <typename Handle>
cublasStatus_t Set(Handle handle, int attribute, const void* value, size_t bytes) {
  reinterpret_cast<Description*>(handle)->attributes[attribute].assign(
      static_cast<const char*>(value), bytes);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename Handle>
cublasStatus_t Make(Handle* handle, Description description) {
  *handle = reinterpret_cast<Handle>(new Description(std::move(description)));
  return CUBLAS_STATUS_SUCCESS;
}
template <typename Handle>
cublasStatus_t Destroy(Handle handle) {
  delete reinterpret_cast<Description*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

/// A batch of column-major matrices.
template <typename T>
struct Matrices {
  T* data;
  int64_t rows, columns, leading, stride;
  bool transposed, conjugated;

  T& At(int64_t batch, int64_t row, int64_t column) const {
    return data[batch * stride + (transposed ? column + row * leading : row + column * leading)];
  }
};

template <typename T>
T Conjugated(T value, bool) {
  return value;
}
template <typename T>
std::complex<T> Conjugated(std::complex<T> value, bool conjugated) {
  return conjugated ? std::conj(value) : value;
}

template <typename T>
Matrices<T> View(void* data, const Description& layout, cublasOperation_t op) {
  const bool transposed = op != CUBLAS_OP_N;
  const auto rows = static_cast<int64_t>(layout.rows),
             columns = static_cast<int64_t>(layout.columns);
  return {static_cast<T*>(data),
          transposed ? columns : rows,
          transposed ? rows : columns,
          layout.leading,
          layout.Get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0),
          transposed,
          op == CUBLAS_OP_C};
}

template <typename T, typename Sum>
cublasStatus_t Product(const Description& product, Sum alpha, const void* a,
                       const Description& a_layout, const void* b, const Description& b_layout,
                       Sum beta, const void* c, void* d, const Description& d_layout,
                       cudaStream_t stream) {
  const auto op = [&product](int attribute) {
    return product.Get<cublasOperation_t>(attribute, CUBLAS_OP_N);
  };
  const auto left =
      View<T>(Inside(const_cast<void*>(a)), a_layout, op(CUBLASLT_MATMUL_DESC_TRANSA));
  const auto right =
      View<T>(Inside(const_cast<void*>(b)), b_layout, op(CUBLASLT_MATMUL_DESC_TRANSB));
  const auto into = View<T>(Inside(d), d_layout, CUBLAS_OP_N);
  if (left.rows != into.rows || left.columns != right.rows || right.columns != into.columns ||
      a_layout.leading < static_cast<int64_t>(a_layout.rows) ||
      b_layout.leading < static_cast<int64_t>(b_layout.rows) || (beta != Sum(0) && c != d)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const int batches = d_layout.Get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1);
  if (a_layout.Get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1) != batches ||
      b_layout.Get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1) != batches) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  return EnqueueWork(stream,
                     [=] {
                       for (int batch = 0; batch < batches; ++batch) {
                         for (int64_t row = 0; row < into.rows; ++row) {
                           for (int64_t column = 0; column < into.columns; ++column) {
                             Sum sum(0);
                             for (int64_t k = 0; k < left.columns; ++k) {
                               sum += Conjugated(static_cast<Sum>(left.At(batch, row, k)),
                                                 left.conjugated) *
                                      Conjugated(static_cast<Sum>(right.At(batch, k, column)),
                                                 right.conjugated);
                             }
                             sum *= alpha;
                             T& at = into.At(batch, row, column);
                             if (beta != Sum(0)) sum += beta * static_cast<Sum>(at);
                             at = static_cast<T>(sum);
                           }
                         }
                       }
                     }) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

#pragma GCC visibility push(default)

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int dummy;
  *handle = reinterpret_cast<cublasLtHandle_t>(&dummy);
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t) { return "an error of cuBLAS on the host"; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t,
                                        cudaDataType_t scale) {
  Description description;
  description.scale = scale;
  return Make(desc, std::move(description));
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return Destroy(desc); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  return Set(desc, attribute, value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t leading) {
  Description description;
  description.type = type;
  description.rows = rows;
  description.columns = columns;
  description.leading = leading;
  return Make(layout, std::move(description));
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return Destroy(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, size_t bytes) {
  return Set(layout, attribute, value, bytes);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return Make(preference, {});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Destroy(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return Set(preference, attribute, value, bytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  results[0] = {};
  results[0].workspaceSize = kWorkspace;
  const Description& wanted = Of(preference);
  for (int i = 0; i < 4; ++i) {
    results[0].algo.data[i] =
        wanted.Get<uint32_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i, 256);
  }
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, size_t workspace,
                              cudaStream_t stream) {
  const void* const matrices[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    if (reinterpret_cast<uintptr_t>(matrices[i]) % algorithm->data[i] != 0) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (workspace < kWorkspace) return CUBLAS_STATUS_INVALID_VALUE;
  const auto run = [&]<typename T, typename Sum>(T, Sum) {
    return Product<T, Sum>(Of(product), *static_cast<const Sum*>(alpha), a, Of(a_layout), b,
                           Of(b_layout), *static_cast<const Sum*>(beta), c, d, Of(d_layout),
                           stream);
  };
  const cudaDataType_t scale = Of(product).scale;
  switch (Of(d_layout).type) {
    case CUDA_R_16F:
      return scale == CUDA_R_32F ? run(__half(), 0.0f) : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUDA_R_16BF:
      return scale == CUDA_R_32F ? run(__nv_bfloat16(), 0.0f) : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUDA_R_32F:
      return scale == CUDA_R_32F ? run(0.0f, 0.0f) : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUDA_R_64F:
      return scale == CUDA_R_64F ? run(0.0, 0.0) : CUBLAS_STATUS_NOT_SUPPORTED;
    case CUDA_C_32F: {
      const std::complex<float> zero;
      return scale == CUDA_C_32F ? run(zero, zero) : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    case CUDA_C_64F: {
      const std::complex<double> zero;
      return scale == CUDA_C_64F ? run(zero, zero) : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    default:
      return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

#pragma GCC visibility pop
