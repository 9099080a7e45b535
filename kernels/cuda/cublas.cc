#include "kernels/cuda/cublas.h"

#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/plan_cache.h"

namespace troupe::cuda {
namespace {

constexpr size_t kWorkspace = 32 << 20;
constexpr size_t kRecipes = 1024;

/// The library's functions.
struct Cublas {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtGetStatusString) status_string;

  static absl::StatusOr<const Cublas*> Get() {
    static const absl::StatusOr<const Cublas*> opened = Open();
    return opened;
  }

 private:
  static absl::StatusOr<const Cublas*> Open() {
    void* const library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return absl::FailedPreconditionError(
          StrCat("products on GPUs need cuBLAS 13, which cannot be loaded: ", dlerror(),
                 "; name its folder in LD_LIBRARY_PATH"));
    }
    static Cublas functions;
    bool all = true;
    const auto find = [&](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
      all = all && *function != nullptr;
    };
    find("cublasLtCreate", &functions.create);
    find("cublasLtMatmul", &functions.matmul);
    find("cublasLtMatmulDescCreate", &functions.desc_create);
    find("cublasLtMatmulDescDestroy", &functions.desc_destroy);
    find("cublasLtMatmulDescSetAttribute", &functions.desc_set);
    find("cublasLtMatrixLayoutCreate", &functions.layout_create);
    find("cublasLtMatrixLayoutDestroy", &functions.layout_destroy);
    find("cublasLtMatrixLayoutSetAttribute", &functions.layout_set);
    find("cublasLtMatmulPreferenceCreate", &functions.preference_create);
    find("cublasLtMatmulPreferenceDestroy", &functions.preference_destroy);
    find("cublasLtMatmulPreferenceSetAttribute", &functions.preference_set);
    find("cublasLtMatmulAlgoGetHeuristic", &functions.heuristic);
    find("cublasLtGetStatusString", &functions.status_string);
    if (!all) return absl::FailedPreconditionError("libcublasLt.so.13 lacks functions");
    return &functions;
  }
};

absl::Status CublasStatus(const Cublas& cublas, cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string message = StrCat(what, ": ", cublas.status_string(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return absl::ResourceExhaustedError(message);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return absl::UnimplementedError(message);
  return absl::InternalError(message);
}

/// One for each card, known by its stream, for the life of the process.
absl::StatusOr<cublasLtHandle_t> HandleOf(const Cublas& cublas, cudaStream_t stream) {
  static auto* const handles = new std::map<cudaStream_t, cublasLtHandle_t>;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  cublasLtHandle_t& handle = (*handles)[stream];
  if (handle == nullptr) {
    TROUPE_RETURN_IF_ERROR(CublasStatus(cublas, cublas.create(&handle), "starting cuBLAS"));
  }
  return handle;
}

/// Of the elements, of the sums, and of the scale.
struct Types {
  cudaDataType_t data;
  cublasComputeType_t sum;
  cudaDataType_t scale;
};
Types TypesOf(ElementType type) {
  const cublasComputeType_t of_float =
      AllowsTf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  switch (type) {
    case ElementType::kHalf:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case ElementType::kBfloat16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case ElementType::kDouble:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case ElementType::kComplex64:
      return {CUDA_C_32F, of_float, CUDA_C_32F};
    case ElementType::kComplex128:
      return {CUDA_C_64F, CUBLAS_COMPUTE_64F, CUDA_C_64F};
    default:
      return {CUDA_R_32F, of_float, CUDA_R_32F};
  }
}

/// 1 and 0 in the type of a product's scale.
struct Scales {
  explicit Scales(cudaDataType_t type) {
    if (type == CUDA_R_64F || type == CUDA_C_64F) {
      one = &of_double[0];
      zero = &of_double[2];
    } else {
      one = &of_float[0];
      zero = &of_float[2];
    }
  }
  static constexpr double of_double[4] = {1, 0, 0, 0};
  static constexpr float of_float[4] = {1, 0, 0, 0};
  const void *one, *zero;
};

/// What a product's algorithm depends on.
struct MatrixKey {
  int64_t stride, row;
  Transposition transposition;
  uint32_t alignment;
  bool operator==(const MatrixKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const MatrixKey& key) {
    return H::combine(std::move(h), key.stride, key.transposition, key.alignment);
  }
};
struct Key {
  cudaStream_t stream;
  ElementType type;
  int64_t m, n, k, batch;
  MatrixKey a, b, c;
  bool operator==(const Key&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine(std::move(h), key.stream, key.type, key.m, key.n, key.k, key.batch, key.a,
                      key.b, key.c);
  }
};

/// How products of some shapes are computed: descriptors, and the algorithm that the library's
/// heuristic likes best.
struct Recipe {
  explicit Recipe(const Cublas* library) : cublas(library) {}
  ~Recipe() {
    if (product != nullptr) cublas->desc_destroy(product);
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) cublas->layout_destroy(layout);
    }
  }
  Recipe(const Recipe&) = delete;

  const Cublas* const cublas;
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
};

class RecipeMaker {
 public:
  RecipeMaker(const Cublas& cublas, const Key& key) : cublas_(cublas), key_(key) {}

  absl::StatusOr<std::shared_ptr<const Recipe>> Make(cublasLtHandle_t handle) {
    auto recipe = std::make_shared<Recipe>(&cublas_);
    const Types types = TypesOf(key_.type);
    TROUPE_RETURN_IF_ERROR(Check(cublas_.desc_create(&recipe->product, types.sum, types.scale)));
    // Row-major matrices are the transposed ones of the library, whose are column-major: it
    // computes c' = b' a'.
    TROUPE_RETURN_IF_ERROR(SetOperation(recipe.get(), CUBLASLT_MATMUL_DESC_TRANSA, key_.b));
    TROUPE_RETURN_IF_ERROR(SetOperation(recipe.get(), CUBLASLT_MATMUL_DESC_TRANSB, key_.a));
    const bool turned_a = key_.a.transposition != Transposition::kNone;
    const bool turned_b = key_.b.transposition != Transposition::kNone;
    TROUPE_RETURN_IF_ERROR(Layout(&recipe->a, types.data, turned_a ? key_.k : key_.m,
                                  turned_a ? key_.m : key_.k, key_.a));
    TROUPE_RETURN_IF_ERROR(Layout(&recipe->b, types.data, turned_b ? key_.n : key_.k,
                                  turned_b ? key_.k : key_.n, key_.b));
    TROUPE_RETURN_IF_ERROR(Layout(&recipe->c, types.data, key_.m, key_.n, key_.c));
    TROUPE_RETURN_IF_ERROR(Choose(handle, recipe.get()));
    return recipe;
  }

 private:
  absl::Status Check(cublasStatus_t status) const {
    return CublasStatus(cublas_, status, "preparing a product");
  }

  absl::Status SetOperation(Recipe* recipe, cublasLtMatmulDescAttributes_t attribute,
                            const MatrixKey& factor) const {
    const Transposition t = factor.transposition;
    const cublasOperation_t op = t == Transposition::kNone         ? CUBLAS_OP_N
                                 : t == Transposition::kTransposed ? CUBLAS_OP_T
                                                                   : CUBLAS_OP_C;
    return Check(cublas_.desc_set(recipe->product, attribute, &op, sizeof(op)));
  }

  absl::Status Layout(cublasLtMatrixLayout_t* made, cudaDataType_t type, int64_t rows,
                      int64_t columns, const MatrixKey& matrix) const {
    const int64_t leading = matrix.row == 0 ? columns : matrix.row;
    TROUPE_RETURN_IF_ERROR(Check(cublas_.layout_create(made, type, static_cast<uint64_t>(columns),
                                                       static_cast<uint64_t>(rows), leading)));
    if (key_.batch == 1) return absl::OkStatus();
    const auto count = static_cast<int32_t>(key_.batch);
    TROUPE_RETURN_IF_ERROR(Check(
        cublas_.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count))));
    return Check(cublas_.layout_set(*made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                    &matrix.stride, sizeof(matrix.stride)));
  }

  absl::Status Choose(cublasLtHandle_t handle, Recipe* recipe) const {
    cublasLtMatmulPreference_t preference = nullptr;
    TROUPE_RETURN_IF_ERROR(Check(cublas_.preference_create(&preference)));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    absl::Status status = SetPreference(preference);
    if (status.ok()) {
      status = Check(cublas_.heuristic(handle, recipe->product, recipe->b, recipe->a, recipe->c,
                                       recipe->c, preference, 1, &result, &found));
    }
    cublas_.preference_destroy(preference);
    TROUPE_RETURN_IF_ERROR(status);
    if (found == 0) return absl::UnimplementedError("cuBLAS knows no algorithm for the product");
    recipe->algorithm = result.algo;
    recipe->workspace = result.workspaceSize;
    return absl::OkStatus();
  }

  absl::Status SetPreference(cublasLtMatmulPreference_t preference) const {
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      return Check(cublas_.preference_set(preference, attribute, &value, sizeof(value)));
    };
    TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspace}));
    // Parts of a sum are added in the type of sums, and not in the order in which they are ready.
    TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                               uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
    // The library's a is b.
    TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key_.b.alignment));
    TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key_.a.alignment));
    TROUPE_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key_.c.alignment));
    return set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key_.c.alignment);
  }

  const Cublas& cublas_;
  const Key& key_;
};

/// What an address is known to be a multiple of: few values, so that few recipes are needed.
uint32_t AlignmentOf(const void* data, ElementType type) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return address % 256 == 0  ? 256
         : address % 16 == 0 ? 16
                             : static_cast<uint32_t>(ElementSize(type));
}

MatrixKey KeyOf(const Factor& factor, ElementType type) {
  return {factor.stride, factor.row, factor.transposition, AlignmentOf(factor.data, type)};
}

/// Most products that are left to one call.
constexpr int64_t kMostBatches = 65535;

/// The products of the first `count` dimensions; those of the first one in one call.
absl::Status MultiplyDims(KernelContext& ctx, const Product& form,
                          const std::vector<ProductDim>& dims, size_t count) {
  const ProductDim& dim = dims[count - 1];
  const auto bytes = static_cast<int64_t>(ElementSize(form.type));
  const int64_t step = count == 1 ? kMostBatches : 1;
  for (int64_t i = 0; i < dim.size; i += step) {
    Product p = form;
    p.a.data = static_cast<const char*>(form.a.data) + i * dim.a * bytes;
    p.b.data = static_cast<const char*>(form.b.data) + i * dim.b * bytes;
    p.c = static_cast<char*>(form.c) + i * dim.c * bytes;
    if (count > 1) {
      TROUPE_RETURN_IF_ERROR(MultiplyDims(ctx, p, dims, count - 1));
      continue;
    }
    p.batch = std::min(step, dim.size - i);
    p.a.stride = dim.a;
    p.b.stride = dim.b;
    p.c_stride = dim.c;
    TROUPE_RETURN_IF_ERROR(Multiply(ctx, p));
  }
  return absl::OkStatus();
}

}  // namespace

bool AllowsTf32() {
  static const bool allowed = [] {
    const char* const wanted = std::getenv("TROUPE_TF32");
    return wanted != nullptr && std::string_view(wanted) == "1";
  }();
  return allowed;
}

absl::Status OpenCublas() { return Cublas::Get().status(); }

absl::Status Multiply(KernelContext& ctx, const Product& p) {
  static auto* const recipes = new PlanCache<Key, Recipe>(kRecipes);
  TROUPE_ASSIGN_OR_RETURN(const Cublas* cublas, Cublas::Get());
  const cudaStream_t stream = StreamOf(ctx);
  TROUPE_ASSIGN_OR_RETURN(const cublasLtHandle_t handle, HandleOf(*cublas, stream));
  const Key key{stream,
                p.type,
                p.m,
                p.n,
                p.k,
                p.batch,
                KeyOf(p.a, p.type),
                KeyOf(p.b, p.type),
                {p.c_stride, p.c_row, Transposition::kNone, AlignmentOf(p.c, p.type)}};
  TROUPE_ASSIGN_OR_RETURN(const std::shared_ptr<const Recipe> recipe, recipes->Get(key, [&] {
    return RecipeMaker(*cublas, key).Make(handle);
  }));
  Tensor workspace;
  if (recipe->workspace > 0) {
    TROUPE_ASSIGN_OR_RETURN(
        workspace,
        ctx.AllocateTemp(ElementType::kUint8, Shape({static_cast<int64_t>(recipe->workspace)})));
  }
  const Scales scales(TypesOf(p.type).scale);
  return CublasStatus(
      *cublas,
      cublas->matmul(handle, recipe->product, scales.one, p.b.data, recipe->b, p.a.data, recipe->a,
                     scales.zero, p.c, recipe->c, p.c, recipe->c, &recipe->algorithm,
                     workspace.valid() ? workspace.mutable_raw_data() : nullptr, recipe->workspace,
                     stream),
      "a product");
}

absl::Status MultiplyAll(KernelContext& ctx, const Product& form,
                         const std::vector<ProductDim>& dims) {
  std::vector<ProductDim> merged = {{1, 0, 0, 0}};
  for (const ProductDim& dim : dims) {
    if (dim.size == 1) continue;
    ProductDim& last = merged.back();
    const bool joins = last.size == 1 || (last.a == dim.a * dim.size &&
                                          last.b == dim.b * dim.size && last.c == dim.c * dim.size);
    if (joins) {
      last = {last.size * dim.size, dim.a, dim.b, dim.c};
    } else {
      merged.push_back(dim);
    }
  }
  std::iter_swap(merged.begin(), std::max_element(merged.begin(), merged.end(),
                                                  [](const ProductDim& x, const ProductDim& y) {
                                                    return x.size < y.size;
                                                  }));
  return MultiplyDims(ctx, form, merged, merged.size());
}

}  // namespace troupe::cuda
