// Kernels that use tables. The first versions have references to strings as handles, the second
// ones resources.
#include <utility>

#include "devices/storage/file_system_registry.h"
#include "kernels/common/registration.h"
#include "kernels/io/file_thread.h"
#include "kernels/tables/lookup_table.h"
#include "kernels/tables/text_table.h"

namespace troupe {
namespace {

using What = LookupTable::TableCall::What;

/// A table that an input's handle holds, or that is found by its name.
class InputTable {
 public:
  absl::Status Find(KernelContext& ctx) {
    table_ = HeldByInput<LookupTable>(ctx);
    if (table_ != nullptr) return absl::OkStatus();
    TROUPE_ASSIGN_OR_RETURN(found_, FindWaiting<LookupTable>(ctx));
    table_ = found_.get();
    return absl::OkStatus();
  }
  LookupTable* operator->() const { return table_; }
  LookupTable* get() const { return table_; }

 private:
  LookupTable* table_ = nullptr;
  RefPtr<LookupTable> found_;
};

template <What what>
class TableKernel final : public AsyncKernel {
 public:
  TableKernel(KernelConstruction& c, absl::Status*) {
    // Of an export, the outputs' types say what is expected.
    if (what == What::kExport) {
      key_type_ = c.output_type(0);
      value_type_ = c.output_type(1);
    }
  }

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    InputTable table;
    if (absl::Status status = table.Find(ctx); !status.ok()) return done(std::move(status));
    if (what == What::kFind && table->immutable()) {
      return done(table->FindNow(ctx, ctx.input(1), ctx.input(2)), Player::kPlays);
    }
    if (absl::Status status = table->CheckTypes(key_type_, value_type_); !status.ok()) {
      return done(std::move(status));
    }
    auto call = std::make_unique<KernelCall<LookupTable::TableCall>>(table.get(), ctx, done);
    call->KeepResource();
    call->what = what;
    if (ctx.num_inputs() > 1) call->keys = &ctx.input(1);
    if (ctx.num_inputs() > 2) call->values = &ctx.input(2);
    LookupTable::Submit(std::move(call));
  }

 private:
  ElementType key_type_ = ElementType::kInvalid, value_type_ = ElementType::kInvalid;
};

absl::Status Initialize(KernelContext& ctx) {
  InputTable table;
  TROUPE_RETURN_IF_ERROR(table.Find(ctx));
  return table->Initialize(ctx.input(1), ctx.input(2));
}

absl::Status Size(KernelContext& ctx) {
  InputTable table;
  TROUPE_RETURN_IF_ERROR(table.Find(ctx));
  return ctx.SetScalar(0, table->Size());
}

/// Reads the file on the thread of files.
class InitializeFromTextFile final : public AsyncKernel {
 public:
  InitializeFromTextFile(KernelConstruction& c, absl::Status* status) { *status = Read(c); }

  void ComputeAsync(KernelContext& ctx, KernelDone done) override {
    absl::StatusOr<RefPtr<LookupTable>> table = FindWaiting<LookupTable>(ctx);
    if (!table.ok()) return done(table.status());
    if (absl::Status status = CheckTextTable((*table)->options(), text_); !status.ok()) {
      return done(std::move(status));
    }
    const Tensor& path = ctx.input(1);
    if (path.num_elements() != 1) {
      return done(
          InvalidArgument("filename must be a scalar, got shape ", path.shape().ToString()));
    }
    OnFileThread(
        ctx, done,
        [table = *std::move(table), text = text_, path = path.unchecked_scalar<std::string>()](
            const std::function<bool()>& cancelled) -> absl::StatusOr<std::vector<Tensor>> {
          TROUPE_ASSIGN_OR_RETURN(FileSystem * files, FileSystems().Find(path));
          TROUPE_ASSIGN_OR_RETURN(const auto file, files->OpenForReading(path));
          TROUPE_ASSIGN_OR_RETURN(auto store,
                                  ReadTextTable(*file, path, table->options(), text, cancelled));
          TROUPE_RETURN_IF_ERROR(table->Initialize(std::move(store)));
          return std::vector<Tensor>();
        });
  }

 private:
  absl::Status Read(KernelConstruction& c) {
    TROUPE_RETURN_IF_ERROR(c.GetAttr("key_index", &text_.key_index));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("value_index", &text_.value_index));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("vocab_size", &text_.vocab_size));
    TROUPE_RETURN_IF_ERROR(c.GetAttr("delimiter", &text_.delimiter));
    text_.offset = c.attrs().GetOr<int64_t>("offset", 0);
    return absl::OkStatus();
  }

  TextTableOptions text_;
};

REGISTER_KERNELS(KernelSpec("LookupTableFind"), MakeKernel<TableKernel<What::kFind>>,
                 "LookupTableFindV2");
REGISTER_KERNELS(KernelSpec("LookupTableInsert"), MakeKernel<TableKernel<What::kInsert>>,
                 "LookupTableInsertV2");
REGISTER_KERNEL(KernelSpec("LookupTableRemoveV2"), MakeKernel<TableKernel<What::kRemove>>);
REGISTER_KERNELS(KernelSpec("LookupTableImport"), MakeKernel<TableKernel<What::kImport>>,
                 "LookupTableImportV2");
REGISTER_KERNELS(KernelSpec("LookupTableExport"), MakeKernel<TableKernel<What::kExport>>,
                 "LookupTableExportV2");
REGISTER_KERNELS(Cheap("LookupTableSize"), MakeKernel<Size>, "LookupTableSizeV2");
REGISTER_KERNELS(KernelSpec("InitializeTable"), MakeKernel<Initialize>, "InitializeTableV2");
REGISTER_KERNELS(KernelSpec("InitializeTableFromTextFile"), MakeKernel<InitializeFromTextFile>,
                 "InitializeTableFromTextFileV2");

}  // namespace
}  // namespace troupe
