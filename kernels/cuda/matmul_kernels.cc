// Products of GPUs, by cuBLASLt, which is opened when the first one is made.
#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <compare>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "devices/cuda/cuda_device.h"
#include "devices/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"

namespace troupe::cuda {
namespace {

constexpr size_t kWorkspace = 32 << 20;

/// The library's functions.
struct Cublas {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) desc_create;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutCreate) layout_create;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtGetStatusString) status_string;

  /// FailedPrecondition, with the loader's words, if it is not there.
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

struct Shapes {
  int64_t m, n, k;
  auto operator<=>(const Shapes&) const = default;
};

/// How products of some shapes are computed: descriptors, and the algorithm that the library's
/// heuristic likes best.
struct Recipe {
  cublasLtMatmulDesc_t product = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  size_t workspace = 0;
};

/// MatMul. Row-major matrices are the transposed ones of the library, whose are column-major: it
/// computes c' = b' a'.
class MatMulKernel final : public Kernel {
 public:
  MatMulKernel(KernelConstruction& construction, absl::Status* status)
      : type_(construction.input_type(0)),
        transpose_a_(construction.Attr<bool>("transpose_a")),
        transpose_b_(construction.Attr<bool>("transpose_b")) {
    const absl::StatusOr<const Cublas*> cublas = Cublas::Get();
    *status = cublas.status();
    if (!status->ok()) return;
    cublas_ = *cublas;
    const absl::StatusOr<cublasLtHandle_t> handle = HandleOf(construction.device());
    *status = handle.status();
    if (handle.ok()) handle_ = *handle;
  }
  ~MatMulKernel() override {
    for (auto& [shapes, recipe] : recipes_) Destroy(&recipe);
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() != 2 || b.rank() != 2) {
      return InvalidArgument("In[0] and In[1] must be matrices, got ", a.shape().ToString(),
                             " and ", b.shape().ToString());
    }
    const int64_t m = a.dim(transpose_a_ ? 1 : 0), k = a.dim(transpose_a_ ? 0 : 1);
    const int64_t n = b.dim(transpose_b_ ? 0 : 1);
    if (b.dim(transpose_b_ ? 1 : 0) != k) {
      return InvalidArgument("Matrix size-incompatible: In[0]: ", a.shape().ToString(),
                             ", In[1]: ", b.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(Tensor * c, ctx.AllocateOutput(0, type_, Shape({m, n})));
    if (m == 0 || n == 0) return absl::OkStatus();
    if (k == 0) {
      return CudaStatus(cudaMemsetAsync(c->mutable_raw_data(), 0, c->bytes(), StreamOf(ctx)),
                        "filling zeros");
    }
    TROUPE_ASSIGN_OR_RETURN(const Recipe* recipe, Find({m, n, k}));
    Tensor workspace;
    if (recipe->workspace > 0) {
      TROUPE_ASSIGN_OR_RETURN(
          workspace,
          ctx.AllocateTemp(ElementType::kUint8, Shape({static_cast<int64_t>(recipe->workspace)})));
    }
    const double one = 1, zero = 0;
    const float one_float = 1, zero_float = 0;
    const bool wide = type_ == ElementType::kDouble;
    return CublasStatus(
        *cublas_,
        cublas_->matmul(handle_, recipe->product,
                        wide ? static_cast<const void*>(&one) : &one_float, b.raw_data(), recipe->b,
                        a.raw_data(), recipe->a,
                        wide ? static_cast<const void*>(&zero) : &zero_float, c->raw_data(),
                        recipe->c, c->mutable_raw_data(), recipe->c, &recipe->algorithm,
                        workspace.valid() ? workspace.mutable_raw_data() : nullptr,
                        recipe->workspace, StreamOf(ctx)),
        "a product");
  }

 private:
  absl::StatusOr<const Recipe*> Find(const Shapes& shapes) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto [it, first] = recipes_.try_emplace(shapes);
    if (first) {
      absl::Status made = Make(shapes, &it->second);
      if (!made.ok()) {
        Destroy(&it->second);
        recipes_.erase(it);
        return made;
      }
    }
    return &it->second;
  }

  /// One for each card, for the life of the process.
  absl::StatusOr<cublasLtHandle_t> HandleOf(const Device* device) {
    static auto* const handles = new std::map<std::string, cublasLtHandle_t>;
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    cublasLtHandle_t& handle = (*handles)[device->name()];
    if (handle == nullptr) {
      static_cast<const CudaDevice*>(device)->Use();
      TROUPE_RETURN_IF_ERROR(CublasStatus(*cublas_, cublas_->create(&handle), "starting cuBLAS"));
    }
    return handle;
  }

  void Destroy(Recipe* recipe) {
    if (recipe->product != nullptr) cublas_->desc_destroy(recipe->product);
    for (cublasLtMatrixLayout_t layout : {recipe->a, recipe->b, recipe->c}) {
      if (layout != nullptr) cublas_->layout_destroy(layout);
    }
  }

  absl::Status Make(const Shapes& shapes, Recipe* recipe) {
    const auto [data, compute, scale] = Types();
    const Cublas& cublas = *cublas_;
    const auto check = [&](cublasStatus_t status) {
      return CublasStatus(cublas, status, "preparing a product");
    };
    TROUPE_RETURN_IF_ERROR(check(cublas.desc_create(&recipe->product, compute, scale)));
    const std::array<std::pair<cublasLtMatmulDescAttributes_t, bool>, 2> transposed = {
        {{CUBLASLT_MATMUL_DESC_TRANSA, transpose_b_}, {CUBLASLT_MATMUL_DESC_TRANSB, transpose_a_}}};
    for (const auto& [attribute, transpose] : transposed) {
      const cublasOperation_t op = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
      TROUPE_RETURN_IF_ERROR(check(cublas.desc_set(recipe->product, attribute, &op, sizeof(op))));
    }
    const auto layout = [&, data = data](cublasLtMatrixLayout_t* made, int64_t rows,
                                         int64_t columns) {
      return check(cublas.layout_create(made, data, static_cast<uint64_t>(columns),
                                        static_cast<uint64_t>(rows), columns));
    };
    TROUPE_RETURN_IF_ERROR(
        layout(&recipe->a, transpose_a_ ? shapes.k : shapes.m, transpose_a_ ? shapes.m : shapes.k));
    TROUPE_RETURN_IF_ERROR(
        layout(&recipe->b, transpose_b_ ? shapes.n : shapes.k, transpose_b_ ? shapes.k : shapes.n));
    TROUPE_RETURN_IF_ERROR(layout(&recipe->c, shapes.m, shapes.n));
    cublasLtMatmulPreference_t preference = nullptr;
    TROUPE_RETURN_IF_ERROR(check(cublas.preference_create(&preference)));
    const size_t workspace = kWorkspace;
    absl::Status status = check(cublas.preference_set(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    if (status.ok()) {
      status = check(cublas.heuristic(handle_, recipe->product, recipe->b, recipe->a, recipe->c,
                                      recipe->c, preference, 1, &result, &found));
    }
    cublas.preference_destroy(preference);
    TROUPE_RETURN_IF_ERROR(status);
    if (found == 0) return absl::UnimplementedError("cuBLAS knows no algorithm for the product");
    recipe->algorithm = result.algo;
    recipe->workspace = result.workspaceSize;
    return absl::OkStatus();
  }

  /// Of the elements, of the sums, and of the factors.
  std::tuple<cudaDataType_t, cublasComputeType_t, cudaDataType_t> Types() const {
    switch (type_) {
      case ElementType::kHalf:
        return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
      case ElementType::kBfloat16:
        return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
      case ElementType::kDouble:
        return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
      default:
        return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    }
  }

  const ElementType type_;
  const bool transpose_a_, transpose_b_;
  const Cublas* cublas_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::map<Shapes, Recipe> recipes_;
};

}  // namespace

void RegisterMatMul(Extension& extension) {
  extension.Kernel(
      KernelSpec("MatMul").Device("GPU").Types("T", FloatTypes()).Cost(KernelCost::kExpensive),
      MakeKernel<MatMulKernel>);
}

}  // namespace troupe::cuda
