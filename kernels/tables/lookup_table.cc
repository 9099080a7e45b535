#include "kernels/tables/lookup_table.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"

namespace troupe {
namespace {

bool EndsWith(const Shape& shape, const Shape& end) {
  if (shape.rank() < end.rank()) return false;
  const int skipped = shape.rank() - end.rank();
  for (int d = 0; d < end.rank(); ++d) {
    if (shape.dim(skipped + d) != end.dim(d)) return false;
  }
  return true;
}

/// Keys of a dense table are one, or a vector of them.
int64_t BatchOf(const Shape& keys) { return keys.rank() == 0 ? 1 : keys.dim(0); }

}  // namespace

absl::StatusOr<std::unique_ptr<TableStore>> LookupTable::MakeState(const TableOptions& options) {
  // What an immutable table holds comes with its initialisation.
  if (options.kind == TableOptions::Kind::kImmutable) return nullptr;
  return MakeTableStore(options);
}

LookupTable::LookupTable(std::string name, TableOptions options, std::unique_ptr<TableStore> store)
    : WaitingResource(std::move(name)), options_(std::move(options)), store_(std::move(store)) {}

LookupTable::~LookupTable() { delete initialized_.load(std::memory_order_acquire); }

std::string LookupTable::DebugString() const {
  return StrCat(kKind, " '", name(), "' from ", ElementTypeName(options_.key_type), " to ",
                ElementTypeName(options_.value_type));
}

int64_t LookupTable::Size() const {
  if (!immutable()) return size_.load(std::memory_order_acquire);
  const TableStore* store = initialized_.load(std::memory_order_acquire);
  return store == nullptr ? 0 : store->size();
}

// --- what fits -----------------------------------------------------------------------------------

absl::Status LookupTable::CheckTypes(ElementType keys, ElementType values) const {
  const auto wrong = [&](const char* what, ElementType type) {
    return InvalidArgument(DebugString(), ": ", what, " of type ", ElementTypeName(type),
                           " do not fit");
  };
  if (keys != ElementType::kInvalid && keys != options_.key_type) return wrong("keys", keys);
  if (values != ElementType::kInvalid && values != options_.value_type) {
    return wrong("values", values);
  }
  return absl::OkStatus();
}

absl::Status LookupTable::CheckKeyShape(const Shape& keys) const {
  const Shape& one = options_.key_shape;
  if (!EndsWith(keys, one)) {
    return InvalidArgument(DebugString(), ": the shape ", keys.ToString(),
                           " of keys must end with that of one key, ", one.ToString());
  }
  if (options_.kind == TableOptions::Kind::kDense &&
      keys.num_elements() != BatchOf(keys) * one.num_elements()) {
    return InvalidArgument(DebugString(), ": expected keys of shape [", BatchOf(keys), "] and ",
                           one.ToString(), ", got ", keys.ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> LookupTable::ValuesShape(const Shape& keys) const {
  std::vector<int64_t> dims(keys.dims().begin(), keys.dims().end() - options_.key_shape.rank());
  dims.insert(dims.end(), options_.value_shape.dims().begin(), options_.value_shape.dims().end());
  return Shape::Create(dims);
}

absl::Status LookupTable::CheckFind(const Tensor& keys, const Tensor& defaults) const {
  TROUPE_RETURN_IF_ERROR(CheckTypes(keys.type(), defaults.type()));
  TROUPE_RETURN_IF_ERROR(CheckKeyShape(keys.shape()));
  TROUPE_ASSIGN_OR_RETURN(const Shape all, ValuesShape(keys.shape()));
  if (defaults.shape() == options_.value_shape || defaults.shape() == all) return absl::OkStatus();
  return InvalidArgument(DebugString(), ": expected shape ", options_.value_shape.ToString(),
                         " or ", all.ToString(), " of the default value, got ",
                         defaults.shape().ToString());
}

absl::Status LookupTable::CheckEntries(const Tensor& keys, const Tensor& values,
                                       bool import) const {
  TROUPE_RETURN_IF_ERROR(CheckTypes(keys.type(), values.type()));
  Shape expected;
  if (import && options_.kind == TableOptions::Kind::kDense) {
    // As they are exported: all buckets, in rows.
    const int64_t size = options_.key_shape.num_elements();
    if (keys.rank() != 2 || keys.dim(1) != size) {
      return InvalidArgument(DebugString(), ": expected rows of ", size,
                             " elements as keys, got shape ", keys.shape().ToString());
    }
    TROUPE_ASSIGN_OR_RETURN(expected,
                            Shape::Create({keys.dim(0), options_.value_shape.num_elements()}));
  } else {
    TROUPE_RETURN_IF_ERROR(CheckKeyShape(keys.shape()));
    TROUPE_ASSIGN_OR_RETURN(expected, ValuesShape(keys.shape()));
  }
  if (values.shape() == expected) return absl::OkStatus();
  return InvalidArgument(DebugString(), ": expected values of shape ", expected.ToString(),
                         ", got ", values.shape().ToString());
}

// --- immutable tables ----------------------------------------------------------------------------

absl::Status LookupTable::FindIn(const TableStore& store, KernelContext& ctx, const Tensor& keys,
                                 const Tensor& defaults) const {
  TROUPE_ASSIGN_OR_RETURN(const Shape shape, ValuesShape(keys.shape()));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, options_.value_type, shape));
  // As TensorFlow has it, an immutable table has one default value, the first.
  const bool per_key = !immutable() && defaults.shape() != options_.value_shape;
  if (keys.num_elements() == 0) return absl::OkStatus();
  return store.Find(ctx, keys, defaults, per_key, values);
}

absl::Status LookupTable::FindNow(KernelContext& ctx, const Tensor& keys,
                                  const Tensor& defaults) const {
  const TableStore* store = initialized_.load(std::memory_order_acquire);
  if (store == nullptr) {
    return absl::FailedPreconditionError(StrCat(DebugString(), " has not been initialized"));
  }
  TROUPE_RETURN_IF_ERROR(CheckFind(keys, defaults));
  return FindIn(*store, ctx, keys, defaults);
}

absl::Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  if (!immutable()) return InvalidArgument(DebugString(), " cannot be initialized");
  TROUPE_RETURN_IF_ERROR(CheckTypes(keys.type(), values.type()));
  if (keys.rank() != 1) {
    return InvalidArgument(DebugString(), ": keys must be a vector, got shape ",
                           keys.shape().ToString());
  }
  if (values.shape() != keys.shape()) {
    return InvalidArgument(DebugString(), ": keys and values must have the same size, got shapes ",
                           keys.shape().ToString(), " and ", values.shape().ToString());
  }
  if (keys.num_elements() == 0) {
    return InvalidArgument(DebugString(), ": keys and values cannot be empty");
  }
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<TableStore> store, MakeTableStore(options_));
  store->Reserve(keys.num_elements());
  int64_t wrong = 0;
  if (absl::Status status = store->InsertNew(keys, values, &wrong); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(DebugString(), ": ", status.message()));
  }
  return Initialize(std::move(store));
}

absl::Status LookupTable::Initialize(std::unique_ptr<TableStore> store) {
  if (!immutable()) return InvalidArgument(DebugString(), " cannot be initialized");
  const TableStore* there = nullptr;
  if (initialized_.compare_exchange_strong(there, store.get(), std::memory_order_acq_rel)) {
    (void)store.release();
    return absl::OkStatus();
  }
  if (there->SameAs(*store)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(DebugString(), " was already initialized with different data"));
}

// --- calls ---------------------------------------------------------------------------------------

void LookupTable::Ask(TableCall::What what, Tuple tensors, int outputs, CancellationToken* token,
                      Done done) {
  auto call = std::make_unique<CallbackCall<TableCall>>(this, token, outputs, std::move(done));
  call->what = what;
  call->owned = std::move(tensors);
  if (!call->owned.empty()) call->keys = &call->owned[0];
  if (call->owned.size() > 1) call->values = &call->owned[1];
  Submit(std::move(call));
}

absl::Status LookupTable::TableCall::Check(bool*) const {
  const auto& table = *static_cast<LookupTable*>(resource());
  if (table.immutable()) {
    // What is not served at once.
    if (what == What::kInsert || what == What::kRemove) {
      return absl::UnimplementedError(StrCat(table.DebugString(), " cannot be changed"));
    }
    const bool ready = table.initialized_.load(std::memory_order_acquire) != nullptr;
    if (what == What::kExport && !ready) {
      return absl::AbortedError(StrCat(table.DebugString(), " has not been initialized"));
    }
  }
  switch (what) {
    case What::kFind:
      return table.CheckFind(*keys, *values);
    case What::kInsert:
      return table.CheckEntries(*keys, *values, false);
    case What::kImport:
      return table.immutable() ? absl::OkStatus() : table.CheckEntries(*keys, *values, true);
    case What::kRemove:
      TROUPE_RETURN_IF_ERROR(table.CheckTypes(keys->type(), ElementType::kInvalid));
      return table.CheckKeyShape(keys->shape());
    case What::kExport:
      break;
  }
  return absl::OkStatus();
}

absl::StatusOr<WaitingResource::Call::Progress> LookupTable::TableCall::Serve() {
  auto* table = static_cast<LookupTable*>(resource());
  if (table->immutable()) return Progress::kOver;
  holds_ = table->Lend(reads());
  return holds_ ? Progress::kOver : Progress::kNone;
}

absl::Status LookupTable::TableCall::Conclude(KernelContext& ctx) {
  // Before the step goes on: what comes next finds the table as this call has left it.
  const absl::Cleanup give_back = [this] { GiveBack(); };
  return Work(ctx);
}

absl::Status LookupTable::TableCall::Work(KernelContext& ctx) {
  auto* table = static_cast<LookupTable*>(resource());
  const TableStore* store = table->store_.get();
  if (table->immutable()) {
    if (what == What::kImport) return table->Initialize(*keys, *values);
    if (what == What::kFind) return table->FindNow(ctx, *keys, *values);
    store = table->initialized_.load(std::memory_order_acquire);
  }
  absl::Status status;
  switch (what) {
    case What::kFind:
      return table->FindIn(*store, ctx, *keys, *values);
    case What::kExport: {
      TROUPE_ASSIGN_OR_RETURN(auto exported, store->Export());
      ctx.set_output(0, std::move(exported.first));
      ctx.set_output(1, std::move(exported.second));
      return absl::OkStatus();
    }
    case What::kInsert:
      status = table->store_->Insert(*keys, *values);
      break;
    case What::kRemove:
      status = table->store_->Remove(*keys);
      break;
    case What::kImport:
      status = table->store_->Import(*keys, *values);
      break;
  }
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(table->DebugString(), ": ", status.message()));
}

void LookupTable::TableCall::GiveBack() {
  if (!holds_) return;
  holds_ = false;
  auto* table = static_cast<LookupTable*>(resource());
  if (!reads()) table->size_.store(table->store_->size(), std::memory_order_release);
  table->GiveBack(reads());
}

bool LookupTable::Lend(bool to_reader) {
  int64_t before = lent_.load(std::memory_order_acquire);
  while (true) {
    const bool free = to_reader ? (before & kChanging) == 0 : (before & ~kAwaited) == 0;
    const int64_t after = !free ? before | kAwaited : to_reader ? before + 1 : kChanging;
    if (lent_.compare_exchange_weak(before, after, std::memory_order_acq_rel)) return free;
  }
}

void LookupTable::GiveBack(bool reader) {
  int64_t before = lent_.load(std::memory_order_acquire), after;
  do {
    after = reader ? before - 1 : before & ~kChanging;
    if (after == kAwaited) after = 0;
  } while (!lent_.compare_exchange_weak(before, after, std::memory_order_acq_rel));
  if ((before & kAwaited) != 0 && after == 0) LookAgain();
}

}  // namespace troupe
